"""Redundant-load elimination: what was just stored or loaded is known."""

from __future__ import annotations

from typing import ClassVar

from ..analysis import Aliases, Analyses, Analysis, Effects
from ..ir import Block, Effect, Function, Instruction, MemoryUse, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from .base import FunctionPass


@dataclass(frozen=True)
class RedundantLoads(FunctionPass):
    """Uses the value that was stored to or loaded from a place before, as long as nothing may have changed it.

    Knowledge is kept along a block and into the bodies of choices; a loop that writes starts from nothing.

    Requires: nothing.
    Preserves: results and effects; a load that would have failed is noticed at the first one.
    Cost: linear, times the number of places known at a time, of which there are at most 64; twice where a load
        goes, and once more where what it loaded was a pointer used in a block earlier in the text.
    """

    name: ClassVar[str] = "redundant-loads"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or not any(
            i.op.effect & Effect.READ and i.op.memory_uses(i) for i in walk(body)
        ):
            return False
        changed = False
        # a pointer that turns out to be another one tells more about what is loaded through it
        while _replace_loads(function, analyses):
            # what writes is the same afterwards
            analyses.forget(function, preserved=Analysis.FLOW | Analysis.EFFECTS)
            changed = True
        return changed


def _replace_loads(function: Function, analyses: Analyses) -> bool:
    assert function.body is not None
    visit = _AvailableLoads(analyses.aliases(function), analyses.effects)
    for block in function.body.blocks:
        run_nested(visit.block(block, {}))
    return visit.changed


MOST_KNOWN = 64
"""Loads and stores that are remembered at a time, the latest: each write asks of all of them whether it may alias, so
that without a bound the time would be quadratic."""


class _AvailableLoads:
    """Follows blocks; `known` has the value at each place, by the pointer that was used."""

    def __init__(self, aliases: Aliases, effects: Effects) -> None:
        self.aliases = aliases
        self.effects = effects
        self.changed = False

    def block(self, block: Block, known: dict[Value, Value]) -> Nested:
        kept: list[Instruction] = []
        for instruction in block.instructions:
            op = instruction.op
            if uses := op.memory_uses(instruction):
                loaded = [self.use(known, use) for use in uses]
                if instruction.results and loaded[0] is not None:
                    instruction.result.replace_all_uses_with(loaded[0])
                    instruction.erase()
                    self.changed = True
                    continue
            elif instruction.regions:
                written = bool(self.effects.of(instruction) & Effect.WRITE)
                for region in instruction.regions:
                    is_fresh = written and (op.is_loop or not op.is_structured)
                    yield self.block(region.entry, {} if is_fresh else dict(known))
                if written:
                    known.clear()
            elif self.effects.of(instruction) & Effect.WRITE:
                for pointer in [p for p in known if not self.aliases.is_private(p)]:
                    del known[pointer]
            kept.append(instruction)
        block.instructions = kept

    def use(self, known: dict[Value, Value], use: MemoryUse) -> Value | None:
        """Note what is known after a use of memory; what it reads, if that was known before."""
        if use.effect & Effect.WRITE:
            # what lies anywhere in the memory, or in the bytes of this value
            may_change = (
                self.aliases.may_be_neighbours if use.value is None else self.aliases.may_overlap
            )
            for pointer in [p for p in known if may_change(p, use.pointer)]:
                del known[pointer]
        elif (found := self.find(known, use.pointer)) is not None:
            return found
        if use.value is not None:
            self.learn(known, use.pointer, use.value)
        return None

    def find(self, known: dict[Value, Value], pointer: Value) -> Value | None:
        if pointer in known:
            return known[pointer]
        return next((v for p, v in known.items() if self.aliases.is_same(p, pointer)), None)

    def learn(self, known: dict[Value, Value], pointer: Value, value: Value) -> None:
        if len(known) >= MOST_KNOWN:
            del known[next(iter(known))]
        known[pointer] = value
