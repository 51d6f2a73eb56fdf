"""Packing: the part of an operand that a loop reads again and again, copied side by side into a buffer.

Rows that are far apart in memory lie in as many pages, and take as many places in the nearest cache that exclude each
other; and columns have to be turned before they are vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Region, Value
from ..ops.literal import splat
from ..ops.nest import Yield
from ..types import TensorType
from .indices import Access, Linear, access_of, maps_of
from .loops import inside, make_index
from .ops import LoadAt, Loop, Shuffle, StoreAt, buffer_of


@dataclass(frozen=True)
class Panel:
    """Columns of a matrix `buffer`, from those that `start` says on: so many vectors of `lanes`, `columns` in all.

    `rows` of them are read, along axis `row_axis`; columns lie along `column_axis`.
    """

    buffer: Value
    start: Value
    rows: int
    columns: int
    lanes: int
    row_axis: int
    column_axis: int


def pack(block: Block, panel: Panel, packed: Value) -> None:
    """Copy a panel into the buffer `packed` at the start of a block, whose loads of the matrix then read that.

    Rows of `packed` are rows of the panel, at least as many columns wide as the panel has vectors.
    """
    loads = [
        access
        for one in inside(block)
        if (access := access_of(one)) is not None and access.buffer is panel.buffer
    ]
    if not loads:
        return
    for access in loads:
        _redirect(access, panel, packed)
    b = Builder(Block())
    around = [index for axis, index in enumerate(loads[0].indices) if axis not in _matrix(panel)]
    if panel.column_axis > panel.row_axis:
        _write_copy(b, panel, packed, around)
    else:
        _write_turned(b, panel, packed, around)
    block.instructions[:0] = b.block.instructions


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square of vectors: in each step, parts of twice the size change places.

    Cost: log₂ n shuffles for each of n vectors.
    """
    found, count = list(rows), len(rows)
    distance = 1
    while distance < count:
        low = tuple(x if not x & distance else count + x - distance for x in range(count))
        high = tuple(x + distance if not x & distance else count + x for x in range(count))
        for row in range(count):
            if not row & distance:
                x, y = found[row], found[row + distance]
                found[row] = b.emit(Shuffle(low), x, y)
                found[row + distance] = b.emit(Shuffle(high), x, y)
        distance *= 2
    return found


def _matrix(panel: Panel) -> tuple[int, int]:
    return panel.row_axis, panel.column_axis


def _redirect(access: Access, panel: Panel, packed: Value) -> None:
    """Load the same from where it is packed."""
    row, column = access.indices[panel.row_axis], access.indices[panel.column_axis]
    maps, coordinates = maps_of([row, column.plus(Linear(0, {panel.start: 1}), -1)])
    steps = (0, 1) if access.lanes else ()
    old = access.instruction
    old.op = LoadAt(maps, access.lanes, steps)
    old.set_operands([packed, *coordinates])


def _write_copy(b: Builder, panel: Panel, packed: Value, around: Sequence[Linear]) -> None:
    """Row by row."""
    inner = Builder(Block(name="loop"))
    row = inner.argument(make_index().type, "r")
    for first in range(0, panel.columns, panel.lanes):
        active = min(panel.lanes, panel.columns - first)
        value = _load(inner, panel, around, Linear(0, {row: 1}), first, active, panel.column_axis)
        _store(inner, packed, value, Linear(0, {row: 1}), first)
    _finish(b, inner, panel.rows, 1)


def _write_turned(b: Builder, panel: Panel, packed: Value, around: Sequence[Linear]) -> None:
    """Squares of the matrix, each turned in registers."""
    size = panel.lanes
    whole = panel.rows - panel.rows % size
    if whole:
        inner = Builder(Block(name="loop"))
        row = inner.argument(make_index().type, "r")
        _write_squares(inner, panel, packed, around, Linear(0, {row: 1}), size)
        _finish(b, inner, whole, size)
    if whole < panel.rows:
        _write_squares(b, panel, packed, around, Linear(whole, {}), panel.rows - whole)


def _write_squares(
    b: Builder, panel: Panel, packed: Value, around: Sequence[Linear], row: Linear, count: int
) -> None:
    """So many rows from one on, of all columns."""
    size = panel.lanes
    vector = TensorType((size,), _element(panel).dtype)
    for first in range(0, panel.columns, size):
        turned = [
            _load(b, panel, around, row, column, count, panel.row_axis)
            if column < panel.columns
            else b.emit(splat(vector, 0))
            for column in range(first, first + size)
        ]
        for number, value in enumerate(transposed(b, turned)[:count]):
            _store(b, packed, value, row.plus(number), first)


def _load(
    b: Builder,
    panel: Panel,
    around: Sequence[Linear],
    row: Linear,
    column: int,
    active: int,
    axis: int,
) -> Value:
    """A vector of the matrix along an axis."""
    own = {panel.row_axis: row, panel.column_axis: Linear(column, {panel.start: 1})}
    others = iter(around)
    rank = _element(panel).rank
    indices = [own[a] if a in own else next(others) for a in range(rank)]
    maps, coordinates = maps_of(indices)
    steps = tuple(int(a == axis) for a in range(rank))
    kept = active if active < panel.lanes else 0
    return b.emit(LoadAt(maps, panel.lanes, steps, kept), panel.buffer, *coordinates)


def _store(b: Builder, packed: Value, value: Value, row: Linear, column: int) -> None:
    maps, coordinates = maps_of([row, Linear(column, {})])
    b.emit_many(StoreAt(maps, (0, 1)), [value, packed, *coordinates])


def _finish(b: Builder, inner: Builder, rows: int, step: int) -> None:
    inner.block.instructions.append(Instruction(Yield(), (), ()))
    b.emit_many(Loop(0, rows, step), [], [Region([inner.block])])


def _element(panel: Panel) -> TensorType:
    return buffer_of("pack", panel.buffer.type)
