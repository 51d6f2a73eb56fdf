"""The order of instructions: what is computed or loaded stands just before its first use.

Loops that were jammed have all loads of their copies side by side; where these stay in registers until the last of
them is used, there are too few registers.  What is used in turn is computed in turn.

Source: Sethi & Ullman 1970, "The generation of optimal code for arithmetic expressions": depth first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Value
from ..ir.surgery import with_bodies
from .access_ops import LoadAt
from .dependence import BufferAliases, root_of
from .guarded_ops import written_buffer
from .loops import body_of, inside


def shorten_live_ranges(block: Block, *, aliases: BufferAliases = ()) -> None:
    """Order a body, and those of the loops in it, depth first from what has effects, and from what is yielded.

    Stores, loops, checks, loads where a condition holds, and loads of buffers that are stored to in the same body, stay
    in their order.
    What nothing uses stands at the end.

    Cost: linear in the number of instructions times the depth of loops.
    """
    pending = [block]
    while pending:
        current = pending.pop()
        _order(current, aliases)
        pending += [body_of(one) for one in current.instructions if one.regions]


def _order(block: Block, aliases: BufferAliases) -> None:
    stored = {
        root_of(buffer, aliases)
        for one in inside(block)
        if (buffer := written_buffer(one)) is not None
    }
    waiting = {one for one in block.instructions if _may_move(one, stored, aliases)}
    placed: list[Instruction] = []
    for root in block.instructions:
        if root not in waiting:
            _place(root, waiting, placed)
    unused = [one for one in block.instructions if one in waiting]
    end = len(placed) - placed[-1].op.is_terminator
    block.instructions[:] = [*placed[:end], *unused, *placed[end:]]


def _may_move(instruction: Instruction, stored: set[Value], aliases: BufferAliases) -> bool:
    """Whether it may stand wherever its operands are known."""
    if isinstance(instruction.op, LoadAt):
        return root_of(instruction.operands[0], aliases) not in stored
    is_free = instruction.op.effect in (Effect.NONE, Effect.ALLOCATE)
    return is_free and not (instruction.regions or instruction.op.is_terminator)


def _place(root: Instruction, waiting: set[Instruction], placed: list[Instruction]) -> None:
    """What an instruction uses and is not there yet, then itself."""
    stack = [(root, _used(root))]
    while stack:
        instruction, used = stack[-1]
        for value in used:
            made = value.producer
            if made is not None and made in waiting:
                waiting.remove(made)
                stack.append((made, _used(made)))
                break
        else:
            stack.pop()
            placed.append(instruction)


def _used(instruction: Instruction) -> Iterator[Value]:
    """The operands, those of instructions in a loop, too, even if it never runs."""
    for one in with_bodies([instruction]):
        yield from one.operands
