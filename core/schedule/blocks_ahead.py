"""Fetches rows of results a block ahead: those of tensors that the second cache cannot hold.

A member of a block group that writes a few numbers of each row waits for a line of memory at each; the machine follows
who goes through memory line by line, and not who comes back for another part of the same lines.  At the beginning of a
block, its first writer asks for the rows of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ..compute.bodies import base_of
from ..compute.footprint import footprint
from ..ir import Instruction, Value
from .group import GroupedInstruction
from .ops import row_block
from .switches import is_enabled
from .target import Target


def outputs_ahead(
    steps: Sequence[GroupedInstruction], contracted: AbstractSet[Value], target: Target
) -> dict[Instruction, tuple[int, ...]]:
    """The outputs of each nest whose rows are fetched a block ahead, by the first nest of a group that writes there."""
    if not is_enabled("prefetch"):
        return {}
    roots: dict[Value, Value] = {}
    seen: set[tuple[int, Value, int, int | None]] = set()
    found: dict[Instruction, tuple[int, ...]] = {}
    for instruction, loops in ((step.instruction, step.loops) for step in steps):
        if loops is None or not row_block(loops):
            continue
        ahead: list[int] = []
        for number, written in enumerate(loops.outputs):
            whole = number if written.within is None else written.within
            result, init = instruction.results[whole], loops.outputs[whole].init
            if init is not None:
                base = base_of(instruction.operands[init])
                roots[result] = roots.get(base, base)
            rows = footprint(written.type.shape, written, loops.extents, loops.order[0])
            if rows is None or rows.row is None or result in contracted:
                continue
            key = loops.group, roots.get(result, result), rows.stride, rows.row
            if written.type.bytes > target.near_l2_bytes and key not in seen:
                seen.add(key)
                ahead.append(number)
        if ahead and loops.extents[loops.order[0]] >= 2 * row_block(loops):
            found[instruction] = tuple(ahead)
    return found
