"""Puts cotangents of slices together: parts that do not overlap are a concatenation, and nothing is added to zeros.

The adjoint of a slice is a pad with zeros, and k rows of a matrix would be a sum of k matrices.  Here:

1. Parts at one place are added as they are, before they are padded.
2. Along an axis where they fall into groups, the groups are concatenated, with zeros in between; each group goes the
   same way along the next axis where it falls apart.
3. What overlaps otherwise is padded and added.

As in every sum of cotangents, a zero that nobody has written may be of either sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ..ir import Emitter, Value
from ..ops.arithmetic import Add
from ..ops.literal import constant
from ..ops.slicing import Concatenate, Pad, PaddedPart
from ..types import Shape

_DEPTH: Final = 16
"""How often groups are cut into groups: twice along each of the 8 axes that tensors rarely have more than.  What is
left then is padded and added."""


_Range: TypeAlias = tuple[Shape, Shape]
"""The first indices of a box, and those behind the last ones."""


def add_slices(b: Emitter, found: Sequence[PaddedPart], shape: Shape) -> Value:
    """The sum of cotangents of slices of one tensor of `shape`; there is at least one."""
    places: dict[_Range, Value] = {}
    for each in found:
        place = each.low, each.high
        before = places.get(place)
        places[place] = each.part if before is None else b.emit(Add(), before, each.part)
    parts = [PaddedPart(low, part) for (low, _), part in places.items()]
    return _together(b, parts, (tuple(0 for _ in shape), shape), _DEPTH)


def _together(b: Emitter, parts: list[PaddedPart], within: _Range, depth: int) -> Value:
    """The sum of the parts as a tensor that covers a box."""
    if len(parts) > 1 and depth:
        for axis in range(len(within[0])):
            groups = _groups(parts, axis)
            if len(groups) > 1:
                return _concatenated(b, groups, axis, within, depth - 1)
    total = _padded(b, parts[0], within)
    for part in parts[1:]:
        total = b.emit(Add(), total, _padded(b, part, within))
    return total


def _groups(parts: Sequence[PaddedPart], axis: int) -> list[list[PaddedPart]]:
    """The parts in groups that have no index along the axis in common, in the order of these."""
    groups: list[list[PaddedPart]] = []
    end = 0
    for part in sorted(parts, key=lambda part: part.low[axis]):
        if not groups or part.low[axis] >= end:
            groups.append([])
        groups[-1].append(part)
        end = max(end, part.high[axis])
    return groups


def _concatenated(
    b: Emitter, groups: Sequence[list[PaddedPart]], axis: int, within: _Range, depth: int
) -> Value:
    low, high = within
    first = groups[0][0].part
    pieces: list[Value] = []
    end = low[axis]

    def zeros_upto(index: int) -> None:
        if index > end:
            extents = [last - start for start, last in zip(low, high, strict=True)]
            extents[axis] = index - end
            pieces.append(constant(b, first.tensor.with_shape(extents), 0))

    for group in groups:
        start = group[0].low[axis]
        zeros_upto(start)
        end = max(part.high[axis] for part in group)
        box = _replaced(low, axis, start), _replaced(high, axis, end)
        pieces.append(_together(b, group, box, depth))
    zeros_upto(high[axis])
    return b.emit(Concatenate(axis), *pieces)


def _padded(b: Emitter, part: PaddedPart, within: _Range) -> Value:
    low = tuple(own - first for own, first in zip(part.low, within[0], strict=True))
    high = tuple(last - own for own, last in zip(part.high, within[1], strict=True))
    if not any((*low, *high)):
        return part.part
    return b.emit(Pad(low, high), part.part, constant(b, part.part.tensor.with_shape(()), 0))


def _replaced(indices: Shape, axis: int, index: int) -> Shape:
    return (*indices[:axis], index, *indices[axis + 1 :])
