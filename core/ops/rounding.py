"""Rounding to whole numbers.  Piecewise constant: the derivative is 0, also at the jumps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..ir.instruction import Emitter, Value
from ..types import Array, Kind
from .forms import ADDITION, Elementwise, Partial
from .formulas import quietly


class Rounding(Elementwise):
    """A function of floats to whole floats; infinities and NaN stay."""

    accepts: ClassVar[tuple[Kind, ...]] = ("float",)
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def partials(self, b: Emitter, y: Value, *xs: Value) -> tuple[Partial, ...]:
        return (None,)


class Floor(Rounding):
    """The greatest whole number ≤ x."""

    name: ClassVar[str] = "floor"
    syntax: ClassVar[str] = "floor {x}"

    def evaluate(self, x: Array) -> Array:
        return quietly(np.floor, x)


class Ceil(Rounding):
    """The least whole number ≥ x."""

    name: ClassVar[str] = "ceil"
    syntax: ClassVar[str] = "ceil {x}"

    def evaluate(self, x: Array) -> Array:
        return quietly(np.ceil, x)


class Round(Rounding):
    """The nearest whole number; halves away from zero, as C's `round`."""

    name: ClassVar[str] = "round"
    syntax: ClassVar[str] = "round {x}"

    def evaluate(self, x: Array) -> Array:
        whole = quietly(np.trunc, x)
        away = np.abs(quietly(np.subtract, x, whole)) >= 0.5
        return np.where(away, whole + np.copysign(np.ones((), x.dtype), x), whole)


class Rint(Rounding):
    """The nearest whole number; halves to the even one, as C's `rint` and NumPy's `round`."""

    name: ClassVar[str] = "rint"
    syntax: ClassVar[str] = "rint {x}"

    def evaluate(self, x: Array) -> Array:
        return quietly(np.rint, x)
