"""Staging: what an iteration stores to its part of a buffer lies in a local buffer first, and is copied from there.

    loop from 0 upto 31840 by 32 {
        %rows = allocateLocal <960 x f64>
        loop from 0 upto 32 by 8 { … storeAt %x to %rows at (30 * d0 + 7) steps 30 of %j … }
        streamInto %rows to %y at (30 * d0) of %i
    }

Columns of rows that are far apart wait for a line of memory each, and come back for the next column of the same lines.
From the local buffer, which is in the nearest cache, whole lines are written, one after the other.

Source: buffers of Halide's `compute_at` and `store_at`; write-back buffers of Goto and van de Geijn 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from ..types import Array, TensorType
from .access_ops import StreamInto, buffer_of
from .bounds import interval_of
from .dependence import Range, range_of, root_of
from .errors import IllegalRewrite
from .guarded_ops import ReshapeBuffer
from .indices import (
    BufferAccess,
    IndexSum,
    access_of,
    accesses_of,
    element_of,
    indices_of,
    maps_of,
    move_access,
)
from .loops import body_of, counted_op, loop_op, require_known_bounds
from .ops import AllocateLocal
from .prefetch import drop_fetches


@dataclass(frozen=True)
class LoopRows:
    """The elements of a buffer, in the order of memory, that belong to the numbers of a loop: `stride` to each number,
    from element `first` on to number 0; that may depend on loops around it."""

    stride: int
    first: IndexSum


def stage_stores(loop: Instruction, buffer: Value, rows: LoopRows) -> None:
    """Have each iteration store its rows in a local buffer, and copy that at its end.

    The buffer may be a result in the place of an operand: stores come later than before, but none in another iteration,
    so that what is read of the operand is there still.

    Raises: IllegalRewrite unless stores that need no condition fill the rows of each iteration, and nothing else in the
    loop touches them.
    """
    staging, body = _staging(loop, buffer, rows), body_of(loop)
    tensor = buffer_of("stageStores", buffer.type)
    b = Builder(Block())
    local = b.emit(AllocateLocal(TensorType((staging.size,), tensor.dtype)))
    for access, relative in staging.stores:
        move_access(access, local, [relative], (step_of(access),))
    drop_fetches(body, lambda one: _is_fetch_of(one, staging))
    body.instructions[:0] = b.block.instructions
    b = Builder(Block())
    flat = buffer
    if tensor.rank != 1:
        flat = b.emit(ReshapeBuffer(TensorType((tensor.size,), tensor.dtype)), buffer)
    maps, coordinates = maps_of([staging.first_of_iteration])
    b.emit_many(StreamInto(maps), [local, flat, *coordinates])
    body.instructions[-1:-1] = b.block.instructions


def stores_of_rows(loop: Instruction, buffer: Value, rows: LoopRows) -> list[BufferAccess]:
    """The stores that `stage_stores` would change.  Raises: IllegalRewrite where that does."""
    return [access for access, _ in _staging(loop, buffer, rows).stores]


def _staging(loop: Instruction, buffer: Value, rows: LoopRows) -> _Staging:
    op = loop_op(loop)
    require_known_bounds(body_of(loop))
    if not op.count or rows.stride <= 0:
        raise IllegalRewrite("no iteration has rows")
    staging = _Staging(root_of(buffer, ()), rows, loop, rows.stride * op.step)
    staging.find()
    return staging


def stored_rows(loop: Instruction, buffer: Value) -> list[LoopRows]:
    """Rows that a loop may fill: neighbours, as far as an iteration goes, that its stores begin and end at.

    There are several where the loop stores to several parts of a buffer.
    """
    op, body, root = loop_op(loop), body_of(loop), root_of(buffer, ())
    index = body.arguments[0]
    by_stride: dict[tuple[int, frozenset[tuple[Value, int]]], list[tuple[int, int]]] = {}
    for access, ranges in _accesses(body, {}):
        is_store = access.is_store and access_of(access.instruction) is not None
        if not is_store or root_of(access.buffer, ()) is not root:
            continue
        element = element_of(access.buffer, access.indices)
        outside = {x: c for x, c in element.terms.items() if x is not index and x not in ranges}
        inside = {x: c for x, c in element.terms.items() if x in ranges}
        stride = element.coefficient(index)
        ends = _interval(IndexSum(element.constant, inside), access, ranges)
        if stride > 0 and ends is not None:
            by_stride.setdefault((stride, frozenset(outside.items())), []).append(ends)
    found: list[LoopRows] = []
    for (stride, terms), intervals in by_stride.items():
        behind = None
        for first, last in sorted(intervals):
            if behind is None or last >= behind:
                found.append(LoopRows(stride, IndexSum(first, dict(terms))))
                behind = first + stride * op.step
    return found


@dataclass
class _Staging:
    """The stores to the rows of a loop."""

    root: Value
    rows: LoopRows
    loop: Instruction
    size: int
    """Elements of an iteration."""

    def __post_init__(self) -> None:
        self.index = body_of(self.loop).arguments[0]
        self.first_of_iteration = IndexSum(0, {self.index: self.rows.stride}).plus(self.rows.first)
        self.stores: list[tuple[BufferAccess, IndexSum]] = []
        """And the elements that they begin at, counted from the first one of the iteration."""

    def relative(self, element: IndexSum) -> IndexSum | None:
        """An element, counted from the first one of the iteration; None where it does not move with the loop."""
        if element.coefficient(self.index) != self.rows.stride:
            return None
        return element.plus(self.first_of_iteration, -1)

    def find(self) -> None:
        """Find them.  Raises: IllegalRewrite when something else touches the rows, or they are not filled."""
        written = np.zeros(self.size, np.bool_)
        for access, ranges in _accesses(body_of(self.loop), {}):
            if root_of(access.buffer, ()) is not self.root:
                continue
            if not access.indices:
                raise IllegalRewrite(f"a {access.instruction.op.name} touches all of the buffer")
            element = element_of(access.buffer, access.indices)
            found = self._inside(access, element, ranges)
            if found is None:
                self._require_outside(access, element, ranges)
            else:
                self.stores.append((access, found[0]))
                written[found[1]] = True
        if not written.all():
            raise IllegalRewrite("an iteration does not fill its rows")

    def _inside(
        self, access: BufferAccess, element: IndexSum, ranges: Mapping[Value, Range]
    ) -> tuple[IndexSum, Array] | None:
        """The store to rows of the iteration that it is in, from which element on, and which ones it writes."""
        relative = self.relative(element)
        if relative is None or access_of(access.instruction) is None or not access.is_store:
            return None
        ends = _interval(relative, access, ranges)
        if ends is None or ends[0] < 0 or ends[1] >= self.size:
            return None
        return relative, _elements(relative, access, ranges)

    def _require_outside(
        self, access: BufferAccess, element: IndexSum, ranges: Mapping[Value, Range]
    ) -> None:
        op = loop_op(self.loop)
        first = self.rows.stride * op.lower
        behind = first + self.size * op.count
        around = {self.index: range_of(self.loop), **ranges}
        ends = _interval(element.plus(self.rows.first, -1), access, around)
        if ends is None or (ends[1] >= first and ends[0] < behind):
            raise IllegalRewrite(f"a {access.instruction.op.name} may touch rows of the loop")


def _accesses(
    block: Block, ranges: Mapping[Value, Range]
) -> Iterator[tuple[BufferAccess, Mapping[Value, Range]]]:
    """What a block and the loops in it that run may touch, and the ranges of their indices."""
    for one in block.instructions:
        if not one.regions:
            for access in accesses_of(one):
                yield access, ranges
        elif counted_op(one).count:
            inner = body_of(one)
            yield from _accesses(inner, {**ranges, inner.arguments[0]: range_of(one)})


def step_of(access: BufferAccess) -> int:
    """How many elements lie between lanes."""
    step = 0
    shape = buffer_of(access.instruction.op.name, access.buffer.type).shape
    for along, extent in zip(access.steps, shape, strict=True):
        step = step * extent + along
    return step


def _interval(
    element: IndexSum, access: BufferAccess, ranges: Mapping[Value, Range]
) -> tuple[int, int] | None:
    """The least and the last element that is touched."""
    found = interval_of(element, ranges)
    if found is None:
        return None
    last = step_of(access) * (access.touched - 1)
    return found[0] + min(0, last), found[1] + max(0, last)


def _elements(element: IndexSum, access: BufferAccess, ranges: Mapping[Value, Range]) -> Array:
    """All that is touched."""
    found = element.constant + step_of(access) * np.arange(access.touched)
    for value, coefficient in element.terms.items():
        lower, step, extent = ranges[value]
        numbers = coefficient * (lower + step * np.arange(extent))
        found = np.unique(np.add.outer(numbers, found))
    return found


def _is_fetch_of(one: Instruction, staging: _Staging) -> bool:
    if root_of(one.operands[0], ()) is not staging.root:
        return False
    element = staging.relative(element_of(one.operands[0], indices_of(one)))
    # in front of these rows and behind them there may be others that move on as they do
    return (
        element is not None and 0 <= element.constant < staging.size * loop_op(staging.loop).count
    )
