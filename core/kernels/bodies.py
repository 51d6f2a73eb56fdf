"""Bodies of nests in kernels: what may stand in them, and what is one instruction with a sum."""

from __future__ import annotations

from typing import Final

from ..ir.instruction import Op, Value
from ..ops.arithmetic import Multiply, Square
from ..ops.bits import BitCast
from ..ops.forms import Pointwise
from ..ops.literal import Literal
from ..types import F32, F64

_IN_BODIES: Final = (Pointwise, Literal, BitCast)


def stands_in_kernels(op: Op) -> bool:
    """Whether a kernel may compute it, of scalars or of vectors."""
    return isinstance(op, _IN_BODIES)


def factors_of(value: Value) -> tuple[Value, Value] | None:
    """The two that are multiplied, if it is a product of f32 or f64 that is used once: adding it is one instruction."""
    if (
        isinstance(value.op, Multiply | Square)
        and value.producer is not None
        and value.has_one_use
        and value.tensor.dtype in (F32, F64)
    ):
        return value.producer.operands[0], value.producer.operands[-1]
    return None
