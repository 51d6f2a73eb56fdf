"""Activation frames: one per call and per region that is being run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from ..ir import Block, Function, Instruction, Value
from ..lazy_dataclass import dataclass
from ..types import written
from .byte_memory import Allocation

Resume: TypeAlias = Callable[[Sequence[Any]], None]
"""What happens with that which a body yields."""


@dataclass(eq=False, slots=True)
class Frame:
    """The next instruction is number `position`.

    The frame of a body shares `values` and `memory` with the function it is part of.  A call's frame is left
    with a result for `caller`, the instruction that called; that of a body by `resume`.
    """

    function: Function
    instructions: Sequence[Instruction]
    values: dict[Value, Any]
    caller: Instruction | None = None
    resume: Resume | None = None
    memory: list[Allocation] = field(default_factory=list[Allocation])
    position: int = 0

    def go_to(self, block: Block, arguments: Sequence[Any]) -> None:
        """Continue at the start of `block`."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        self.instructions = block.instructions
        self.position = 0

    def assign(self, instruction: Instruction, results: Sequence[Any]) -> None:
        """Give an instruction its results."""
        self.values.update(zip(instruction.results, results, strict=True))

    def leave(self) -> None:
        """Give back the memory on the stack, when the function returns."""
        for allocation in self.memory:
            allocation.give_back(f"of {written('@', self.function.name)}, which has returned")
