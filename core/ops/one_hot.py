"""What is zero unless a coordinate is a number: how one element of many is picked."""

from __future__ import annotations

import numpy as np

from ..ir.instruction import Value
from ..types import I64
from .arithmetic import Negate, StrongMultiply
from .casting import DataTypeCast
from .comparison import Equal, Select
from .literal import number_of


def one_hot_index(value: Value, coordinate: Value, extent: int) -> Value | None:
    """The number that a coordinate below `extent` is wherever a value is not zero; None where that is not known."""
    pending = [value]
    while pending:
        producer = pending.pop().producer
        if producer is None:
            continue
        match producer.op:
            case Negate() | DataTypeCast() | StrongMultiply():
                pending += producer.operands
            case Select():
                _, otherwise, condition = producer.operands
                found = _equal_to(condition, coordinate, extent)
                if found is not None and number_of(otherwise) == 0:
                    return found
            case _:
                pass
    return None


def _equal_to(condition: Value, coordinate: Value, extent: int) -> Value | None:
    """The number that a coordinate is where a condition holds."""
    if condition.producer is None or not isinstance(condition.op, Equal):
        return None
    x, y = condition.producer.operands
    if _is_cast(y, coordinate, extent):
        x, y = y, x
    return _uncast(y) if _is_cast(x, coordinate, extent) else None


def _is_cast(value: Value, coordinate: Value, extent: int) -> bool:
    """Whether a value is a coordinate, in integers that hold all numbers below its extent."""
    while value is not coordinate and isinstance(value.op, DataTypeCast) and value.producer:
        dtype = value.tensor.dtype
        if not dtype.is_integer or extent - 1 > np.iinfo(dtype.numpy).max:
            return False
        value = value.producer.operands[0]
    return value is coordinate


def _uncast(value: Value) -> Value:
    """The integer that a value is, before it was made an integer of a type that holds all of its numbers."""
    while isinstance(value.op, DataTypeCast) and value.producer:
        (source,) = value.producer.operands
        dtype = source.tensor.dtype
        if not dtype.is_integer or value.tensor.dtype not in (I64, dtype):
            break
        value = source
    return value
