"""Laws of every elementwise function: what it broadcasts need not be broadcast before."""

from __future__ import annotations

import math
from dataclasses import replace

from ...ir import Builder, Instruction, Value
from ...ops import Elementwise, Literal
from ...types import broadcast_shapes
from ..rewrite import Laws
from .movement import without_broadcast
from .patterns import as_type


def simplify_elementwise(b: Builder, instruction: Instruction) -> Value | None:
    """Take the operands before their broadcast, and compute each different element once."""
    operands, result = instruction.operands, instruction.result.tensor
    narrow = [_narrowed(x) for x in operands]
    if not any(narrow):
        return None
    shapes = [
        x.tensor.shape if n is None else n.type.shape if isinstance(n, Literal) else n.tensor.shape
        for x, n in zip(operands, narrow, strict=True)
    ]
    shape = broadcast_shapes(shapes)
    if shape != result.shape and math.prod(shape) >= result.size:
        return None
    taken = [
        x if n is None else b.emit(n) if isinstance(n, Literal) else n
        for x, n in zip(operands, narrow, strict=True)
    ]
    # f(broadcast(x), y) = f(x, y), or the broadcast of it
    return as_type(b, b.emit(instruction.op, *taken), result)


def _narrowed(x: Value) -> Value | Literal | None:
    """What `x` repeats: a value, or the scalar literal of a splat; None if it repeats nothing."""
    op = x.op
    if isinstance(op, Literal):
        scalar = op.type.with_shape(())
        return replace(op, type=scalar) if op.type.shape and op.is_splat else None
    return without_broadcast(x)


ELEMENTWISE: Laws = {Elementwise: (simplify_elementwise,)}
