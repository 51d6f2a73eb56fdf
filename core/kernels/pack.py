"""Packing: the part of an operand that a loop reads again and again, copied side by side into a buffer.

Rows that are far apart in memory lie in as many pages, and take as many places in the nearest cache that exclude each
other; and columns have to be turned before they are vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..ops.nest import Yield
from ..types import TensorType
from .access_ops import LoadAt, StoreAt, buffer_of
from .indices import BufferAccess, IndexSum, access_of, maps_of
from .loops import body_of, inside, loops_of, make_index
from .ops import Loop, Shuffle


@dataclass(frozen=True)
class Panel:
    """Columns of a matrix `buffer`, from index `start` on: so many, in vectors of `lanes`.

    `rows` of them are read, along axis `row_axis`, from index `first_row` on; columns lie along `column_axis`.  Packed,
    they lie in a buffer of one axis from index `place` on, row behind row, each `stride` elements after the one before.
    """

    buffer: Value
    start: IndexSum
    place: IndexSum
    rows: int
    columns: int
    lanes: int
    row_axis: int
    column_axis: int
    stride: int
    first_row: IndexSum = IndexSum(0, {})


@dataclass(frozen=True)
class SummedRange:
    """Which of the products of a matrix product are summed: `count`, from `first` on.

    Where the outermost loop is over `parts` of a sum, each has the next so many.
    """

    count: int
    first: int = 0
    has_parts: bool = False

    def start(self, block: Block) -> IndexSum:
        """The first one, in the loops of a block."""
        if not self.has_parts:
            return IndexSum(self.first, {})
        (outer,) = loops_of(block)
        return IndexSum(self.first, {body_of(outer).arguments[0]: self.count})


def read_packed(block: Block, panel: Panel, packed: Value) -> Sequence[IndexSum] | None:
    """Have what a block loads of the matrix read from the buffer `packed`.

    Returns the indices of the axes beside those of the panel, or None where the block loads nothing of it.
    """
    loads = [
        access
        for one in inside(block)
        if (access := access_of(one)) is not None and access.buffer is panel.buffer
    ]
    if not loads:
        return None
    redirect(loads, panel, packed)
    matrix = panel.row_axis, panel.column_axis
    return [index for axis, index in enumerate(loads[0].indices) if axis not in matrix]


def write_panel(
    b: Builder, panel: Panel, packed: Value, around: Sequence[IndexSum], grain: int = 0
) -> None:
    """Copy a panel; `around` are the indices of the other axes.

    Threads share strips of the columns of one that has to be turned, so many at a time, if there is a `grain`.
    """
    if panel.column_axis > panel.row_axis:
        _write_copy(b, panel, packed, around)
    else:
        _write_turned(b, panel, packed, around, grain)


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


def redirect(
    loads: Iterable[BufferAccess], panel: Panel, packed: Value, *, masked: bool = False
) -> None:
    """Load the same from where it is packed, in all lanes unless it is `masked`: rows fill whole vectors there."""
    for access in loads:
        row, column = access.indices[panel.row_axis], access.indices[panel.column_axis]
        row, column = row.plus(panel.first_row, -1), column.plus(panel.start, -1)
        maps, coordinates = maps_of([_place(panel, row, column)])
        along = (panel.row_axis, panel.stride), (panel.column_axis, 1)
        step = sum(access.steps[axis] * far for axis, far in along) if access.lanes else 0
        old = access.instruction
        active = access.touched if masked and access.touched < access.lanes else 0
        old.op = LoadAt(maps, access.lanes, (step,) if access.lanes else (), active)
        old.set_operands([packed, *coordinates])


def _write_copy(b: Builder, panel: Panel, packed: Value, around: Sequence[IndexSum]) -> None:
    """Rows side by side, so that the next ones are fetched while one is stored."""

    def rows(b: Builder, first: IndexSum, count: int) -> None:
        for number in range(count):
            row = first.plus(number)
            for start in range(0, panel.columns, panel.lanes):
                column, active = IndexSum(start, {}), min(panel.lanes, panel.columns - start)
                value = _load(b, panel, around, row, column, active, panel.column_axis)
                _store(b, panel, packed, value, row, column)

    _write_runs(b, panel.rows, _TOGETHER, rows)


_TOGETHER: Final = 4
"""Rows that are copied in one round of a loop."""


def _write_turned(
    b: Builder, panel: Panel, packed: Value, around: Sequence[IndexSum], grain: int
) -> None:
    """Squares of the matrix, each turned in registers; the inner loop reads on where the square before ends."""
    size = panel.lanes
    vector = TensorType((size,), _element(panel).dtype)

    def strip(b: Builder, column: IndexSum, columns: int) -> None:
        def square(b: Builder, row: IndexSum, rows: int) -> None:
            turned = [
                _load(b, panel, around, row, column.plus(number), rows, panel.row_axis)
                if number < columns
                else b.emit(splat(vector, 0))
                for number in range(size)
            ]
            for number, value in enumerate(transposed(b, turned)[:rows]):
                _store(b, panel, packed, value, row.plus(number), column)

        _write_runs(b, panel.rows, size, square)

    _write_runs(b, panel.columns, size, strip, grain)


class _Run(Protocol):
    """Writes what is done with so many rows or columns from one on."""

    def __call__(self, b: Builder, start: IndexSum, count: int, /) -> None: ...


def _write_runs(b: Builder, extent: int, size: int, write: _Run, grain: int = 0) -> None:
    """A loop over runs of `size`, parallel if it has a grain, and what is left behind it."""
    whole = extent - extent % size
    if whole == size:
        write(b, IndexSum(0, {}), size)
    elif whole:
        inner = Builder(Block(name="loop"))
        index = inner.argument(make_index().type)
        write(inner, IndexSum(0, {index: 1}), size)
        inner.block.instructions.append(Instruction(Yield(), (), ()))
        b.emit_many(Loop(0, whole, size, grain), [], [Region([inner.block])])
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
    own = {panel.row_axis: row.plus(panel.first_row), panel.column_axis: column.plus(panel.start)}
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
    maps, coordinates = maps_of([_place(panel, row, column)])
    b.emit_many(StoreAt(maps, (1,)), [value, packed, *coordinates])


def _place(panel: Panel, row: IndexSum, column: IndexSum) -> IndexSum:
    """Where an element lies that is packed."""
    return panel.place.plus(row, panel.stride).plus(column)


def _element(panel: Panel) -> TensorType:
    return buffer_of("pack", panel.buffer.type)
