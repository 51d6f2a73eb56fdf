"""Vectors of several registers, where what is computed of an element takes long.

The instructions of a tanh and of what follows it wait for each other, 130 cycles in all, and a machine looks for others
among the next hundred or two: two or three rounds of such a loop.  A vector of two or four registers is as many chains
side by side, one instruction of each after the other; and all of its loads are asked for at once, where memory is what
they wait for.

It is more code, and more lanes of a last vector that are no points: only long loops have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..compute.address import is_inside
from ..ir import Instruction
from ..ops.nest import Access, Bounds, Nest, Output
from ..types import F32, F64, TensorType
from .group import GroupedInstruction
from .loops import computed_cost, depends_on, full_lanes, plan_loops
from .ops import Loops
from .streams_ahead import is_side_by_side
from .switches import is_enabled
from .target import Target

_LONG: Final = 20.0
"""What a point costs from which two registers are taken: f32 in memory, exp (15) takes 1.1 of its time with two, a tanh
with a product (17) as long, the logistic function (28) 0.95, gelu (47) 0.84."""

_LONGER: Final = 32.0
"""The same of four, where there are 32 registers: softplus (35) takes 0.87 with two and 0.78 with four, the gradient of
gelu by tanh (38) 0.95 and 0.93."""

_MANY_REGISTERS: Final = 32
"""Those of AVX-512 and of NEON, not of AVX2: four chains hold more than 16 values at once."""

_LEAST_POINTS: Final = 1 << 14
"""Points from which the code is worth it, some 3 ms of compiling for each."""

_LEAST_STEPS: Final = 8
"""Steps of the vector loop, if the last one is not full."""


def widen_vectors(steps: Sequence[GroupedInstruction], target: Target) -> list[GroupedInstruction]:
    """The same steps, with wider vectors in nests that share no loop, or one of rows that have whole vectors."""
    if not is_enabled("wide"):
        return list(steps)
    return [_widened(step, target) for step in steps]


def _widened(step: GroupedInstruction, target: Target) -> GroupedInstruction:
    instruction, loops = step.instruction, step.loops
    nest = instruction.op
    if loops is None or loops.turned or not isinstance(nest, Nest):
        return step
    registers = _registers(instruction, nest, target)
    lanes = full_lanes(instruction, nest, target)
    is_full = loops.lanes > 1 and loops.lanes == lanes[loops.vector]
    if registers == 1 or not is_full or not _is_plain(instruction, nest, loops):
        return step
    wide = plan_loops(instruction, nest, target, registers)
    extent, left = divmod(nest.extents[loops.vector], wide.lanes)
    is_same = (wide.vector, wide.lanes) == (loops.vector, loops.lanes * registers)
    if not is_same or (left and extent < _LEAST_STEPS):
        return step
    if loops.group < 0:
        return GroupedInstruction(instruction, wide)
    has_sums = any(written.combinator for written in nest.outputs)
    if has_sums or left or loops.vector == loops.order[0]:
        return step
    return GroupedInstruction(instruction, replace(loops, lanes=wide.lanes))


def _registers(instruction: Instruction, nest: Nest, target: Target) -> int:
    """How many registers a vector has."""
    cost = computed_cost(instruction)
    if cost < _LONG or math.prod(nest.extents) < _LEAST_POINTS:
        return 1
    return 4 if cost >= _LONGER and target.registers >= _MANY_REGISTERS else 2


def _is_plain(instruction: Instruction, nest: Nest, loops: Loops) -> bool:
    """Whether the vectors of the innermost loop are floats side by side: all else is the same for all lanes."""
    types = [*(x.tensor for x in instruction.operands), *(o.type for o in nest.outputs)]
    accesses: list[Access | Output] = [*nest.accesses, *nest.outputs]
    return loops.order[-1] == loops.vector and all(
        _is_side_by_side(type, access, nest, loops.vector)
        for type, access in zip(types, accesses, strict=True)
    )


def _is_side_by_side(type: TensorType, access: Access | Output, nest: Nest, axis: int) -> bool:
    """Whether lanes along an axis are floats that lie next to each other, or all are the same element."""
    moving = [
        (index, extent)
        for index, extent in zip(access.indices, type.shape, strict=True)
        if depends_on(nest, index, axis)
    ]
    if not moving:
        return True
    ((index, extent),) = moving[-1:]
    return (
        type.dtype in (F32, F64)
        and is_side_by_side([index for index, _ in moving], axis)
        and index is access.indices[-1]
        and (access.bounds is Bounds.INSIDE or is_inside(index, extent, nest.extents))
    )
