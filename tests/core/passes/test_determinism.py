"""The same program gives the same text: on every run, under every hash seed, wherever objects lie in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nnkit.core.ir.surgery import clone_module
from nnkit.core.passes import ALL, apply_pass
from nnkit.core.text import parse_module, print_module
from tests.core.passes.pointer_programs import pointer_programs
from tests.programs import graphs, programs

ROOT = Path(__file__).parents[3]
SEEDS = ("0", "1", "4294967295")

CHILD = """
import sys
from pathlib import Path
from nnkit.core.errors import NNKitError
from nnkit.core.passes import ALL, apply_pass
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from nnkit.core.driver.stages import advance
from nnkit.core.stage import Stage

def text_after(text, way):
    module = parse_module(text)
    verify(module)
    way(module)
    return print_module(module)

def level(number):
    return lambda module: advance(module, Stage.OPTIMIZED, *module.functions, level=number)

def every_pass(module):
    for a_pass in ALL:
        apply_pass(a_pass(), module)

WAYS = {"-O2": level(2), "-O3": level(3), "all": every_pass}

for file in sys.argv[1:]:
    for name, way in WAYS.items():
        print(f"// {Path(file).name} {name}")
        try:
            print(text_after(Path(file).read_text(), way))
        except NNKitError as error:
            print(f"// failed: {error}")
"""


def run(seed: str, files: list[Path]) -> str:
    """What a process of its own makes of the files."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CHILD, *map(str, files)]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of `tests/ir`, and random programs with all there is."""
    folder = tmp_path_factory.mktemp("programs")
    texts: list[str] = []

    @settings(max_examples=12, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(
        st.one_of(
            pointer_programs(),
            graphs(control=True, memory=True).map(lambda p: print_module(p.module)),
            programs(control=True, memory=True).map(lambda p: print_module(p.module)),
        )
    )
    def draw(text: str) -> None:
        texts.append(text)

    draw()
    files = sorted((ROOT / "tests" / "ir").glob("*.dl"))
    for number, text in enumerate(sorted(texts, key=len)[-8:]):
        files.append(folder / f"random{number}.dl")
        files[-1].write_text(text)
    return files


def test_hash_seeds_and_addresses_make_no_difference(examples: list[Path]) -> None:
    first, *others = (run(seed, examples) for seed in SEEDS)
    assert first.count("\nmodule ") > 2 * len(examples)
    for seed, text in zip(SEEDS[1:], others, strict=True):
        pairs = zip(first.splitlines(), text.splitlines(), strict=False)
        different = [(one, other) for one, other in pairs if one != other]
        assert text == first, f"under seed {seed}: {different[:3]}"


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(text=pointer_programs())
def test_a_copy_becomes_what_the_original_becomes(text: str) -> None:
    module = parse_module(text)
    copy = clone_module(module)
    for a_pass in ALL:
        apply_pass(a_pass(), module)
        apply_pass(a_pass(), copy)
        assert print_module(copy) == print_module(module), a_pass.name
