"""Has the kernels of matrix products compute their operands where they load them, as far as they do that once.

What makes a large operand, element by element, for one product alone is its *prologue*: `tanh` of a matrix that is
packed, weights that are stored as integers.  Computed where the operand is packed, it needs no memory of its own.  One
that reads what it makes its operand of column by column makes the transposed one instead, which products take as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..compute.bodies import base_of
from ..compute.ops import MatrixProduct
from ..ir import Builder, Instruction, Value
from ..kernels.inline import inline_producer, is_inlined
from ..kernels.ops import is_kernel
from ..ops.nest import Access, Affine, Index, Nest, coordinate, identity_access, is_nest
from .product_plans import LEAST_ROWS
from .switches import is_enabled
from .target import Target


def inline_prologues(b: Builder, made: Sequence[Value], target: Target) -> None:
    """Have the kernel of a product, whose results these are, compute its operands."""
    kernel = base_of(made[0]).producer
    assert kernel is not None and is_kernel(kernel)
    for position in range(2):
        nest = _inlined_prologue(kernel.operands[position], target)
        if nest is not None and inline_producer(kernel, position, nest):
            b.block.instructions.remove(nest)
            nest.drop_all_references()


def has_prologue(operand: Value, target: Target) -> bool:
    """Whether what makes an operand can be computed where it is loaded."""
    return _inlined_prologue(operand, target) is not None


def turn_prologues(b: Builder, product: Instruction[MatrixProduct], target: Target) -> None:
    """Have a product of two matrices read the transposed results of what makes its operands by columns."""
    operands, op = list(product.operands), product.op
    rows, *columns = product.result.tensor.shape
    if len(columns) != 1 or rows < LEAST_ROWS:
        return
    for position, value in enumerate(operands):
        nest = _prologue_of(value, target)
        turned = None if nest is None else _turned(b, nest)
        if turned is not None:
            operands[position] = turned
            if position:
                op = replace(op, transpose_b=not op.transpose_b)
            else:
                op = replace(op, transpose_a=not op.transpose_a)
    product.op = op
    product.set_operands(operands)


def _prologue_of(operand: Value, target: Target) -> Instruction[Nest] | None:
    """The nest that makes an operand, one that is large and that a product alone reads.

    It reads no more than two such tensors, so that not much more memory is in use until then.
    """
    nest = operand.producer
    if nest is None or not is_nest(nest) or not is_enabled("prologues"):
        return None
    read = sum(x.tensor.bytes for x in dict.fromkeys(nest.operands))
    is_worth = target.near_l2_bytes <= operand.tensor.bytes and read <= 2 * operand.tensor.bytes
    return nest if operand.has_one_use and is_worth and nest.operands else None


def _inlined_prologue(operand: Value, target: Target) -> Instruction[Nest] | None:
    """The same, if it makes each element of what lies side by side."""
    nest = _prologue_of(operand, target)
    return nest if nest is not None and is_inlined(nest.op, nest.regions[0].entry) else None


def _turned(b: Builder, nest: Instruction[Nest]) -> Value | None:
    """The transposed matrix, where its rows are made of what lies side by side, and those of the matrix are not."""
    op, body = nest.op, nest.regions[0].entry
    if len(op.outputs) != 1 or len(op.extents) != 2 or is_inlined(op, body):
        return None
    type = op.outputs[0].type
    other = type.with_shape(type.shape[::-1])
    accesses = tuple(Access(_swapped(x.indices), x.bounds) for x in op.accesses)
    written = replace(op.outputs[0], type=other, indices=_swapped(op.outputs[0].indices)[::-1])
    if written.indices != identity_access(other.shape):
        return None
    turned = Nest(op.extents[::-1], accesses, (written,))
    if not is_inlined(turned, body):
        return None
    (made,) = b.emit_many(turned, nest.operands, nest.regions)
    nest.regions = ()
    b.block.instructions.remove(nest)
    nest.drop_all_references()
    return made


def _swapped(indices: Sequence[Index]) -> tuple[Index, ...]:
    """Indices of two axes that change their names."""
    names = coordinate(1), coordinate(0)
    return tuple([x.substitute(names) if isinstance(x, Affine) else x for x in indices])
