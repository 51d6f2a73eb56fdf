"""Roots, powers, exponentials, logarithms, circular and hyperbolic functions of floats.

Outside its domain a function is NaN; nothing warns.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ..ir.instruction import Emitter, Value
from ..types import Array, Kind
from .arithmetic import Abs, Add, Divide, Multiply, Negate, Square, StrongMultiply, Subtract
from .comparison import And, Equal, GreaterThan, LessThan, Select
from .forms import DIVISION, POLYNOMIAL, SEVERAL_POLYNOMIALS, Elementwise, Partial
from .formulas import in_double, number, quietly
from .stop_gradient import StraightThrough


class FloatFunction(Elementwise):
    """An elementwise function of floats."""

    accepts: ClassVar[tuple[Kind, ...]] = ("float",)
    cost: ClassVar[int] = POLYNOMIAL


class Sqrt(FloatFunction):
    """√x; −0 at −0.  Its derivative at 0 is +∞."""

    name: ClassVar[str] = "sqrt"
    syntax: ClassVar[str] = "sqrt {x}"
    cost: ClassVar[int] = DIVISION

    def evaluate(self, x: Array) -> Array:
        return quietly(np.sqrt, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Divide(), number(b, x, 0.5), y),)


class Rsqrt(FloatFunction):
    """1/√x; +∞ at 0."""

    name: ClassVar[str] = "rsqrt"
    syntax: ClassVar[str] = "rsqrt {x}"
    cost: ClassVar[int] = DIVISION

    def evaluate(self, x: Array) -> Array:
        # one rounding, of half precision too
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        return quietly(np.divide, np.ones((), wide.dtype), quietly(np.sqrt, wide)).astype(x.dtype)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """−½ · y / x"""
        return (b.emit(Divide(), b.emit(Multiply(), y, number(b, x, -0.5)), x),)


class Exp(FloatFunction):
    """eˣ; +∞ where it overflows."""

    name: ClassVar[str] = "exp"
    syntax: ClassVar[str] = "exp {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.exp, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (y,)


class FlushedExp(Elementwise):
    """eˣ, but 0 for x below −700 of f64, or −80 of smaller floats: for what is added to a number of about 1.

    Its results, and what they are multiplied with next, are not subnormal: such a product takes some 150 cycles.
    """

    name: ClassVar[str] = "flushedExp"
    syntax: ClassVar[str] = "flushedExp {x}"
    accepts: ClassVar[tuple[Kind, ...]] = ("float",)
    cost: ClassVar[int] = POLYNOMIAL

    def evaluate(self, x: Array) -> Array:
        least = -700.0 if x.dtype == np.float64 else -80.0
        result = in_double(np.exp, x)
        result[x < least] = 0
        return result

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (y,)


class Expm1(FloatFunction):
    """eˣ − 1, accurate near 0."""

    name: ClassVar[str] = "expm1"
    syntax: ClassVar[str] = "expm1 {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.expm1, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """eˣ, and not y + 1, which has no correct digits for very negative x."""
        return (b.emit(Exp(), x),)


class Log(FloatFunction):
    """The natural logarithm; −∞ at 0."""

    name: ClassVar[str] = "log"
    syntax: ClassVar[str] = "log {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.log, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 / x, +∞ at both zeros; NaN below."""
        return (_reciprocal_from_zero(b, b.emit(Add(), x, number(b, x, 0))),)


class Log1p(FloatFunction):
    """ln(1 + x), accurate near 0."""

    name: ClassVar[str] = "log1p"
    syntax: ClassVar[str] = "log1p {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.log1p, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 / (1 + x), +∞ at −1; NaN below."""
        return (_reciprocal_from_zero(b, b.emit(Add(), x, number(b, x, 1))),)


class Power(FloatFunction):
    """uᵛ as C's `pow`: 1 when v is 0, NaN for a negative u and a v that is not whole.

    Of integers: a product that wraps around; for a negative v it is 1 / u⁻ᵛ rounded toward zero, that is
    ±1 when u is ±1, else 0, also when u is 0, as a quotient by 0 is.

    ∂/∂u = v · uᵛ⁻¹, which is 0 everywhere when v is 0.  ∂/∂v = uᵛ · ln u, at u = 0 taken as 0 for v ≥ 0.
    """

    name: ClassVar[str] = "power"
    verb: ClassVar[str] = "take the power of"
    syntax: ClassVar[str] = "power {u}, {v}"
    cost: ClassVar[int] = SEVERAL_POLYNOMIALS
    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer")

    def evaluate(self, u: Array, v: Array) -> Array:
        """NumPy takes a shortcut for one exponent, where (−∞)^½ is NaN: each gets its own."""
        if u.dtype.kind != "f":
            return quietly(_integer_power, u, v)
        shape = np.broadcast_shapes(u.shape, v.shape)
        exponents = np.array(np.broadcast_to(v, shape or (1,)), copy=True, order="C")
        return in_double(np.power, u, exponents).reshape(shape)

    def partials(self, b: Emitter, y: Value, u: Value, v: Value) -> tuple[Partial, ...]:
        return self._by_base(b, u, v), self._by_exponent(b, y, u, v)

    def _by_base(self, b: Emitter, u: Value, v: Value) -> Value:
        # 0 · ∞ where the limit is 0: 0 · 0⁻¹, and ±∞ · 0^∞ (or any number between −1 and 1)
        lowered = b.emit(Power(), u, b.emit(Subtract(), v, number(b, v, 1)))
        return b.emit(StrongMultiply(), v, lowered)

    def _by_exponent(self, b: Emitter, y: Value, u: Value, v: Value) -> Value:
        zero = number(b, u, 0)
        # 0 · ∞ where the limit is 0: 0ᵛ · −∞, and ∞ᵛ · ∞ for v < 0
        slope = b.emit(StrongMultiply(), y, b.emit(Log(), u))
        both = b.emit(And(), b.emit(Equal(), u, zero), b.emit(Equal(), v, zero))
        return b.emit(Select(), zero, slope, both)


