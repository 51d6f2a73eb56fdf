"""Finds results of which block groups write a few numbers of each row at a time, and that the second cache cannot hold.

Who writes so waits for a line of memory at each store; the machine follows who goes through memory line by line, and
not who comes back for another part of the same lines.  So the first writer of a block has the rows of the next one
fetched; where they are written past the caches (`stream_outputs`), that is left out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ..compute.bodies import base_of
from ..compute.footprint import footprint
from ..ir import Instruction, Value
from .group import GroupedInstruction
from .ops import row_block
from .streams_ahead import is_side_by_side
from .target import Target


def far_outputs(
    steps: Sequence[GroupedInstruction], contracted: AbstractSet[Value], target: Target
) -> dict[Instruction, tuple[int, ...]]:
    """The far outputs of each nest, by the first nest of a group that writes there; none whose vectors lie side by
    side there, which the machine follows."""
    roots: dict[Value, Value] = {}
    seen: set[tuple[int, Value, int, int | None]] = set()
    found: dict[Instruction, tuple[int, ...]] = {}
    for instruction, loops in ((step.instruction, step.loops) for step in steps):
        if loops is None or not row_block(loops):
            continue
        far: list[int] = []
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
                if loops.lanes == 1 or not is_side_by_side(written.indices, loops.vector):
                    far.append(number)
        if far and loops.extents[loops.order[0]] >= 2 * row_block(loops):
            found[instruction] = tuple(far)
    return found
