"""Rules 13 and 14: where terminators go on to, and with what."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Block, Instruction
from ..ops.aggregate import listed
from ..ops.terminators import argument_counts, case_of, types_passed
from ..text.lexer import written


def successor_violations(instruction: Instruction, inside: dict[Block, int]) -> Iterator[str]:
    """What is wrong with the successors; `inside` are the blocks of the instruction's own region."""
    op, successors = instruction.op, instruction.successors
    counts = argument_counts(instruction)
    expected = len(counts)
    if len(successors) != expected:
        what = f"{expected or 'no'} successor{'s' * (expected != 1)}"
        yield f"{op.name} has {what}, not {len(successors)}"
        return
    if min(counts, default=0) < 0:
        yield f"{op.name} gives its first successor {counts[0]} of {sum(counts)} arguments"
        return
    for number, block in enumerate(successors):
        position = inside.get(block)
        if position is None:
            yield f"{op.name} goes on to {label(block)}, which is not a block of the same region"
        elif position == 0:
            yield f"{op.name} goes on to {label(block)}: nothing leads back to the first block"
        offered, case = types_passed(instruction, number), case_of(instruction, number)
        taken = tuple(argument.type for argument in block.arguments)
        if offered is not None and offered != taken:
            given = f"({listed(offered)})" if case is None else f"({listed(offered)}) by ?{case}"
            yield f"{label(block)} is given {given}; it takes ({listed(taken)})"


def label(block: Block) -> str:
    """The block as text names it."""
    if not block.name:
        return "a block without a name"
    name = written("'", block.name)
    return f"the block {name}"
