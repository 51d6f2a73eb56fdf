"""Has sums along a few rows go side by side, where all rows read the same tensor.

    loop from 0 upto 48 by 4 {                    four rows of a matrix
        loop from 0 upto 99840 by 2080 carrying … {
            … %v = loadAt %x …                    one vector of what is multiplied with each
            … fma %v, %row0 … fma %v, %row1 …
        }
    }

Rows that are longer than the nearest cache holds find nothing there of what the row before has read.

Source: unroll-and-jam, Allen & Kennedy 2001, Optimizing Compilers, §8.4; `gemv` of BLAS libraries.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ..ir import Block, Instruction
from ..kernels.errors import IllegalRewrite
from ..kernels.loops import body_of, is_loop, loop_op, loops_of
from ..kernels.split import split
from ..kernels.unroll import unroll_and_jam
from ..ops.nest import axes_in
from .loops import computed_cost, depends_on
from .ops import Loops
from .switches import is_enabled
from .target import Target

_MOST_COST: Final = 2.0
"""What may be computed of a number of a row besides its sum: more needs registers, and hides the loads anyway."""

_MANY_REGISTERS: Final = 32
"""Those of AVX-512 and of NEON, where four rows of four sums each fit; on others two do."""


def jam_rows(block: Block, instruction: Instruction, loops: Loops, target: Target) -> None:
    """Write several rows side by side in the loops over rows of a kernel, `block`, of a nest."""
    if not (_share_much(instruction, loops, target) and is_enabled("jam")):
        return
    most = 4 if target.registers >= _MANY_REGISTERS else 2
    for loop in [one for one in loops_of(block) if is_loop(one) and not one.operands]:
        op = loop_op(loop)
        least = 2 * target.threads if op.grain else 1  # for threads to share
        factor = next((n for n in (4, 2) if n <= most and op.count // n >= least), 1)
        if factor > 1 and op.step == 1:
            with suppress(IllegalRewrite):
                made = split(block, loop, factor)
                unroll_and_jam(body_of(made.outer), made.inner)


def _share_much(instruction: Instruction, loops: Loops, target: Target) -> bool:
    """Whether a nest sums along rows, all of which read a tensor that is larger than the nearest cache."""
    rows = next((axis for axis in loops.order if loops.extents[axis] > 1), None)
    if rows is None or computed_cost(instruction) > _MOST_COST:
        return False
    written = [axes_in(output.indices) for output in loops.outputs]
    if any(rows not in axes or loops.vector in axes for axes in written):
        return False
    shared = [
        operand.tensor.bytes
        for operand, access in zip(instruction.operands, loops.accesses, strict=True)
        if any(depends_on(loops, index, loops.vector) for index in access.indices)
        and not any(depends_on(loops, index, rows) for index in access.indices)
    ]
    return max(shared, default=0) >= target.l1_bytes and len(shared) < len(loops.accesses)
