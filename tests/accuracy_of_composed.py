"""Elementwise functions of the language that are made of others: how far they may be from the truth.

Errors are those of `tests.accuracy`; with a slack, in units of that where it is more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nnkit as nk

from .accuracy import Array


@dataclass(frozen=True)
class Composed:
    """The bounds promised in f32 and f64, the function by NumPy, and the slack, by operands and the type's ε."""

    single: float
    double: float
    exact: Callable[..., Array]
    """Of doubles and extended doubles, but for `gelu` of doubles only."""
    slack: Callable[..., Array] | None = None
    domain: tuple[float, float] = (-50.0, 50.0)
    operands: int = 1

    def bound(self, type: type[np.floating[Any]]) -> float:
        return self.single if type is np.float32 else self.double


def _logistic(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _sinc(x: Array) -> Array:
    whole, pi = np.rint(x), np.arctan2(x.dtype.type(0), x.dtype.type(-1))
    sine = np.where(whole % 2 == 0, 1, -1) * np.sin(pi * (x - whole))
    sine = np.where(x - whole == 0, 0, sine)  # roots have the sign of x
    return np.asarray(np.where(x == 0, 1, sine / (pi * x)))


def _times(x: Array, factor: Array) -> Array:
    return np.asarray(np.where(x == -np.inf, -0.0, x * factor))


_erfc = nk.staged(nk.erfc)


def _below(x: Array) -> Array:
    """Φ of the normal distribution, by compiled code of doubles, which is held to quad precision elsewhere."""
    return np.asarray(_erfc(x * -np.sqrt(0.5))) / 2


def _mish(x: Array) -> Array:
    """tanh(log(1 + e)) = ((1 + e)² − 1) / ((1 + e)² + 1)"""
    e = np.exp(np.minimum(x, 40))
    above = e * (e + 2)
    return _times(x, above / (above + 2))


def _of_argument(x: Array, epsilon: float) -> Array:
    """What one unit in the last place of x moves gelu by, |x · gelu′(x)| · ε, and `_of_underflow`."""
    slope = _below(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    moved = np.asarray(np.where(np.abs(x) < 100, np.abs(x * slope) * epsilon, 0.0))
    return np.asarray(np.maximum(moved, _of_underflow(x, epsilon)))


def _of_underflow(x: Array, epsilon: float) -> Array:
    """x times the least float: the factor of x is subnormal, and rounded as such, before the product is."""
    least = 2.0**-149 if epsilon > 2.0**-30 else 2.0**-1074
    return np.asarray(np.where(x < 0, np.minimum(np.abs(x), 1000) * least, 0.0))


def _of_larger(x: Array, y: Array, epsilon: float) -> Array:
    """A unit in the last place of the larger operand, which cancels near the roots."""
    return np.asarray(np.maximum(np.abs(x), np.abs(y)) * epsilon)


COMPOSED: dict[str, Composed] = {
    "exp2": Composed(0.51, 1.2, np.exp2, domain=(-1100, 1050)),
    "log2": Composed(0.51, 1.9, np.log2, domain=(0, 100)),
    "log10": Composed(0.51, 1.9, np.log10, domain=(0, 100)),
    "cbrt": Composed(0.51, 1.0, np.cbrt),
    "sinc": Composed(0.51, 2.5, _sinc),
    "sigmoid": Composed(2, 2, _logistic),
    "softplus": Composed(2, 2, _softplus),
    "log_sigmoid": Composed(2, 2, lambda x: -_softplus(-x)),
    "silu": Composed(3, 3, lambda x: _times(x, _logistic(x)), _of_underflow, (-750, 50)),
    "mish": Composed(3.8, 3.8, _mish, _of_underflow, (-750, 50)),
    "gelu": Composed(3, 3, lambda x: _times(x, _below(x)), _of_argument, (-40, 10)),
    "hypot": Composed(2, 2, np.hypot, operands=2),
    "atan2": Composed(1.7, 2.3, np.arctan2, operands=2),
    "logaddexp": Composed(2, 2, np.logaddexp, _of_larger, operands=2),
}
"""By their names in the language."""
