"""The stages of a compilation as pipelines, in order: what runs to bring a module to each.

    raw          what staging or a text gives
    optimizable  gradients have bodies, everything is simplified; calls are still calls
    optimized    one function of tensors per entry: calls inlined, structs and tuples taken apart
    compute      loop nests
    schedule     loops, vectors and memory decided: what is emitted

The changes of stage are passes here, as differentiation is one in `optimization`, so that all of a compilation can be
verified, timed and printed step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .core.analysis import Analyses
from .core.compute.fuse import fuse
from .core.compute.generate import generate_compute
from .core.compute.words.lower import lower_memory
from .core.ir import Module
from .core.passes.base import ModulePass
from .core.passes.pipeline import Pipeline, code_generation
from .core.schedule.plan import schedule
from .core.schedule.target import Target
from .optimization import optimizing

STAGES = ("raw", "optimizable", "optimized", "compute", "schedule")


@dataclass(frozen=True)
class LowerMemory(ModulePass):
    """Makes words of what is no tensor, and the ops on bytes of those on memory.

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
    """Joins nests that belong together."""

    name: ClassVar[str] = "fuse"

    def run(self, module: Module, analyses: Analyses) -> bool:
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


def pipeline_to(
    stage: str, entries: Sequence[str], *, level: int = 2, target: Target | None = None
) -> Pipeline:
    """What brings a module from the stage before to the end of `stage`.

    `entries` are the functions that stay, by name; `level` is the number after -O; `target` is the machine to
    schedule for.
    """
    match stage:
        case "optimizable":
            return optimizing(level)
        case "optimized":
            return code_generation(*entries, level=level)
        case "compute":
            nests = (LowerMemory(tuple(entries)), GenerateCompute())
            return (*nests, Fuse()) if level else nests
        case "schedule":
            return (Schedule(target or Target()),)
        case _:
            return ()
