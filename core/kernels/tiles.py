"""Register tiles: the loops of a product split into runs that stay in registers.

A tile of C is so many rows by so many vectors of columns.  Its sums, one vector of B for each of its columns and one
element of A are in registers at a time, so that each product costs one instruction and a part of a load:

    loop i by rows {
        loop j by vectors · lanes {
            sums = loop k carrying rows · vectors sums { … }
            what follows, of each sum; stores
        }
    }

So C is written row by row.  Where B is larger than the nearer caches, the loop over columns is outside, so that what
lies in them of B is used for all rows.

What no tile fits, at the right and at the bottom, has smaller tiles of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from ..types import PointerType, TensorType
from .cse import cse
from .dependence import BufferAliases
from .loops import body_of, is_loop, loop_op
from .ops import Fma, Kernel, executed
from .order import shorten_live_ranges
from .pack import Panel, pack
from .split import balanced, peel, split
from .unroll import unroll_and_jam
from .vectorise import vectorise


@dataclass(frozen=True)
class Registers:
    """The vector registers of a machine: how many, and how many elements each holds."""

    count: int
    lanes: int


@dataclass(frozen=True)
class Tile:
    """Rows, and vectors of columns, of a product that are summed at a time."""

    rows: int
    vectors: int


@dataclass(frozen=True)
class Packing:
    """That panels of the second operand are packed: so many rows, along one of its axes, columns along another."""

    rows: int
    row_axis: int
    column_axis: int


_SPARE: Final = 2
"""Registers beside the sums and the vectors of B: for an element of A, and one more that LLVM moves things through."""

_MOST_ROWS: Final = 16
"""Larger tiles are more code and no faster."""

_MOST_VECTORS: Final = 4
"""The same."""

_LATENCY: Final = 6
"""Steps until the sum that an instruction adds to is there, 4, with what it takes to keep all units busy meanwhile."""

_ELEMENT: Final = 0.35
"""What loading an element of A costs besides the multiplications that it runs beside, of which one is the unit."""

_VECTOR: Final = 1.6
"""The same of a vector of B, which lies in two cache lines where the matrix is not aligned to vectors."""

_LOOP: Final = 1.5
"""The same of counting and jumping, in each of k."""

_PER_STEP: Final = 2
"""Multiplications and additions, or loads, that begin in one step."""

_STEP: Final = 0.3
"""Nanoseconds of a step, a cycle."""

_CODE: Final = 20.0
"""Nanoseconds that a sum of a kind of tile costs, besides being computed: four instructions, each of which takes 40 µs
to be scheduled, written and compiled, in a program that is called some 8,000 times."""


def tile_product(
    kernel: Instruction[Kernel],
    registers: Registers,
    batch: int = 0,
    packed: Packing | None = None,
    *,
    by_rows: bool = True,
) -> None:
    """Schedule the loops of `products.build_product`: so many of a batch, over rows and columns, and the sum.

    Where the loop over rows is the outer one, all of the second operand is packed at once, if it is; else panel by
    panel: in one place, or, where threads share the panels, each in its own, which none of the others has to fetch.
    """
    aliases = aliases_of(kernel)
    block = kernel.regions[0].entry
    depth = _sum_length(kernel)
    for _ in range(batch):
        block = body_of(_loop_in(block))
    outer = _loop_in(block)
    inside = body_of(outer)
    inner = _loop_in(inside)
    rows, columns = (outer, inner) if by_rows else (inner, outer)
    count = loop_op(columns).count
    tile = best_tile(loop_op(rows).count, count, depth, registers)
    width = -(-count // registers.lanes) if by_rows else tile.vectors
    buffer = None
    apart = not by_rows and loop_op(columns).grain > 0
    if packed is not None:
        vectors = -(-count // registers.lanes) if apart else width
        buffer = _packing_buffer(kernel, packed, vectors * registers.lanes, apart=apart)
    around = inside if by_rows else block
    for panel in list(_write_panels(around, columns, tile.vectors, registers.lanes, aliases)):
        if not by_rows:
            if packed is not None and buffer is not None:
                start = panel.block.arguments[0]
                shape = panel.columns, panel.lanes
                _pack(kernel, panel.block, packed, buffer, start, *shape, apart=apart)
            cse(panel.block, aliases=aliases)
            _write_rows(panel.block, tile, aliases)
    if by_rows:
        if packed is not None and buffer is not None:
            _pack(kernel, block, packed, buffer, None, count, registers.lanes)
        cse(block, aliases=aliases)
        _write_rows(block, tile, aliases)
    shorten_live_ranges(kernel.regions[0].entry, aliases=aliases)


def _sum_length(kernel: Instruction[Kernel]) -> int:
    """How many products an element is the sum of, times the matrices of the batch."""
    products = sum(count for count, one in executed(kernel) if isinstance(one.op, Fma))
    rows, columns = kernel.results[0].tensor.shape[-2:]
    return products // (rows * columns)


def _pack(
    kernel: Instruction[Kernel],
    block: Block,
    packed: Packing,
    buffer: Value,
    start: Value | None,
    columns: int,
    lanes: int,
    *,
    apart: bool = False,
) -> None:
    """Pack so many columns of the second operand at the start of a block."""
    matrix = kernel.regions[0].entry.arguments[1]
    shape = packed.rows, columns, lanes, packed.row_axis, packed.column_axis
    pack(block, Panel(matrix, start, *shape, apart), buffer)


def _packing_buffer(
    kernel: Instruction[Kernel], packed: Packing, width: int, *, apart: bool
) -> Value:
    """One more buffer of the kernel, for the widest panel, or for all of them."""
    shape = (packed.rows * width,) if apart else (packed.rows, width)
    type = TensorType(shape, kernel.operands[1].tensor.dtype)
    kernel.op = replace(kernel.op, using=(*kernel.op.using, type))
    buffer = Value(PointerType(type), "packed")
    kernel.regions[0].entry.arguments.append(buffer)
    return buffer


def aliases_of(kernel: Instruction[Kernel]) -> BufferAliases:
    """The buffers of operands and of the results that may lie in their place."""
    buffers, count = kernel.regions[0].entry.arguments, len(kernel.operands)
    return [(buffers[x], buffers[count + y]) for x, y in kernel.op.overwriting]


@lru_cache(maxsize=256)
def best_tile(rows: int, columns: int, depth: int, registers: Registers) -> Tile:
    """The tile for a product of so many rows and columns, as far as can be foreseen, compilation included.

    `depth` is how many products each element is a sum of, in all matrices of a batch together.
    """
    found = [
        Tile(count, vectors)
        for vectors in range(1, _MOST_VECTORS + 1)
        for count in range(1, _MOST_ROWS + 1)
        if count * vectors + vectors + _SPARE <= registers.count
    ]
    return min(found, key=lambda tile: _nanoseconds(tile, rows, columns, depth, registers.lanes))


def _nanoseconds(tile: Tile, rows: int, columns: int, depth: int, lanes: int) -> float:
    """What a product takes by tiles."""
    steps, code = 0.0, 0
    whole, left = divmod(columns, lanes)
    widths = [*balanced(whole, tile.vectors), *([(1, 1)] if left else [])]
    for vectors, panels in widths:
        for height, count in balanced(rows, tile.rows):
            sums = height * vectors
            work = (sums + _ELEMENT * height + _VECTOR * vectors + _LOOP) / _PER_STEP
            steps += panels * count * max(work, _LATENCY)
            code += sums
    return _STEP * steps * depth + _CODE * code


@dataclass(frozen=True)
class _Columns:
    """A body that has the rows of some columns, whose first one is its index."""

    block: Block
    columns: int
    lanes: int


def _write_panels(
    block: Block, columns: Instruction, vectors: int, lanes: int, aliases: BufferAliases
) -> Iterator[_Columns]:
    """Divide the columns into panels of vectors; what is left fills a part of one."""
    rest: Instruction | None = columns
    for size, panels in balanced(loop_op(columns).count // lanes, vectors):
        part, rest = _first(block, rest, size * panels * lanes)
        made = split(block, part, size * lanes)
        inside = body_of(made.outer)
        if size & (size - 1):
            vector = split(inside, made.inner, lanes)
            vectorise(body_of(vector.outer), vector.inner, lanes, aliases=aliases)
            unroll_and_jam(inside, vector.outer, aliases=aliases)
        else:  # LLVM divides what is twice or four times a register, and there is less to write
            vectorise(inside, made.inner, size * lanes, aliases=aliases)
        yield _Columns(inside, size * lanes, lanes)
    if rest is not None:
        left = loop_op(rest).count
        last = split(block, rest, left)
        inside, width = body_of(last.outer), min(lanes, 1 << (left - 1).bit_length())
        vectorise(inside, last.inner, width, aliases=aliases)
        yield _Columns(inside, left, width)


def _write_rows(panel: Block, tile: Tile, aliases: BufferAliases) -> None:
    """Divide the rows of a panel into tiles."""
    rest: Instruction | None = _rows_in(panel)
    assert rest is not None
    for size, tiles in balanced(loop_op(rest).count, tile.rows):
        part, rest = _first(panel, rest, size * tiles)
        made = split(panel, part, size)
        unroll_and_jam(body_of(made.outer), made.inner, aliases=aliases)


def _first(
    block: Block, loop: Instruction | None, count: int
) -> tuple[Instruction, Instruction | None]:
    """The loop over so many iterations, and that over the others, if there are some."""
    assert loop is not None
    if count == loop_op(loop).count:
        return loop, None
    return peel(block, loop, count)


def _rows_in(panel: Block) -> Instruction:
    """The loop over rows, behind those that pack."""
    return [instruction for instruction in panel.instructions if is_loop(instruction)][-1]


def _loop_in(block: Block) -> Instruction:
    """The loop of a body that has one."""
    (loop,) = (instruction for instruction in block.instructions if is_loop(instruction))
    return loop
