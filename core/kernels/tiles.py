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
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from ..ir.builder import Builder
from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Region, Value
from ..ir.surgery import clone_region, with_bodies
from ..lazy_dataclass import dataclass
from ..ops.nest import Yield
from .cse import cse
from .dependence import BufferAliases
from .distribute import distribute
from .errors import IllegalRewrite
from .indices import IndexSum, access_of
from .interchange import interchange
from .loops import body_of, is_loop, loop_op, loops_of, make_index
from .ops import AllocateLocal, Fma, Kernel, Loop
from .order import shorten_live_ranges
from .pack import Panel, SummedRange, read_packed, write_panel
from .same import written_body
from .split import balanced, peel, split
from .tile_sizes import Registers, Tile, best_tile, panels_of, panels_of_sums
from .turned import TurnedRows, add_buffer, turn_rows
from .unroll import unroll, unroll_and_jam
from .vectorise import vectorise


@dataclass(frozen=True)
class Packing:
    """That panels of the second operand are packed: rows along one of its axes, columns along another."""

    summed: SummedRange
    row_axis: int
    column_axis: int


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
        reduces_rows=bool(columns.operands) and _reader_of_own(body_of(columns)) is None,
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
        columns, epilogue = _loop_in(body), None
        staged = _reader_of_own(body_of(columns))
        if staged is not None:
            columns, epilogue = distribute(body, columns, staged, aliases=self.aliases)
            widen_rows(body, self.lanes)
        first, copies = loop_op(columns).lower, Builder(Block())
        for panel in list(_write_panels(body, columns, vectors, self.lanes, self.aliases)):
            if self.packed is not None and self.buffer is not None:
                place = _ZERO.plus(-first * self.packed.summed.count)
                self._pack(copies, panel, (self.packed, self.buffer), start, place)
        if epilogue is not None:
            _write_epilogue(body, epilogue, self.lanes, self.aliases)
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
    for size, panels in panels_of(count // lanes, vectors, reduces_rows=reduces):
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
        yield _write_rest(block, rest, lanes, aliases)


def _write_rest(block: Block, rest: Instruction, lanes: int, aliases: BufferAliases) -> _Columns:
    """Columns that fill a part of a vector."""
    left = loop_op(rest).count
    last = split(block, rest, left)
    inside, width = body_of(last.outer), min(lanes, 1 << (left - 1).bit_length())
    vectorise(inside, last.inner, width, aliases=aliases)
    return _Columns(loop_op(last.outer), inside, left, width)


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
        inside, run = body_of(made.outer), made.inner
        staged = _reader_of_own(body_of(run))
        later = None
        if staged is not None:
            run, later = distribute(inside, run, staged, aliases=aliases)
        unroll_and_jam(inside, run, aliases=aliases)
        if tile.unrolled > 1:
            _unroll_sums(inside, tile.unrolled, later)


def _reader_of_own(body: Block) -> Instruction | None:
    """What reads first, itself or inside of it, a local buffer of a body."""
    own = {x for one in body.instructions if one.op.effect is Effect.ALLOCATE for x in one.results}
    for one in body.instructions if own else ():
        accesses = map(access_of, with_bodies([one]))
        if any(a is not None and not a.is_store and a.buffer in own for a in accesses):
            return one
    return None


def widen_rows(block: Block, lanes: int) -> None:
    """Have local buffers of a block, of a row each, end in a vector that nothing uses.

    Rows 2 or 4 KB apart exclude each other from the nearest cache.
    """
    for one in block.instructions:
        if isinstance(one.op, AllocateLocal):
            type = one.op.type
            one.op = AllocateLocal(type.with_shape((-(-type.shape[0] // lanes) * lanes + lanes,)))
            one.result.type = one.op.infer()


def _write_epilogue(block: Block, loop: Instruction, lanes: int, aliases: BufferAliases) -> None:
    """Vectorise what is computed of a row of sums that lie in a local buffer."""
    rest: Instruction | None = loop
    count, reduces = loop_op(loop).count, bool(loop.operands)
    for size, runs in panels_of_sums(count // lanes, reduces_rows=reduces):
        part, rest = _first(block, rest, size * runs * lanes)
        if reduces:
            vectorise(block, part, size * lanes, reassociate=True, aliases=aliases)
        else:
            made = split(block, part, size * lanes)
            vectorise(body_of(made.outer), made.inner, size * lanes, aliases=aliases)
    if rest is not None:
        _write_rest(block, rest, lanes, aliases)


def _unroll_sums(block: Block, factor: int, epilogue: Instruction | None = None) -> None:
    """Write out so many steps of the loops that sum, one after the other: no sum is added in another order."""
    for loop in loops_of(block):
        body = body_of(loop)
        if loop is epilogue:
            continue
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
