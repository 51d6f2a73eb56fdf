"""Cuts loops where masks change, so that inner loops have none: what a pad, a concatenation or a roll reads.

    x[i - 2] zero + y[i] zero, of 98 elements each, i < 100
    0 … 1        reads under masks
    2 … 97       two plain reads
    98 … 99      reads under masks

1. A read that is zero outside of its tensor, a write that is left out there, and a comparison of coordinates change at
   points of an axis that the box of the other axes gives.
2. Parts shorter than some vectors stay together, masks and all: there are few of their points.
3. The body is written once for each part: what is zero, or chosen, in all of a part costs nothing there.

The cuts of an axis are the first points of its parts but the first.
Source: loop partitioning in Halide (`PartitionLoops.cpp`), index set splitting in Wolfe 1996.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ..ir import Instruction, Op, Value
from ..ops.arithmetic import Add, Multiply
from ..ops.casting import DataTypeCast
from ..ops.comparison import Comparison
from ..ops.literal import literal_of
from ..ops.nest import Access, Affine, Bounds, Output, coordinate
from ..types import I64, Shape
from .ops import Loops, is_float_sum
from .summation import kept_axes
from .switches import is_enabled

Ranges = Mapping[int, tuple[int, int]]
"""The first and the last point of each axis."""

_VECTORS: Final = 2
"""Vectors in a part of the vector axis, at least: shorter ones are tails for the most part."""

_PARTS: Final = 32
"""Parts of any other axis, at most: a row or two at the edge are not worth loops of their own."""

_SHORT: Final = 8
"""A part that is less than this part of a loop runs so seldom that code for its masks is not worth its size."""

_LEAST_POINTS: Final = 256
"""Points of a nest below which masks cost less than code."""

_MOST_CODE: Final = 512
"""Reads, instructions and writes of all parts together."""


def plan_cuts(instruction: Instruction, loops: Loops) -> tuple[tuple[int, int], ...]:
    """The cuts of a nest's axes: (axis, point), in order."""
    if loops.points < _LEAST_POINTS or not is_enabled("cuts"):
        return ()
    changes = list(_changes(instruction, loops))
    if not changes:
        return ()
    code = len(instruction.operands) + len(loops.outputs)
    code += len(instruction.regions[0].entry.instructions)
    room = _MOST_CODE // code
    found: list[tuple[int, int]] = []
    for axis in sorted(_axes(loops), key=lambda axis: axis != loops.vector):
        points = _points(axis, changes, loops.extents)
        extent = loops.extents[axis]
        least = _VECTORS * loops.lanes if axis == loops.vector else extent // _PARTS + 1
        cuts = _kept(points, extent, least, room)
        if cuts:
            found += [(axis, point) for point in cuts]
            room //= len(cuts) + 1
    return tuple(sorted(found))


def comparisons(instruction: Instruction) -> dict[Value, Affine]:
    """The results in a nest's body that compare affine functions of coordinates, and x − y of each."""
    body = instruction.regions[0].entry
    rank = len(body.arguments) - len(instruction.operands)
    affine = {value: coordinate(axis) for axis, value in enumerate(body.arguments[:rank])}
    found: dict[Value, Affine] = {}
    for inner in body.instructions:
        if inner.op.is_terminator:
            continue
        made = _affine(inner, affine)
        if made is not None:
            affine[inner.result] = made
        elif _thresholds(inner.op) and all(x in affine for x in inner.operands):
            x, y = inner.operands
            found[inner.result] = affine[x] + affine[y] * -1
    return found


def decided_comparison(op: Op, difference: Affine, ranges: Ranges) -> bool | None:
    """Whether x ? y holds for all points of a box, given x − y; None if it changes."""
    low, high = reach(difference, ranges)
    if any(low < threshold <= high for threshold in _thresholds(op)):
        return None
    return bool(op.evaluate(np.asarray(low), np.asarray(0)))


def _thresholds(op: Op) -> tuple[int, ...]:
    """Where a comparison changes, for x − y; nothing for other ops."""
    return op.changes_at if isinstance(op, Comparison) else ()


