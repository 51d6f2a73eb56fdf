"""Liveness: the backward slice of a list of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from ..ir import Effect, Instruction, Value
from ..ir.surgery import walk

KEPT = Effect.WRITE | Effect.TRAP
"""What has one of these effects is done whether its results are used or not."""


def backward_slice(
    instructions: Sequence[Instruction],
    wanted: Iterable[Value],
    effectful: Set[str] = frozenset(),
) -> tuple[list[Instruction], set[Value]]:
    """Those `instructions` that `wanted` depends on or that have an effect, in order, and every value they use.

    Calls of functions in `effectful` have one.
    """
    used = set(wanted)
    kept: list[Instruction] = []
    for instruction in reversed(instructions):
        if not used.isdisjoint(instruction.results) or has_effect(instruction, effectful):
            kept.append(instruction)
            used.update(instruction.operands)
            for region in instruction.regions:
                used.update(operand for inner in walk(region) for operand in inner.operands)
    kept.reverse()
    return kept, used


def has_effect(instruction: Instruction, effectful: Set[str]) -> bool:
    """Whether `instruction` must stay although its results are unused."""
    inside = (inner for region in instruction.regions for inner in walk(region))
    return any(
        bool(one.op.effect & KEPT) or one.op.called in effectful for one in (instruction, *inside)
    )
