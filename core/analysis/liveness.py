"""Liveness in straight-line code: the backward slice of a list of values, and the instructions that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from ..ir import Block, Instruction, Value
from ..ir.surgery import operands_inside, with_bodies
from .effects import KEPT, Effects
from .pointer_bases import leads_to_memory


def is_dead(instruction: Instruction, effects: Effects) -> bool:
    """Whether nothing uses the results of `instruction`, and nothing is lost without it."""
    for result in instruction.results:
        if result.uses:
            return False
    return not instruction.op.is_terminator and effects.is_removable(instruction)


def erase_dead(block: Block, effects: Effects) -> bool:
    """Erase what is dead in `block`, with all that it alone used; whether there was any.  Bodies stay as they are."""
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        if is_dead(instruction, effects):
            instruction.erase()
        else:
            kept.append(instruction)
    changed = len(kept) < len(block.instructions)
    block.instructions[:] = kept[::-1]
    return changed


def backward_slice(
    instructions: Sequence[Instruction],
    wanted: Iterable[Value],
    effectful: Set[str] = frozenset(),
) -> tuple[list[Instruction], set[Value]]:
    """Those `instructions` that `wanted` depends on or that have an effect, in order, and every value they use.

    Calls of functions in `effectful` have one, and those that take pointers.  For instructions that others use too,
    which `erase_dead` would keep.
    """
    used = set(wanted)
    kept: list[Instruction] = []
    for instruction in reversed(instructions):
        if not used.isdisjoint(instruction.results) or _has_effect(instruction, effectful):
            kept.append(instruction)
            used.update(operands_inside([instruction]))
    kept.reverse()
    return kept, used


def _has_effect(instruction: Instruction, effectful: Set[str]) -> bool:
    """Whether `instruction` must stay although its results are unused."""
    return any(
        bool(one.op.effect & KEPT)
        or one.op.called in effectful
        or (one.op.called is not None and any(leads_to_memory(x.type) for x in one.operands))
        for one in with_bodies([instruction])
    )
