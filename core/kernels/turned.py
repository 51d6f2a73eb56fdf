"""First operands of products that are stored transposed, turned into rows beforehand: so many of them at a time.

Sums go along their columns: a tile reads a line of each row of the matrix for few elements, in another page each.  So
blocks of rows of the product are turned, one after the other, each before all columns of the product in it:

    loop blocks of rows {
        turn the part of the first operand that they read
        loops over columns and over the rows of the block …
    }
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..ir.builder import Builder
from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from ..types import PointerType, TensorType
from .cse import cse
from .dependence import BufferAliases
from .indices import IndexSum
from .interchange import interchange
from .loops import body_of, loop_op, loops_of
from .ops import Kernel
from .pack import Panel, SummedRange, read_packed, write_panel
from .split import split


def add_buffer(kernel: Instruction[Kernel], size: int, name: str, copies: int = 0) -> Value:
    """One more buffer of one axis that a kernel works with; threads have so many `copies`, or share it if it is 0."""
    op, type = kernel.op, TensorType((size,), kernel.operands[1].tensor.dtype)
    private = (*op.copies, copies)
    kernel.op = replace(op, using=(*op.using, type), private=private if any(private) else ())
    buffer = Value(PointerType(type), name)
    kernel.regions[0].entry.arguments.append(buffer)
    return buffer


_PAGE: Final = 4096
"""Bytes: what lies a multiple of them apart shares few places of a cache, and two accesses at a time wait for each
other."""


_STRIPS: Final = 16
"""Blocks of columns of a part that is turned, for threads to share."""


@dataclass(frozen=True)
class TurnedRows:
    """How many rows, a divisor of all, are turned at a time, in vectors of `lanes`, and of which columns.

    The loop over rows is around that over columns if it is `by_rows`, or the other way round.
    """

    count: int
    lanes: int
    by_rows: bool
    summed: SummedRange


def turn_rows(
    kernel: Instruction[Kernel],
    block: Block,
    rows: TurnedRows,
    copies: int,
    aliases: BufferAliases,
) -> tuple[list[Instruction], Block]:
    """Have sums go along rows of a packed copy of the first operand; `block` has the loops over rows and columns.

    Threads have so many `copies` of what is packed, or share it if it is 0.

    Returns what packs it, and the block that this belongs in, before all else: in a loop over blocks of rows, unless
    these are all rows.
    """
    count, lanes, k = rows.count, rows.lanes, rows.summed.count
    entry, type = kernel.regions[0].entry, kernel.operands[0].tensor
    m = type.shape[-1]
    (outer,) = loops_of(block)
    is_shared = any(loop_op(one).grain > 0 for one in (outer, *loops_of(body_of(outer))))
    zero = first = IndexSum(0, {})
    start = rows.summed.start(entry)
    if count < m:
        block = _blocks_of_rows(block, rows, aliases)
        first = IndexSum(0, {block.arguments[0]: 1})
    stride = -(-k // lanes) * lanes
    if stride * type.dtype.bytes % _PAGE == 0:
        stride += lanes
    axes = type.rank - 1, type.rank - 2
    buffer = add_buffer(kernel, count * stride, "turned", copies)
    panel = Panel(entry.arguments[0], start, zero, count, k, lanes, *axes, stride, first)
    others = read_packed(block, panel, buffer)
    b = Builder(Block())
    grain = -(-k // (lanes * _STRIPS)) if is_shared else 0
    write_panel(b, panel, buffer, others or [], grain)
    cse(b.block)
    return b.block.instructions, block


def _blocks_of_rows(block: Block, rows: TurnedRows, aliases: BufferAliases) -> Block:
    """Divide rows into blocks, with the loop over these outside of all; its body.

    Threads share what they shared before, in each block.
    """
    (outer,) = loops_of(block)
    if not rows.by_rows:
        (inner,) = loops_of(body_of(outer))
        split(body_of(outer), inner, rows.count)
        return body_of(interchange(block, outer, aliases=aliases))
    grain = loop_op(outer).grain
    made = split(block, outer, rows.count)
    made.outer.op = replace(loop_op(made.outer), grain=0)
    made.inner.op = replace(loop_op(made.inner), grain=grain)
    return body_of(made.outer)
