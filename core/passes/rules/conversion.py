"""Laws of casts: only a step that loses nothing is left out."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import DataTypeCast
from ...types import DType
from ..rewrite import Laws
from .patterns import made_by


def simplify_cast(b: Builder, instruction: Instruction[DataTypeCast]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    # a cast to the same type is x
    if x.tensor.dtype == op.dtype:
        return x
    match made_by(x, DataTypeCast):
        # a cast of an exact cast is one cast
        case (y,) if _can_skip(y.tensor.dtype, x.tensor.dtype, op.dtype):
            return b.emit(op, y)
        case _:
            return None


def is_exact(source: DType, target: DType) -> bool:
    """Whether every value of `source` is one of `target`."""
    if source == target or source.kind == "boolean":
        return True
    if source.is_integer:
        digits = target.digits if target.is_float else target.bits - 1
        return target.is_numeric and digits >= source.bits - 1
    is_as_fine = target.digits >= source.digits and target.least_exponent <= source.least_exponent
    return target.is_float and target != source and is_as_fine


def _can_skip(source: DType, middle: DType, target: DType) -> bool:
    """Integers wrap around, but floats stop at the ends: such a step cannot be left out."""
    if source.is_integer and middle.is_float and target.is_integer and not is_exact(source, target):
        return False
    return is_exact(source, middle)


CONVERSION: Laws = {DataTypeCast: (simplify_cast,)}
