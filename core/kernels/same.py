"""Which kernels do the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ..ir.instruction import Block, Instruction, Value
from .ops import Kernel


def written_body(kernel: Instruction[Kernel]) -> tuple[Hashable, ...]:
    """What is equal for kernels that do the same with buffers of the same types.

    Cost: linear in the number of instructions.
    """
    numbers: dict[Value, int] = {}
    found: list[Hashable] = []
    pending: list[Iterator[Instruction]] = []

    def enter(block: Block) -> None:
        found.append(tuple([argument.type for argument in block.arguments]))
        for argument in block.arguments:
            numbers[argument] = len(numbers)
        pending.append(iter(block.instructions))

    enter(kernel.regions[0].entry)
    while pending:
        instruction = next(pending[-1], None)
        if instruction is None:
            pending.pop()
            continue
        found.append((instruction.op, *[numbers[operand] for operand in instruction.operands]))
        for result in instruction.results:
            numbers[result] = len(numbers)
        for region in instruction.regions:
            enter(region.entry)
    return tuple(found)
