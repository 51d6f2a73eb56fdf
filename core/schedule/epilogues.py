"""Chooses what is computed in the loops of a matrix product: the nest that alone reads it, its *epilogue*.

1. Elements: bias, activation, its derivative, an update, at the point where the product is.  A nest that counts the
   rows of the product by several axes (batch and time, say) goes over its rows first.
2. What rows are reduced to, where tiles go along rows and these are whole vectors.
3. What takes long is computed of sums that are stored, row by row (`kernels.tiles`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from ..compute.bodies import base_of
from ..compute.ops import MatrixProduct
from ..ir import Block, Builder, Instruction
from ..kernels.products import Epilogue, is_epilogue, is_epilogue_of_rows
from ..kernels.row_sums import most_roundings
from ..kernels.tile_sizes import Registers, panels_of_rows, panels_of_sums
from ..ops.nest import Nest, identity_access, is_nest
from ..types import TensorType
from .collapse import axes_of_rows, collapsed, emit_collapsed
from .product_plans import ProductPlan, plan_product
from .switches import is_enabled
from .target import Target


def epilogue_of(product: Instruction[MatrixProduct], target: Target) -> Epilogue | None:
    """The nest that alone reads the product, and makes its results of each of its elements, or of its rows."""
    nest, shape = _only_reader(product), product.result.tensor.shape
    if nest is None or not _may_follow(product, nest.op, target):
        return None
    read = [n for n, x in enumerate(nest.operands) if base_of(x) is product.result]
    if len(read) != 1:
        return None
    is_at_point = nest.op.accesses[read[0]].indices == identity_access(shape)  # not flipped, say
    is_matrix = nest.operands[read[0]].tensor.shape == shape
    return Epilogue(nest, read[0]) if is_at_point and is_matrix else None


def read_as_matrices(
    block: Block, products: Collection[Instruction[MatrixProduct]], target: Target
) -> None:
    """Have nests that count the rows of one of these products by several axes go over its rows, if that makes them
    follow it."""
    joined: dict[Instruction, frozenset[int]] = {}
    for product in products:
        nest = _only_reader(product)
        axes = None if nest is None else axes_of_rows(nest, nest.op)
        if nest is not None and axes:
            op = collapsed(nest.op, nest.operands, axes)
            if _may_follow(product, op, target):
                joined[nest] = axes
    if not joined:
        return
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        if is_nest(instruction) and instruction in joined:
            b.location = instruction.location
            made = emit_collapsed(b, instruction, instruction.op, joined[instruction])
            instruction.replace_with(*made)
        else:
            block.instructions.append(instruction)


def _only_reader(product: Instruction) -> Instruction[Nest] | None:
    """The nest that reads a product, if it alone does."""
    if not is_enabled("epilogues"):
        return None
    readers = [product.result]
    for value in readers:  # which grows by its views
        for user in value.uses:
            if user.op.is_view:
                readers += user.results
    found = {user for value in readers for user in value.uses if not user.op.is_view}
    nest = found.pop() if len(found) == 1 else None
    return nest if nest is not None and is_nest(nest) else None


def _may_follow(product: Instruction[MatrixProduct], nest: Nest, target: Target) -> bool:
    """Whether a nest makes results of the elements of a product, or of its rows, by what it writes."""
    shape = product.result.tensor.shape
    return is_epilogue(nest, shape) or (
        is_epilogue_of_rows(nest, shape) and _goes_along_rows(product, target)
    )


def _goes_along_rows(product: Instruction[MatrixProduct], target: Target) -> bool:
    """Whether the tiles of a product can go along its rows, one after the other, and fill vectors.

    Threads share it if they would otherwise.  A sum of rows is one of what panels come to, so that these may not be too
    many (`kernels.row_sums`), whether sums of products are stored first or not.
    """
    x, y = (operand.tensor for operand in product.operands)
    rows, columns = product.result.tensor.shape[-2:]
    registers = registers_of(y, target)
    plan = plan_product(product.op, x, y, target, whole_rows=True)
    if columns % registers.lanes or plan.block_columns:
        return False
    if plan_product(product.op, x, y, target).grain and not plan.grain:
        return False
    depth, vectors = depth_of(product.op, x, y), columns // registers.lanes
    ways = (
        panels_of_rows(rows, columns, depth, registers, is_packed=plan.packed is not None),
        panels_of_sums(vectors, reduces_rows=True),
    )
    return max(_additions(panels, registers.lanes) for panels in ways) <= most_roundings(columns)


def _additions(panels: Sequence[tuple[int, int]], lanes: int) -> float:
    """Those that a number of a row goes through: for each panel behind it, and where lanes are joined."""
    return sum(count for _, count in panels) + math.log2(max(size for size, _ in panels) * lanes)


def is_staged(nest: Instruction[Nest], plan: ProductPlan, target: Target) -> bool:
    """Whether the sums of a tile are stored before what follows is computed of them, row by row.

    What takes long would be written out for each vector of a tile, whose sums leave it few registers; and many large
    tensors, a few lines of many rows of each, displace each other.
    """
    if not is_enabled("distribute"):
        return False
    *matrices, _, columns = nest.op.extents
    large = [x.tensor for x in nest.operands if x.tensor.shape == nest.op.extents]
    number = large[0].dtype.bytes  # of the product, at least
    if (plan.block_columns or columns) * number > _LONGEST_ROW:
        return False
    if plan.level > sum(extent > 1 for extent in matrices):  # threads share the columns of each row
        return False
    streams = len(large) - 1 + len(nest.op.outputs)
    size = streams * nest.op.points * number
    work = sum(one.op.cost for one in nest.regions[0].entry.instructions)
    return work >= _LONG or (streams >= _MANY_STREAMS and size > target.l2_bytes)


_LONG: Final = 8
"""Operations from which sums are stored first: with a division and two more it makes no difference, with `exp` 0.87 to
0.98 of the time, with `tanh` 0.7 to 0.96, and code takes LLVM half as long."""

_LONGEST_ROW: Final = 4096
"""Bytes of a row that is stored: a dozen of these lie on the stack."""

_MANY_STREAMS: Final = 3
"""Tensors that are read and written."""


def registers_of(type: TensorType, target: Target) -> Registers:
    """The vector registers for elements of a tensor."""
    return Registers(target.registers, target.lanes(type.dtype.bytes), is_enabled("unroll"))


def depth_of(op: MatrixProduct, x: TensorType, y: TensorType) -> int:
    """How many products are summed for an element of each matrix."""
    return math.prod(op.infer(x, y).shape[:-2]) * op.summed(x)
