"""What brings a module to stage optimizable, differentiation being one pass among others.

It stands apart from `lowering` so that who only optimises does not load what generates and schedules code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .core.analysis import Analyses
from .core.autodiff.reverse import differentiate
from .core.ir import Module
from .core.passes.base import ModulePass
from .core.passes.pipeline import PIPELINES, Pipeline


@dataclass(frozen=True)
class Differentiate(ModulePass):
    """Gives the declarations of derivatives their bodies; the stage becomes optimizable."""

    name: ClassVar[str] = "differentiate"

    def run(self, module: Module, analyses: Analyses) -> bool:
        return differentiate(module, analyses.effects)


def optimizing(level: int) -> Pipeline:
    """What runs at -O and this number."""
    before, after = PIPELINES[level]
    return (*before, Differentiate(), *after)
