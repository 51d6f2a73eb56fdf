"""Arithmetic, elementwise: what a processor does in an instruction or a few.

Integers wrap around silently.  A derivative at a kink is written in the docstring of the op.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..ir.instruction import Emitter, Value
from ..types import Array, IntegerRange, Kind, KnownRanges
from .comparison import Equal, GreaterThan, GreaterThanOrEqual, LessThanOrEqual, NotEqual, Select
from .extrema import MAXIMUM, MINIMUM
from .forms import ADDITION, DIVISION, Elementwise, Partial
from .formulas import number, quietly
from .literal import number_of
from .rounding import Rint
from .stop_gradient import StopGradient


class Negate(Elementwise):
    """−x; flips the sign of zero and NaN too."""

    name: ClassVar[str] = "negate"
    syntax: ClassVar[str] = "negate {x}"
    of_integers: ClassVar[Callable[..., int] | None] = int.__neg__
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, x: Array) -> Array:
        return quietly(np.negative, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (-1.0,)


class Abs(Elementwise):
    """|x|; the least integer stays itself.  Its derivative at 0 is 0."""

    name: ClassVar[str] = "abs"
    syntax: ClassVar[str] = "abs {x}"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, x: Array) -> Array:
        return quietly(np.absolute, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Sign(), x),)


class Sign(Elementwise):
    """−1, 0 or 1; NaN of NaN.  Its derivative is 0, also at the jump."""

    name: ClassVar[str] = "sign"
    syntax: ClassVar[str] = "sign {x}"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, x: Array) -> Array:
        return quietly(np.sign, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (None,)


class Square(Elementwise):
    """x²."""

    name: ClassVar[str] = "square"
    syntax: ClassVar[str] = "square {x}"
    cost: ClassVar[int] = ADDITION

    def evaluate(self, x: Array) -> Array:
        return quietly(np.multiply, x, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Multiply(), x, number(b, x, 2)),)


class Add(Elementwise):
    """u + v."""

    name: ClassVar[str] = "add"
    syntax: ClassVar[str] = "add {u}, {v}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.add
    commutes: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.add, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return 1.0, 1.0


class Subtract(Elementwise):
    """u − v."""

    name: ClassVar[str] = "subtract"
    syntax: ClassVar[str] = "subtract {u}, {v}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.sub
    cost: ClassVar[int] = ADDITION

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.subtract, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return 1.0, -1.0


class Multiply(Elementwise):
    """u · v."""

    name: ClassVar[str] = "multiply"
    syntax: ClassVar[str] = "multiply {u}, {v}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.mul
    commutes: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.multiply, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return v, u


class StrongMultiply(Elementwise):
    """u · v, and 0 where a factor is 0, though the other be infinite or NaN: the product of the chain rule.

    A derivative that is 0 stays so whatever it meets: what does not depend on x has no derivative by x, and an
    infinite slope further on makes none.  In both factors alike, so that forward mode, reverse mode and all
    orders, which multiply the same factors in different orders, agree.
    Source: the strong zero of Julia, where false · Inf is 0, and of Enzyme's `-enzyme-strong-zero`.
    """

    name: ClassVar[str] = "strongMultiply"
    verb: ClassVar[str] = "multiply"
    syntax: ClassVar[str] = "strongMultiply {u}, {v}"
    accepts: ClassVar[tuple[Kind, ...]] = ("float",)
    cost: ClassVar[int] = 3 * ADDITION
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        product = quietly(np.multiply, u, v)
        return np.where((u == 0) | (v == 0), np.zeros((), product.dtype), product)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return v, u


class Divide(Elementwise):
    """u / v; integers as `truncateDivide`."""

    name: ClassVar[str] = "divide"
    syntax: ClassVar[str] = "divide {u}, {v}"
    cost: ClassVar[int] = DIVISION
    is_quotient: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return quietly(np.divide if u.dtype.kind == "f" else _truncated_quotient, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        if number_of(u) == 1:  # y is 1 / v itself, and needs no other quotient
            return y, b.emit(Negate(), b.emit(Square(), y))
        by_v = b.emit(Negate(), b.emit(self, y, v))
        return b.emit(self, number(b, v, 1), v), by_v


class TruncateDivide(Elementwise):
    """u / v rounded toward zero.

    Of integers: 0 when v is 0, and the least integer by −1 is itself.  Of floats: trunc(u / v), with
    the derivative 0.
    """

    name: ClassVar[str] = "truncateDivide"
    verb: ClassVar[str] = "divide"
    syntax: ClassVar[str] = "truncateDivide {u}, {v}"
    cost: ClassVar[int] = DIVISION

    def evaluate(self, u: Array, v: Array) -> Array:
        if u.dtype.kind == "f":
            return quietly(np.trunc, quietly(np.divide, u, v))
        return quietly(_truncated_quotient, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return None, None


class FloorDivide(Elementwise):
    """u / v rounded toward −∞.

    Of integers: 0 when v is 0, and the least integer by −1 is itself.  Of floats: floor(u / v), with
    the derivative 0.
    """

    name: ClassVar[str] = "floorDivide"
    verb: ClassVar[str] = "divide"
    syntax: ClassVar[str] = "floorDivide {u}, {v}"
    cost: ClassVar[int] = DIVISION

    def evaluate(self, u: Array, v: Array) -> Array:
        if u.dtype.kind == "f":
            return quietly(np.floor, quietly(np.divide, u, v))
        return quietly(_floored_quotient, u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return None, None


class Modulo(Elementwise):
    """u − v · ⌊u / v⌋: the remainder with the sign of v, as Python's `%`.

    Of integers: 0 when v is 0.  Of floats: exact, NaN when v is 0.
    """

    name: ClassVar[str] = "modulo"
    verb: ClassVar[str] = "take the remainder of"
    syntax: ClassVar[str] = "modulo {u}, {v}"
    cost: ClassVar[int] = DIVISION

    def evaluate(self, u: Array, v: Array) -> Array:
        if u.dtype.kind == "f":
            return quietly(np.remainder, u, v)
        remainder = quietly(np.remainder, u, _divisor(v))
        return np.where(v == 0, np.zeros((), u.dtype), remainder)

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        u, v = ranges
        if v is None or v[0] <= 0:
            return None
        return u if u is not None and 0 <= u[0] and u[1] < v[0] else (0, v[1] - 1)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        """1 and −⌊u / v⌋, which is y / v − u / v but for rounding; NaN where the remainder is."""
        missing, nan = b.emit(NotEqual(), y, y), number(b, y, math.nan)
        # the quotient alone may have been rounded up to the next integer; y is v where both are infinite
        part = b.emit(Select(), number(b, y, 1), b.emit(Divide(), y, v), b.emit(Equal(), y, v))
        steps = b.emit(Rint(), b.emit(Subtract(), part, b.emit(Divide(), u, v)))
        return (
            b.emit(Select(), nan, number(b, y, 1), missing),
            b.emit(Select(), nan, steps, missing),
        )


class Minimum(Elementwise):
    """The lesser of u and v: NaN when either is, and −0 < +0.  At a tie each has the derivative 1/2.

    Zeros tie, whatever their signs.  Source: IEEE 754-2019, §9.6, minimum.
    """

    name: ClassVar[str] = "min"
    verb: ClassVar[str] = "take the minimum of"
    syntax: ClassVar[str] = "min {u}, {v}"
    of_integers: ClassVar[Callable[..., int] | None] = min
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return MINIMUM(u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return _shares(b, v, u)


class Maximum(Elementwise):
    """The greater of u and v: NaN when either is, and −0 < +0.  At a tie each has the derivative 1/2.

    Zeros tie, whatever their signs.  Source: IEEE 754-2019, §9.6, maximum.
    """

    name: ClassVar[str] = "max"
    verb: ClassVar[str] = "take the maximum of"
    syntax: ClassVar[str] = "max {u}, {v}"
    of_integers: ClassVar[Callable[..., int] | None] = max
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION
    commutes: ClassVar[bool] = True

    def evaluate(self, u: Array, v: Array) -> Array:
        return MAXIMUM(u, v)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return _shares(b, u, v)


class Relu(Elementwise):
    """0 where x ≤ 0, else x, so NaN of NaN.  Its derivative at 0 is 0.

    An op of its own for that derivative: a choice between 0 and x has the derivative 1 where NaN is chosen, and
    a maximum has ½ at 0.
    """

    name: ClassVar[str] = "relu"
    syntax: ClassVar[str] = "relu {x}"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def evaluate(self, x: Array) -> Array:
        return np.where(x <= 0, np.zeros((), x.dtype), x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 where y > 0, else y itself, which is 0 or NaN there."""
        above = b.emit(GreaterThan(), y, number(b, y, 0))
        return (b.emit(Select(), number(b, y, 1), b.emit(StopGradient(), y), above),)


