"""Has nests read a transposed operand by squares, which are turned in registers.

    loop from 0 upto 4096 by 16 {                 rows of the result: columns of the operand
        loop from 0 upto 4096 by 128 {
            %turned = allocateLocal <2048 x f32>
            loop from 0 upto 128 by 16 { … }      16 rows of the operand, 16 numbers each, as 16 rows the other way
            loop from 0 upto 16 by 1 { loop from 0 upto 128 by 16 { … loadAt %turned … } }
        }
    }

A row of the result is a column of the operand: each number is in another line of memory, and in another page if rows
are long; lines are in no near cache any more when the next row needs them.  So a few rows of the result go together,
block by block, and lanes are loaded from neighbours and turned, where each was a load of its own.

Source: Lam, Rothberg & Wolf 1991, The Cache Performance and Optimizations of Blocked Algorithms; `kernels.pack`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from ..ir import Block, Builder, Value
from ..kernels.access_ops import buffer_of
from ..kernels.bounds import interval_of
from ..kernels.dependence import Range, range_of
from ..kernels.indices import BufferAccess, IndexSum, access_of
from ..kernels.loops import body_of, inside, is_loop, loop_op, loops_of
from ..kernels.ops import AllocateLocal
from ..kernels.pack import Panel, redirect, write_panel
from ..ops.nest import Access, Affine, Bounds, Output
from ..types import TensorType
from .group import GroupedInstruction
from .loops import full_lanes
from .ops import Loops
from .streams_ahead import is_side_by_side
from .switches import is_enabled
from .target import Target

_BLOCK: Final = 128
"""Numbers of a row that go together: pieces of a row are some lines, and those of 16 rows fit the nearest cache."""

_MANY_BLOCKS: Final = 8
"""Blocks of a row from which the loop over them is outside of that over rows: their pages of the operand are known
meanwhile, and threads share it.  Of 4096 x 4096 f32 that takes 0.5 of the time.  Where there are more rows as well, in
whole blocks, each goes along all blocks of a row: what is read the other way round are neighbours then, and not a line
of each page.  That takes 0.78 to 1.04 of the time, 0.9 in the mean; what sizes leave over would be code for 40 ms."""

_LEAST_POINTS: Final = 1 << 15
"""Points from which the code is worth it: a square is a hundred instructions, 10 ms of compiling, and saves 0.8 ns of
each point."""

_MOST_LANES: Final = 16
"""A square of more vectors fits no registers."""


def block_turned_reads(
    steps: Sequence[GroupedInstruction], target: Target
) -> list[GroupedInstruction]:
    """The same steps, with blocks in nests that are alone and read an operand the other way round."""
    return [_blocked(step, target) for step in steps] if is_enabled("turn") else list(steps)


def _blocked(step: GroupedInstruction, target: Target) -> GroupedInstruction:
    loops, instruction = step.loops, step.instruction
    if loops is None or loops.group >= 0 or loops.blocks or loops.points < _LEAST_POINTS:
        return step
    is_plain = all(access.bounds is Bounds.INSIDE for access in loops.accesses) and not any(
        written.combinator or written.init is not None for written in loops.outputs
    )
    vector = _vector_axis(loops) if is_plain else None
    if vector is None:
        return step
    outer = [axis for axis in loops.order if axis != vector]
    lanes = loops.lanes if loops.lanes > 1 else full_lanes(instruction, loops, target)[vector]
    axes = {
        number: axis
        for number, access in enumerate(loops.accesses)
        if instruction.operands[number].tensor.dtype.bits >= 32
        and (axis := turned_axis(access, vector)) is not None
    }
    turned = next((axis for axis in reversed(outer) if axis in axes.values()), None)
    extent = loops.extents[vector]
    if turned is None or extent < lanes or loops.extents[turned] < 2 * lanes or lanes > _MOST_LANES:
        return step
    outer.remove(turned)
    in_blocks = [(turned, lanes), (vector, min(_BLOCK, extent - extent % lanes))]
    many = _MANY_BLOCKS * _BLOCK
    if extent >= many:
        in_blocks.reverse()
    both = extent, loops.extents[turned]
    if min(both) > many and not any(length % _BLOCK for length in both):
        in_blocks.insert(0, (turned, _BLOCK))
    decided = replace(
        loops,
        order=(*outer, *(axis for axis, _ in in_blocks), turned, vector),
        blocks=(*(0 for _ in outer), *(block for _, block in in_blocks), 0, 0),
        vector=vector,
        lanes=lanes,
        turned=tuple(number for number, axis in axes.items() if axis == turned),
    )
    return GroupedInstruction(instruction, decided)


def _vector_axis(loops: Loops) -> int | None:
    """The axis of vectors, if it is the innermost; where there are none, for what lies apart, that of the results.

    Single numbers are loaded where each lane would be a load of its own.
    """
    if loops.lanes > 1:
        return loops.vector if loops.order[-1] == loops.vector else None
    for axis in reversed(loops.order):
        if all(_lies_along(written, axis) for written in loops.outputs) and all(
            is_side_by_side(access.indices, axis) or turned_axis(access, axis) is not None
            for access in loops.accesses
        ):
            return axis
    return None


def _lies_along(written: Output, axis: int) -> bool:
    """Whether results along an axis are neighbours."""
    last = written.indices[-1] if written.indices else None
    is_last = isinstance(last, Affine) and _uses(last, axis)
    return is_last and is_side_by_side(written.indices, axis)


def turned_axis(access: Access, vector: int) -> int | None:
    """The axis along which neighbours in memory lie, if those along the axis of vectors are rows apart; else None."""
    affine = [index for index in access.indices if isinstance(index, Affine)]
    if len(affine) < 2 or len(affine) < len(access.indices):
        return None
    *others, last = affine
    along = [index for index in others if _uses(index, vector)]
    if len(last.terms) != 1 or len(along) != 1 or along[0].terms != ((vector, 1),):
        return None
    ((axis, step),) = last.terms
    is_alone = axis != vector and not any(_uses(index, axis) for index in others)
    return axis if step == 1 and is_alone else None


def _uses(index: Affine, axis: int) -> bool:
    return any(axis == other for other, _ in index.terms)


def turn_reads(block: Block, buffer: Value, lanes: int, row: Value | None = None) -> None:
    """Turn what loops over blocks of `lanes` rows read of a buffer: rows lie along its last axis.

    `row` is the first row of the block that all of this is in.
    """
    for loop in filter(is_loop, loops_of(block)):
        body = body_of(loop)
        first = body.arguments[0] if loop_op(loop).step == lanes else row
        if first is not None:
            _turn(body, buffer, lanes, first)
        turn_reads(body, buffer, lanes, first)


def _turn(body: Block, buffer: Value, lanes: int, row: Value) -> None:
    """Turn what is read in a block of rows, if it is not too much: else loops inside of it do."""
    last = buffer_of("turn", buffer.type).rank - 1
    ranges = {body_of(one).arguments[0]: range_of(one) for one in inside(body) if is_loop(one)}
    found: dict[object, list[_ColumnRead]] = {}
    for access in filter(None, map(access_of, inside(body))):
        if access.buffer is buffer and not access.is_store:
            read = _column_read(access, last, ranges)
            is_block = read is not None and read.rows.size <= lanes and read.columns.size <= _BLOCK
            if read is not None and is_block and read.rows.first.terms.get(row) == 1:
                found.setdefault(read.key, []).append(read)
    for reads in chain.from_iterable(map(_near, found.values())):
        rows, axis, first = reads[0].rows, reads[0].axis, reads[0].columns.first
        columns = max(read.end for read in reads) - first.constant
        stride = -(-columns // lanes) * lanes
        here = IndexSum(0, {})
        panel = Panel(
            buffer, first, here, rows.size, columns, lanes, last, axis, stride, rows.first
        )
        b = Builder(Block())
        dtype = buffer_of("turn", buffer.type).dtype
        turned = b.emit(AllocateLocal(TensorType((rows.size * stride,), dtype)))
        # behind those of a vector that is shifted lies another row, or nothing
        redirect([read.access for read in reads], panel, turned, masked=True)
        write_panel(b, panel, turned, reads[0].others)
        body.instructions[:0] = b.block.instructions


def _near(reads: Sequence[_ColumnRead]) -> list[list[_ColumnRead]]:
    """Those that a block of columns has together, the first one first."""
    found: list[list[_ColumnRead]] = []
    for read in sorted(reads, key=lambda read: read.columns.first.constant):
        if found and read.end - found[-1][0].columns.first.constant <= _BLOCK:
            found[-1].append(read)
        else:
            found.append([read])
    return found


class _Window(NamedTuple):
    """Indices from one on, in the loops around, so many."""

    first: IndexSum
    size: int


class _ColumnRead(NamedTuple):
    """Vectors along one axis of a buffer, in loops over some of its columns."""

    access: BufferAccess
    axis: int
    rows: _Window
    """Indices of the last axis: columns of the buffer are rows of what is written."""
    columns: _Window
    others: tuple[IndexSum, ...]

    @property
    def end(self) -> int:
        """The constant of the first index behind its columns."""
        return self.columns.first.constant + self.columns.size

    @property
    def key(self) -> object:
        """What is the same for those that may be turned together."""
        sums = (self.rows.first, *self.others)
        constants = [(x.constant, frozenset(x.terms.items())) for x in sums]
        return self.axis, self.rows.size, frozenset(self.columns.first.terms), (*constants,)


def _column_read(
    access: BufferAccess, last: int, ranges: Mapping[Value, Range]
) -> _ColumnRead | None:
    """What is read of columns in some loops; None where vectors go along the last axis, or indices jump."""
    steps = [axis for axis, step in enumerate(access.steps) if step]
    if not access.lanes or len(steps) != 1 or steps[0] == last or access.steps[steps[0]] != 1:
        return None
    (axis,) = steps
    others = tuple(x for n, x in enumerate(access.indices) if n not in (axis, last))
    if any(value in ranges for index in others for value in index.terms):
        return None
    first, count = _window(access.indices[axis], ranges)
    columns = _Window(first, count + access.touched - 1)
    return _ColumnRead(access, axis, _window(access.indices[last], ranges), columns, others)


def _window(index: IndexSum, ranges: Mapping[Value, Range]) -> _Window:
    """Between which indices one is, in the loops of `ranges`."""
    inside = IndexSum(index.constant, {x: c for x, c in index.terms.items() if x in ranges})
    found = interval_of(inside, ranges)
    assert found is not None
    outside = {x: c for x, c in index.terms.items() if x not in ranges}
    return _Window(IndexSum(found[0], outside), found[1] - found[0] + 1)
