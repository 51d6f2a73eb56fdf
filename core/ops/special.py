"""The error function and the family of the gamma function.

NumPy has none of them, so they are evaluated element by element: erf is that of the C library; erfc, lgamma, digamma
and trigamma, which cancel in places, have many more digits on their way (`erfc_reference`, `gamma_reference`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..errors import DifferentiationError
from ..ir.instruction import Emitter, Value
from ..types import Array
from . import erfc_reference, gamma_reference
from .arithmetic import Multiply, Negate, Square
from .comparison import And, Equal, GreaterThan, LessThan, Select
from .forms import SEVERAL_POLYNOMIALS, Partial
from .formulas import number
from .rounding import Floor
from .transcendental import Exp, FloatFunction

VANISHED = 1000
"""e^(−1000) is 0 in every element type, which all hold this number: f64 ends at e^(−745.2), f16 holds up to 65504."""


class Erf(FloatFunction):
    """The error function, 2/√π ∫₀ˣ e^(−t²) dt."""

    name: ClassVar[str] = "erf"
    syntax: ClassVar[str] = "erf {x}"
    cost: ClassVar[int] = SEVERAL_POLYNOMIALS

    def evaluate(self, x: Array) -> Array:
        return _each(math.erf, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (_bell(b, x, 2 / math.sqrt(math.pi)),)


class Erfc(FloatFunction):
    """1 − erf(x), accurate where that vanishes."""

    name: ClassVar[str] = "erfc"
    syntax: ClassVar[str] = "erfc {x}"
    cost: ClassVar[int] = SEVERAL_POLYNOMIALS

    def evaluate(self, x: Array) -> Array:
        # of doubles the C library's may be off by more than three units
        return _each(erfc_reference.erfc if x.dtype == np.float64 else math.erfc, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (_bell(b, x, -2 / math.sqrt(math.pi)),)


class Lgamma(FloatFunction):
    """ln |Γ(x)|; +∞ at 0, −1, −2, … and at ±∞."""

    name: ClassVar[str] = "lgamma"
    syntax: ClassVar[str] = "lgamma {x}"
    cost: ClassVar[int] = 2 * SEVERAL_POLYNOMIALS

    def evaluate(self, x: Array) -> Array:
        return _each(gamma_reference.log_gamma, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Digamma(), x),)


class Digamma(FloatFunction):
    """ψ(x) = Γ′(x) / Γ(x); NaN at −1, −2, … and −∞, ∓∞ at ±0."""

    name: ClassVar[str] = "digamma"
    syntax: ClassVar[str] = "digamma {x}"
    cost: ClassVar[int] = 2 * SEVERAL_POLYNOMIALS

    def evaluate(self, x: Array) -> Array:
        return _each(gamma_reference.digamma, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        """ψ′(x), and NaN where ψ is, at the poles below 0."""
        pole = b.emit(
            And(), b.emit(LessThan(), x, number(b, x, 0)), b.emit(Equal(), x, b.emit(Floor(), x))
        )
        return (b.emit(Select(), number(b, x, math.nan), b.emit(Trigamma(), x), pole),)


class Trigamma(FloatFunction):
    """ψ′(x), the derivative of `digamma`; +∞ at 0, −1, −2, …; NaN at −∞."""

    name: ClassVar[str] = "trigamma"
    syntax: ClassVar[str] = "trigamma {x}"
    cost: ClassVar[int] = 2 * SEVERAL_POLYNOMIALS
    not_differentiable: ClassVar[str] = "the higher polygamma functions are not there"

    def evaluate(self, x: Array) -> Array:
        return _each(gamma_reference.trigamma, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        raise DifferentiationError(f"trigamma cannot be differentiated: {self.not_differentiable}")


def _bell(b: Emitter, x: Value, height: float) -> Value:
    """height · e^(−x²).

    The square is bounded where the exponential has vanished: without, a gradient of gelu takes a fifth longer
    (LLVM 22, AVX-512).
    """
    square, bound = b.emit(Square(), x), number(b, x, VANISHED)
    bounded = b.emit(Select(), bound, square, b.emit(GreaterThan(), square, bound))
    falling = b.emit(Exp(), b.emit(Negate(), bounded))
    return b.emit(Multiply(), falling, number(b, x, height))


def _each(function: Callable[[float], float], x: Array) -> Array:
    results = [function(value) for value in x.ravel().tolist()]
    with np.errstate(all="ignore"):
        return np.asarray(results, np.float64).astype(x.dtype).reshape(x.shape)
