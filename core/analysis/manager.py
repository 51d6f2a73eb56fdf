"""The analysis manager: caches analyses until a pass invalidates them.

    analyses = Analyses(module)
    analyses.flow(function).dominates(a, b)         computed when first asked for, then remembered
    analyses.forget(function)                       after changing it, to ask again
    analyses.settle([function], preserved=Analysis.FLOW)      after a pass that has changed this function

A pipeline makes one for its module, and every pass asks it.  A pass says as `preserves_analyses` what still
holds of a function that it has changed; without that, nothing does.  What it did not change stays known.

`check` compares what is remembered with what a new analysis finds, so that a wrong promise is noticed at the
pass that makes it; with NNKIT_VERIFY=1 pipelines do so after each.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import field

from ..errors import InternalError
from ..ir import Function, Module, Region
from ..ir.surgery import walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..types import PointerType, written
from .alias import Aliases
from .effects import Effects, OwnEffects
from .flow import ControlFlow


class Analysis(enum.Flag):
    """The analyses that a pass can preserve."""

    NONE = 0
    FLOW = enum.auto()
    """`ControlFlow`: kept while blocks and their successors are the same."""
    EFFECTS = enum.auto()
    """`Effects`: kept while no instruction with an effect comes, goes, or moves into or out of a body."""
    ALIASES = enum.auto()
    """`Aliases`: kept while pointers come from and go to the same instructions."""
    ALL = FLOW | EFFECTS | ALIASES


@dataclass(eq=False)
class _Remembered:
    """The analyses of one function's body, as far as somebody has asked."""

    body: Region
    flow: ControlFlow | None = None
    aliases: Aliases | None = None

    def forget(self, preserved: Analysis) -> None:
        if Analysis.FLOW not in preserved:
            self.flow = None
        if Analysis.ALIASES not in preserved:
            self.aliases = None


@dataclass(eq=False)
class Analyses:
    """The analyses of `module`'s functions, computed on demand and cached."""

    module: Module
    _functions: dict[Function, _Remembered] = field(default_factory=dict[Function, _Remembered])
    _own_effects: dict[Function, OwnEffects] = field(default_factory=dict[Function, OwnEffects])
    _effects: Effects | None = None

    @property
    def effects(self) -> Effects:
        """What the module's instructions and functions do."""
        if self._effects is None:
            self._effects = Effects(self.module, self._own_effects)
        return self._effects

    def flow(self, function: Function) -> ControlFlow:
        """The blocks of `function`, with dominance and loops."""
        known = self._of(function)
        if known.flow is None:
            known.flow = ControlFlow(known.body)
        return known.flow

    def aliases(self, function: Function) -> Aliases:
        """Which pointers of `function` may lead to the same memory."""
        known = self._of(function)
        if known.aliases is None:
            known.aliases = Aliases(known.body)
        return known.aliases

    def forget(self, function: Function, *, preserved: Analysis = Analysis.NONE) -> None:
        """Invalidate all analyses of `function` but those `preserved`."""
        if function in self._functions:
            self._functions[function].forget(preserved)
        if Analysis.EFFECTS not in preserved:
            self._own_effects.pop(function, None)
            self._effects = None

    def settle(self, changed: Iterable[Function], *, preserved: Analysis = Analysis.NONE) -> None:
        """A pass is done: of what it `changed` only what it `preserved` holds, of what is gone nothing."""
        for function in changed:
            self.forget(function, preserved=preserved)
        alive = set(self.module.functions.values())
        for gone in self._functions.keys() - alive:
            del self._functions[gone]
        for gone in self._own_effects.keys() - alive:
            del self._own_effects[gone]

    def check(self, after: str) -> None:
        """Check all cached analyses against newly computed ones.

        Raises: InternalError naming the pass `after` which they differ.
        """
        for function, known in self._functions.items():
            for wrong in _differences(function, known):
                raise InternalError(
                    f"after pass '{after}': the {wrong} of {written('@', function.name)} are not what they were, "
                    "though the pass says that it preserves them"
                )
        if self._effects is not None and not _has_same_effects(self._effects, Effects(self.module)):
            raise InternalError(
                f"after pass '{after}': the effects of {self.module.name!r} are not what they were, "
                "though the pass says that it preserves them"
            )

    def _of(self, function: Function) -> _Remembered:
        """What is remembered of a function, whose body may be another one by now."""
        if function.body is None:
            raise InternalError(f"{written('@', function.name)} is a declaration and has no body")
        known = self._functions.get(function)
        if known is None or known.body is not function.body:
            known = self._functions[function] = _Remembered(function.body)
        return known


def _differences(function: Function, known: _Remembered) -> Iterator[str]:
    """The names of what does not hold any more."""
    if function.body is not known.body:
        return
    if known.flow is not None and not _has_same_flow(known.flow, ControlFlow(known.body)):
        yield "blocks and branches"
    if known.aliases is not None and not _has_same_aliases(known.aliases, Aliases(known.body)):
        yield "aliases"


def _has_same_flow(kept: ControlFlow, fresh: ControlFlow) -> bool:
    """All that a `ControlFlow` knows follows from its blocks and their graph."""
    same_blocks = kept.number == fresh.number
    return same_blocks and list(kept.graph.successors) == list(fresh.graph.successors)


def _has_same_aliases(kept: Aliases, fresh: Aliases) -> bool:
    pointers = [
        value
        for block in walk_blocks(fresh.region)
        for value in (*block.arguments, *(r for i in block.instructions for r in i.results))
        if isinstance(value.type, PointerType)
    ]
    return all(
        kept.place(pointer) == fresh.place(pointer)
        and kept.is_private(pointer) == fresh.is_private(pointer)
        for pointer in pointers
    )


def _has_same_effects(kept: Effects, fresh: Effects) -> bool:
    functions = fresh.module.functions
    bodies = [f.body for f in functions.values() if f.body is not None]
    holders = [i for body in bodies for i in walk(body) if i.regions]
    return all(kept.of_function(name) == fresh.of_function(name) for name in functions) and all(
        kept.of(instruction) == fresh.of(instruction) for instruction in holders
    )