class Sin(FloatFunction):
    """The sine; NaN at ±∞."""

    name: ClassVar[str] = "sin"
    syntax: ClassVar[str] = "sin {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.sin, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Cos(), x),)


class Cos(FloatFunction):
    """The cosine; NaN at ±∞."""

    name: ClassVar[str] = "cos"
    syntax: ClassVar[str] = "cos {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.cos, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Negate(), b.emit(Sin(), x)),)


class Tan(FloatFunction):
    """The tangent; NaN at ±∞."""

    name: ClassVar[str] = "tan"
    syntax: ClassVar[str] = "tan {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.tan, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Add(), b.emit(Square(), y), number(b, x, 1)),)


class Asin(FloatFunction):
    """The inverse sine, in [−π/2, π/2]."""

    name: ClassVar[str] = "asin"
    syntax: ClassVar[str] = "asin {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arcsin, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Rsqrt(), _one_minus_square(b, x)),)


class Acos(FloatFunction):
    """The inverse cosine, in [0, π]."""

    name: ClassVar[str] = "acos"
    syntax: ClassVar[str] = "acos {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arccos, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Negate(), b.emit(Rsqrt(), _one_minus_square(b, x))),)


class Atan(FloatFunction):
    """The inverse tangent, in [−π/2, π/2]."""

    name: ClassVar[str] = "atan"
    syntax: ClassVar[str] = "atan {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arctan, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 / (1 + x²); beyond 1 in the reciprocal of x, whose square does not overflow."""
        far, small = _far(b, x)
        square = b.emit(Square(), small)
        one = number(b, x, 1)
        return (b.emit(Divide(), b.emit(Select(), square, one, far), b.emit(Add(), square, one)),)


class Sinh(FloatFunction):
    """The hyperbolic sine."""

    name: ClassVar[str] = "sinh"
    syntax: ClassVar[str] = "sinh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.sinh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Cosh(), x),)


class Cosh(FloatFunction):
    """The hyperbolic cosine."""

    name: ClassVar[str] = "cosh"
    syntax: ClassVar[str] = "cosh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.cosh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Sinh(), x),)


class Tanh(FloatFunction):
    """The hyperbolic tangent."""

    name: ClassVar[str] = "tanh"
    syntax: ClassVar[str] = "tanh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.tanh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Subtract(), number(b, x, 1), b.emit(Square(), y)),)


class Asinh(FloatFunction):
    """The inverse hyperbolic sine."""

    name: ClassVar[str] = "asinh"
    syntax: ClassVar[str] = "asinh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arcsinh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 / √(1 + x²); beyond 1 in the reciprocal of x, whose square does not overflow."""
        far, small = _far(b, x)
        one = number(b, x, 1)
        root = b.emit(Rsqrt(), b.emit(Add(), b.emit(Square(), small), one))
        return (b.emit(Multiply(), root, b.emit(Select(), b.emit(Abs(), small), one, far)),)


class Acosh(FloatFunction):
    """The inverse hyperbolic cosine, ≥ 0; NaN below 1."""

    name: ClassVar[str] = "acosh"
    syntax: ClassVar[str] = "acosh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arccosh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1/√(x − 1) · 1/√(x + 1), NaN below 1; x² − 1 would overflow."""
        one = number(b, x, 1)
        roots = (b.emit(Rsqrt(), b.emit(op, x, one)) for op in (Subtract(), Add()))
        return (b.emit(Multiply(), *roots),)


class Atanh(FloatFunction):
    """The inverse hyperbolic tangent; ±∞ at ±1."""

    name: ClassVar[str] = "atanh"
    syntax: ClassVar[str] = "atanh {x}"

    def evaluate(self, x: Array) -> Array:
        return in_double(np.arctanh, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """1 / (1 − x²), +∞ at ±1; NaN beyond."""
        return (_reciprocal_from_zero(b, _one_minus_square(b, x)),)


def _reciprocal_from_zero(b: Emitter, x: Value) -> Value:
    """1 / x, NaN for x < 0.

    By way of the numerator, which is constant, so that further derivatives are NaN there too.
    """
    below = b.emit(LessThan(), x, number(b, x, 0))
    one = b.emit(Select(), number(b, x, math.nan), number(b, x, 1), below)
    return b.emit(Divide(), one, x)


def _one_minus_square(b: Emitter, x: Value) -> Value:
    """1 − x² as (1 − x)(1 + x), which loses no digits near ±1; differentiated as it stands, which loses none near 0."""
    one = number(b, x, 1)
    product = b.emit(Multiply(), b.emit(Subtract(), one, x), b.emit(Add(), one, x))
    return b.emit(StraightThrough(), product, b.emit(Subtract(), one, b.emit(Square(), x)))


def _far(b: Emitter, x: Value) -> tuple[Value, Value]:
    """Whether |x| > 1; and 1 / x there, else x itself."""
    one = number(b, x, 1)
    far = b.emit(GreaterThan(), b.emit(Abs(), x), one)
    return far, b.emit(Select(), b.emit(Divide(), one, x), x, far)


def _integer_power(u: Array, v: Array) -> Array:
    zero, one = (np.full((), n, u.dtype) for n in (0, 1))
    unit = np.where(v & one, u, one)
    reciprocal = np.where((u == one) | (u == -one), unit, zero)
    return np.where(v < zero, reciprocal, np.power(u, np.maximum(v, zero)))
