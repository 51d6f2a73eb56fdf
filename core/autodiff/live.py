"""Which instructions a list of values needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir import Instruction, Value


def live(
    instructions: Sequence[Instruction], wanted: Iterable[Value]
) -> tuple[list[Instruction], set[Value]]:
    """Those `instructions` that `wanted` depends on, in order, and every value they and it use."""
    used = set(wanted)
    kept: list[Instruction] = []
    for instruction in reversed(instructions):
        if not used.isdisjoint(instruction.results):
            kept.append(instruction)
            used.update(instruction.operands)
    kept.reverse()
    return kept, used
