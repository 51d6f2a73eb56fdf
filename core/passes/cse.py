"""Common subexpression elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Function, Module
from .base import FunctionPass
from .rewrite import rewrite


@dataclass(frozen=True)
class CommonSubexpressions(FunctionPass):
    """Computes once what a block computes several times from the same operands.

    Ops are values, so equal ops on equal operands give equal results.

    Requires: nothing.
    Preserves: everything; the first of equal instructions stays.
    Cost: linear, one dictionary entry per instruction.
    """

    name: ClassVar[str] = "cse"

    def run(self, function: Function, module: Module) -> bool:
        return rewrite(function.body, {}, merge=True) if function.body else False
