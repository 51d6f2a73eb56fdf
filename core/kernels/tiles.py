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

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Region, Value
from ..ir.surgery import clone_region
from ..lazy_dataclass import dataclass
from ..ops.nest import Yield
from .cse import cse
from .dependence import BufferAliases
from .errors import IllegalRewrite
from .indices import IndexSum
from .interchange import interchange
from .loops import body_of, is_loop, loop_op, loops_of, make_index
from .ops import Fma, Kernel, Loop
from .order import shorten_live_ranges
from .pack import Panel, SummedRange, read_packed, write_panel
from .same import written_body
from .split import balanced, peel, split
from .turned import TurnedRows, add_buffer, turn_rows
from .unroll import unroll, unroll_and_jam
from .vectorise import vectorise


@dataclass(frozen=True)
class Registers:
    """The vector registers of a machine: how many, how many elements each holds, and whether sums are unrolled."""

    count: int
    lanes: int
    unrolls: bool = True


@dataclass(frozen=True)
class Tile:
    """Rows, and vectors of columns, of a product that are summed at a time; so many steps of a sum are `unrolled`."""

    rows: int
    vectors: int
    unrolled: int = 1


@dataclass(frozen=True)
class Packing:
    """That panels of the second operand are packed: rows along one of its axes, columns along another."""

    summed: SummedRange
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


@dataclass(frozen=True)
class _Loads:
    """What loads cost besides the multiplications that they run beside, of which one is the unit."""

    element: float
    """Of A."""
    vector: float
    """Of B."""


_LOADS: Final = _Loads(0.35, 1.6)
"""A vector lies in two cache lines where the matrix is not aligned to vectors."""

_PACKED: Final = _Loads(0.7, 1.0)
"""A large product: vectors are aligned, and elements of many rows come from the second cache."""

_LOOP: Final = 1.5
"""The same of counting and jumping, in each of k, or once for the steps that are unrolled.  Where another thread runs
on the same core, which then takes half as many instructions of each, it is more: tiles of 6 by 2 vectors took 1.1 to
1.3 times as long as a BLAS then, and 1.0 to 1.1 with 4 steps unrolled."""

_UNROLLED: Final = (1, 2, 4)
"""How many steps: from 4 on there is no difference."""

