"""More functions of numbers that are made of ops, as those of `composed` are: rules `(b, x, …) → value`.

Of each, derivatives of all orders are right wherever the function has them: formulas that cancel or have kinks give
values only (`StraightThrough`), or are chosen only where they are right.  16-bit floats are computed as f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Final

from ..ir.instruction import Emitter, Value
from ..types import F32, F64, I32, I64
from .arithmetic import (
    Abs,
    Add,
    Divide,
    Modulo,
    Multiply,
    Negate,
    Sign,
    Square,
    Subtract,
    TruncateDivide,
)
from .bits import Reinterpret
from .bitwise import BitwiseAnd
from .casting import DataTypeCast
from .comparison import And, Equal, GreaterThan, LessThan, NotEqual, Or, Select
from .formulas import number
from .rounding import Ceil, Floor, Rint
from .stop_gradient import StopGradient, StraightThrough
from .transcendental import Atan, Log, Power, Sqrt

_SERIES_TERMS: Final = 11
"""Of sin(πx)/(πx) for |x| ≤ ½: the next one is below 10⁻¹⁸."""
_SHORT_SERIES_TERMS: Final = 9
"""The same for what is rounded to 32 bits or less: the next one is below 10⁻¹³, its second derivative below 10⁻¹⁰."""

_LN2 = math.log(2)

_LOG10_E, _REST_OF_LOG10_E = 0.4342944819032518, 1.098319650216765e-17
"""1 / ln 10 as a double and what is left of it."""

_MANTISSA: Final = 2**52 - 1
"""The bits of an f64 that are 0 in a power of two."""

_TINY: Final = 1e-280
"""Below, cubes of cube roots lose bits in f64."""


def _widened(rule: Callable[..., Value]) -> Callable[..., Value]:
    """The rule, with all operands widened to f32 and the result narrowed where they are f16 or bf16."""

    @wraps(rule)
    def wide(b: Emitter, *xs: Value) -> Value:
        dtype = xs[0].tensor.dtype
        if not dtype.is_float or dtype.bits != 16:
            return rule(b, *xs)
        result = rule(b, *(b.emit(DataTypeCast(F32), x) for x in xs))
        return b.emit(DataTypeCast(dtype), result)

    return wide


def _by_f64(rule: Callable[[Emitter, Value], Value]) -> Callable[[Emitter, Value], Value]:
    """The rule, computed in f64 for all element types."""

    @wraps(rule)
    def wide(b: Emitter, x: Value) -> Value:
        dtype = x.tensor.dtype
        if dtype is F64:
            return rule(b, x)
        return b.emit(DataTypeCast(dtype), rule(b, b.emit(DataTypeCast(F64), x)))

    return wide


@_widened
def hypot(b: Emitter, x: Value, y: Value) -> Value:
    """√(x² + y²) as |u| √(1 + (v/u)²), u being the larger one; derivative 0 where both are 0, or both infinite."""
    along, across = b.emit(Abs(), x), b.emit(Abs(), y)
    steep = b.emit(LessThan(), along, across)
    large, small = b.emit(Select(), y, x, steep), b.emit(Select(), x, y, steep)
    infinity = number(b, x, math.inf)
    is_zero = b.emit(Equal(), large, number(b, x, 0))
    ratio = b.emit(Divide(), small, b.emit(Select(), number(b, x, 1), large, is_zero))
    root = b.emit(Sqrt(), b.emit(Add(), b.emit(Square(), ratio), number(b, x, 1)))
    length = b.emit(Multiply(), b.emit(Abs(), large), root)
    length = b.emit(Select(), b.emit(StopGradient(), length), length, is_zero)
    ends = b.emit(
        Or(), b.emit(Equal(), along, infinity), b.emit(Equal(), across, infinity)
    )  # of a NaN beside an infinity too
    undefined = b.emit(And(), ends, b.emit(NotEqual(), length, length))
    return b.emit(Select(), infinity, length, undefined)


@_widened
def atan2(b: Emitter, y: Value, x: Value) -> Value:
    """The angle of (x, y), by the atan of a ratio of at most 1; derivative 0 where both are 0, or both infinite."""
    along, across = b.emit(Abs(), x), b.emit(Abs(), y)
    steep = b.emit(LessThan(), along, across)
    large, small = b.emit(Select(), y, x, steep), b.emit(Select(), x, y, steep)
    is_zero = b.emit(Equal(), large, number(b, x, 0))
    ratio = b.emit(Divide(), small, b.emit(Select(), number(b, x, 1), large, is_zero))
    ratio = b.emit(Select(), b.emit(StopGradient(), small), ratio, is_zero)
    ends = b.emit(
        And(), b.emit(Equal(), along, across), b.emit(Equal(), along, number(b, x, math.inf))
    )
    diagonal = b.emit(Multiply(), b.emit(Sign(), x), b.emit(Sign(), y))
    angle = b.emit(Atan(), b.emit(Select(), diagonal, ratio, ends))
    below = _signbit(b, y)
    half = _choice(b, below, x, -math.pi, math.pi)
    quarter = _choice(b, below, x, -math.pi / 2, math.pi / 2)
    turned = b.emit(Select(), b.emit(Add(), half, angle), angle, _signbit(b, x))
    return b.emit(Select(), b.emit(Subtract(), quarter, angle), turned, steep)


@_widened
def copysign(b: Emitter, x: Value, y: Value) -> Value:
    """x with the sign of y, of zeros too."""
    differ = b.emit(NotEqual(), _signbit(b, x), _signbit(b, y))
    return b.emit(Select(), b.emit(Negate(), x), x, differ)


@_by_f64
def cbrt(b: Emitter, x: Value) -> Value:
    """∛x by a power and a step of Newton's method, the derivative being that of the power; +∞ at 0."""
    magnitude, third, zero = b.emit(Abs(), x), number(b, x, 1 / 3), number(b, x, 0)
    tiny = b.emit(LessThan(), magnitude, number(b, x, _TINY))
    grown = b.emit(Multiply(), magnitude, _choice(b, tiny, x, 2.0**300, 1.0))
    root = b.emit(Power(), grown, third)
    square = b.emit(Square(), root)
    excess = b.emit(Subtract(), b.emit(Multiply(), square, root), grown)
    step = b.emit(Divide(), excess, b.emit(Multiply(), square, number(b, x, 3)))
    is_whole = b.emit(Equal(), step, step)  # at 0 and ∞ there is no step
    root = b.emit(Select(), b.emit(Subtract(), root, step), root, is_whole)
    root = b.emit(Multiply(), root, _choice(b, tiny, x, 2.0**-100, 1.0))
    below = b.emit(LessThan(), x, zero)
    value = b.emit(Select(), b.emit(Negate(), root), root, below)
    value = b.emit(Select(), x, value, b.emit(Equal(), x, zero))
    plain = b.emit(
        Select(),
        b.emit(Negate(), b.emit(Power(), b.emit(Negate(), x), third)),
        b.emit(Power(), x, third),
        below,
    )
    return b.emit(StraightThrough(), value, plain)


