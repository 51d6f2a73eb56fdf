"""Selects matrix products for the BLAS, and folds transposes into their flags.

Transposes of the operands, and one of the result, fold into the flags of `matrixProduct`.  Vectors become
matrices of one row, and a batch of matrices against one matrix becomes one tall product.
"""

from __future__ import annotations

import math

from ..ir import Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.contraction import BLAS_WORK, Dot
from ..ops.movement import Transpose, reshaped
from ..types import F32, F64, Shape
from .ops import MatrixProduct, flipped


@dataclass(frozen=True)
class ProductOperand:
    """An operand of a product: a tensor of the program, read as its transpose if `flip`."""

    value: Value
    flip: bool = False

    @property
    def shape(self) -> Shape:
        """The shape after the transposition flag."""
        return flipped(self.value.tensor.shape, self.flip)


def library_product(dot: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
    """The operands of a `dot` for the BLAS; None when it is better left to a nest."""
    a, b = (_transpose_operand(operand) for operand in dot.operands)
    if a.value.tensor.dtype not in (F32, F64) or len(a.shape) == len(b.shape) == 1:
        return None
    rows = a.shape[:-1] if _is_tall(a, b) else a.shape[-2:-1]
    columns = b.shape[-1:] if len(b.shape) > 1 else ()
    work = math.prod((*rows, a.shape[-1], *columns))
    return (a, b) if work >= BLAS_WORK else None


def transposed_product(transpose: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
    """The operands of the product that is the transpose of one, as (A·B)ᵀ = Bᵀ·Aᵀ, if the BLAS computes it."""
    dot = transpose.operands[0].producer
    sides = library_product(dot) if dot is not None and _swaps_last(transpose) else None
    if sides is None or len(sides[0].shape) < 2 or len(sides[1].shape) < 2 or _is_tall(*sides):
        return None
    a, b = sides
    return ProductOperand(b.value, not b.flip), ProductOperand(a.value, not a.flip)


def emit_product(b: Builder, left: ProductOperand, right: ProductOperand, shape: Shape) -> Value:
    """The library product of two operands, of the `shape` that `dot` gives it."""
    x, y = left.value, right.value
    if len(left.shape) == 1:
        x = reshaped(b, x, (1, *left.shape))
    elif _is_tall(left, right):
        x = reshaped(b, x, (math.prod(left.shape[:-1]), left.shape[-1]))
    if len(right.shape) == 1 or right.shape[-1] == 1:  # a row times the other matrix transposed
        row = reshaped(b, y, (*right.shape[:-2], 1, left.shape[-1]))
        return reshaped(b, b.emit(MatrixProduct(transpose_b=not left.flip), row, x), shape)
    return reshaped(b, b.emit(MatrixProduct(left.flip, right.flip), x, y), shape)


def _is_tall(a: ProductOperand, b: ProductOperand) -> bool:
    """Whether the batch axes of `a` are so many rows of one product."""
    return len(a.shape) > 2 and len(b.shape) <= 2 and not a.flip


def _transpose_operand(value: Value) -> ProductOperand:
    producer = value.producer
    if producer is not None and _swaps_last(producer):
        return ProductOperand(producer.operands[0], True)
    return ProductOperand(value)


def _swaps_last(instruction: Instruction) -> bool:
    """Whether this is a transpose that exchanges the last two axes and leaves the others."""
    order = transpose_order(instruction)
    return order is not None and len(order) >= 2 and order == exchanging(len(order))


def transpose_order(instruction: Instruction | None) -> tuple[int, ...] | None:
    """The permutation of a transpose; None for all else."""
    if instruction is None or not isinstance(instruction.op, Transpose):
        return None
    return instruction.op.order(instruction.operands[0].tensor.rank)


def exchanging(rank: int) -> tuple[int, ...]:
    """The permutation that exchanges the last two axes."""
    return flipped(tuple(range(rank)), True)


def is_dot(instruction: Instruction | None) -> bool:
    """Whether it is a product that the BLAS or a kernel may compute."""
    return instruction is not None and isinstance(instruction.op, Dot)
