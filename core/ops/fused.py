"""x · y + z of float arrays with one rounding, in NumPy.

Source: Boldo & Melquiond 2008, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding
to odd", §4; exact products by Dekker 1971.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..types import Array

_Doubles: TypeAlias = npt.NDArray[np.float64]

_SPLIT = 2.0**27 + 1
"""Dekker's number for f64: the halves that it makes of 53 digits have at most 26, so that their products are exact."""


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """Of float32 or float64.  Where a product of float64 overflows or is subnormal, its digits beyond are lost."""
    with np.errstate(all="ignore"):
        if x.dtype == np.float32:
            product = x.astype(np.float64) * y.astype(np.float64)  # exact
            exact: Array = _odd_sum(product, z.astype(np.float64)).astype(np.float32)
            return exact
        return _fused_doubles(*np.broadcast_arrays(x, y, z))


def _fused_doubles(x: Array, y: Array, z: Array) -> Array:
    plain: Array = x * y + z
    high, low = _two_product(x, y)
    rest_high, rest_low = _two_sum(z, low)
    total, cut = _two_sum(high, rest_high)
    fused = total + _odd_sum(rest_low, cut)
    usable = np.isfinite(fused) & np.isfinite(low)
    result: Array = np.where(usable, fused, plain)
    return result


def _odd_sum(x: Any, y: Any) -> Array:
    """x + y rounded to odd: what is inexact has a last bit of 1."""
    total, cut = _two_sum(x, y)
    bits = np.ascontiguousarray(total).view(np.int64).reshape(np.shape(total))
    inexact = np.isfinite(cut) & (cut != 0) & np.isfinite(total) & ((bits & 1) == 0)
    toward = np.where(cut > 0, np.inf, -np.inf)
    result: Array = np.where(inexact, np.nextafter(total, toward), total)
    return result


def _two_sum(x: Any, y: Any) -> tuple[_Doubles, _Doubles]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: Any, y: Any) -> tuple[_Doubles, _Doubles]:
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _halves(x: Any) -> tuple[_Doubles, _Doubles]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high