def exp2(b: Emitter, x: Value) -> Value:
    """2ˣ."""
    return b.emit(Power(), number(b, x, 2), x)


@_by_f64
def log2(b: Emitter, x: Value) -> Value:
    """log x / log 2, a whole number where x is a power of two."""
    plain = b.emit(Multiply(), b.emit(Log(), x), number(b, x, 1 / _LN2))
    bits = b.emit(Reinterpret(I64), b.emit(StopGradient(), x))
    mantissa = b.emit(BitwiseAnd(), bits, number(b, bits, _MANTISSA))
    is_power = b.emit(Equal(), mantissa, number(b, bits, 0))
    value = b.emit(Select(), b.emit(Rint(), plain), plain, is_power)
    return b.emit(StraightThrough(), value, plain)


@_by_f64
def log10(b: Emitter, x: Value) -> Value:
    """log x / log 10, a whole number where x is 1, 10, 100, …"""
    logarithm = b.emit(Log(), x)
    line = b.emit(Multiply(), logarithm, number(b, x, _LOG10_E))
    value = b.emit(Add(), line, b.emit(Multiply(), logarithm, number(b, x, _REST_OF_LOG10_E)))
    nearest = b.emit(Rint(), value)
    is_power = b.emit(Equal(), b.emit(Power(), number(b, x, 10), nearest), x)
    return b.emit(StraightThrough(), b.emit(Select(), nearest, value, is_power), line)


def sinc(b: Emitter, x: Value) -> Value:
    """sin(πx) / (πx): with d = x less the nearest whole number, ±d · sinc(d) / x, and sinc(d) − 1 by its Taylor series.

    So derivatives at 0 are right, all other whole numbers are roots, and nothing is lost of a large x.
    """
    dtype = x.tensor.dtype
    if dtype is F64:
        return _sinc(b, x, _SERIES_TERMS)
    wide = _sinc(b, b.emit(DataTypeCast(F64), x), _SHORT_SERIES_TERMS)
    return b.emit(DataTypeCast(dtype), wide)


