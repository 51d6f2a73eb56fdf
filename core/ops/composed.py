"""Functions that are made of ops, written once for the text form's `builtin` and for the typed language.

Each is a rule `(b, x, …) → value` that emits the ops.  All avoid overflow where the result does not; 16-bit floats are
computed as f32, since their squares and sums overflow and their errors add up.  `axes` are those along which elements
are combined, in order; with `keepdims` they stay, with extent 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

from ..ir.instruction import Emitter, Value
from ..types import F32
from .arithmetic import Add, Divide, Multiply, Negate, Square, Subtract
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, GreaterThan, LessThan, Select
from .formulas import number
from .movement import PadShape, SqueezeShape
from .reduction import Reduce
from .special import Erfc
from .stop_gradient import StopGradient, StraightThrough
from .transcendental import Exp, FlushedExp, Log, Log1p, Rsqrt, Sqrt, Tanh

_P = ParamSpec("_P")

_LOGISTIC_ENDS = 800
"""From here on e⁻ˣ is 0 in every element type: f64 ends at e^(−745.2)."""

_NORMAL_ENDS = 40
"""From here on Φ(−x) is 0 in every element type: f64 ends where erfc does, at x / √2 = 27.3."""


def _in_f32(
    rule: Callable[Concatenate[Emitter, Value, _P], Value],
) -> Callable[Concatenate[Emitter, Value, _P], Value]:
    """The rule, with its operand widened to f32 and its result narrowed where that is f16 or bf16."""

    @wraps(rule)
    def wide(b: Emitter, x: Value, /, *args: _P.args, **kwargs: _P.kwargs) -> Value:
        dtype = x.tensor.dtype
        if not dtype.is_float or dtype.bits != 16:
            return rule(b, x, *args, **kwargs)
        result = rule(b, b.emit(DataTypeCast(F32), x), *args, **kwargs)
        return b.emit(DataTypeCast(dtype), result)

    return wide


@_in_f32
def sigmoid(b: Emitter, x: Value) -> Value:
    """1 / (1 + e⁻ˣ); for negative x eˣ − eˣ · (eˣ / (1 + eˣ)), whose rounding errors count less than the quotient's."""
    negated, is_negative = b.emit(Negate(), x), b.emit(LessThan(), x, number(b, x, 0))
    small = b.emit(Exp(), b.emit(Select(), x, negated, is_negative))
    one = number(b, x, 1)
    part = b.emit(Divide(), one, b.emit(Add(), small, one))
    product = b.emit(Multiply(), small, part)
    lower = b.emit(Subtract(), small, b.emit(Multiply(), small, product))
    # 1 − part has the same derivatives, by part² and e⁻ˡˣˡ alone
    lower = b.emit(StraightThrough(), lower, b.emit(Subtract(), one, part))
    return b.emit(Select(), lower, part, is_negative)


@_in_f32
def softplus(b: Emitter, x: Value) -> Value:
    """log(1 + eˣ) as max(x, 0) + log(1 + e⁻ˡˣˡ), by choices: |x| and a maximum would have derivatives of kinks at 0."""
    zero = number(b, x, 0)
    above = b.emit(GreaterThan(), x, zero)
    top = b.emit(Select(), x, zero, above)
    small = b.emit(Exp(), b.emit(Select(), b.emit(Negate(), x), x, above))
    return b.emit(Add(), top, b.emit(Log1p(), small))


@_in_f32
def silu(b: Emitter, x: Value) -> Value:
    """x · sigmoid(x)."""
    bounded = _not_below(b, x, _LOGISTIC_ENDS)
    return b.emit(Multiply(), bounded, sigmoid(b, _not_above(b, bounded, _LOGISTIC_ENDS)))


@_in_f32
def gelu(b: Emitter, x: Value) -> Value:
    """x · Φ(x) with Φ of the normal distribution, by erfc, which has all its digits where Φ vanishes."""
    bounded = _not_below(b, x, _NORMAL_ENDS)
    half = b.emit(Multiply(), bounded, number(b, x, 0.5))
    inside = _not_above(b, bounded, _NORMAL_ENDS)
    scaled = b.emit(Multiply(), inside, number(b, x, -math.sqrt(0.5)))
    return b.emit(Multiply(), half, b.emit(Erfc(), scaled))


@_in_f32
def mish(b: Emitter, x: Value) -> Value:
    """x · tanh(softplus(x))."""
    bounded = _not_below(b, x, _LOGISTIC_ENDS)
    inside = _not_above(b, bounded, _LOGISTIC_ENDS)
    return b.emit(Multiply(), bounded, b.emit(Tanh(), softplus(b, inside)))


def logaddexp(b: Emitter, x: Value, y: Value) -> Value:
    """log(eˣ + eʸ); −∞ (with derivative 0) where both are −∞."""
    above = b.emit(GreaterThan(), x, y)
    top, least = b.emit(Select(), x, y, above), b.emit(Select(), y, x, above)
    small = b.emit(Exp(), _difference(b, least, top))
    value = b.emit(Add(), top, b.emit(Log1p(), small))
    nothing = number(b, x, -math.inf)
    return b.emit(Select(), nothing, value, b.emit(Equal(), value, nothing))


@_in_f32
def softmax(b: Emitter, x: Value, axes: Sequence[int]) -> Value:
    """exp(x) / Σ exp(x)."""
    powers = b.emit(Exp(), _shifted(b, x, axes))
    return b.emit(Divide(), powers, _reduced(b, Combinator.ADD, powers, axes, True))


