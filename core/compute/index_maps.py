"""Static properties of a result's index map: whether it is injective, and covers the whole tensor.

A map is injective when the indices of a point determine its coordinates.  Then every element is written
once, may be stored without reading it first, and needs no fill if there are as many points as elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ops.nest import Affine, Bounds, Index, Output, axes_in
from ..types import Shape


def axes_of(indices: Sequence[Index], extents: Shape) -> frozenset[int]:
    """The axes of more than one point that affine indices depend on."""
    return frozenset(axis for axis in axes_in(indices) if extents[axis] > 1)


def is_injective(indices: Sequence[Index], extents: Shape) -> bool:
    """Whether different coordinates (of the axes the indices mention) always give different indices.

    Each index determines its axes when, ordered by coefficient, each coefficient exceeds the reach of
    all smaller ones, as digits of a number do; axes determined by other indices do not count.
    """
    if not all(isinstance(index, Affine) for index in indices):
        return False
    pending = [dict(index.terms) for index in indices if isinstance(index, Affine)]
    known = {axis for axis, extent in enumerate(extents) if extent <= 1}
    progress = True
    while progress:
        progress = False
        for terms in pending:
            unknown = [(abs(c), axis) for axis, c in terms.items() if axis not in known]
            if unknown and _are_digits(sorted(unknown), extents):
                known.update(axis for _, axis in unknown)
                progress = True
    return axes_of(indices, extents) <= known


def covers(output: Output, extents: Shape) -> bool:
    """Whether every element of the result is written by some point."""
    if output.bounds in (Bounds.ZERO, Bounds.CLIP) or not is_injective(output.indices, extents):
        return False
    reached = math.prod(extents[axis] for axis in axes_of(output.indices, extents))
    return reached == output.type.size and 0 not in extents


def _are_digits(terms: Sequence[tuple[int, int]], extents: Shape) -> bool:
    reach = 0
    for coefficient, axis in terms:
        if coefficient <= reach:
            return False
        reach += coefficient * (extents[axis] - 1)
    return True