def _shares(b: Emitter, u: Value, v: Value) -> tuple[Value, Value]:
    """1 and 0 if u > v, 0 and 1 if u < v, 1/2 for both at a tie, NaN for both if one is NaN."""
    one, half, zero, nan = (number(b, u, n) for n in (1, 0.5, 0, math.nan))
    above, below = b.emit(GreaterThanOrEqual(), u, v), b.emit(LessThanOrEqual(), u, v)

    def share(of_u: Value, of_v: Value) -> Value:
        """`of_u` where u is greater, `of_v` where v is."""
        at_least = b.emit(Select(), half, of_u, below)
        return b.emit(Select(), at_least, b.emit(Select(), of_v, nan, below), above)

    return share(one, zero), share(zero, one)


def _divisor(v: Array) -> Array:
    return np.where(v == 0, np.ones((), v.dtype), v)


def _floored_quotient(u: Array, v: Array) -> Array:
    return np.where(v == 0, np.zeros((), u.dtype), np.floor_divide(u, _divisor(v)))


def _truncated_quotient(u: Array, v: Array) -> Array:
    floored, remainder = _floored_quotient(u, v), np.remainder(u, _divisor(v))
    inexact_below_zero = (remainder != 0) & ((u < 0) != (v < 0)) & (v != 0)
    return np.where(inexact_below_zero, floored + np.ones((), u.dtype), floored)
