"""Algebraic simplification, by the laws in `rules`.

Every law makes what a result depends on less, by the first of these that differs, so simplifying ends:
1. the work on elements: 1 for one that is moved or changes its sign, 3 for a sum, a square, a choice or one taken at an
   index, 4 for a product, 8 for a term of a matrix product and 12 for one that is added or written at an index, more
   for divisions and functions; views are free;
2. the number of instructions, literals aside (`−(−x)` is x; two views are one);
3. the number of operands, then of axes of constants among them (`x · x` is `x²`; a splat is a scalar);
4. the spelling (`padShape` is `shapeCast`, and so is a transposition that moves nothing);
5. the ways that lead to it (of `(−x) + (−x) = (−x) − x` two go through the negation, then one).

`tests/core/passes/test_measure.py` has this as a function, and compares whenever a law is applied.

Structured ops lose the results that do not depend on them, or go: see `simplify_structured`.

A law may leave the original operand in place for its other users: what counts is what the result depends on,
and `dce` removes the rest.
"""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Function
from ..lazy_dataclass import dataclass
from .base import FunctionPass
from .rewrite import combine_laws, rewrite
from .rules import FAST_MATH, STRICT
from .simplify_structured import run_to_fixpoint, simplify_structured


@dataclass(frozen=True)
class Simplify(FunctionPass):
    """Replaces instructions by cheaper ones of the same value.

    Requires: nothing.
    Preserves: every bit of every result, NaN's sign and payload aside; with `fast_math`, real arithmetic.
        The one exception is x², which is rounded better than a power need be.
    Cost: linear; each instruction is visited once, and again each time a law replaces it.  Everything is
        visited again where a structured op loses a result.
    """

    name: ClassVar[str] = "simplify"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    fast_math: bool = False

    def run(self, function: Function, analyses: Analyses) -> bool:
        body, laws = function.body, _FAST if self.fast_math else STRICT
        if body is None:
            return False
        return run_to_fixpoint(body, lambda: rewrite(function, laws, analyses), simplify_structured)


_FAST = combine_laws(STRICT, FAST_MATH)
