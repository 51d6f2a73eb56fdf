"""Packing: the part of an operand that a loop reads again and again, copied side by side into a buffer.

Rows that are far apart in memory lie in as many pages, and take as many places in the nearest cache that exclude each
other; and columns have to be turned before they are vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..ops.nest import Yield
from ..types import TensorType
from .indices import BufferAccess, IndexSum, access_of, maps_of
from .loops import inside, make_index
from .ops import LoadAt, Loop, Shuffle, StoreAt, buffer_of


@dataclass(frozen=True)
class Panel:
    """Columns of a matrix `buffer`, from that which `start` says on, or all: so many, in vectors of `lanes`.

    `rows` of them are read, along axis `row_axis`; columns lie along `column_axis`.  Packed panels lie in one buffer,
    one in the place of the other, or behind each other if they are `apart`.
    """

    buffer: Value
    start: Value | None
    rows: int
    columns: int
    lanes: int
    row_axis: int
    column_axis: int
    apart: bool = False

    @property
    def width(self) -> int:
        """Columns in whole vectors."""
        return -(-self.columns // self.lanes) * self.lanes

    @property
    def first(self) -> IndexSum:
        """The index of the first column."""
        return IndexSum(0, {} if self.start is None else {self.start: 1})


def pack(block: Block, panel: Panel, packed: Value) -> None:
    """Copy a panel into the buffer `packed` at the start of a block, whose loads of the matrix then read that.

    Rows of `packed` are rows of the panel, at least as many columns wide as the panel has vectors.  Where panels are
    apart, `packed` has one axis, for all elements of all of them.
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


def _redirect(access: BufferAccess, panel: Panel, packed: Value) -> None:
    """Load the same from where it is packed."""
    row, column = access.indices[panel.row_axis], access.indices[panel.column_axis]
    maps, coordinates = maps_of(_place(panel, row, column.plus(panel.first, -1)))
    steps = _steps(panel) if access.lanes else ()
    old = access.instruction
    old.op = LoadAt(maps, access.lanes, steps)
    old.set_operands([packed, *coordinates])


def _write_copy(b: Builder, panel: Panel, packed: Value, around: Sequence[IndexSum]) -> None:
    """Row by row, a vector at a time."""

    def write(inner: Builder, column: IndexSum, active: int, row: IndexSum) -> None:
        value = _load(inner, panel, around, row, column, active, panel.column_axis)
        _store(inner, panel, packed, value, row, column)

    def row(inner: Builder, row: IndexSum, _: int) -> None:
        _write_runs(inner, panel.columns, panel.lanes, partial(write, row=row))

    _write_runs(b, panel.rows, 1, row)


def _write_turned(b: Builder, panel: Panel, packed: Value, around: Sequence[IndexSum]) -> None:
    """Squares of the matrix, each turned in registers."""
    size = panel.lanes
    vector = TensorType((size,), _element(panel).dtype)

    def square(inner: Builder, column: IndexSum, columns: int, row: IndexSum, rows: int) -> None:
        turned = [
            _load(inner, panel, around, row, column.plus(number), rows, panel.row_axis)
            if number < columns
            else inner.emit(splat(vector, 0))
            for number in range(size)
        ]
        for number, value in enumerate(transposed(inner, turned)[:rows]):
            _store(inner, panel, packed, value, row.plus(number), column)

    def row(inner: Builder, row: IndexSum, rows: int) -> None:
        _write_runs(inner, panel.columns, size, partial(square, row=row, rows=rows))

    _write_runs(b, panel.rows, size, row)


class _Run(Protocol):
    """Writes what is done with so many rows or columns from one on."""

    def __call__(self, b: Builder, start: IndexSum, count: int, /) -> None: ...


def _write_runs(b: Builder, extent: int, size: int, write: _Run) -> None:
    """A loop over runs of `size`, and what is left behind it."""
    whole = extent - extent % size
    if whole == size:
        write(b, IndexSum(0, {}), size)
    elif whole:
        inner = Builder(Block(name="loop"))
        index = inner.argument(make_index().type)
        write(inner, IndexSum(0, {index: 1}), size)
        inner.block.instructions.append(Instruction(Yield(), (), ()))
        b.emit_many(Loop(0, whole, size), [], [Region([inner.block])])
    if whole < extent:
        write(b, IndexSum(whole, {}), extent - whole)


def _load(
    b: Builder,
    panel: Panel,
    around: Sequence[IndexSum],
    row: IndexSum,
    column: IndexSum,
    active: int,
    axis: int,
) -> Value:
    """A vector of the matrix along an axis."""
    own = {panel.row_axis: row, panel.column_axis: column.plus(panel.first)}
    others = iter(around)
    rank = _element(panel).rank
    indices = [own[a] if a in own else next(others) for a in range(rank)]
    maps, coordinates = maps_of(indices)
    steps = tuple(int(a == axis) for a in range(rank))
    kept = active if active < panel.lanes else 0
    return b.emit(LoadAt(maps, panel.lanes, steps, kept), panel.buffer, *coordinates)


def _store(
    b: Builder, panel: Panel, packed: Value, value: Value, row: IndexSum, column: IndexSum
) -> None:
    maps, coordinates = maps_of(_place(panel, row, column))
    b.emit_many(StoreAt(maps, _steps(panel)), [value, packed, *coordinates])


def _place(panel: Panel, row: IndexSum, column: IndexSum) -> list[IndexSum]:
    """Where an element lies that is packed; panels before this one have so many rows of so many columns."""
    if not panel.apart:
        return [row, column]
    return [column.plus(row, panel.width).plus(panel.first, panel.rows)]


def _steps(panel: Panel) -> tuple[int, ...]:
    return (1,) if panel.apart else (0, 1)


def _element(panel: Panel) -> TensorType:
    return buffer_of("pack", panel.buffer.type)
