"""Blocks with fewer arguments, changed in place; and what bodies say of themselves."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Block, Instruction
from ..ops import Branch, Conditional, Structured, arguments_of
from ..ops.literal import number_of


def never_ends(instruction: Instruction) -> bool:
    """Whether it is a loop whose condition is true for ever."""
    op = instruction.op
    if not isinstance(op, Structured) or op.ends:
        return False
    return all(number_of(decider) is True for decider in op.deciders(instruction))


def keep_arguments(
    block: Block, before: Sequence[tuple[Instruction, int]], kept: Sequence[int]
) -> bool:
    """Leave a block only these of its arguments; `before` are the terminators that lead to it.

    Each comes with the number of the successor.  Whether there were other arguments; those that an enum's
    case brings must stay.
    """
    if len(kept) == len(block.arguments):
        return False
    for terminator, number in before:
        op = terminator.op
        values = [arguments_of(terminator, number)[k] for k in kept]
        match op:
            case Branch():
                terminator.operands = tuple(values)
            case Conditional(taken=taken):
                condition, *rest = terminator.operands
                first, second = (values, rest[taken:]) if number == 0 else (rest[:taken], values)
                terminator.op = Conditional(len(first))
                terminator.operands = (condition, *first, *second)
            case _:
                raise TypeError(f"{op.name} does not set the arguments of a block")
    block.arguments[:] = [block.arguments[k] for k in kept]
    return True
