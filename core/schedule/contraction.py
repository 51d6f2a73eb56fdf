"""Array contraction: what lives inside of a block group alone has room for one block of its rows.

    %1 = loops 31843 of %0 … order (0, 0) group 0 blocks (128, 0) into block 0
    %2 = loops 31843 of %1 … order (0, 0) group 0 blocks (128, 0) into output 0

1. All of a row of it is written in the round of that row, by one nest, and read in no other, by nests of that group.
2. Row r lies where row r mod 128 would, in room on the stack: so it stays in the nearest caches, is never written
   back to memory, and each thread has its own.
3. Members run one after the other in each block: what has been read by then gives its room to the next.

Source: array contraction (Gao, Olsen, Sarkar and Thekkath 1992), Halide's `fold_storage`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compute.bodies import base_of
from ..compute.contracted import bytes_of_block, is_contracted
from ..ir import Instruction, Place, Value
from ..ir.placement import in_block
from .arena import Arena
from .group import GroupedInstruction
from .ops import row_block
from .switches import is_enabled


def contract(steps: Sequence[GroupedInstruction]) -> dict[Value, Place]:
    """The places of what is contracted."""
    if not is_enabled("contract"):
        return {}
    loops = {step.instruction: step.loops for step in steps}
    last: dict[Value, Instruction] = {}
    for step in steps:
        last.update((base_of(operand), step.instruction) for operand in step.instruction.operands)
    places: dict[Value, Place] = {}
    rooms: dict[int, Arena] = {}
    for instruction, own in loops.items():
        if own is None or not row_block(own):
            continue
        room = rooms.setdefault(own.group, Arena(0))
        for result in instruction.results:
            if is_contracted(result, loops.get):
                places[result] = in_block(room.allocate(bytes_of_block(result, own)))
        for base in dict.fromkeys(base_of(operand) for operand in instruction.operands):
            if base in places and last[base] is instruction:
                room.release(places[base].offset, bytes_of_block(base, own))
    return places
