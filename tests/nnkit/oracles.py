"""First, second and third derivatives of the elementwise functions by mpmath, and where they are defined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import mpmath
import numpy as np

import nnkit as nk
from nnkit.core.types import Array

PRECISION: Final = 300
"""Bits of mpmath's numbers: enough for 1 + x² and the like to have all digits of a result."""

mp: Any = mpmath.mp


@dataclass(frozen=True)
class Oracle:
    """A function and its derivatives of orders 1, 2, 3 …; `low` and `high` are the ends of its domain."""

    function: Callable[[Any], Any]
    orders: tuple[Callable[[Any], Any], ...]
    low: float = -np.inf
    high: float = np.inf
    relative: bool = True
    """Whether derivatives are as accurate as they can be; else as those of order 1 are where largest."""

    @property
    def known(self) -> int:
        """How many orders have a bound, which is by the next one."""
        return len(self.orders) - 1


def exact(function: Callable[[Any], Any], x: Array) -> Array:
    """`function` at every element, an object array of mpmath's numbers."""
    with mpmath.workprec(PRECISION):
        return np.array([function(mp.mpf(float(element))) for element in x], object)


FAR: Final = 100_000
"""Where exponentials have left every element type, and mpmath would still count their digits."""


def _exp(x: Any) -> Any:
    return mp.exp(max(-FAR, min(x, FAR)))


