"""Simplifies `if`, `while` and `for`: inlines regions known to run once, and removes invariant flows.

Inner bodies are looked at before those around them, and everything again until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import Not, splat
from ..ops.flows import (
    Role,
    arguments_of_bodies,
    flows_in,
    flows_of,
    keep_flows,
    operands_of,
    passed_along,
    possible_paths,
    sources_of,
    trips_of,
    yields_of_bodies,
)
from ..ops.literal import number_of
from ..ops.progressions import emit_progression, progression_of
from ..types import TensorType


def inline_known_bodies(region: Region) -> bool:
    """Replace structured instructions by the region that is known to run once; whether there was any.

    `if` with a known condition; `while` whose condition is false at once, and `for` without iterations,
    which leave what they carry as it was.
    """
    return _StructuredLaws(region, choosing=True).apply()


def simplify_structured(region: Region) -> bool:
    """Remove flows of structured ops that do not depend on them; whether there were any.

    A result that both branches of an `if` yield, or the condition itself; what a loop carries unchanged; numbers of
    its iterations that it stacks; an `if` that does nothing.
    """
    return _StructuredLaws(region, choosing=False).apply()


def run_to_fixpoint(
    region: Region, rewrite: Callable[[], bool], *laws: Callable[[Region], bool]
) -> bool:
    """Rewrite and simplify structured ops alternately until nothing changes.

    Whether anything changed.
    """
    changed = rewrite()
    while _has_control(region) and any([law(region) for law in laws]):  # noqa: C419  # all of them
        changed = True
        rewrite()
    return changed


def _has_control(region: Region) -> bool:
    return any(i.op.is_structured for b in region.blocks for i in b.instructions)


@dataclass(eq=False)
class _StructuredLaws:
    """One walk."""

    region: Region
    choosing: bool

    def apply(self) -> bool:
        changed = False
        for block in reversed(list(walk_blocks(self.region))):
            if any(i.op.is_structured for i in block.instructions):
                changed = self._block(block) or changed
        return changed

    def _block(self, block: Block) -> bool:
        changed = False
        old, block.instructions = block.instructions, []
        for instruction in old:
            b = Builder(block, instruction.location)
            if not instruction.op.is_structured:
                block.instructions.append(instruction)
            elif self.choosing:
                chosen = self._chosen(b, instruction)
                changed = changed or chosen
                if not chosen:
                    block.instructions.append(instruction)
            else:
                changed = self._simplify(b, instruction) or changed
        return changed

    # which body runs

    def _chosen(self, b: Builder, instruction: Instruction) -> bool:
        """Put the bodies that are known to run, each once, in the place of the instruction; whether it is known."""
        paths = possible_paths(instruction, number_of)
        after = dict(paths)
        if len(after) < len(paths):
            return False  # it may go on in several ways
        order: list[int | None] = [None]
        while (following := after[order[-1]]) is not None:
            if following in order:
                return False  # it runs again
            order.append(following)
        order.append(None)
        stacked = flows_in(instruction, Role.STACKED)
        if any(flow.type.shape[0] for flow in stacked if isinstance(flow.type, TensorType)):
            return False  # there should have been iterations: not for us to say
        # from the end, as what a path passes on may be what the one before has given
        for path in reversed([*pairwise(order)]):
            for value, old in passed_along(instruction, path):
                old.replace_with(value)
        for body in order:
            if body is not None:
                inside = instruction.regions[body].entry.instructions
                b.block.instructions += inside[:-1]
                del inside[:-1]
        for flow in stacked:
            if isinstance(flow.type, TensorType) and flow.result is not None:
                instruction.results[flow.result].replace_with(b.emit(splat(flow.type, 0)))
        instruction.erase()
        return True

    # what does not depend on the instruction

    def _simplify(self, b: Builder, instruction: Instruction) -> bool:
        known = self._branches(b, instruction) or self._invariants(instruction)
        known = known or self._numbers(b, instruction)
        b.block.instructions.append(instruction)
        is_empty = all(len(region.entry.instructions) == 1 for region in instruction.regions)
        for k, value in known.items():
            instruction.results[k].replace_with(value)
        keep_flows(instruction, [f for f in flows_of(instruction) if f.result not in known])
        if not (instruction.op.is_loop or instruction.results) and is_empty:
            b.block.instructions.pop().erase()
            return True
        return bool(known)

    def _branches(self, b: Builder, instruction: Instruction) -> dict[int, Value]:
        """What is chosen between the same value, or literal, in all bodies, or says which body it was."""
        known: dict[int, Value] = {}
        for flow in flows_in(instruction, Role.CHOSEN):
            assert flow.result is not None
            k, condition = flow.result, instruction.operands[0]
            one, other = yields_of_bodies(instruction, flow)
            first, second = one.op, other.op
            if one is other:
                known[k] = one
            elif first is not None and first.is_constant and first == second:
                known[k] = b.emit(first)
            elif one.type == condition.type:
                # if c then true else false = c
                truths = number_of(one), number_of(other)
                if None not in truths:
                    known[k] = condition if truths == (True, False) else b.emit(Not(), condition)
        return known

    def _numbers(self, b: Builder, loop: Instruction) -> dict[int, Value]:
        """What a loop stacks that are the numbers of its iterations, or change by as much in each."""
        known: dict[int, Value] = {}
        trips = trips_of(loop)
        if not trips:
            return known
        for bounds in flows_in(loop, Role.INDEX):
            operands = operands_of(loop, bounds)  # none where the bounds are part of the op
            lower = number_of(operands[0]) if operands else None
            if lower is None:
                break
            (index,) = arguments_of_bodies(loop, bounds)
            for flow in flows_in(loop, Role.STACKED):
                (row,) = yields_of_bodies(loop, flow)
                # of another extent it is the program's mistake, which it finds when it runs
                if not isinstance(flow.type, TensorType) or flow.type.shape != (trips,):
                    continue
                numbers = progression_of(row, {index: range(lower, lower + trips)})
                if flow.result is not None and numbers is not None and len(numbers) == trips:
                    known[flow.result] = emit_progression(b, numbers, row.tensor.dtype)
        return known

    def _invariants(self, loop: Instruction) -> dict[int, Value]:
        """What a loop carries and never changes; its bodies use what is outside instead."""
        known: dict[int, Value] = {}
        for flow in flows_in(loop, Role.CARRIED):
            assert flow.result is not None
            initial, value = sources_of(loop, flow)
            arguments = arguments_of_bodies(loop, flow)
            if value is arguments[-1] or value is initial:
                known[flow.result] = initial
                for argument in arguments:
                    argument.replace_with(initial)
        return known
