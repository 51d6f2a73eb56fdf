"""Casts: samples for the laws, then every edge of the table of conversions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core.ops import DataTypeCast
from nnkit.core.types import BF16, BOOL, DTYPES, F16, F32, F64, I8, I32, I64, DType, TensorType
from tests.nearest import all_nearest, operands
from tests.values import same_bits

from .running import result_of
from .samples import SPECIAL, ErrorSample, Sample, boolean, f32, f64, i32, i64

SAMPLES = [
    *(
        Sample(DataTypeCast(dtype), (x,))
        for dtype in DTYPES.values()
        for x in (f64(3, 4), i32(5), boolean(5))
    ),
    *(
        Sample(DataTypeCast(dtype), (f64(7),), (SPECIAL,), smooth=False)
        for dtype in DTYPES.values()
    ),
    Sample(DataTypeCast(F64), (f32(2, 3),)),
    Sample(DataTypeCast(F64), (f64(),)),
    Sample(DataTypeCast(F64), (f64(0, 2),)),
    Sample(DataTypeCast(I8), (i64(3),), ([300, -129, 5],)),
]
ERRORS: list[ErrorSample] = []


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64"])
def test_floats_out_of_range_become_the_nearest_integer(name: str) -> None:
    dtype = DTYPES[name]
    info = np.iinfo(dtype.numpy)
    values = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300, 2.9, -2.9, -0.0])
    found = DataTypeCast(dtype).evaluate(values).tolist()
    assert found == [0, info.max, info.min, info.max, info.min, 2, -2, 0]
    ends = np.array([float(info.min), float(info.max), float(info.max) + 1.0])
    assert DataTypeCast(dtype).evaluate(ends).tolist() == [info.min, info.max, info.max]


def test_integers_wrap_around() -> None:
    assert DataTypeCast(I8).evaluate(np.array([300, -129, 128])).tolist() == [44, 127, -128]
    assert DataTypeCast(I32).evaluate(np.array([2**32 + 5])).tolist() == [5]


def test_truth() -> None:
    values = np.array([0.0, -0.0, 0.5, math.nan, math.inf])
    assert DataTypeCast(BOOL).evaluate(values).tolist() == [False, False, True, True, True]
    assert DataTypeCast(I64).evaluate(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("target", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("source", [d for d in DTYPES.values() if d.is_numeric], ids=str)
def test_numbers_are_rounded_once(source: DType, target: DType) -> None:
    x = operands(source, target, np.random.default_rng(7))
    found = result_of(DataTypeCast(target), [TensorType(x.shape, source)], [x])
    assert same_bits(found, all_nearest(x.tolist(), target))


def test_floats_round_to_nearest_even() -> None:
    one_half_more = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8])
    rounded = result_of(DataTypeCast(BF16), [f64(2)], [one_half_more])
    assert rounded.tolist() == [1.0, 1 + 2.0**-6]
    assert DataTypeCast(F16).evaluate(np.array([65520.0])).tolist() == [math.inf]
    assert DataTypeCast(F32).evaluate(np.array([1 + 2.0**-24])).tolist() == [1.0]
