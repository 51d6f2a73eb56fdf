"""Emits scans: one accumulator (a vector, where the axis is not the last) runs along the axis.

Running sums of floats go in blocks: yᵢ = (sum of the blocks before) + (sum of the block's elements up to i).  What
rounding cuts off from the former is kept beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...core.lazy_dataclass import dataclass
from ...core.schedule.ops import ScheduledScan
from ...core.types import TensorType
from .element_access import (
    Lanes,
    Pointers,
    element_address,
    load_elements,
    offset_bytes,
    store_elements,
)
from .elements import combine, corrected, identity, memory_type, normalized
from .indices import multiply_constant
from .loops import LoopBody, LoopShape, LoopStep, write_loop
from .math.floats import two_sum
from .values import ZMM_BYTES
from .writer import I64, FunctionWriter, Register, constant

_BATCH = 64
"""Blocks of a running sum before the total takes over what fits it: their corrections lose 64² · u² at most, which is
nothing beside u, and taking over waits 40 cycles.  16 to 256 take the same time (docs/decisions/0019)."""


def write_scan(
    w: FunctionWriter, op: ScheduledScan, type: TensorType, bases: Sequence[Register]
) -> None:
    """Write the scan of an operand of `type`; `bases` are its address and the result's.

    The tensor is seen as (outer, extent, inner): the outer loop is over outer, lanes are over inner.
    """
    if type.size == 0:
        return
    outer, inner = prod(type.shape[: op.axis]), prod(type.shape[op.axis + 1 :])
    lanes = min(ZMM_BYTES // type.dtype.bytes, 1 << (inner.bit_length() - 1))
    tail_lanes = 1 << max(inner % lanes - 1, 0).bit_length()
    columns = LoopShape(inner, lanes, tail_lanes, is_vector=True)
    rows = _Rows(w, op, type, inner, columns, bases)
    write_loop(w, LoopShape(outer), rows, [])


@dataclass(frozen=True, slots=True)
class _Rows(LoopBody):
    """The loop over what comes before the axis."""

    w: FunctionWriter
    op: ScheduledScan
    type: TensorType
    inner: int
    columns: LoopShape
    bases: Sequence[Register]

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        size = self.type.shape[self.op.axis] * self.inner
        bases = [_moved(self.w, base, self.type, step.index, size) for base in self.bases]
        return write_loop(self.w, self.columns, _Columns(self, bases), totals)


@dataclass(frozen=True, slots=True)
class _Columns(LoopBody):
    """The loop over what comes after the axis, with the loop along the axis inside."""

    rows: _Rows
    bases: Sequence[Register]

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        rows = self.rows
        w, op, type = rows.w, rows.op, rows.type
        lanes = step.lanes or Lanes()
        first = (type.shape[op.axis] - 1) * rows.inner if op.reverse else 0
        bases = [
            offset_bytes(w, _moved(w, base, type, step.index, 1), first * type.dtype.bytes)
            for base in self.bases
        ]
        along = _Along(rows, bases, lanes)
        if op.block:
            zero = identity(op.combinator, type.dtype, lanes.count)
            along.write_blocks(type.shape[op.axis], zero)
            return list(totals)
        write_loop(
            w,
            LoopShape(type.shape[op.axis]),
            along,
            [identity(op.combinator, type.dtype, lanes.count)],
        )
        return list(totals)


@dataclass(frozen=True, slots=True)
class _Along(LoopBody):
    """The loop along the axis, which carries the total."""

    rows: _Rows
    bases: Sequence[Register]
    lanes: Lanes

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        rows, (total,) = self.rows, totals
        w, op, dtype = rows.w, rows.op, rows.type.dtype
        source, target = self._spots(step.index)
        joined = combine(w, op.combinator, dtype, total, load_elements(w, source, self.lanes))
        store_elements(w, target, total if op.exclusive else joined, self.lanes)
        return [joined]

    def write_blocks(self, extent: int, zero: Register) -> None:
        """Running sums of all elements, in blocks."""
        block = self.rows.op.block
        whole = extent - extent % block
        pair: Sequence[Register] = [zero, zero]
        if whole:
            pair = self._write_batches(whole, pair)
        if whole < extent:
            self._write_block(constant(I64, whole), extent - whole, pair)

    def _write_batches(self, whole: int, pair: Sequence[Register]) -> Sequence[Register]:
        """Blocks, and after many of them a sum that has all that fits it: doing so each time would make it wait."""
        w, block = self.rows.w, self.rows.op.block
        end, size = constant(I64, whole), block * _BATCH
        with w.loop(constant(I64, 0), end, constant(I64, size), pair) as batches:
            first = batches.index
            stop = w.smin(w.value(I64, f"add nsw i64 {first.text}, {size}"), end)
            step = constant(I64, block)
            with w.loop(first, stop, step, batches.values, guarded=False) as blocks:
                blocks.carry(*self._write_block(blocks.index, block, blocks.values))
            batches.carry(*normalized(w, *blocks.results))
        return batches.results

    def _write_block(
        self, first: Register, count: int, pair: Sequence[Register]
    ) -> tuple[Register, Register]:
        """Sums of `count` elements; the sum so far, and what rounding has cut off from it."""
        w, op = self.rows.w, self.rows.op
        total, rest = pair
        before = corrected(w, total, rest)
        spots = self._spots(first)
        inner: Register | None = None
        for number in range(count):
            source, target = (self._moved(at, number) for at in spots)
            value = load_elements(w, source, self.lanes)
            joined = value if inner is None else w.fadd(inner, value)
            shown = inner if op.exclusive else joined
            running = before if shown is None else w.fadd(before, shown)
            store_elements(w, target, running, self.lanes)
            inner = joined
        assert inner is not None
        total, cut = two_sum(w, total, inner)
        return total, w.fadd(rest, cut)

    def _spots(self, index: Register) -> list[Pointers]:
        """Where an element is read and written."""
        rows = self.rows
        w, op, dtype = rows.w, rows.op, rows.type.dtype
        distance = -rows.inner if op.reverse else rows.inner
        return [
            Pointers(dtype, _moved(w, base, rows.type, index, distance), 1, None, None, True)
            for base in self.bases
        ]

    def _moved(self, at: Pointers, number: int) -> Pointers:
        """The element so many places further along the axis."""
        rows = self.rows
        distance = -rows.inner if rows.op.reverse else rows.inner
        bytes = number * distance * at.dtype.bytes
        return replace(at, pointer=offset_bytes(rows.w, at.pointer, bytes))


def _moved(
    w: FunctionWriter, base: Register, type: TensorType, index: Register, size: int
) -> Register:
    """The address `index · size` elements further."""
    distance = multiply_constant(w, index, size)
    if distance.is_constant:
        return offset_bytes(w, base, int(distance.text) * type.dtype.bytes)
    return element_address(w, base, memory_type(type.dtype), distance)
