"""All ops, element types and extents from 1 to 70 between guard pages, for every machine: `make fuzz`.

Some ten thousand kernels a machine; the short form is in `tests/jit/emit/test_memory.py`.
"""

from __future__ import annotations

import platform
import sys

import pytest
from hypothesis import settings

from tests.jit.guard_pages import CPUS, survey

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)

SHARE = "0.25"
"""Of the cases of one extent, other ones for each."""
PARTS = 5


@pytest.mark.slow
@pytest.mark.skipif(
    settings().max_examples < 1000, reason="takes minutes: in the profile `fuzz` alone"
)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("cpu", CPUS)
def test_kernels_stay_inside_of_their_tensors(cpu: str, part: int) -> None:
    """Vectors that this machine lacks are left out of what is compiled."""
    extents = map(str, range(1 + part, 71, PARTS))
    found = survey("tests.jit.guarded_sweep", cpu, "1", SHARE, *extents)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases > 2000
