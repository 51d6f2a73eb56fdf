"""Which numbers the floats of a straight-line body may be: intervals, given that some of them are zero or finite.

What a zero says of its factors goes backwards first: of x · y = 0 neither is infinite or NaN, as ∞ · 0 is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ..ir.instruction import Instruction, Op, Value
from ..ops.arithmetic import Abs, Add, Multiply, Negate, Square, StrongMultiply, Subtract
from ..ops.comparison import Select
from ..ops.literal import number_of
from ..ops.special import Erf
from ..ops.transcendental import Cos, Exp, FlushedExp, Sin, Tanh
from ..types import DType

_MOST_SCALARS = 100
"""Scalars that one question looks at; behind more of them anything is possible."""


@dataclass(frozen=True, slots=True)
class FloatRange:
    """All numbers from `low` to `high`, and NaN if it says so."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = True

    @property
    def is_finite(self) -> bool:
        """Whether no number of it is infinite or NaN."""
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def magnitude(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


_ANYTHING = FloatRange()
_ZERO = FloatRange(0.0, 0.0, nan=False)


class FloatRanges:
    """The ranges of the scalars of a body; those of `bounds` have at most that magnitude, and are not NaN."""

    def __init__(self, bounds: Mapping[Value, float]) -> None:
        self._bounds: dict[Value, float] = {}
        self._found: dict[Value, FloatRange] = {}
        waiting = list(bounds.items())
        while waiting and len(self._bounds) < _MOST_SCALARS:
            value, bound = waiting.pop()
            if number_of(value) is None and bound < self._bounds.get(value, math.inf):
                self._bounds[value] = bound
                waiting += _implied(value, bound)

    def of(self, value: Value) -> FloatRange:
        """The range of a scalar."""
        if value in self._found:
            return self._found[value]
        if not value.tensor.dtype.is_float or len(self._found) >= _MOST_SCALARS:
            return _ANYTHING
        self._found[value] = _ANYTHING  # counts it, before its operands
        found = self._computed(value)
        bound = self._bounds.get(value)
        if bound is not None:
            found = FloatRange(max(found.low, -bound), min(found.high, bound), nan=False)
        self._found[value] = found
        return found

    def _computed(self, value: Value) -> FloatRange:
        number = number_of(value)
        if number is not None:
            return FloatRange(number, number, nan=False) if number == number else _ANYTHING
        rule = _RULES.get(type(value.op)) if value.op is not None else None
        if rule is None or value.producer is None:
            return _ANYTHING
        return _rounded(rule(self, value.producer), value.tensor.dtype)


def _implied(value: Value, bound: float) -> list[tuple[Value, float]]:
    """Bounds of the operands that follow from |value| ≤ bound."""
    if value.producer is None:
        return []
    operands = value.producer.operands
    least, most = _ends(value.tensor.dtype)
    match value.op:
        case Multiply():
            pairs = zip(operands, reversed(operands), strict=True)
            factors = [(x, abs(number_of(other) or 0.0)) for x, other in pairs]
            # what rounds to such a product is not twice as large, subnormal numbers aside
            return [(x, min(most, 2 * (bound + least) / n) if n else most) for x, n in factors]
        case Square():
            return [(operands[0], min(most, 2 * math.sqrt(bound + least)))]
        case Negate() | Abs():
            return [(operands[0], bound)]
        case Add() | Subtract():
            return [(x, most) for x in operands]
        case _:
            return []


def _ends(dtype: DType) -> tuple[float, float]:
    """The least positive and the largest number."""
    normal, most = dtype.normal_range
    return normal * 2.0 ** (1 - dtype.digits), most


def _rounded(exact: FloatRange, dtype: DType) -> FloatRange:
    """What numbers of a range are when rounded."""
    if exact == _ZERO:
        return exact
    least, most = _ends(dtype)
    slack = 2.0 ** (2 - dtype.digits)
    low = exact.low - abs(exact.low) * slack - least
    high = exact.high + abs(exact.high) * slack + least
    return FloatRange(
        low if low >= -most else -math.inf, high if high <= most else math.inf, exact.nan
    )


def _add(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    x, y = map(ranges.of, instruction.operands)
    if isinstance(instruction.op, Subtract):
        y = FloatRange(-y.high, -y.low, y.nan)
    cancels = (x.high == math.inf and y.low == -math.inf) or (
        x.low == -math.inf and y.high == math.inf
    )
    nan = x.nan or y.nan or cancels
    return _ANYTHING if cancels else FloatRange(x.low + y.low, x.high + y.high, nan)


def _multiply(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    x, y = ranges.of(instruction.operands[0]), ranges.of(instruction.operands[-1])
    nan = x.nan or y.nan
    is_zero = x.magnitude == 0 or y.magnitude == 0
    if isinstance(instruction.op, StrongMultiply):
        if (x == _ZERO) or (y == _ZERO):
            return _ZERO
    elif not math.isfinite(x.magnitude) or not math.isfinite(y.magnitude):
        numbers = [number_of(operand) for operand in instruction.operands]
        nan = nan or not any(number and math.isfinite(number) for number in numbers)
    if is_zero:
        return FloatRange(0.0, 0.0, nan)
    products = [_product(u, v) for u in (x.low, x.high) for v in (y.low, y.high)]
    if isinstance(instruction.op, Square):
        return FloatRange(0.0, max(products), x.nan)
    return FloatRange(min(products), max(products), nan)


def _product(x: float, y: float) -> float:
    return x * y if x and y else 0.0


def _magnitude_kept(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    """A negative or an absolute value."""
    x = ranges.of(instruction.operands[0])
    return FloatRange(-x.magnitude, x.magnitude, x.nan)


def _at_most_one(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    return FloatRange(-1.0, 1.0, ranges.of(instruction.operands[0]).nan)


def _sine(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    return FloatRange(-1.0, 1.0, not ranges.of(instruction.operands[0]).is_finite)


_ROUNDED_UP: Final = 1 + 1e-6
"""More than an exponential of f32 or f64 may be above the true one, by its rounding."""

_FINITE_EXPONENTIAL: Final = 700
"""A number whose exponential is finite in f64, with its rounding: the largest is 709.78."""


def _exp(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    x = ranges.of(instruction.operands[0])
    high = math.exp(x.high) * _ROUNDED_UP if x.high < _FINITE_EXPONENTIAL else math.inf
    return FloatRange(0.0, high, x.nan)


def _select(ranges: FloatRanges, instruction: Instruction) -> FloatRange:
    x, y = map(ranges.of, instruction.operands[:2])
    return FloatRange(min(x.low, y.low), max(x.high, y.high), x.nan or y.nan)


_RULES: Final[Mapping[type[Op], Callable[[FloatRanges, Instruction], FloatRange]]] = (
    MappingProxyType(
        {
            Add: _add,
            Subtract: _add,
            Multiply: _multiply,
            Square: _multiply,
            StrongMultiply: _multiply,
            Negate: _magnitude_kept,
            Abs: _magnitude_kept,
            Tanh: _at_most_one,
            Erf: _at_most_one,
            Sin: _sine,
            Cos: _sine,
            Exp: _exp,
            FlushedExp: _exp,
            Select: _select,
        }
    )
)
"""The range of what an op computes exactly; of other ops nothing is known."""
