"""Selects matrix products for kernels, and folds transposes into their flags.

Transposes of the operands, and one of the result, fold into the flags of `matrixProduct`.  Vectors become
matrices of one row, and a batch of matrices against one matrix becomes one tall product.
"""

from __future__ import annotations

import math
from typing import Final

from ..ir import Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.contraction import LEAST_PRODUCT, Dot
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


def product_operands(dot: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
    """The operands of a `dot` that becomes a `matrixProduct`; None when it is better left to a nest."""
    a, b = (_transpose_operand(operand) for operand in dot.operands)
    if a.value.tensor.dtype not in (F32, F64) or len(a.shape) == len(b.shape) == 1:
        return None
    rows = a.shape[:-1] if _is_tall(a, b) else a.shape[-2:-1]
    columns = b.shape[-1:] if len(b.shape) > 1 else ()
    work = math.prod((*rows, a.shape[-1], *columns))
    return (a, b) if work >= LEAST_PRODUCT else None


def transposed_product(transpose: Instruction) -> tuple[ProductOperand, ProductOperand] | None:
    """The operands of the product that is the transpose of one, as (A·B)ᵀ = Bᵀ·Aᵀ, if that is no nest."""
    dot = transpose.operands[0].producer
    sides = product_operands(dot) if dot is not None and _swaps_last(transpose) else None
    if sides is None or len(sides[0].shape) < 2 or len(sides[1].shape) < 2 or _is_tall(*sides):
        return None
    a, b = sides
    return ProductOperand(b.value, not b.flip), ProductOperand(a.value, not a.flip)


def emit_product(b: Builder, left: ProductOperand, right: ProductOperand, shape: Shape) -> Value:
    """The matrix product of two operands, of the `shape` that `dot` gives it."""
    x, y = left.value, right.value
    if len(left.shape) == 1:
        x = reshaped(b, x, (1, *left.shape))
    elif _is_tall(left, right):
        x = reshaped(b, x, (math.prod(left.shape[:-1]), left.shape[-1]))
    if len(right.shape) == 1 or right.shape[-1] == 1:  # a row times the other matrix transposed
        row = reshaped(b, y, (*right.shape[:-2], 1, left.shape[-1]))
        return reshaped(b, b.emit(MatrixProduct(transpose_b=not left.flip), row, x), shape)
    if _is_better_turned(left, right):
        return b.emit(Transpose(), b.emit(MatrixProduct(not right.flip), y, x))
    return reshaped(b, b.emit(MatrixProduct(left.flip, right.flip), x, y), shape)


_LEAST_TURNED: Final = 256
"""Products of a sum from which it is nothing beside them to transpose the result."""

_TALL: Final = 4
"""Rows for each column of a product whose transpose is better computed."""

_VECTOR: Final = 64
"""Bytes of vectors, the largest there are."""

_FULL: Final = 0.7
"""What part of its vectors a row fills that is not better turned."""


def _is_better_turned(left: ProductOperand, right: ProductOperand) -> bool:
    """Whether the transpose (A·B)ᵀ = Bᵀ·Aᵀ is computed: its rows fill vectors, and A lies as that takes it.

    The gradient of weights of few outputs, say: 0.5 to 0.7 of the time with 10 of them and 784 inputs.
    """
    if len(left.shape) != 2 or len(right.shape) != 2 or not left.flip:
        return False
    (m, k), n = left.shape, right.shape[-1]
    lanes = _VECTOR // left.value.tensor.dtype.bytes
    filled = n / (-(-n // lanes) * lanes)
    return k >= _LEAST_TURNED and m >= _TALL * n and m >= lanes and filled < _FULL


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
    """Whether it is a product that a kernel may compute."""
    return instruction is not None and isinstance(instruction.op, Dot)
