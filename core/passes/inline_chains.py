"""Inlining in long chains of calls that are to be differentiated.

What a derivative saves of a call has the type of all that the calls in it save, so that types nest as deeply as calls
do.  They are written out and compared, by us and by readers.

1. The height of a function is the length of the longest chain of calls that it begins.
2. Where it is large for a function that is differentiated, calls in it go: of functions that are called at one place
   only, and of those whose height is no multiple of the largest length.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ..analysis import Analyses, Analysis
from ..analysis.call_graph import call_sites, callees, cycles_callees_first
from ..ir import Module
from ..lazy_dataclass import dataclass
from .base import ModulePass
from .inline import Inlining, room_for, size_to_inline

MOST_CALLS: Final = 50
"""Calls inside each other that stay: half as many as levels of types that the text form reads."""


@dataclass(frozen=True)
class InlineChains(ModulePass):
    """Inlines calls in functions that are differentiated and begin a long chain of calls.

    Where it is longer than `calls`, by default 50, those of functions that are called at one place only go, and of the
    others all but one in so many.  The bounds on growth, and the calls that stay, are those of `inline`.

    Requires: nothing.
    Preserves: results and effects; the instructions keep the locations of the callee.
    Cost: linear in the size of the functions, as for `inline`.
    """

    name: ClassVar[str] = "inline-chains"
    # a value that is called may become known, and with it the effects
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    calls: int = MOST_CALLS

    def run(self, module: Module, analyses: Analyses) -> bool:
        functions = module.functions
        primals = {
            f.primal: None for f in functions.values() if f.body is None and f.primal is not None
        }
        if not primals:
            return False
        components = list(cycles_callees_first(module))
        heights = _heights(module, components)
        long = [name for name in primals if heights.get(name, 0) > self.calls]
        if not long:
            return False
        sites = call_sites(module)
        wanted = {
            name: size
            for name, *others in components
            if not others
            and (sites[name] == 1 or heights[name] % max(self.calls, 1))
            and (size := size_to_inline(functions[name])) is not None
        }
        inlining = Inlining(module, wanted, room_for(module, long))
        inlining.go_down(long)
        return inlining.changed


def _heights(module: Module, components: list[list[str]]) -> dict[str, int]:
    """The length of the longest chain of calls that each function begins; a recursion counts as one call."""
    heights: dict[str, int] = {}
    for names in components:
        called = {name for caller in names for name in callees(module.functions[caller])}
        longest = max((heights.get(name, 0) for name in called.difference(names)), default=-1) + 1
        heights.update(dict.fromkeys(names, longest))
    return heights
