"""Folding, simplification and CSE in one walk, which is what compile time is spent on."""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Function
from ..lazy_dataclass import dataclass
from .base import FunctionPass
from .fold import FOLDING
from .rewrite import Laws, combine_laws, rewrite
from .rules import FAST_MATH, FINAL, STRICT
from .simplify_structured import inline_known_bodies, run_to_fixpoint, simplify_structured


@dataclass(frozen=True)
class Canonicalize(FunctionPass):
    """`fold`, `simplify` and `cse` on each instruction in turn, so that each finds what the others left.

    `final` adds the laws for programs of which no derivative will be taken any more.

    Requires: nothing.
    Preserves: what `fold`, `simplify` and `cse` do.
    Cost: linear; 2 µs per instruction that no law changes, and all again where a body is chosen or a loop
        loses what it carries.
    """

    name: ClassVar[str] = "canonicalize"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    fast_math: bool = False
    final: bool = False

    def run(self, function: Function, analyses: Analyses) -> bool:
        body, laws = function.body, _LAWS[self.fast_math, self.final]
        if body is None:
            return False
        return run_to_fixpoint(
            body,
            lambda: rewrite(function, laws, analyses, merge=True),
            inline_known_bodies,
            simplify_structured,
        )


def _laws(*, fast_math: bool, final: bool) -> Laws:
    return combine_laws(
        # a constant is the end of it, whatever other laws would say
        FOLDING,
        STRICT,
        # where a law that holds for every bit applies, it is taken
        FAST_MATH if fast_math else {},
        FINAL if final else {},
    )


_LAWS = {
    (fast, late): _laws(fast_math=fast, final=late)
    for fast in (False, True)
    for late in (False, True)
}
