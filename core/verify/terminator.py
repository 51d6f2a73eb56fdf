"""Rules 13 and 14: where terminators go on to, and with what."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Block, Instruction
from ..ops import Branch, BranchEnum, Conditional, arguments_of
from ..text.lexer import written
from ..types import EnumType, Type
from .instruction import listed


def successor_count(instruction: Instruction) -> int:
    """How many blocks the op goes on to."""
    match instruction.op:
        case Branch():
            return 1
        case Conditional():
            return 2
        case BranchEnum(cases=cases):
            return len(cases)
        case _:
            return 0


def successor_violations(instruction: Instruction, inside: dict[Block, int]) -> Iterator[str]:
    """What is wrong with the successors; `inside` are the blocks of the instruction's own region."""
    op, successors = instruction.op, instruction.successors
    expected = successor_count(instruction)
    if len(successors) != expected:
        what = f"{expected or 'no'} successor{'s' * (expected != 1)}"
        yield f"{op.name} has {what}, not {len(successors)}"
        return
    if isinstance(op, Conditional) and not 0 <= op.taken < len(instruction.operands):
        given = len(instruction.operands) - 1
        yield f"conditional gives its first successor {op.taken} of {given} arguments"
        return
    for number, block in enumerate(successors):
        position = inside.get(block)
        if position is None:
            yield f"{op.name} goes on to {label(block)}, which is not a block of the same region"
        elif position == 0:
            yield f"{op.name} goes on to {label(block)}: nothing leads back to the first block"
        offered = given_types(instruction, number)
        taken = tuple(argument.type for argument in block.arguments)
        if offered is not None and offered != taken:
            verb = "carries" if isinstance(op, BranchEnum) else "is given"
            what = f"?{op.cases[number]}" if isinstance(op, BranchEnum) else label(block)
            takes = f"{label(block)} takes" if isinstance(op, BranchEnum) else "it takes"
            yield f"{what} {verb} ({listed(offered)}); {takes} ({listed(taken)})"


def given_types(instruction: Instruction, successor: int) -> tuple[Type, ...] | None:
    """The types of what successor number `successor` is given; None where another rule is broken."""
    op = instruction.op
    if isinstance(op, BranchEnum):
        type = instruction.operands[0].type if instruction.operands else None
        case = op.cases[successor]
        return type.carried(case) if isinstance(type, EnumType) and case in type.positions else None
    return tuple(value.type for value in arguments_of(instruction, successor))


def label(block: Block) -> str:
    """The block as text names it."""
    if not block.name:
        return "a block without a name"
    name = written("'", block.name)
    return f"the block {name}"
