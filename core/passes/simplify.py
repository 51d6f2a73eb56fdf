"""Algebraic simplification, by the laws in `rules`.

Every law makes the program cheaper in this order, so simplifying ends:
1. fewer elements computed, an element of a product, division or power counting more than one of a sum or
   a square, and these more than a choice of sign or a move;
2. fewer instructions needed for a result (`−(−x)` is x; two views are one);
3. fewer operands and shorter constants (`x · x` is `x²`; a splat is a scalar);
4. one spelling of the same (`padShape` is `shapeCast`).

Structured ops lose the results that do not depend on them: see `control`.

A law may leave the original operand in place for its other users: the cost is that of what the result
depends on, and `dce` removes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Function, Module
from .base import FunctionPass
from .control import simplify_control, to_the_end
from .rewrite import combine_laws, rewrite
from .rules import FAST_MATH, STRICT


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
    fast_math: bool = False

    def run(self, function: Function, module: Module) -> bool:
        body, laws = function.body, _FAST if self.fast_math else STRICT
        if body is None:
            return False
        return to_the_end(body, lambda: rewrite(body, laws), simplify_control)


_FAST = combine_laws(STRICT, FAST_MATH)
