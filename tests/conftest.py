"""Profiles of the property tests: `default` draws the same in every run, `fuzz` many more and new ones."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

os.environ.setdefault("NNKIT_QUIET", "1")  # how long a compile takes is that of the machine

collect_ignore = ["ir/lit.cfg.py"]  # lit's, not a module

settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=2000)
settings.load_profile("default")


_COSTLY = (
    "test_typing test_examples test_ir_files test_element_access test_depth test_packaging test_scaling "
    "test_whole_programs test_guides test_custom_rules test_checkpointing"
).split()
"""Files that take more than 20 s, the longest first: begun last, one would go on when all others are done."""


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
