"""The nearest number of a float type, by fractions; and what lies where rounding is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from nnkit.core.types import BF16, F16, F32, F64, Array, DType

FORMATS = {F16: (11, -14, 15), BF16: (8, -126, 127), F32: (24, -126, 127), F64: (53, -1022, 1023)}
"""Significant bits, and the exponents of the least normal and the largest number."""


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number."""
    return 2.0 ** (1 - FORMATS[dtype][0])


def nearest(number: Any, dtype: DType) -> float:
    """`number`, of which a Fraction can be made, rounded to `dtype`: to nearest, ties to even."""
    if isinstance(number, float) and (not math.isfinite(number) or number == 0):
        return number
    precision, least, largest = FORMATS[dtype]
    exact = Fraction(number)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent = max(exponent - (magnitude < Fraction(2) ** exponent), least)
    unit = Fraction(2) ** (exponent - precision + 1)
    rounded = round(magnitude / unit) * unit
    result = float(rounded) if rounded < Fraction(2) ** (largest + 1) else math.inf
    return -result if exact < 0 else result


def half_ways(dtype: DType, rng: np.random.Generator, count: int) -> list[Fraction]:
    """What lies half way between neighbors in `dtype`, subnormal ones and the overflow among them."""
    precision, least, largest = FORMATS[dtype]
    found = [Fraction(2) ** (largest + 1) - Fraction(2) ** (largest - precision)]
    found += [Fraction(2) ** (least - precision) * odd for odd in (1, 3, 5)]
    for _ in range(count):
        odd = 2 * int(rng.integers(1 << (precision - 1), 1 << precision)) + 1
        exponent = int(rng.integers(least - precision - 2, largest + 1)) - precision
        found.append(odd * Fraction(2) ** exponent)
    return found


def operands(source: DType, target: DType, rng: np.random.Generator, count: int = 200) -> Array:
    """Elements of `source`: half ways of `target` and their neighbors, and any bits."""
    stored = rng.integers(0, 256, 4 * count * source.bytes, np.uint8).view(source.storage)
    random = source.load(stored)
    wide = half_ways(target, rng, count)
    if source.is_integer:
        limits = np.iinfo(source.numpy)
        wide += [middle * 2 ** int(rng.integers(0, 64)) for middle in half_ways(target, rng, count)]
        whole = [int(x) + step for x in wide if x < 2**64 for step in (-1, 0, 1)]
        inside = [s * x for x in whole for s in (1, -1) if limits.min <= s * x <= limits.max]
        return np.concatenate([np.array([*inside, limits.min, limits.max], source.numpy), random])
    middles = np.array([float(x) for x in wide if x < 2**1024 - 2**970])
    beside = [middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)]
    with np.errstate(all="ignore"):
        rounded = source.round(np.concatenate([*beside, [0.0, np.inf, np.nan]]))
    return np.concatenate([rounded, -rounded, random])


def all_nearest(numbers: Sequence[Any], dtype: DType) -> Array:
    """Of each, in the type that the evaluator computes in."""
    with np.errstate(all="ignore"):
        return np.array([nearest(x, dtype) for x in numbers], np.float64).astype(dtype.numpy)
