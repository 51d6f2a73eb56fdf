"""The error function and the family of the gamma function.

NumPy has none of them: erf, erfc and lgamma are those of the C library, element by element; digamma and
trigamma are summed here in float64:
1. reflected at x ≤ 0: ψ(x) = ψ(1 − x) − π · cot πx, ψ′(x) = (π / sin πx)² − ψ′(1 − x);
2. raised to x ≥ 10 by ψ(x) = ψ(x + 1) − 1/x, ψ′(x) = ψ′(x + 1) + 1/x²;
3. summed there by the asymptotic series.  Source: Abramowitz & Stegun 1964, 6.3.18 and 6.4.12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..errors import DifferentiationError
from ..ir.graph import Emitter, Value
from ..types import Array
from .arithmetic import Multiply, Negate, Square
from .forms import Partial
from .formulas import number
from .transcendental import Exp, FloatFunction

_RAISED_TO = 10
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""B₂, B₄, … B₁₆."""


class Erf(FloatFunction):
    """The error function, 2/√π ∫₀ˣ e^(−t²) dt."""

    name: ClassVar[str] = "erf"
    syntax: ClassVar[str] = "erf {x}"

    def evaluate(self, x: Array) -> Array:
        return _each(math.erf, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (_bell(b, x, 2 / math.sqrt(math.pi)),)


class Erfc(FloatFunction):
    """1 − erf(x), accurate where that vanishes."""

    name: ClassVar[str] = "erfc"
    syntax: ClassVar[str] = "erfc {x}"

    def evaluate(self, x: Array) -> Array:
        return _each(math.erfc, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (_bell(b, x, -2 / math.sqrt(math.pi)),)


class Lgamma(FloatFunction):
    """ln |Γ(x)|; +∞ at 0, −1, −2, … and at ±∞."""

    name: ClassVar[str] = "lgamma"
    syntax: ClassVar[str] = "lgamma {x}"

    def evaluate(self, x: Array) -> Array:
        return _each(_lgamma, x)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Digamma(), x),)


class Digamma(FloatFunction):
    """ψ(x) = Γ′(x) / Γ(x); NaN at −1, −2, … and −∞, ∓∞ at ±0."""

    name: ClassVar[str] = "digamma"
    syntax: ClassVar[str] = "digamma {x}"

    def evaluate(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = np.asarray(x, np.float64)
            turned = math.pi / np.tan(math.pi * (wide - np.rint(wide)))
            pole = (wide <= 0) & (wide == np.rint(wide))
            psi = np.where(wide > 0, _psi(wide), _psi(1 - wide) - turned)
            at_pole = np.where(wide == 0, np.copysign(math.inf, -wide), math.nan)
            return np.where(pole, at_pole, psi).astype(x.dtype)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        return (b.emit(Trigamma(), x),)


class Trigamma(FloatFunction):
    """ψ′(x), the derivative of `digamma`; +∞ at 0, −1, −2, …; NaN at −∞."""

    name: ClassVar[str] = "trigamma"
    syntax: ClassVar[str] = "trigamma {x}"
    not_differentiable: ClassVar[str] = "the higher polygamma functions are not there"

    def evaluate(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = np.asarray(x, np.float64)
            turned = np.square(math.pi / np.sin(math.pi * (wide - np.rint(wide))))
            psi = np.where(wide > 0, _psi_prime(wide), turned - _psi_prime(1 - wide))
            return np.where(
                (wide <= 0) & (wide == np.rint(wide)) & np.isfinite(wide), math.inf, psi
            ).astype(x.dtype)

    def partials(self, b: Emitter, y: Value, x: Value) -> tuple[Partial, ...]:
        raise DifferentiationError(f"trigamma cannot be differentiated: {self.not_differentiable}")


def _bell(b: Emitter, x: Value, height: float) -> Value:
    """height · e^(−x²)."""
    falling = b.emit(Exp(), b.emit(Negate(), b.emit(Square(), x)))
    return b.emit(Multiply(), falling, number(b, x, height))


def _each(function: Callable[[float], float], x: Array) -> Array:
    results = [function(value) for value in x.ravel().tolist()]
    with np.errstate(all="ignore"):
        return np.asarray(results, np.float64).astype(x.dtype).reshape(x.shape)


def _lgamma(x: float) -> float:
    if x <= 0 and (math.isinf(x) or x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _psi(x: Array) -> Array:
    """ψ(x) for x > 0."""
    total = np.zeros_like(x)
    for _ in range(_RAISED_TO):
        total, x = total - np.where(x < _RAISED_TO, 1 / x, 0), np.where(x < _RAISED_TO, x + 1, x)
    series = sum(bernoulli / (2 * k * x ** (2 * k)) for k, bernoulli in enumerate(_BERNOULLI, 1))
    return np.asarray(total + np.log(x) - 0.5 / x - series)


def _psi_prime(x: Array) -> Array:
    """ψ′(x) for x > 0."""
    total = np.zeros_like(x)
    for _ in range(_RAISED_TO):
        total = total + np.where(x < _RAISED_TO, 1 / np.square(x), 0)
        x = np.where(x < _RAISED_TO, x + 1, x)
    series = sum(bernoulli / x ** (2 * k + 1) for k, bernoulli in enumerate(_BERNOULLI, 1))
    return np.asarray(total + 1 / x + 0.5 / np.square(x) + series)
