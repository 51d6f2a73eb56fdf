"""Pattern matching for laws: the operands of a value's definition, and known constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ...ir import Builder, Op, Value
from ...ops import splat
from ...ops.literal import number_of
from ...types import DType, TensorType

KnownNumber: TypeAlias = int | float | bool


def inputs(x: Value) -> Sequence[Value]:
    """The operands of the instruction that computes `x`; none for an argument."""
    return x.producer.operands if x.producer is not None else ()


def made_by(x: Value, op_class: type[Op]) -> Sequence[Value] | None:
    """The operands of the instruction that computes `x` by an op of exactly this class; else None."""
    producer = x.producer
    if producer is None or producer.op.__class__ is not op_class:
        return None
    return producer.operands


def number(x: Value) -> KnownNumber | None:
    """The number that every element of `x` is known to be."""
    value: KnownNumber | None = number_of(x)
    return value


def is_negative_zero(n: KnownNumber | None) -> bool:
    """Whether it is −0.0, which equals 0."""
    return n is not None and n == 0 and math.copysign(1, n) < 0


def is_positive_zero(n: KnownNumber | None) -> bool:
    """Whether it is 0 but not −0.0."""
    return n is not None and n == 0 and not is_negative_zero(n)


def is_normal(n: float, dtype: DType) -> bool:
    """Whether `n` lies among the normal numbers of a float type: not 0, not ∞, nor what has fewer digits."""
    least, largest = dtype.normal_range
    return least <= abs(n) <= largest


def filled(b: Builder, type: TensorType, n: KnownNumber) -> Value:
    """A literal of `type`, every element `n`."""
    return b.emit(splat(type, n))
