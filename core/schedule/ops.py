"""The ops of stage schedule: nests and products with every decision made, ready to emit.

A block of a scheduled function is a straight list of `literal`, `shapeCast` (an alias of the same bytes),
kernels, library ops, calls and structured ops, and `return` or `yield`.  Where the buffers that an instruction makes
lie is said beside it (`ir.placement`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..compute.ops import MatrixProduct
from ..ir.instruction import Instruction, Op, Pure
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.nest import Loaded, Nest, Output
from ..stage import Stage, Stages
from ..types import Array, TensorType


def makes_buffers(instruction: Instruction) -> bool:
    """Whether the results of the instruction need memory of their own."""
    op = instruction.op
    return not (op.is_terminator or op.needs_no_code) and all(
        isinstance(result.type, TensorType) for result in instruction.results
    )


@dataclass(frozen=True)
class Loops(Nest):
    """A nest whose loops are decided, of which a kernel is written (`nest_writer`): no op of any stage.

    `order` lists the axes, outermost loop first.  `vector` is the axis whose loop steps by `lanes`
    elements (−1 and 1 for none; it need not be innermost when reduction loops run inside it).
    Reductions keep `accumulators` independent partial results in registers; where a reduced loop runs
    outside of a kept one, the result is accumulated in memory.  Consecutive instructions of the same
    `group` (≥ 0) share their outermost loop, which has the same extent and single steps in all of them.

    An axis that `order` lists twice runs in blocks: `blocks` has, at the place of the loop over blocks, how many
    points a block has (0 at other loops); the later loop is over the points of one block.  Reductions start
    afresh inside of the innermost loop over blocks, and what a block came to is joined to the total behind
    it: where they are `compensated`, sums of floats without losing what rounding cuts off (`summation`).
    What is cut off from sums over rows that are accumulated in memory, those that `compensated_outputs` lists, has
    buffers beside them.

    The vector loop fetches what it will `fetch`: of (operand, elements), or of a result, which are counted behind the
    operands, what it comes to so many elements later.  Operands that are `turned` are read by squares (`turned_reads`).
    """

    order: tuple[int, ...] = ()
    vector: int = -1
    lanes: int = 1
    accumulators: int = 1
    group: int = -1
    blocks: tuple[int, ...] = ()
    compensated: bool = False
    fetch: tuple[tuple[int, int], ...] = ()
    turned: tuple[int, ...] = ()

    def nanoseconds(self, instruction: Instruction) -> float:
        return super().nanoseconds(instruction) / self.lanes


def compensated_outputs(op: Loops) -> tuple[int, ...]:
    """The sums over rows that are accumulated in memory with compensation."""
    return accumulated_sums(op, op.order) if op.compensated else ()


def accumulated_sums(nest: Nest, order: Sequence[int]) -> tuple[int, ...]:
    """The outputs that are sums of f32 or f64 accumulated in memory, each at an element for each of its axes."""
    order = [axis for axis in order if nest.extents[axis] > 1]
    return tuple(
        number
        for number, written in enumerate(nest.outputs)
        if is_float_sum(written)
        and written.type.dtype.bits >= 32
        and 0 not in nest.extents
        and _is_accumulated(written, order)
    )


def is_folded(order: Sequence[int], blocks: Sequence[int]) -> bool:
    """Whether sums accumulated in memory are added up there within a block, and folded into others behind it.

    That is where the loop that goes through a block is not the innermost one.
    """
    axes = [axis for axis, block in zip(order, blocks, strict=False) if block]
    return bool(axes) and order[-1] not in axes and order.index(axes[-1]) + 1 < len(order) - 1


def is_float_sum(written: Output) -> bool:
    """Whether rounding costs anything when elements are joined."""
    return written.combinator is Combinator.ADD and written.type.dtype.is_float


def is_scattered_sum(written: Output) -> bool:
    """Whether numbers are added up, in f32 or wider, at indices that are read."""
    is_scattered = any(isinstance(index, Loaded) for index in written.indices)
    return is_scattered and is_float_sum(written) and written.type.dtype.bits >= 32


def _is_accumulated(written: Output, order: Sequence[int]) -> bool:
    """Whether a loop over an axis that is summed runs outside of one that is kept."""
    kept = written.kept_axes
    if kept is None:
        return False
    last = max((n for n, axis in enumerate(order) if axis in kept), default=0)
    return any(axis not in kept for axis in order[:last])


def row_block(op: Loops) -> int:
    """The rows of a block, of a nest whose group goes through its rows block by block; 0 elsewhere.

    Not where blocks are those of sums.
    """
    is_one = op.group >= 0 and not op.compensated and sum(map(bool, op.blocks)) == 1
    return op.blocks[0] if is_one else 0


def sizes_of(op: MatrixProduct, a: TensorType, b: TensorType) -> tuple[int, int, int]:
    """m, n and k of one product; a batch of matrices times one matrix is one product of that many rows."""
    *batch, m, n = op.infer(a, b).shape
    if is_one_product(op, b):
        m *= math.prod(batch)
    return m, n, op.summed(a)


def is_one_product(op: MatrixProduct, b: TensorType) -> bool:
    """Whether the matrices of the batch of A lie below each other, all to be multiplied by one B."""
    is_one = all(extent == 1 for extent in b.shape[:-2])
    return is_one and not op.transpose_a and not op.parts


@dataclass(frozen=True)
class Empty(Pure):
    """A buffer whose elements are not set yet: each is written, by what begins with it, before it is read.

    The evaluator has zeros there.
    """

    name: ClassVar[str] = "empty"
    syntax: ClassVar[str] = "empty {type}"
    stages: ClassVar[Stages] = frozenset({Stage.SCHEDULE})
    type: TensorType

    def infer(self) -> TensorType:
        return self.type

    def evaluate(self) -> Array:
        return np.zeros(self.type.shape, self.type.dtype.numpy)

    def flops(self, instruction: Instruction) -> int:
        return 0

    def bytes_moved(self, instruction: Instruction) -> int:
        return 0


SCHEDULED: tuple[type[Op], ...] = (Empty,)
"""The ops that only this stage has."""
