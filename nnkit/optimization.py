"""What brings a module to stage optimizable, differentiation being one pass among others.

It stands apart from `lowering` so that who only optimises does not load what generates and schedules code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .core.analysis import Analyses
from .core.autodiff.reverse import differentiate
from .core.ir import Function, Module
from .core.passes.base import ModulePass
from .core.passes.canonicalize import Canonicalize
from .core.passes.cse import CommonSubexpressions
from .core.passes.dce import DeadCode
from .core.passes.pipeline import PIPELINES, Pipeline


@dataclass(frozen=True)
class Differentiate(ModulePass):
    """Gives the declarations of derivatives their bodies; the stage becomes optimizable.

    A derivative that is differentiated again is simplified before, as otherwise each order would be a multiple
    of the one before: by `laws` of algebra too, or without them by leaving out what is computed twice.
    """

    name: ClassVar[str] = "differentiate"
    laws: bool = True

    def run(self, module: Module, analyses: Analyses) -> bool:
        passes = (Canonicalize() if self.laws else CommonSubexpressions(), DeadCode())
        between = Analyses(module)

        def simplify(functions: Sequence[Function]) -> None:
            between.settle(functions)  # until now they had no bodies
            for a_pass in passes:
                changed = [function for function in functions if a_pass.run(function, between)]
                between.settle(changed, preserved=a_pass.preserves_analyses)

        return differentiate(module, analyses.effects, simplify)


def optimizing(level: int) -> Pipeline:
    """What runs at -O and this number."""
    before, after = PIPELINES[level]
    return (*before, Differentiate(laws=level > 0), *after)
