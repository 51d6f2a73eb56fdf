"""Loop-invariant code motion."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses, Analysis, Effects
from ..ir import Block, Effect, Function, Instruction, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.contraction import is_turned_for_products
from ..ops.flows import Role, certain_bodies, flows_in, trips_of
from .base import FunctionPass

MOST_ROUNDS = 1 << 16
"""What runs no instruction oftener is as good as nothing, should it be computed in vain: 60 µs at 1 ns an iteration."""


@dataclass(frozen=True)
class LoopInvariants(FunctionPass):
    """Computes before a `while` or `for` what is the same in each of its iterations.

    Only what has no effect, ends and cannot fail is moved, since the loop might not run at all; a choice
    (`if`) is moved as a whole or not at all.  A `for` whose rounds are many, or unknown, leaves only
    loops that certainly run.

    Requires: structured control flow; loops between blocks are left alone.
    Preserves: results and effects; what is moved is computed once even if the loop runs zero times.
    Cost: linear; what moves outwards is looked at again in each loop that it leaves.
    Source: Aho, Lam, Sethi & Ullman 2006, Compilers, §9.5.
    """

    name: ClassVar[str] = "licm"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS

    def run(self, function: Function, analyses: Analyses) -> bool:
        if function.body is None:
            return False
        motion = _Motion(analyses.effects)
        # what leaves an inner loop may then leave the outer one too
        for block in reversed(list(walk_blocks(function.body))):
            motion.visit(block)
        return motion.moved


@dataclass(frozen=True)
class _LoopSummary:
    """What is known about the bodies of an instruction, once all loops in them are done."""

    may_move: bool
    rounds: float
    """How often something in them is executed at most; infinite if that is not known."""
    used: frozenset[Value]
    """The values that come from outside of the bodies."""


@dataclass
class _Motion:
    """The blocks of a function, from the inside outwards; `inside` has every instruction with bodies so far."""

    effects: Effects
    inside: dict[Instruction, _LoopSummary] = field(default_factory=dict[Instruction, _LoopSummary])
    moved: bool = False

    def visit(self, block: Block) -> None:
        """Move what is invariant in the loops of `block` to where they stand."""
        if not any(instruction.regions for instruction in block.instructions):
            return
        result: list[Instruction] = []
        for instruction in block.instructions:
            if instruction.op.is_loop:
                certain = certain_bodies(instruction)
                for number, region in enumerate(instruction.regions):
                    # the condition of a `while` always runs
                    is_certain = number in certain or bool(trips_of(instruction))
                    found = self.take_out(region.entry, is_certain=is_certain)
                    self.moved = self.moved or bool(found)
                    result += found
            if instruction.regions:
                self.inside[instruction] = self.look_inside(instruction)
            result.append(instruction)
        block.instructions[:] = result

    def take_out(self, body: Block, *, is_certain: bool) -> list[Instruction]:
        """Take out of `body` what depends on nothing that is made in it; `is_certain` if it runs at all."""
        made = set(body.arguments)
        found: dict[Instruction, None] = {}
        for instruction in body.instructions:
            may_move = self.may_move(instruction) and (
                is_certain or self.rounds(instruction) <= MOST_ROUNDS
            )
            if may_move and made.isdisjoint(self.used(instruction)):
                found[instruction] = None
            else:
                made.update(instruction.results)
        # what costs nothing where it is goes along with what uses it, in a body too, not by itself
        needed: set[Value] = set()
        for instruction in reversed(list(found)):
            if _is_free(instruction) and instruction.result not in needed:
                del found[instruction]
            else:
                needed.update(self.used(instruction))
        body.instructions[:] = [i for i in body.instructions if i not in found]
        return list(found)

    def may_move(self, instruction: Instruction) -> bool:
        op = instruction.op
        if op.is_terminator or not self.effects.is_pure(instruction):
            return False
        if instruction.regions and not self.inside[instruction].may_move:
            return False
        return not (_can_fail(instruction) or _may_not_end(instruction))

    def rounds(self, instruction: Instruction) -> float:
        """How often something in `instruction` is executed at most."""
        return self.inside[instruction].rounds if instruction.regions else 1

    def used(self, instruction: Instruction) -> Iterable[Value]:
        """All values that `instruction` uses, inside of its bodies too."""
        if not instruction.regions:
            return instruction.operands
        return self.inside[instruction].used.union(instruction.operands)

    def look_inside(self, instruction: Instruction) -> _LoopSummary:
        may_move, rounds = True, 1.0
        used: set[Value] = set()
        for region in instruction.regions:
            made = set(region.entry.arguments)
            for inner in region.entry.instructions:
                may_move = may_move and (inner.op.is_terminator or self.may_move(inner))
                rounds = max(rounds, self.rounds(inner))
                used.update(x for x in self.used(inner) if x not in made)
                made.update(inner.results)
        trips = trips_of(instruction)
        rounds = math.inf if trips is None else trips and trips * rounds
        return _LoopSummary(may_move, rounds, frozenset(used))


def _is_free(instruction: Instruction) -> bool:
    """A constant, or a matrix turned for products."""
    is_constant = not instruction.operands and not instruction.regions
    return is_constant or is_turned_for_products(instruction)


def _can_fail(instruction: Instruction) -> bool:
    """Whether it could be an error to run it: of a `for` that stacks, whether it has the wrong number of iterations."""
    if not instruction.op.is_structured:
        return instruction.op.can_fail()
    trips = trips_of(instruction)
    return any(
        trips != instruction.results[flow.result or 0].tensor.shape[0]
        for flow in flows_in(instruction, Role.STACKED)
    )


def _may_not_end(instruction: Instruction) -> bool:
    """Loops, and calls of what may loop or call itself; inlining shows what is inside of calls."""
    op = instruction.op
    return not op.ends or bool(op.effect & Effect.CALL)
