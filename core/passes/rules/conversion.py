"""Laws of casts: only a step that loses nothing is left out."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import DataTypeCast
from ...types import DType
from ..rewrite import Laws
from .patterns import made_by

_DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""Binary digits of a mantissa."""

_WIDER = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",), "f64": ()}
"""The float types that hold every number of one."""


def simplify_cast(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    assert isinstance(op, DataTypeCast)
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
        digits = _DIGITS[target.name] if target.is_float else target.bits - 1
        return target.is_numeric and digits >= source.bits - 1
    return target.name in _WIDER[source.name]


def _can_skip(source: DType, middle: DType, target: DType) -> bool:
    """Integers wrap around, but floats stop at the ends: such a step cannot be left out."""
    if source.is_integer and middle.is_float and target.is_integer and not is_exact(source, target):
        return False
    return is_exact(source, middle)


CONVERSION: Laws = {DataTypeCast: (simplify_cast,)}
