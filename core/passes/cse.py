"""Common subexpression elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..analysis.effects import Effects
from ..ir import Function, Module
from .base import FunctionPass
from .rewrite import rewrite


@dataclass(frozen=True)
class CommonSubexpressions(FunctionPass):
    """Computes once what is computed several times from the same operands.

    Ops are values, so equal ops on equal operands give equal results.  What is computed in a block is known
    in the blocks that it dominates and in the bodies of its instructions, but not after them.  What has an
    effect, reading included, is left alone.

    Requires: nothing.
    Preserves: everything; the first of equal instructions stays.
    Cost: linear, one dictionary entry per instruction.
    """

    name: ClassVar[str] = "cse"

    def run(self, function: Function, module: Module) -> bool:
        return self._run(function, Effects(module))

    def run_all(self, module: Module) -> bool:
        effects = Effects(module)
        changed = [self._run(function, effects) for function in module.functions.values()]
        return any(changed)

    def _run(self, function: Function, effects: Effects) -> bool:
        body = function.body
        return rewrite(body, {}, merge=True, effects=effects) if body else False
