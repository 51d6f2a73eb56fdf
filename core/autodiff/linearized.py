"""What a reverse sweep works on: the copy of the primal, the backward half, and what was gathered."""

from __future__ import annotations

from collections.abc import Generator, Set
from dataclasses import field
from typing import TypeAlias

from ..ir import Block, Builder, Function, Instruction, SavePolicy, Value
from ..ir.loop_schedules import LoopSchedule
from ..ir.surgery import with_bodies
from ..lazy_dataclass import dataclass
from .adjoints import Adjoints
from .primal_copy import PrimalCopy
from .pullback import Pullback, PullbackKey, SavingCall
from .shadows import Shadows
from .tapes import Tapes


@dataclass
class Linearized:
    """A copy of the primal, the reverse sweep over it, and what the sweep gathered.

    `calls` are the calls of the copy whose pullbacks want something saved; `callees_save` is the policy of these
    pullbacks, `save` that of the sweep itself, and `schedule` that of its loops.
    """

    copy: PrimalCopy
    backward: Builder
    adjoints: Adjoints
    tapes: Tapes
    calls: dict[Instruction, SavingCall] = field(default_factory=dict[Instruction, SavingCall])
    save: SavePolicy | None = None
    callees_save: SavePolicy | None = None
    schedule: LoopSchedule | None = None

    def __post_init__(self) -> None:
        copy = self.copy
        self.shadows = Shadows(copy.builder.block, copy.active) if copy.uses_memory else None
        """None in a function that has nothing to do with memory."""
        self.writers = self.shadows.writers if self.shadows else frozenset[Instruction]()
        """What must be swept though its results have no cotangents, as what it writes to memory may have some."""

    def schedule_of(self, block: Block) -> LoopSchedule | None:
        """The schedule for the loops of a block of the forward half: for those that stand in no other."""
        return self.schedule if block is self.copy.builder.block else None

    def forward(self, used: Set[Value]) -> list[Instruction]:
        """The forward half; a call saves what its pullback wants only if that is `used`."""
        block = self.copy.builder.block
        self.save_in_calls(block, used)
        return block.instructions

    def save_in_calls(self, block: Block, used: Set[Value]) -> None:
        """Have the calls of a block of the forward half save what is `used` of what their pullbacks want."""
        for position, instruction in enumerate(block.instructions):
            saving = self.calls.get(instruction)
            if saving is not None and not used.isdisjoint(saving.saved):
                block.instructions[position] = saving.replace(instruction)
                instruction.drop_all_references()

    def drop_all_but(self, *functions: Function) -> None:
        """Have what was made, and is in none of these functions, use nothing any more."""
        kept = {
            instruction
            for function in functions
            for instruction in with_bodies(function.entry.instructions)
        }
        saving = [call.instruction for call in self.calls.values()]
        halves = (self.copy.builder, self.backward)
        for instruction in (*saving, *(i for half in halves for i in half.block.instructions)):
            if instruction not in kept:
                instruction.drop_all_references()


Sweep: TypeAlias = "Generator[PullbackKey | Sweep, Pullback | None, None]"
"""A sweep over a block, which asks for pullbacks and hands out the sweeps over the bodies inside."""