_MOST_UNROLLED: Final = 48
"""Multiply-adds one after the other: of 96, LLVM begins so many loads early that sums have to go to the stack."""

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
    depth: int,
    block_columns: int = 0,
    turned: TurnedRows | None = None,
) -> None:
    """Schedule the loops of `products.build_product`: so many of a batch, over rows and columns, and the sum.

    `depth` is how many products each element is a sum of, in all matrices of a batch together.
    With blocks of `block_columns` the loop over columns is the outer one, and each block of what is `packed` is packed
    by the thread that multiplies it, in a place of its own; without, all of it is packed at once.  Where rows of the
    first operand are `turned`, so many at a time, sums go along its columns.
    """
    aliases = aliases_of(kernel)
    entry, lanes = kernel.regions[0].entry, registers.lanes
    block, parts = entry, 1
    for _ in range(batch):
        loop = _loop_in(block)
        parts = max(parts, _parts(loop))
        block = body_of(loop)
    turns: list[Instruction] = []
    if turned is not None:
        copies = parts if parts > 1 else 0
        turns, block = turn_rows(kernel, block, turned, copies, aliases)
    outer = _loop_in(block)
    inner = _loop_in(body_of(outer))
    rows, columns = (inner, outer) if block_columns else (outer, inner)
    count = loop_op(columns).count
    widest = min(count, block_columns or count)
    tile = best_tile(
        loop_op(rows).count,
        widest,
        depth * -(-count // widest),
        registers,
        is_packed=packed is not None,
        reduces_rows=bool(columns.operands),
    )
    start = packed.summed.start(entry) if packed is not None else _ZERO
    writer = _BlockWriter(kernel, tile, lanes, aliases, packed, start)
    if block_columns:
        parts = max(parts, _parts(columns, widest))
    writer.allocate(-(-widest // lanes) * lanes, parts if parts > 1 else 0)
    if block_columns:
        _write_blocks(writer, block, outer, block_columns)
    else:
        writer.write(block, _ZERO)
    block.instructions[:0] = turns
    shorten_live_ranges(entry, aliases=aliases)


def tile_once(
    kernel: Instruction[Kernel],
    registers: Registers,
    batch: int = 0,
    packed: Packing | None = None,
    *,
    depth: int,
    block_columns: int = 0,
    turned: TurnedRows | None = None,
) -> None:
    """The same; a kernel that is like one that was tiled before becomes a copy of that."""
    key = written_body(kernel), kernel.op, registers, batch, packed, depth, block_columns, turned
    known = _TILED.get(key)
    if known is not None:
        kernel.op, tiled = known
        kernel.regions = (clone_region(tiled, {}),)
        return
    tile_product(
        kernel, registers, batch, packed, depth=depth, block_columns=block_columns, turned=turned
    )
    # a copy, as what follows may change the body
    _TILED[key] = kernel.op, clone_region(kernel.regions[0], {})
    if len(_TILED) > _MOST_TILED:
        _TILED.popitem(last=False)


_MOST_TILED: Final = 256
"""More than a program has of different products; each takes some KiB."""

_TILED: Final[OrderedDict[Hashable, tuple[Kernel, Region]]] = OrderedDict()
"""The kernels of products that this process tiled last, by their loops before: programs have many that are equal."""

_ZERO: Final = IndexSum(0, {})


def _parts(loop: Instruction, block: int = 1) -> int:
    """How many threads may run iterations of a loop at a time, whole blocks of them."""
    op = loop_op(loop)
    return max(1, -(-(op.count // block * block) // op.grain)) if op.grain else 1


def _write_blocks(writer: _BlockWriter, block: Block, columns: Instruction, size: int) -> None:
    """Divide columns into blocks of `size`, with the loop over rows outside of that over the columns of one."""
    made = split(block, columns, min(size, loop_op(columns).count))
    inside = body_of(made.outer)
    start = IndexSum(0, {inside.arguments[0]: 1})
    interchange(inside, made.inner, aliases=writer.aliases)
    writer.write(inside, start)
    if made.rest is not None:
        made.rest.op = replace(loop_op(made.rest), grain=0)
        _write_blocks(writer, block, made.rest, size)


@dataclass
class _BlockWriter:
    """Writes the tiles of blocks of columns, in loops over rows, and what packs them in front of those."""

    kernel: Instruction[Kernel]
    tile: Tile
    lanes: int
    aliases: BufferAliases
    packed: Packing | None
    first_row: IndexSum
    buffer: Value | None = None

    def allocate(self, columns: int, copies: int) -> None:
        """A buffer for packed blocks of so many columns, if there are to be any; threads have so many `copies`, or
        share it."""
        if self.packed is not None:
            size = self.packed.summed.count * columns
            self.buffer = add_buffer(self.kernel, size, "packed", copies)

    def write(self, block: Block, start: IndexSum) -> None:
        """Tile the columns from `start` on that the loops of a block are over."""
        body, vectors = body_of(_rows_in(block)), self.tile.vectors
        columns = _loop_in(body)
        first, copies = loop_op(columns).lower, Builder(Block())
        for panel in list(_write_panels(body, columns, vectors, self.lanes, self.aliases)):
            if self.packed is not None and self.buffer is not None:
                place = _ZERO.plus(-first * self.packed.summed.count)
                self._pack(copies, panel, (self.packed, self.buffer), start, place)
        block.instructions[:0] = copies.block.instructions
        cse(block, aliases=self.aliases)
        _write_rows(block, self.tile, self.aliases)

    def _pack(
        self,
        b: Builder,
        panels: _Columns,
        into: tuple[Packing, Value],
        start: IndexSum,
        place: IndexSum,
    ) -> None:
        """Pack all panels that a loop is over, and have its body read that."""
        packed, buffer = into
        rows = packed.summed.count
        matrix, lanes = self.kernel.regions[0].entry.arguments[1], panels.lanes

        def panel(index: Value) -> Panel:
            return Panel(
                matrix,
                start.plus(IndexSum(0, {index: 1})),
                place.plus(IndexSum(0, {index: rows})),
                rows,
                panels.columns,
                lanes,
                packed.row_axis,
                packed.column_axis,
                -(-panels.columns // lanes) * lanes,
                self.first_row,
            )

        others = read_packed(panels.block, panel(panels.block.arguments[0]), buffer)
        if others is None:
            return
        inner = Builder(Block(name="loop"))
        write_panel(inner, panel(inner.argument(make_index().type, "j")), buffer, others)
        inner.emit_many(Yield(), [])
        b.emit_many(replace(panels.loop, grain=0), [], [Region([inner.block])])


def aliases_of(kernel: Instruction[Kernel]) -> BufferAliases:
    """The buffers of operands and of the results that may lie in their place."""
    buffers, count = kernel.regions[0].entry.arguments, len(kernel.operands)
    return [(buffers[x], buffers[count + y]) for x, y in kernel.op.overwriting]


@lru_cache(maxsize=256)
def best_tile(
    rows: int,
    columns: int,
    depth: int,
    registers: Registers,
    *,
    is_packed: bool = False,
    reduces_rows: bool = False,
) -> Tile:
    """The tile for a product of so many rows and columns, as far as can be foreseen, compilation included.

    `depth` is how many products each element is a sum of, in all matrices of a batch together.
    """
    if rows == 1:  # a vector of B is part of the one instruction that it is used in
        return Tile(1, registers.count // 2)
    found = [
        Tile(count, vectors)
        for vectors in range(1, _MOST_VECTORS + 1)
        if not (reduces_rows and vectors & (vectors - 1))
        for count in range(1, _MOST_ROWS + 1)
        if count * vectors + vectors + _SPARE <= registers.count
    ]
    loads = _PACKED if is_packed else _LOADS

    def nanoseconds(tile: Tile) -> float:
        widths = _widths(columns, tile.vectors, registers.lanes, reduces_rows=reduces_rows)
        return _nanoseconds(tile, rows, widths, depth, loads)

    tile = min(found, key=nanoseconds)
    most = _MOST_UNROLLED // (tile.rows * tile.vectors) if registers.unrolls else 1
    return min([replace(tile, unrolled=f) for f in _UNROLLED if f <= max(most, 1)], key=nanoseconds)


def panels_of_rows(
    rows: int, columns: int, depth: int, registers: Registers, *, is_packed: bool
) -> Sequence[tuple[int, int]]:
    """The panels of a product whose rows are reduced, each of which they are reduced over first: (vectors, how many).

    The columns are whole vectors.
    """
    tile = best_tile(rows, columns, depth, registers, is_packed=is_packed, reduces_rows=True)
    return _panels(columns // registers.lanes, tile.vectors, reduces_rows=True)


def _widths(columns: int, vectors: int, lanes: int, *, reduces_rows: bool) -> list[tuple[int, int]]:
    """The vectors of panels, and how many have so many."""
    whole, left = divmod(columns, lanes)
    return [*_panels(whole, vectors, reduces_rows=reduces_rows), *([(1, 1)] if left else [])]


def _panels(count: int, most: int, *, reduces_rows: bool) -> Sequence[tuple[int, int]]:
    """So many vectors of columns as panels of `most`: (vectors, how many), wider ones first.

    Of rows that are reduced, a panel is one vector, of twice as many lanes as a register, or four times, …
    """
    if not reduces_rows:
        return balanced(count, most)
    found: list[tuple[int, int]] = []
    while count:
        found.append((most, count // most))
        count, most = count % most, most // 2
    return [(size, panels) for size, panels in found if panels]


def _nanoseconds(
    tile: Tile, rows: int, widths: Sequence[tuple[int, int]], depth: int, loads: _Loads
) -> float:
    """What a product takes by tiles."""
    steps, code = 0.0, 0
    for vectors, panels in widths:
        for height, count in balanced(rows, tile.rows):
            sums = height * vectors
            jump = _LOOP / tile.unrolled
            work = (sums + loads.element * height + loads.vector * vectors + jump) / _PER_STEP
            steps += panels * count * max(work, _LATENCY)
            code += sums * tile.unrolled
    return _STEP * steps * depth + _CODE * code


@dataclass(frozen=True)
class _Columns:
    """The body of a loop over panels of so many columns, whose first one is its index."""

    loop: Loop
    block: Block
    columns: int
    lanes: int


def _write_panels(
    block: Block, columns: Instruction, vectors: int, lanes: int, aliases: BufferAliases
) -> Iterator[_Columns]:
    """Divide the columns into panels of vectors; what is left fills a part of one.

    Raises: IllegalRewrite when rows are reduced that are not whole vectors.
    """
    rest: Instruction | None = columns
    count, reduces = loop_op(columns).count, bool(columns.operands)
    if reduces and count % lanes:
        raise IllegalRewrite("rows that are reduced are not whole vectors")
    for size, panels in _panels(count // lanes, vectors, reduces_rows=reduces):
        part, rest = _first(block, rest, size * panels * lanes)
        if reduces:
            panel = vectorise(block, part, size * lanes, reassociate=True, aliases=aliases).loop
            assert panel is not None
            if loop_op(panel).count == 1:
                _combine_with_nothing(panel)
            yield _Columns(loop_op(panel), body_of(panel), size * lanes, lanes)
            continue
        made = split(block, part, size * lanes)
        inside = body_of(made.outer)
        if size & (size - 1):
            vector = split(inside, made.inner, lanes)
            vectorise(body_of(vector.outer), vector.inner, lanes, aliases=aliases)
            unroll_and_jam(inside, vector.outer, aliases=aliases)
        else:  # LLVM divides what is twice or four times a register, and there is less to write
            vectorise(inside, made.inner, size * lanes, aliases=aliases)
        yield _Columns(loop_op(made.outer), inside, size * lanes, lanes)
    if rest is not None:
        left = loop_op(rest).count
        last = split(block, rest, left)
        inside, width = body_of(last.outer), min(lanes, 1 << (left - 1).bit_length())
        vectorise(inside, last.inner, width, aliases=aliases)
        yield _Columns(loop_op(last.outer), inside, left, width)


def _combine_with_nothing(loop: Instruction) -> None:
    """Have a loop of one iteration yield what it would combine with the identity that it begins with.

    What multiplies and adds takes no longer with a zero.
    """
    body = body_of(loop)
    for total in body.arguments[1:]:
        (combined,) = total.uses
        if not isinstance(combined.op, Fma):
            (value,) = (x for x in combined.operands if x is not total)
            combined.replace_with(value)
            body.instructions.remove(combined)


def _write_rows(panel: Block, tile: Tile, aliases: BufferAliases) -> None:
    """Divide the rows of a panel into tiles."""
    rest: Instruction | None = _rows_in(panel)
    assert rest is not None
    for size, tiles in balanced(loop_op(rest).count, _height(loop_op(rest), tile)):
        part, rest = _first(panel, rest, size * tiles)
        made = split(panel, part, size)
        unroll_and_jam(body_of(made.outer), made.inner, aliases=aliases)
        if tile.unrolled > 1:
            _unroll_sums(body_of(made.outer), tile.unrolled)


def _unroll_sums(block: Block, factor: int) -> None:
    """Write out so many steps of the loops that sum, one after the other: no sum is added in another order."""
    for loop in loops_of(block):
        body = body_of(loop)
        if loops_of(body):
            _unroll_sums(body, factor)
        elif loop_op(loop).count > factor:
            made = split(block, loop, factor)
            unroll(body_of(made.outer), made.inner)


def _height(rows: Loop, tile: Tile) -> int:
    """Rows of a tile: of many tiles that threads share there are as many as two have alike."""
    tiles = -(-rows.count // tile.rows)
    if tiles < _MANY_TILES or not 0 < rows.grain < rows.count:
        return tile.rows
    return -(-rows.count // (tiles + tiles % 2))


_MANY_TILES: Final = 8
"""Tiles from which one more costs less than a tenth in height, which one thread pays as well."""


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
