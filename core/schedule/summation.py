"""Plans float summation: blocks and compensation that bound the rounding error whatever the length.

A sum that goes through n numbers one after the other may be off by n units of rounding.  Here the error of every sum
that stays in registers, or in memory over rows, is at most (8 + log₂ n) · u · Σ|x|, u being half the distance of 1 to
the next number:

1. A *chain* is what one register goes through.  Lanes and accumulators divide n numbers among chains and join them
   as a tree, so a chain as long as 8 + log₂ of itself is right already: up to 11 steps.
2. Longer chains are cut into blocks that start afresh, and these, if need be, into blocks of blocks, whose sums are
   just added: up to some 170 steps.
3. Beyond, blocks of blocks are added with compensation: the total is a pair of numbers, the second one what rounding
   cuts off from the first, and k blocks cost k · u² more.  Then only the steps of one of them count, and they are as
   long as the bound allows, so that compensation costs as little as can be.
4. Sums accumulated in memory (a reduced loop outside of a kept one) take up a few rows at a time in registers, and
   add these to memory with compensation.  Where a row has more to it than to be added, a few rows at a time are
   added in memory instead, and their sums are then folded into others with compensation.
5. Scattered sums, at indices read from memory, add each number with compensation (Kahan's, which is the cheapest),
   if more than 12 of them may fall on one element.

The order in which numbers are added depends on the nest and the width of the vectors alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import InternalError
from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.casting import DataTypeCast
from ..ops.combinator import Combinator
from ..ops.indexing import NAIVE_UPDATES
from ..ops.nest import Affine, Loaded, Nest, Output, axes_in
from ..types import F64, DType
from .ops import Loops, is_float_sum, is_scattered_sum

_SLACK = 8
"""What the bound allows beyond log₂ n: the promise of docs/semantics.md."""

_ROUNDINGS = 2
"""Roundings besides those of a block: of what is added in it, as a product, and of the last addition."""

_COMPENSATION = 12
"""The cost of joining a block with compensation, in additions: six of TwoSum, and as many to make the two a pair again
(`kernels.pairs.add_compensated`)."""

_SLOWER = 0.1
"""Additions for each step, of four vectors or one, that fewer loops for what blocks leave are worth: each has a copy of
the body, which takes LLVM a millisecond or ten."""

_SCANNED = 8
"""Elements of a running sum that are added by themselves: the bound holds for each of the first sums, too, as 8 numbers
have 7 roundings and 2 more with what came before, within 8 + log₂ n."""

_ROWS = 16
"""Rows that are added in registers before their sum is added to one in memory, if their roundings leave as many
(`plan_rows`): 3163 × 3163 f32 take 1471, 1424 and 1375 µs with 4, 8 and 16, and 10⁵ × 100 take 1557, 1423 and 1375;
more need more than 2²⁶ numbers."""


@dataclass(frozen=True)
class _RegisterSums:
    """The sums that stay in registers, seen from the innermost loop outwards."""

    loops: Loops
    order: tuple[int, ...]
    """That of axes of more than one point."""
    sums: tuple[_Sum, ...]

    @property
    def rounds(self) -> int:
        """The longest chain in the innermost loop, what rounds leave aside."""
        innermost = self.order[-1]
        return self.loops.extents[innermost] // (self._lanes(innermost) * self.loops.accumulators)

    def depth(self, axis: int) -> int:
        """Additions that one number goes through while the loop over `axis` runs once."""
        extent, lanes = self.loops.extents[axis], self._lanes(axis)
        if axis != self.order[-1]:
            return extent
        left = extent // lanes % self.loops.accumulators + (extent % lanes > 0)
        return self.rounds + _log2(self.loops.accumulators) + left

    def fits(self, found: _Sum) -> bool:
        """Whether the sum needs no blocks."""
        return math.prod(map(self.depth, found.inner)) + self.tree(found) <= found.bound

    def most(self, *, compensated: bool) -> int:
        """Additions that a block may have in it, if what blocks come to is added with compensation."""
        rest = _ROUNDINGS if compensated else 0
        return math.floor(min(s.bound - self.tree(s) for s in self.sums)) - rest

    def blocks(self, axis: int, unit: int) -> tuple[tuple[int, ...], bool]:
        """The points of blocks of `axis`, outer ones first, each of `unit` additions; whether to compensate."""
        is_innermost = axis == self.order[-1]
        steps = self.rounds if is_innermost else self.loops.extents[axis]
        joins = _log2(self.loops.accumulators) if is_innermost else 0
        points = self.loops.accumulators * self._lanes(axis) if is_innermost else 1
        is_left = self.loops.extents[axis] % points > 0
        times = math.prod(
            self.loops.extents[other]
            for other in {a for s in self.sums if axis in s.inner for a in s.inner}
            if self.order.index(other) < self.order.index(axis)
        )
        most = self.most(compensated=False) - joins
        for length in range(most // unit, 1, -1):
            room = most - length * unit
            for inner in range(1, room):
                outer = (-(-steps // (length * inner)) + is_left) * times
                if inner - 1 + outer - 1 <= room:
                    return _sizes(points, length, inner), False
        most = self.most(compensated=True) - joins
        sizes = [
            (length, max(1, most - length * unit + 1))
            for length in range(1, max(1, most // unit) + 1)
        ]
        cost = self.loops.accumulators + 1, _COMPENSATION
        costs = [cost[0] / length + cost[1] / (length * inner) for length, inner in sizes]
        good = [size for size, c in zip(sizes, costs, strict=True) if c <= min(costs) + _SLOWER]
        best = min(good, key=lambda size: (_loops_left(steps, *size), costs[sizes.index(size)]))
        return _sizes(points, *best), True

    def tree(self, found: _Sum) -> int:
        """Additions that join the lanes."""
        return _log2(self.loops.lanes) if self.loops.vector in found.inner else 0

    def _lanes(self, axis: int) -> int:
        return self.loops.lanes if axis == self.loops.vector else 1


@dataclass(frozen=True)
class _Sum:
    """A sum of `count` numbers over the loops `inner`, the innermost ones, outermost first."""

    count: int
    inner: tuple[int, ...]

    @property
    def bound(self) -> float:
        """How many roundings a number may go through."""
        return _SLACK + math.log2(self.count)


def plan_sums(loops: Loops) -> Loops:
    """The same loops, with blocks for float sums in registers where these are long."""
    axes = tuple(axis for axis in loops.order if loops.extents[axis] > 1)
    chains = _RegisterSums(loops, axes, tuple(_sums(loops, axes)))
    if all(chains.fits(found) for found in chains.sums):
        return loops
    unit = 1
    for axis in reversed(axes):
        whole = unit * chains.depth(axis)
        if whole > chains.most(compensated=True):
            return _in_blocks(loops, loops.order, axis, *chains.blocks(axis, unit))
        unit = whole
    raise InternalError(f"the sums of {loops} are too long, and no loop of them is")


def plan_rows(loops: Loops, *, in_registers: bool) -> Loops:
    """The same loops, with blocks of a few rows for sums accumulated in memory: each is added by itself.

    The vector axis is the innermost of those that are kept.
    """
    order, vector, extents = loops.order, loops.vector, loops.extents
    summed = [axis for axis in order if axis not in _kept(loops) and extents[axis] > 1]
    rows, inner = 1, list[int]()
    count = math.prod(extents[axis] for axis in summed)
    most = min(_ROWS, math.floor(_SLACK + math.log2(count)) - _ROUNDINGS)
    most = _power_above(most + 1) // 2  # so that accumulators divide a block
    while summed:
        axis = summed.pop()
        rest = [other for other in order if other not in (vector, *inner)]
        if rows * extents[axis] > most:
            new = (*rest, vector, axis, *inner) if in_registers else order
            return _in_blocks(loops, new, axis, (max(1, most // rows),), compensated=True)
        inner.insert(0, axis)
        rows *= _power_above(extents[axis])
    if not in_registers:
        return loops
    rest = [other for other in order if other not in (vector, *inner)]
    return replace(loops, order=(*rest, vector, *inner))


def scan_block(combinator: Combinator, dtype: DType) -> int:
    """How many elements of a scan are joined by themselves; 0 for all of them."""
    return _SCANNED if combinator is Combinator.ADD and dtype.is_float else 0


def scattered_sums(instruction: Instruction, nest: Nest) -> tuple[int, ...]:
    """The sums of f32 or f64 at indices read from memory where more numbers may fall on one element than can just be
    added; but not those in f64 of numbers that are narrower.
    """
    values = instruction.regions[0].entry.terminator.operands
    return tuple(
        number
        for number, (written, value) in enumerate(zip(nest.outputs, values, strict=True))
        if is_scattered_sum(written)
        and _updates(nest, written) > NAIVE_UPDATES
        and not _is_widened(value)
    )


def _updates(nest: Nest, written: Output) -> int:
    """How many points may fall on one element."""
    kept = {index.axis for index in written.indices if isinstance(index, Affine)}
    return math.prod(extent for axis, extent in enumerate(nest.extents) if axis not in kept)


def _is_widened(value: Value) -> bool:
    """Whether an f64 was a narrower float, so that adding 2²⁸ of them one by one rounds as much as one of f32 does."""
    if value.producer is None or not isinstance(value.op, DataTypeCast):
        return False
    source = value.producer.operands[0].tensor.dtype
    return value.tensor.dtype is F64 and source.is_float and source.bits < F64.bits


def _sums(nest: Nest, order: Sequence[int]) -> Iterator[_Sum]:
    """The float sums whose loops, or some of them, run inside of those over what they keep."""
    for written in nest.outputs:
        kept = kept_axes(written)
        if not is_float_sum(written) or kept is None or 0 in nest.extents:
            continue
        deepest = max((order.index(axis) for axis in kept if axis in order), default=-1)
        inner = tuple(order[deepest + 1 :])
        if inner:
            yield _Sum(math.prod(nest.extents[axis] for axis in inner), inner)


def kept_axes(written: Output) -> frozenset[int] | None:
    """The axes that a result keeps; None where indices are read from memory."""
    if any(isinstance(index, Loaded) for index in written.indices):
        return None
    return axes_in(written.indices)


def _kept(nest: Nest) -> frozenset[int]:
    """The axes that any result combined of several points keeps."""
    found = [kept_axes(written) for written in nest.outputs if written.combinator is not None]
    return frozenset[int]().union(*(axes for axes in found if axes is not None))


def _in_blocks(
    loops: Loops, order: Sequence[int], axis: int, sizes: Sequence[int], compensated: bool
) -> Loops:
    """The loops in this order, with `axis` in blocks.

    If it comes once, all its loops stand there, else the first is over blocks.
    """
    place = order.index(axis)
    again = () if order.count(axis) > 1 else (axis,) * len(sizes)
    order = (*order[:place], *again, *order[place:])
    blocks = [0] * len(order)
    blocks[place : place + len(sizes)] = sizes
    return replace(loops, order=order, blocks=tuple(blocks), compensated=compensated)


def _sizes(points: int, length: int, inner: int) -> tuple[int, ...]:
    """The points of blocks of `inner` blocks of `length` steps, and of the latter."""
    sizes = (length * inner * points, length * points)
    return sizes if inner > 1 else sizes[1:]


def _loops_left(steps: int, length: int, inner: int) -> int:
    """How many loops it takes to do what blocks of so many blocks of so many steps leave."""
    left = steps % (length * inner)
    return (left >= length) + (left % length > 0)


def _power_above(count: int) -> int:
    return 1 << _log2(count)


def _log2(count: int) -> int:
    """How deep a tree over `count` leaves is."""
    return (count - 1).bit_length()