def repeated(function: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    return (function,) * 3


def _of_square(
    sign: int, offset: int, *orders: Callable[[Any, Any], Any]
) -> tuple[Callable[[Any], Any], ...]:
    """Functions of x and w = offset + sign · x²."""
    return tuple(lambda x, order=order: order(x, offset + sign * x * x) for order in orders)


def _of_power(exponent: Any) -> tuple[Callable[[Any], Any], ...]:
    found, factor = [], mp.mpf(1)
    for order in range(3):
        factor *= exponent - order
        found.append(lambda x, n=exponent - order - 1, c=factor: c * x**n)
    return tuple(found)


def _bell(factor: float) -> tuple[Callable[[Any], Any], ...]:
    def height(x: Any) -> Any:
        return factor * _exp(-x * x) / mp.sqrt(mp.pi)

    return height, lambda x: -2 * x * height(x), lambda x: (4 * x * x - 2) * height(x)


def _logistic(x: Any) -> tuple[Any, Any]:
    """p = 1 / (1 + e⁻ˣ) and 1 − p."""
    return 1 / (1 + _exp(-x)), 1 / (1 + _exp(x))


def _of_logistic(*orders: Callable[[Any, Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    return tuple(lambda x, order=order: order(*_logistic(x)) for order in orders)


def _normal(x: Any) -> Any:
    return _exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _below(x: Any) -> Any:
    """Φ(x), also for numbers that mpmath takes for too large."""
    return mp.mpf(x > 0) if abs(x) > 1000 else mp.ncdf(x)


def _psi(order: int) -> Callable[[Any], Any]:
    return lambda x: mp.psi(order, x)


def _sech(x: Any) -> Any:
    return 1 / mp.cosh(x) ** 2


_ROOT = (
    lambda x, w: 1 / mp.sqrt(w),
    lambda x, w: x / mp.sqrt(w) ** 3,
    lambda x, w: (1 + 2 * x * x) / mp.sqrt(w) ** 5,
)

SMOOTH: Final[Mapping[str, Oracle]] = {
    "negate": Oracle(nk.negate, (lambda x: -1, lambda x: 0, lambda x: 0)),
    "square": Oracle(nk.square, (lambda x: 2 * x, lambda x: 2, lambda x: 0)),
    "abs": Oracle(nk.abs, (mp.sign, lambda x: 0, lambda x: 0)),
    "relu": Oracle(nk.relu, (lambda x: x > 0, lambda x: 0, lambda x: 0)),
    "sqrt": Oracle(nk.sqrt, _of_power(mp.mpf(1) / 2), 0),
    "rsqrt": Oracle(nk.rsqrt, _of_power(-mp.mpf(1) / 2), 0),
    "exp": Oracle(nk.exp, repeated(_exp)),
    "expm1": Oracle(nk.expm1, repeated(_exp)),
    "log": Oracle(nk.log, (lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3), 0),
    "log1p": Oracle(
        nk.log1p,
        (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, lambda x: 2 / (1 + x) ** 3),
        -1,
    ),
    "sin": Oracle(nk.sin, (mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x))),
    "cos": Oracle(nk.cos, (lambda x: -mp.sin(x), lambda x: -mp.cos(x), mp.sin)),
    "tan": Oracle(
        nk.tan,
        (
            lambda x: 1 + mp.tan(x) ** 2,
            lambda x: 2 * mp.tan(x) * (1 + mp.tan(x) ** 2),
            lambda x: (2 + 6 * mp.tan(x) ** 2) * (1 + mp.tan(x) ** 2),
        ),
    ),
    "asin": Oracle(nk.asin, _of_square(-1, 1, *_ROOT), -1, 1),
    "acos": Oracle(
        nk.acos,
        _of_square(-1, 1, *(lambda x, w, f=f: -f(x, w) for f in _ROOT)),
        -1,
        1,
    ),
    "atan": Oracle(
        nk.atan,
        _of_square(
            1,
            1,
            lambda x, w: 1 / w,
            lambda x, w: -2 * x / w**2,
            lambda x, w: (6 * x * x - 2) / w**3,
        ),
    ),
    "sinh": Oracle(nk.sinh, (mp.cosh, mp.sinh, mp.cosh)),
    "cosh": Oracle(nk.cosh, (mp.sinh, mp.cosh, mp.sinh)),
    "tanh": Oracle(
        nk.tanh,
        (
            _sech,
            lambda x: -2 * mp.tanh(x) * _sech(x),
            lambda x: (4 * mp.tanh(x) ** 2 - 2 * _sech(x)) * _sech(x),
        ),
        relative=False,
    ),
    "asinh": Oracle(
        nk.asinh,
        _of_square(
            1,
            1,
            lambda x, w: 1 / mp.sqrt(w),
            lambda x, w: -x / mp.sqrt(w) ** 3,
            lambda x, w: (2 * x * x - 1) / mp.sqrt(w) ** 5,
        ),
    ),
    "acosh": Oracle(
        nk.acosh,
        _of_square(
            1,
            -1,
            lambda x, w: 1 / mp.sqrt(w),
            lambda x, w: -x / mp.sqrt(w) ** 3,
            lambda x, w: (2 * x * x + 1) / mp.sqrt(w) ** 5,
        ),
        1,
    ),
    "atanh": Oracle(
        nk.atanh,
        _of_square(
            -1,
            1,
            lambda x, w: 1 / w,
            lambda x, w: 2 * x / w**2,
            lambda x, w: (6 * x * x + 2) / w**3,
        ),
        -1,
        1,
    ),
    "erf": Oracle(nk.erf, _bell(2)),
    "erfc": Oracle(nk.erfc, _bell(-2)),
    "lgamma": Oracle(nk.lgamma, (_psi(0), _psi(1), _psi(2)), 0),
    "digamma": Oracle(nk.digamma, (_psi(1), _psi(2)), 0),
    "sigmoid": Oracle(
        nk.sigmoid,
        _of_logistic(
            lambda p, q: p * q, lambda p, q: p * q * (q - p), lambda p, q: p * q * (1 - 6 * p * q)
        ),
    ),
    "softplus": Oracle(
        nk.softplus,
        _of_logistic(lambda p, q: p, lambda p, q: p * q, lambda p, q: p * q * (q - p)),
    ),
    "gelu": Oracle(
        nk.gelu,
        (
            lambda x: _below(x) + x * _normal(x),
            lambda x: (2 - x * x) * _normal(x),
            lambda x: (x**3 - 4 * x) * _normal(x),
        ),
    ),
    "x ** 2.5": Oracle(lambda x: x**2.5, _of_power(mp.mpf(2.5)), 0),
    "x ** -1.5": Oracle(lambda x: x**-1.5, _of_power(mp.mpf(-1.5)), 0),
    "2 ** x": Oracle(
        lambda x: 2.0**x,
        tuple(lambda x, n=n: _exp(x * mp.ln(2)) * mp.ln(2) ** n for n in (1, 2, 3)),
    ),
    "1 / x": Oracle(
        lambda x: 1.0 / x, (lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4)
    ),
    "logaddexp": Oracle(
        lambda x: nk.logaddexp(x, 0.5),
        tuple(
            lambda x, order=order: order(*_logistic(x - mp.mpf(0.5)))
            for order in (
                lambda p, q: p,
                lambda p, q: p * q,
                lambda p, q: p * q * (q - p),
            )
        ),
    ),
}
"""By name; functions of two operands are here as those of one."""
