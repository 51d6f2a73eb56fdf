"""Profiles of the property tests: `default` draws the same in every run, `fuzz` many more and new ones."""

from __future__ import annotations

import gc
import os
import time
import zlib
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import settings
from llvmlite import binding

from nnkit.core.driver import stages
from nnkit.jit.llvm import Engine, optimization_level

os.environ.setdefault("NNKIT_QUIET", "1")  # how long a compile takes is that of the machine

collect_ignore = ["ir/lit.cfg.py"]  # lit's, not a module

FUZZED = 2000
settings.register_profile("default", deadline=None, max_examples=16, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=FUZZED)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test-widths` compiles at every level; for which machine, and on how many threads, the environment says."""
    parser.addoption("--level", type=int, help="compile at -O0 to -O3")
    parser.addoption(
        "--minutes", type=float, help="on slow machines: from then on one test of three"
    )


def pytest_configure(config: pytest.Config) -> None:
    level = config.getoption("level")
    if level is not None:
        for function in (stages.advance, stages.passes_to):
            assert function.__kwdefaults__ is not None and "level" in function.__kwdefaults__
            function.__kwdefaults__["level"] = level
        optimization_level.__defaults__ = (level,)


_BEGUN = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """With `--minutes`, of the tests that would begin later, one of three runs, the same ones each time.

    So `.ci/run` ends within a quarter of an hour on machines half as fast as those that it was measured on, too; there
    `make test` by itself takes some minutes more, and leaves out nothing.
    """
    minutes = item.config.getoption("minutes")
    is_late = minutes is not None and time.monotonic() - _BEGUN > 60 * minutes
    if is_late and zlib.crc32(item.nodeid.encode()) % 3:
        pytest.skip(f"begins later than --minutes={minutes:g}; `make test` runs all")


_COSTLY = (
    "test_examples test_ir_files test_typing test_element_access test_depth test_packaging test_scaling "
    "test_whole_programs test_guides test_custom_rules test_checkpointing"
).split()
"""Files that take more than 20 s, long ones first: begun last, one would go on when all others are done.

That of the checkers is third: at the very beginning pyright runs already, and takes a gigabyte.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers must give tests the same names: an address in one makes xdist refuse all."""
    for item in items:
        assert " at 0x" not in item.nodeid, f"give ids= to the parameters of {item.nodeid}"
    places = {name: place for place, name in enumerate(_COSTLY)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="module", autouse=True)
def _leave_out_of_collections_what_is_there() -> None:
    """The tests of one worker make millions of objects, and many tests collect garbage, which visits them all."""
    gc.collect()
    gc.freeze()


@cache
def _unoptimizing(engine: Engine) -> binding.TargetMachine:
    return engine._machine_at(0)


@pytest.fixture(scope="module")
def unoptimized_code() -> Iterator[None]:
    """LLVM generates code at -O0, in a third of the time that is two fifths of such tests.

    For laws of what programs mean, derivatives above all; that LLVM keeps to what is emitted is for the tests of `jit`,
    of random and of whole programs, and of functions, and for `make fuzz`, which compiles everything as users do.
    """
    with pytest.MonkeyPatch.context() as patch:
        if settings().max_examples < FUZZED:
            patch.setattr(Engine, "_machine_for", lambda engine, _: _unoptimizing(engine))
        yield
