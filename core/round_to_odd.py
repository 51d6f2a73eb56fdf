"""Round-to-odd, so that rounding twice gives the correctly rounded result.

NumPy rounds float64 to float32 and float16 right, but has no bf16, and takes every Python number by way of
float64.  Two roundings on such a way may end beside the nearest number: 1 + 2⁻⁸ + 2⁻⁵² becomes 1 + 2⁻⁸ in
float32, and from there, half way between two bf16, the even 1 instead of 1 + 2⁻⁷.  So the first step rounds
*to odd*: what is inexact is truncated and its last bit set, which no half way of a narrower type has.

Source: Boldo & Melquiond 2008, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding
to odd", §3.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

RealNumber: TypeAlias = int | float | Fraction | Decimal
"""What is compared with a float exactly."""

_EXACT_INTEGERS = 1 << 53
"""Float64 has every integer up to this one, and of larger i64 all multiples of 2¹¹."""
_DROPPED = (1 << 11) - 1
"""The digits that an i64 may have beyond the 53 of float64."""


def odd_double(number: RealNumber) -> float:
    """The number if it is a float64, else the one of its two neighbors whose last bit is 1.

    Raises: OverflowError for an integer beyond all float64.

    >>> odd_double(2**53 + 1) - 2**53
    2.0
    """
    nearest = float(number)
    if nearest == number or math.isnan(nearest):
        return nearest
    truncated = nearest
    if nearest > number if nearest > 0 else nearest < number:
        truncated = math.nextafter(nearest, 0.0)
    bits = np.float64(truncated).view(np.uint64) | np.uint64(1)
    return float(bits.view(np.float64))


def odd_doubles(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Of an array of any element type; only i64 has elements that float64 lacks."""
    if values.dtype != np.int64:
        return values.astype(np.float64)
    is_large = (values >= _EXACT_INTEGERS) | (values <= -_EXACT_INTEGERS)
    inexact = ((values & _DROPPED) != 0).astype(np.int64) << 11
    odd = (values & ~np.int64(_DROPPED)) | inexact  # two's complement: truncated toward −∞
    return np.where(is_large, odd, values).astype(np.float64)


def odd_floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Of an array of any element type, as float32: right for a second rounding to bf16."""
    if values.dtype == np.float32 or values.dtype == np.float16:
        floats: npt.NDArray[np.float32] = np.asarray(values, np.float32)
        return floats
    exact = odd_doubles(values)
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        too_large = (np.abs(nearest) > np.abs(exact)).astype(np.uint32)
        inexact = ((nearest != exact) & ~np.isnan(exact)).astype(np.uint32)
    bits: npt.NDArray[np.uint32] = (nearest.view(np.uint32) - too_large) | inexact
    return bits.view(np.float32)
