"""Rounding once: Python numbers and arrays of every type, against fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.round_to_odd import odd_double
from nnkit.core.types import BF16, DTYPES, F16, F32, F64, DType
from tests.nearest import all_nearest, half_ways, operands
from tests.values import same_bits

FLOATS = [F16, BF16, F32, F64]
NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]
BESIDE = Fraction(1, 10**400)
"""Less than any float64 can tell."""


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_middle_between_neighbors_goes_to_the_even_and_nothing_else_does(dtype: DType) -> None:
    for middle in half_ways(dtype, np.random.default_rng(1), 100):
        for number in (middle, middle * (1 + BESIDE), middle * (1 - BESIDE), -middle):
            try:
                found = dtype.nearest(number)
            except OverflowError:
                # an infinity of float64 is beyond what Python makes of a fraction
                assert dtype == F64
                continue
            assert same_bits(found, all_nearest([number], dtype)[0]), number


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", NUMERIC, ids=str)
def test_arrays_are_rounded_once(source: DType, target: DType) -> None:
    given = operands(source, target, np.random.default_rng(source.bits + target.bits))
    with np.errstate(all="ignore"):
        rounded, stored = target.round(given), target.load(target.store(given))
    wanted = all_nearest(given.tolist(), target)
    assert same_bits(rounded, wanted)
    assert same_bits(stored, wanted)


@given(number=st.one_of(st.integers(-(2**80), 2**80), st.fractions(), st.decimals(allow_nan=False)))
def test_to_odd_is_exact_or_has_its_last_bit_set(number: int | Fraction | Decimal) -> None:
    found = odd_double(number)
    if found != number:
        assert np.float64(found).view(np.uint64) & np.uint64(1)
        assert math.nextafter(found, math.inf) > number > math.nextafter(found, -math.inf)


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (1.0039062500000002, BF16, 1.0078125),
        (Decimal("1.000000059604644775390625000001"), F32, 1.0000001192092896),
        (Decimal("1.000000059604644775390625"), F32, 1.0),
        (2**62 + 2**54 + 1, BF16, 2.0**62 + 2.0**55),
        (2**62 + 2**38 + 1, F32, 2.0**62 + 2.0**39),
        (Decimal("2.9802322387695312500001e-8"), F16, 2.0**-24),
        (Decimal("65519.99999999999999999999"), F16, 65504.0),
        (Decimal("1e-5000"), F64, 0.0),
        (Decimal("-1e-5000"), BF16, -0.0),
    ],
)
def test_numbers_that_two_roundings_get_wrong(
    number: int | float | Decimal, dtype: DType, expected: float
) -> None:
    assert same_bits(dtype.nearest(number), np.asarray(expected, dtype.numpy))


def test_every_bit_of_a_nan_survives_memory_but_the_quiet_one() -> None:
    stored = np.arange(1 << 16).astype(np.uint16)
    is_signaling = np.isnan(BF16.load(stored)) & (stored & 0x40 == 0)
    np.testing.assert_array_equal(BF16.store(BF16.load(stored)), stored | (is_signaling * 0x40))
