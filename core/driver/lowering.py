"""The lowering passes after optimisation: memory to bytes, ops to nests, nests to loops.

`stages` imports this file when a list first names it: it brings all that generates and schedules code.
"""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses
from ..compute.fuse import fuse
from ..compute.generate import generate_compute
from ..compute.lower_memory.lower import lower_memory
from ..ir import Module
from ..lazy_dataclass import dataclass
from ..passes.base import ModulePass
from ..schedule.plan import schedule
from ..schedule.switches import is_enabled
from ..schedule.target import Target


@dataclass(frozen=True)
class LowerMemory(ModulePass):
    """Lowers aggregates, pointers and memory operations to machine words and bytes.

    `entries` are functions that are called from outside.
    """

    name: ClassVar[str] = "lower-memory"
    entries: tuple[str, ...] = ()

    def run(self, module: Module, analyses: Analyses) -> bool:
        return lower_memory(module, self.entries)


@dataclass(frozen=True)
class GenerateCompute(ModulePass):
    """Turns tensor ops into loop nests; the stage becomes compute."""

    name: ClassVar[str] = "generate-compute"

    def run(self, module: Module, analyses: Analyses) -> bool:
        generate_compute(module)
        return True


@dataclass(frozen=True)
class Fuse(ModulePass):
    """Fuses nests that read and write the same values."""

    name: ClassVar[str] = "fuse"

    def run(self, module: Module, analyses: Analyses) -> bool:
        if is_enabled("fuse"):
            fuse(module)
        return True


@dataclass(frozen=True)
class Schedule(ModulePass):
    """Decides loops, vectors and memory for a machine; the stage becomes schedule."""

    target: Target
    name: ClassVar[str] = "schedule"

    def run(self, module: Module, analyses: Analyses) -> bool:
        schedule(module, self.target)
        return True