def decided_inside(index: Affine, extent: int, ranges: Ranges) -> bool | None:
    """Whether an index is inside of an axis for all points of a box; None if that differs."""
    low, high = reach(index, ranges)
    if 0 <= low and high < extent:
        return True
    return False if high < 0 or low >= extent else None


def reach(index: Affine, ranges: Ranges) -> tuple[int, int]:
    """The smallest and the largest value over a box."""
    low = high = index.constant
    for axis, coefficient in index.terms:
        ends = [coefficient * point for point in ranges[axis]]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _affine(inner: Instruction, known: Mapping[Value, Affine]) -> Affine | None:
    """What an instruction of a body is of the coordinates, if that is affine."""
    literal = literal_of(inner.result)
    if literal is not None:
        return Affine(int(literal.splat_value())) if literal.type.dtype == I64 else None
    terms = [known[x] for x in inner.operands if x in known]
    if len(terms) == 1 and inner.op == DataTypeCast(I64):
        return terms[0]
    if len(terms) != 2:
        return None
    if inner.op == Add():
        return terms[0] + terms[1]
    factors = [term.constant for term in terms if not term.terms]
    if inner.op == Multiply() and factors:
        return terms[0 if terms[1].terms == () else 1] * factors[-1]
    return None


def _changes(instruction: Instruction, loops: Loops) -> Iterator[tuple[Affine, int]]:
    """Indices, and numbers: something differs between where an index is below the number and where it is not."""
    uses: list[tuple[Shape, Access | Output]] = [
        *((x.tensor.shape, a) for x, a in zip(instruction.operands, loops.accesses, strict=True)),
        *((output.type.shape, output) for output in loops.outputs),
    ]
    for shape, use in uses:
        if use.bounds is Bounds.ZERO:
            for index, extent in zip(use.indices, shape, strict=True):
                if isinstance(index, Affine):
                    yield index, 0
                    yield index, extent
    for value, difference in comparisons(instruction).items():
        assert value.op is not None
        for threshold in _thresholds(value.op):
            yield difference, threshold


def _axes(loops: Loops) -> list[int]:
    """The axes whose loops are cut: not in blocks, and not what floats are summed over, as sums of parts would be
    rounded otherwise."""
    summed = set[int]()
    for written in loops.outputs:
        kept = kept_axes(written)
        if is_float_sum(written) and kept is not None:
            summed |= {*loops.order} - kept
    return [
        axis
        for axis in loops.order
        if loops.order.count(axis) == 1 and axis not in summed and loops.extents[axis] > 1
    ]


def _points(axis: int, changes: Sequence[tuple[Affine, int]], extents: Sequence[int]) -> list[int]:
    """The points of an axis where something begins, or ceases, to be the same for all points of the others."""
    found: set[int] = set()
    box = {other: (0, extent - 1) for other, extent in enumerate(extents)}
    for index, number in changes:
        coefficient = index.coefficient(axis)
        if coefficient:
            rest = index + coordinate(axis) * -coefficient
            for value in reach(rest, box):
                # coefficient · point + value < number
                if coefficient > 0:
                    found.add(-((value - number) // coefficient))
                else:
                    found.add((value - number) // -coefficient + 1)
    return sorted(point for point in found if 0 < point < extents[axis])


def _kept(points: Sequence[int], extent: int, least: int, most: int) -> list[int]:
    """The points between parts of which as many as there is room for are their own; short ones stay together."""
    parts = list(pairwise((0, *points, extent)))
    long = sorted((p for p in parts if p[1] - p[0] >= least), key=lambda p: p[0] - p[1])
    for count in range(len(long), 0, -1):
        kept = {end for part in long[:count] for end in part} - {0, extent}
        if len(kept) < most:
            return sorted(kept)
    return []


def parts_of(extent: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The parts of an axis: the first point of each, and how many it has."""
    return [(first, stop - first) for first, stop in pairwise((0, *cuts, extent))]


def is_short(points: int, extent: int) -> bool:
    """Whether a part is so short that the loops inside of it are not cut."""
    return points * _SHORT < extent
