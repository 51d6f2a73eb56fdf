"""Laws of every elementwise function: what it broadcasts need not be broadcast before."""

from __future__ import annotations

import math
from dataclasses import replace

from ...ir import Builder, Instruction, Op, Value
from ...ops import Broadcast, Elementwise, Literal, PadShape, ShapeCast, SqueezeShape
from ...ops.literal import literal_of
from ...ops.reduction import broadcast_to
from ...types import broadcast_shapes
from ..rewrite import Laws
from .movement import without_broadcast


def simplify_elementwise(b: Builder, instruction: Instruction) -> Value | None:
    """Take the operands before their broadcast, and compute each different element once."""
    op, operands = instruction.op, instruction.operands
    if not isinstance(op, Elementwise) or not op.broadcasts:
        return None
    for x in operands:
        if x.producer is not None and x.producer.op.__class__ in _REPEATING:
            break
    else:
        return None
    narrow = [_narrowed(x) for x in operands]
    if not any(narrow):
        return None
    result = instruction.result.tensor
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
    return broadcast_to(b, b.emit(op, *taken), result.shape)


def _narrowed(x: Value) -> Value | Literal | None:
    """What `x` repeats: a value, or the scalar literal of a splat; None if it repeats nothing."""
    literal = literal_of(x)
    if literal is None:
        return without_broadcast(x)
    scalar = literal.type.with_shape(())
    return replace(literal, type=scalar) if literal.type.shape and literal.is_splat else None


_REPEATING: frozenset[type[Op]] = frozenset({Literal, Broadcast, ShapeCast, PadShape, SqueezeShape})
"""What `_narrowed` can see through, asked first because most operands are something else."""

ELEMENTWISE: Laws = {Elementwise: (simplify_elementwise,)}