@_in_f32
def log_softmax(b: Emitter, x: Value, axes: Sequence[int]) -> Value:
    """log softmax(x)."""
    shifted = _shifted(b, x, axes)
    total = _reduced(b, Combinator.ADD, b.emit(FlushedExp(), shifted), axes, True)
    return b.emit(Subtract(), shifted, b.emit(Log(), total))


@_in_f32
def log_sum_exp(b: Emitter, x: Value, axes: Sequence[int], keepdims: bool = False) -> Value:
    """log Σ exp(x), shifted by the maximum; −∞ (with derivative 0) where all elements are −∞."""
    top = b.emit(StopGradient(), _reduced(b, Combinator.MAX, x, axes, True))
    nothing = number(b, x, -math.inf)
    is_nothing = b.emit(Equal(), top, nothing)
    shift = b.emit(Select(), number(b, x, 0), top, is_nothing)
    powers = b.emit(FlushedExp(), _difference(b, x, shift))
    total = _reduced(b, Combinator.ADD, powers, axes, True)
    logarithm = b.emit(Log(), b.emit(Select(), number(b, x, 1), total, is_nothing))
    value = b.emit(Select(), nothing, b.emit(Add(), logarithm, shift), is_nothing)
    for axis in () if keepdims else reversed(axes):
        value = b.emit(SqueezeShape(axis), value)
    return value


@_in_f32
def mean(b: Emitter, x: Value, axes: Sequence[int], keepdims: bool = False) -> Value:
    """Arithmetic mean; NaN of none."""
    count = math.prod(x.tensor.shape[axis] for axis in axes)
    return b.emit(Divide(), _reduced(b, Combinator.ADD, x, axes, keepdims), number(b, x, count))


@_in_f32
def variance(
    b: Emitter, x: Value, axes: Sequence[int], keepdims: bool = False, ddof: float = 0
) -> Value:
    """The sum of squared distances from the mean, over the number of elements less `ddof`; NaN of none."""
    distance = b.emit(Subtract(), x, mean(b, x, axes, True))
    total = _reduced(b, Combinator.ADD, b.emit(Square(), distance), axes, keepdims)
    count = math.prod(x.tensor.shape[axis] for axis in axes)
    return b.emit(Divide(), total, number(b, x, max(count - ddof, 0)))


@_in_f32
def standard_deviation(
    b: Emitter, x: Value, axes: Sequence[int], keepdims: bool = False, ddof: float = 0
) -> Value:
    """The root of the variance, with the derivative 0 where all elements are equal."""
    square = variance(b, x, axes, keepdims, ddof)
    zero = number(b, x, 0)
    is_zero = b.emit(Equal(), square, zero)
    root = b.emit(Sqrt(), b.emit(Select(), number(b, x, 1), square, is_zero))
    return b.emit(Select(), zero, root, is_zero)


@_in_f32
def norm(b: Emitter, x: Value, axes: Sequence[int], keepdims: bool = False) -> Value:
    """√Σx², with the derivative 0 at the zero vector, and ±1 by an element that is ±∞."""
    total = _reduced(b, Combinator.ADD, b.emit(Square(), x), axes, keepdims)
    zero = number(b, x, 0)
    is_zero = b.emit(Equal(), total, zero)
    root = b.emit(Sqrt(), b.emit(Select(), number(b, x, 1), total, is_zero))
    root = b.emit(Select(), zero, root, is_zero)
    low, high = number(b, x, -math.inf), number(b, x, math.inf)
    ends = b.emit(Select(), b.emit(Negate(), x), zero, b.emit(Equal(), x, low))
    ends = b.emit(Select(), x, ends, b.emit(Equal(), x, high))
    far = _reduced(b, Combinator.ADD, ends, axes, keepdims)
    is_far = b.emit(Equal(), total, high)
    return b.emit(StraightThrough(), root, b.emit(Select(), far, root, is_far))


@_in_f32
def standardized(b: Emitter, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x − mean) / √(variance + ε)."""
    centered = b.emit(Subtract(), x, mean(b, x, axes, True))
    spread = mean(b, b.emit(Square(), centered), axes, True)
    scale = b.emit(Rsqrt(), b.emit(Add(), spread, number(b, x, epsilon)))
    return b.emit(Multiply(), centered, scale)


def _not_below(b: Emitter, x: Value, end: float) -> Value:
    """max(x, −end), for x · f(x) with f 0 below: its product with −∞ would be NaN."""
    low = number(b, x, -end)
    return b.emit(Select(), low, x, b.emit(LessThan(), x, low))


def _not_above(b: Emitter, x: Value, end: float) -> Value:
    """min(x, end), for f(x) that is 1 above: the derivative at ∞ would be NaN."""
    high = number(b, x, end)
    return b.emit(Select(), high, x, b.emit(GreaterThan(), x, high))


def _reduced(
    b: Emitter, combinator: Combinator, x: Value, axes: Sequence[int], keepdims: bool
) -> Value:
    result = b.emit(Reduce(combinator, tuple(axes)), x)
    for axis in axes if keepdims else ():
        result = b.emit(PadShape(axis), result)
    return result


def _shifted(b: Emitter, x: Value, axes: Sequence[int]) -> Value:
    """x − max x, the maximum counting as a constant, which is right as it cancels."""
    top = b.emit(StopGradient(), _reduced(b, Combinator.MAX, x, axes, True))
    return b.emit(Subtract(), x, top)


def _difference(b: Emitter, x: Value, y: Value) -> Value:
    """x − y, and 0 where they are equal, infinite or not."""
    difference = b.emit(Subtract(), x, y)
    gap = b.emit(Select(), number(b, x, 0), difference, b.emit(Equal(), x, y))
    return b.emit(StraightThrough(), gap, difference)
