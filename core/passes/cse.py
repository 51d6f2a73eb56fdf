"""Common subexpression elimination."""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Function
from ..lazy_dataclass import dataclass
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
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS

    def run(self, function: Function, analyses: Analyses) -> bool:
        return rewrite(function, {}, analyses, merge=True)