def _sinc(b: Emitter, x: Value, terms: int) -> Value:
    near = b.emit(LessThan(), b.emit(Abs(), x), number(b, x, 0.5))
    whole = b.emit(Select(), number(b, x, 0), b.emit(Rint(), x), near)
    rest = b.emit(Subtract(), x, whole)
    square = b.emit(Square(), rest)
    series = number(b, x, _coefficient(terms - 1))
    for k in reversed(range(1, terms - 1)):
        series = b.emit(Multiply(), series, square)
        series = b.emit(Add(), series, number(b, x, _coefficient(k)))
    series = b.emit(Multiply(), series, square)
    is_odd = b.emit(Equal(), b.emit(Modulo(), whole, number(b, x, 2)), number(b, x, 1))
    turned = b.emit(Select(), b.emit(Negate(), rest), rest, is_odd)
    sine = b.emit(Add(), b.emit(Multiply(), turned, series), turned)
    far = b.emit(Divide(), sine, b.emit(Select(), number(b, x, 1), x, near))
    return b.emit(Select(), b.emit(Add(), series, number(b, x, 1)), far, near)


def trunc(b: Emitter, x: Value) -> Value:
    """x without what is behind the point; derivative 0."""
    below = b.emit(LessThan(), x, number(b, x, 0))
    return b.emit(Select(), b.emit(Ceil(), x), b.emit(Floor(), x), below)


def fmod(b: Emitter, x: Value, y: Value) -> Value:
    """x − y · trunc(x / y), exactly; derivatives 1 and −trunc(x / y).  Of integers 0 where y is 0."""
    if x.tensor.dtype.is_integer:
        whole = b.emit(Multiply(), b.emit(TruncateDivide(), x, y), y)
        rest = b.emit(Subtract(), x, whole)
        return b.emit(Select(), number(b, x, 0), rest, b.emit(Equal(), y, number(b, y, 0)))
    return _float_fmod(b, x, y)


@_widened
def _float_fmod(b: Emitter, x: Value, y: Value) -> Value:
    rest = b.emit(Modulo(), b.emit(Abs(), x), b.emit(Abs(), y))
    value = copysign(b, rest, x)
    quotient = b.emit(Rint(), b.emit(Divide(), b.emit(Subtract(), x, value), y))
    line = b.emit(Subtract(), x, b.emit(Multiply(), y, b.emit(StopGradient(), quotient)))
    return b.emit(StraightThrough(), value, line)


def heaviside(b: Emitter, x: Value, at_zero: Value) -> Value:
    """0 below 0, 1 above, and `at_zero` there; NaN of NaN, derivative 0 by x."""
    zero, one = number(b, x, 0), number(b, x, 1)
    above = b.emit(Select(), one, b.emit(StopGradient(), x), b.emit(GreaterThan(), x, zero))
    upper = b.emit(Select(), at_zero, above, b.emit(Equal(), x, zero))
    return b.emit(Select(), zero, upper, b.emit(LessThan(), x, zero))


def reciprocal(b: Emitter, x: Value) -> Value:
    """1 / x."""
    return b.emit(Divide(), number(b, x, 1), x)


def degrees(b: Emitter, x: Value) -> Value:
    """Radians as degrees."""
    return b.emit(Multiply(), x, number(b, x, 180 / math.pi))


def radians(b: Emitter, x: Value) -> Value:
    """Degrees as radians."""
    return b.emit(Multiply(), x, number(b, x, math.pi / 180))


def signbit(b: Emitter, x: Value) -> Value:
    """Whether the sign is −, of zeros and NaNs too."""
    if x.tensor.dtype.is_integer:
        return b.emit(LessThan(), x, number(b, x, 0))
    wide = b.emit(DataTypeCast(F32), x) if x.tensor.dtype.bits == 16 else x
    return _signbit(b, wide)


def _signbit(b: Emitter, x: Value) -> Value:
    """The same of f32 and f64."""
    integers = I32 if x.tensor.dtype is F32 else I64
    bits = b.emit(Reinterpret(integers), b.emit(StopGradient(), x))
    return b.emit(LessThan(), bits, number(b, bits, 0))


def _choice(b: Emitter, condition: Value, like: Value, one: float, other: float) -> Value:
    """One of two numbers."""
    return b.emit(Select(), number(b, like, one), number(b, like, other), condition)


def _coefficient(k: int) -> float:
    """Of x²ᵏ in sin(πx) / (πx)."""
    return (-1.0 if k % 2 else 1.0) * math.pi ** (2 * k) / math.factorial(2 * k + 1)
