"""Computes before a loop what is the same in all its iterations."""

from __future__ import annotations

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction
from .access_ops import LoadAt
from .dependence import BufferAliases, root_of
from .guarded_ops import written_buffer
from .loops import body_of, counted_op, inside, loops_of, position_of


def hoist(block: Block, loop: Instruction, *, aliases: BufferAliases = ()) -> None:
    """Move before a loop what computes, or loads from buffers that it does not write, the same in all iterations.

    Constants stay where they are, unless something that moves needs them; so do loops, and loads where a condition
    holds, which a check may stand before.  Nothing moves out of a loop that does not run.
    """
    position = position_of(block, loop)
    if not counted_op(loop).count:
        return
    body = body_of(loop)
    written = {
        root_of(buffer, aliases) for i in inside(body) if (buffer := written_buffer(i)) is not None
    }
    made = set(body.arguments)
    moved: dict[Instruction, None] = {}
    for instruction in body.instructions:
        effect = instruction.op.effect
        is_pure = effect is Effect.NONE and not instruction.op.is_terminator
        is_load = isinstance(instruction.op, LoadAt) and (
            root_of(instruction.operands[0], aliases) not in written
        )
        may_move = (is_pure or is_load) and not instruction.regions
        if may_move and made.isdisjoint(instruction.operands):
            moved[instruction] = None
        else:
            made.update(instruction.results)
    needed = {x for i in moved if not i.op.is_constant for x in i.operands}
    for instruction in [i for i in moved if i.op.is_constant]:
        if instruction.result not in needed:
            del moved[instruction]
    body.instructions[:] = [i for i in body.instructions if i not in moved]
    block.instructions[position:position] = moved


def hoist_all(block: Block, *, aliases: BufferAliases = ()) -> None:
    """`hoist` of every loop in a block, the innermost first."""
    for loop in loops_of(block):
        hoist_all(body_of(loop), aliases=aliases)
        hoist(block, loop, aliases=aliases)
