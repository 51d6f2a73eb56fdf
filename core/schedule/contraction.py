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

from ..compute.contracted import is_contracted
from ..ir import Value
from .group import GroupedInstruction
from .ops import row_block
from .switches import is_enabled


def contract(steps: Sequence[GroupedInstruction]) -> set[Value]:
    """What has room for one block of its rows."""
    if not is_enabled("contract"):
        return set()
    loops = {step.instruction: step.loops for step in steps}
    return {
        result
        for instruction, own in loops.items()
        if own is not None and row_block(own)
        for result in instruction.results
        if is_contracted(result, loops.get)
    }
