"""Replaces instructions of a block, one by one and in order."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Block, Builder, Instruction, Value


def replace_each(block: Block, write: Callable[[Builder, Instruction], Value | None]) -> None:
    """Put what `write` appends for an instruction in its place, at its location; where that is None, it stays."""
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        b.location = instruction.location
        made = write(b, instruction)
        if made is None:
            block.instructions.append(instruction)
        else:
            instruction.replace_with(made)
