"""The cost model of fusion: recomputing a scalar expression against storing and loading it.

Units: one add or multiply of a vector whose operands are in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Shape
from .scalars import Computed, Read, Scalar, axes_of

LOAD = 1.0
"""A load from the nearest cache: an instruction, as an addition is. With 2, the gradient of a variance computes again
what it could load, and takes 1.24 times as long."""

STORE = 2.0
"""A store, of which CPUs begin half as many per cycle as loads.  1 to 2 give the benchmarks the same code."""

_NEAR, _FAR = 1 << 15, 1 << 20
"""Bytes that the first and the second cache hold, roughly, on any machine.

Four times as many, or for `_FAR` a quarter and eight times, give the benchmarks the same code.
"""

_FAR_FACTOR, _MEMORY_FACTOR = 1.5, 3.0
"""What an access costs more in the second cache, and beyond: a stream of them waits for bandwidth, not for each. 1 for
the one, and 1.5 to 6 for the other, give the benchmarks the same code."""


def traffic(size: int) -> tuple[float, float]:
    """The cost of a load from, and a store to, a tensor of `size` bytes that is walked through."""
    factor = 1.0 if size <= _NEAR else _FAR_FACTOR if size <= _FAR else _MEMORY_FACTOR
    return factor * LOAD, factor * STORE


def cost_of(parts: Sequence[Scalar], extents: Shape) -> float:
    """The cost per point of `parts`, operands before users, in loops of which the last axis is innermost.

    What does not change along that axis is computed once per walk along it.  The first load counts as the
    one that the expression replaces.
    """
    axis, walk = len(extents) - 1, max(extents[-1] if extents else 1, 1)
    varying: set[Scalar] = set()
    cost, loads = 0.0, 0
    for part in parts:
        varies = not varying.isdisjoint(part.operands)
        if isinstance(part, Computed):
            cost += part.op.cost / (1 if varies else walk)
        else:
            varies = varies or axis in axes_of(part)
            loads += isinstance(part, Read) and varies
        if varies:
            varying.add(part)
    return cost + LOAD * max(loads - 1, 0)
