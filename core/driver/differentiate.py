"""Differentiation as a pass among others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..analysis import Analyses
from ..analysis.axes import check_axes
from ..analysis.call_graph import reachable
from ..analysis.pointer_bases import uses_memory
from ..autodiff.reverse import differentiate
from ..ir import Function, Module
from ..lazy_dataclass import dataclass
from ..passes.base import ModulePass
from ..passes.canonicalize import Canonicalize
from ..passes.cse import CommonSubexpressions
from ..passes.dce import DeadCode
from ..passes.index_pointers import IndexPointers
from ..passes.scalarize import Scalarize
from ..passes.split_memory import SplitMemory


@dataclass(frozen=True)
class Differentiate(ModulePass):
    """Gives the declarations of derivatives and batches their bodies.

    A derivative that is differentiated again is simplified before, as otherwise each order would be a multiple
    of the one before: by `laws` of algebra too, or without them by leaving out what is computed twice.
    """

    name: ClassVar[str] = "differentiate"
    laws: bool = True

    def run(self, module: Module, analyses: Analyses) -> bool:
        check_axes(module)
        prepared = self._prepare(module, analyses)
        passes = (Canonicalize() if self.laws else CommonSubexpressions(), DeadCode())
        between = Analyses(module)

        def simplify(functions: Sequence[Function]) -> None:
            between.settle(functions)  # until now they had no bodies
            for a_pass in passes:
                changed = [function for function in functions if a_pass.run(function, between)]
                between.settle(changed, preserved=a_pass.preserves_analyses)

        return differentiate(module, analyses.effects, simplify) or prepared

    def _prepare(self, module: Module, analyses: Analyses) -> bool:
        """Have functions that are differentiated use memory by leaves, and by indices; whether any has changed."""
        primals = [f.primal for f in module.functions.values() if f.primal is not None]
        changed = False
        for name in reachable(module, primals):
            function = module.functions[name]
            if function.body is None or not uses_memory(function.body):
                continue
            done = [a_pass.run(function, analyses) for a_pass in (SplitMemory(), IndexPointers())]
            if any(done):
                analyses.forget(function)
                Scalarize().run(function, analyses)
                analyses.forget(function)
                changed = True
        return changed
