"""Removal of functions nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Module
from .base import ModulePass
from .call_graph import reachable


@dataclass(frozen=True)
class DeadFunctions(ModulePass):
    """Removes the functions that `roots` do not need; without roots, every function is one.

    Requires: nothing.
    Preserves: the results of the roots, and the order of functions.
    Cost: linear.
    """

    name: ClassVar[str] = "dead-functions"
    roots: tuple[str, ...] = ()

    def run(self, module: Module) -> bool:
        if not self.roots:
            return False
        needed = reachable(module, self.roots)
        dead = [name for name in module.functions if name not in needed]
        for name in dead:
            del module.functions[name]
        return bool(dead)
