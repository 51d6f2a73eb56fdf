"""Laws for programs of which no derivative will be taken: they keep values, not what rules follow."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import Add, Dot, Multiply, ShapeCast
from ...ops.stopping import StopGradient
from ..rewrite import Laws
from .patterns import filled


def drop_stop(b: Builder, instruction: Instruction) -> Value | None:
    # there is nothing left to stop
    return instruction.operands[0]


def expand_outer_product(b: Builder, instruction: Instruction) -> Value | None:
    u, v = instruction.operands
    result = instruction.result.tensor
    if u.tensor.shape[-1] != 1:
        return None
    # Σₖ uᵢₖ · vₖⱼ = uᵢ · vⱼ + 0 for one k, as the sum begins with +0; it fuses with its neighbours, but
    # the derivatives of a product are products, which are worth more than sums of elements
    product = b.emit(Multiply(), u, v)
    if result.dtype.is_float:
        product = b.emit(Add(), product, filled(b, result.with_shape(()), 0))
    same = product.tensor.shape == result.shape
    return product if same else b.emit(ShapeCast(result.shape), product)


FINAL: Laws = {StopGradient: (drop_stop,), Dot: (expand_outer_product,)}
