"""What scheduling has decided when nests are about to be written as kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any
from unittest import mock

from nnkit.core.compute.bodies import base_of
from nnkit.core.ir import Instruction, Module
from nnkit.core.kernels.ops import Kernel
from nnkit.core.lazy_dataclass import dataclass
from nnkit.core.schedule import plan
from nnkit.core.schedule.group import GroupedInstruction
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.target import Target


@dataclass
class Decided:
    """The loops of all nests, in the order in which they stand, and the kernels that are there already."""

    loops: list[Loops] = field(default_factory=list[Loops])
    reads: list[set[int]] = field(default_factory=list[set[int]])
    """The nests whose results each nest reads, by their numbers."""
    kernels: list[Instruction] = field(default_factory=list[Instruction])


def decided(module: Module, target: Target) -> Decided:
    """Schedule a module; what was decided of it."""
    found = Decided()
    write = plan.write_nest_kernels

    def record(steps: Sequence[GroupedInstruction], *args: Any, **more: Any) -> Any:
        found.loops += [step.loops for step in steps if step.loops is not None]
        nests = [step.instruction for step in steps if step.loops is not None]
        numbers = {value: n for n, nest in enumerate(nests) for value in nest.results}
        bases = [map(base_of, nest.operands) for nest in nests]
        found.reads += [{numbers[x] for x in read if x in numbers} for read in bases]
        instructions = [step.instruction for step in steps]
        found.kernels += [one for one in instructions if isinstance(one.op, Kernel)]
        return write(steps, *args, **more)

    with mock.patch.object(plan, "write_nest_kernels", record):
        plan.schedule(module, target)
    return found
