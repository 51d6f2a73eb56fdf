"""Exchanges two loops of which one stands in the other, beside nothing but sums of indices."""

from __future__ import annotations

from dataclasses import replace

from ..ir.instruction import Block, Instruction
from .dependence import BufferAliases, accesses_in, conflict_of_order, range_of, shifted
from .errors import IllegalRewrite
from .loops import body_of, is_loop, loop_op, position_of
from .ops import AffineIndex


def interchange(block: Block, outer: Instruction, *, aliases: BufferAliases = ()) -> Instruction:
    """Make the loop in `outer` the outer one; it, where it stands now.

    The body of `outer` holds that loop, and neither carries values.  Sums of indices may stand before it, and move into
    it.  The outer loop stays parallel, if it was, and so does the inner one if both were.

    Raises: IllegalRewrite when they are not so, or an element would be touched in another order.
    """
    position = position_of(block, outer)
    around = body_of(outer)
    *sums, end = around.instructions
    if (
        not sums
        or not is_loop(inner := sums.pop())
        or not all(isinstance(one.op, AffineIndex) for one in sums)
    ):
        raise IllegalRewrite("the body of the outer loop is not one loop alone")
    if outer.operands or inner.operands:
        raise IllegalRewrite("loops that carry values are not exchanged")
    body = body_of(inner)
    found = accesses_in(body.instructions)
    loops = {
        around.arguments[0]: shifted(range_of(outer), 1),
        body.arguments[0]: shifted(range_of(inner), -1),
    }
    if reason := conflict_of_order(found, found, loops, aliases):
        raise IllegalRewrite(f"this would change the order of {reason}")
    is_parallel = loop_op(outer).grain and loop_op(inner).grain
    grain = loop_op(inner).grain if is_parallel else 0
    inner.op = replace(loop_op(inner), grain=grain)
    outer.regions, inner.regions = inner.regions, outer.regions
    # the loops keep their bounds and take each other's place: each body gets the index of its new loop
    around.arguments[0], body.arguments[0] = body.arguments[0], around.arguments[0]
    around.instructions[:] = [outer, end]
    body.instructions[:0] = sums
    block.instructions[position] = inner
    return inner
