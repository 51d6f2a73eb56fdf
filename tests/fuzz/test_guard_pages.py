"""All ops, products and derivatives, element types and extents from 1 to 70 between guard pages, for every machine.

Some thousand kernels of each kind a machine, by `make fuzz`.  Short forms are in `tests/jit/emit`:
`test_element_access.py` has ops and derivatives, `test_matrix_products.py` products.
"""

from __future__ import annotations

import platform
import sys

import pytest
from hypothesis import settings

from tests.jit.guard_pages import CPUS, HOST
from tests.jit.guarded_gradients import missing_derivatives
from tests.jit.guarded_sweep import KINDS, chosen, sweep

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)

SHARES = {"ops": 0.25, "products": 0.35, "gradients": 0.15}
"""Of the cases of one extent, other ones for each."""
LEAST = {"ops": 2000, "products": 150, "gradients": 1000}
PARTS = 5


def extents(part: int) -> range:
    return range(1 + part, 71, PARTS)


@pytest.mark.slow
@pytest.mark.skipif(
    settings().max_examples < 1000, reason="takes minutes: in the profile `fuzz` alone"
)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_stay_inside_of_their_tensors(kind: str, cpu: str, part: int) -> None:
    """Vectors that this machine lacks are left out of what is compiled."""
    found = sweep(kind, cpu, extents(part), share=SHARES[kind])
    print(f"{found.cases} kernels")
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases > LEAST[kind]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_with_a_derivative_has_it_among_the_cases(part: int) -> None:
    """In both modes and for all float types."""
    assert not missing_derivatives(chosen("gradients", HOST, extents(part), 1, SHARES["gradients"]))
