"""Minima and maxima of arrays: of floats IEEE 754-2019's, NaN if there is one, and −0 < +0.

NumPy leaves open which of two zeros it gives: that differs between element types, and with the place of an
element in a vector.  Here floats are read as integers of the same order, of which NumPy takes the extremes: the
bits of a positive float are such an integer, those of a negative one are with all but the sign flipped.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..lazy_dataclass import dataclass
from ..types import Array


@dataclass(frozen=True)
class Extremum:
    """One of the two functions, with the methods of a `numpy.ufunc` that reductions and scans need."""

    ufunc: np.ufunc
    nan: int
    """The integer that wins against all others, −1 or 1 for the least or the largest."""

    def __call__(self, u: Array, v: Array) -> Array:
        return self._floats(self.ufunc(self._integers(u), self._integers(v)), u.dtype)

    def reduce(self, x: Array, axes: tuple[int, ...]) -> Array:
        """Over some axes at once; the other end of all numbers over none."""
        if x.dtype.kind == "f":
            identity = np.asarray(-self.nan * np.inf, x.dtype)
        else:
            limits = np.iinfo(x.dtype)
            identity = np.asarray(limits.min if self.nan > 0 else limits.max, x.dtype)
        start = self._integers(identity).item()
        return self._floats(self.ufunc.reduce(self._integers(x), axis=axes, initial=start), x.dtype)

    def accumulate(self, x: Array, axis: int) -> Array:
        """The extremum of each element and all before it."""
        return self._floats(self.ufunc.accumulate(self._integers(x), axis), x.dtype)

    def at(self, x: Array, where: tuple[Array, ...], values: Array) -> None:
        """Join `values` with elements of `x`, in place."""
        integers = self._integers(x)
        self.ufunc.at(integers, where, self._integers(values))
        x[...] = self._floats(integers, x.dtype)

    def _integers(self, x: Array) -> Array:
        if x.dtype.kind != "f":
            return x.copy()
        held = np.dtype(f"i{x.dtype.itemsize}")
        limits = np.iinfo(held)
        ordered = _flipped(np.array(x, order="C").view(held))
        return np.where(np.isnan(x), limits.max if self.nan > 0 else limits.min, ordered)

    def _floats(self, integers: Any, dtype: np.dtype[Any]) -> Array:
        found = np.asarray(integers)
        return found if dtype.kind != "f" else np.array(_flipped(found), order="C").view(dtype)


MINIMUM: Final = Extremum(np.minimum, -1)
MAXIMUM: Final = Extremum(np.maximum, 1)


def _flipped(x: Array) -> Array:
    """Negative ones with all bits but the sign flipped: its own inverse."""
    return np.asarray(np.where(x < 0, x ^ np.iinfo(x.dtype).max, x))
