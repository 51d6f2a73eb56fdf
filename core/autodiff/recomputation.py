"""Code that computes values again, for the way back: without what the world outside has seen already.

The forward half has checked and printed (`Op.is_observable`).  What a checkpoint, or a derivative of a gradient that
reads a tape, computes once more must not: such instructions are left out, and functions that contain some are called
in a copy without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ..analysis.call_graph import reachable
from ..ir import Block, Function, Instruction, Module
from ..ir.surgery import clone_function, walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply


@dataclass
class Recomputation:
    """Makes the copies in `module`, one for each function."""

    module: Module
    _copies: dict[str, Function] = field(default_factory=dict[str, Function])

    def of_function(self, function: Function) -> Function:
        """A function of the same results that does nothing else; itself if it is such."""
        needed = [self.module.functions[name] for name in reachable(self.module, [function.name])]
        if not any(map(_is_observable, needed)):
            return function
        if function.name not in self._copies:
            name = self.module.fresh_name(f"{function.name}_again")
            copy = self._copies[function.name] = clone_function(function, name)
            self.module.add(copy)
            if copy.body is not None:
                self._clean_all(walk_blocks(copy.body))
        return self._copies[function.name]

    def of_instructions(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """These instructions without what is observable; their bodies are changed in place."""
        block = Block(instructions=list(instructions))
        bodies = (region for i in instructions for region in i.regions)
        self._clean_all([block, *(inner for body in bodies for inner in walk_blocks(body))])
        return block.instructions

    def _clean_all(self, blocks: Iterable[Block]) -> None:
        for block in [*blocks]:
            kept: list[Instruction] = []
            for instruction in block.instructions:
                if instruction.op.is_observable:
                    instruction.erase()
                    continue
                called = instruction.op.called
                if called is not None:
                    callee = self.of_function(self.module.functions[called])
                    instruction.op = Apply(callee.name, callee.type)
                kept.append(instruction)
            block.instructions = kept


def _is_observable(function: Function) -> bool:
    return function.body is not None and any(i.op.is_observable for i in walk(function.body))
