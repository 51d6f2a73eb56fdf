"""Threefry: samples for the laws, then the published vectors; `random`: ranges, balance and refusals."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import nnkit as nk
from nnkit.core.errors import DTypeError, NNKitError, RankError
from nnkit.core.ir import Effect
from nnkit.core.ops import Random, Threefry
from nnkit.core.types import BF16, DTYPES, F16, F32, F64, I8, I64, Array, DType, TensorType
from tests.values import same_bits

from .samples import ErrorSample, Sample, boolean, f64, i32, i64

SAMPLES = [
    Sample(Threefry(), (i64(), i64())),
    Sample(Threefry(), (i64(), i64(4, 3))),
    Sample(Threefry(), (i64(2, 1), i64(3))),
    Sample(Threefry(), (i64(), i64(0))),
]
ERRORS = [
    ErrorSample(Threefry(), (i32(), i32()), "threefry takes i64 keys and counters", DTypeError),
    ErrorSample(Threefry(), (f64(), f64()), "threefry takes i64 keys and counters", DTypeError),
]


def _signed(bits: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(bits, np.uint64).view(np.int64)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        (0x00000000_00000000, 0x00000000_00000000, 0x6B200159_99BA4EFE),
        (0xFFFFFFFF_FFFFFFFF, 0xFFFFFFFF_FFFFFFFF, 0x1CB996FC_BB002BE7),
        (0x13198A2E_03707344, 0x243F6A88_85A308D3, 0xC4923A9C_483DF7A0),
    ],
)
def test_published_vectors(key: int, counter: int, expected: int) -> None:
    found = Threefry().evaluate(_signed(key), _signed(counter))
    assert int(found.view(np.uint64)) == expected


def test_bits_are_balanced_and_differ() -> None:
    bits = Threefry().evaluate(_signed(7), np.arange(4096)).view(np.uint64)
    assert len(set(bits.tolist())) == 4096
    ones = [(int((bits >> np.uint64(k) & np.uint64(1)).sum())) for k in range(64)]
    assert max(abs(count - 2048) for count in ones) < 160


def drawn(
    dtype: DType, low: float, high: float, *, count: int = 0, size: int = 4096, seed: int = 5
) -> Array:
    bounds = [dtype.nearest(n) for n in (low, high)]
    return Random((size,)).evaluate_with(seed, count, *bounds, dtype)


@pytest.mark.parametrize("dtype", [F64, F32, F16, BF16], ids=str)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 2), (-3, 5), (10, 14)])
def test_floats_fill_a_half_open_range(dtype: DType, low: float, high: float) -> None:
    x = drawn(dtype, low, high).astype(np.float64)
    assert x.min() >= low
    assert x.max() < high
    assert abs(x.mean() - (low + high) / 2) < 0.05 * (high - low)


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_integer], ids=str)
def test_integers_take_all_values_of_a_range(dtype: DType) -> None:
    x = drawn(dtype, -2, 3)
    values, counts = np.unique(x, return_counts=True)
    assert x.dtype == dtype.numpy
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert counts.min() > 4096 / 5 * 0.85
    info = np.iinfo(dtype.numpy)
    wide = drawn(dtype, info.min, info.max)
    assert wide.min() < info.min // 4 * 3 < info.max // 4 * 3 < wide.max() < info.max


LARGEST = {
    F16: 65504.0,
    BF16: 2.0**128 - 2.0**120,
    F32: 2.0**128 - 2.0**104,
    F64: sys.float_info.max,
}


def wide_ranges() -> Iterator[tuple[DType, float, float]]:
    """Ranges whose length is no number of the type, or no positive one."""
    for dtype, largest in LARGEST.items():
        yield dtype, -largest, largest
        yield dtype, -largest, largest / 4
        yield dtype, -largest / 2, largest
    for dtype in DTYPES.values():
        if dtype.is_integer:
            info = np.iinfo(dtype.numpy)
            yield dtype, int(info.min), int(info.max)
            yield dtype, int(info.min), int(info.max) // 2 + 1
            yield dtype, int(info.min) // 2, int(info.max)


@pytest.mark.parametrize(("dtype", "low", "high"), list(wide_ranges()), ids=str)
def test_wide_ranges_are_filled_evenly(dtype: DType, low: float, high: float) -> None:
    x = drawn(dtype, low, high, size=8000)
    assert low <= x.min() <= x.max() < high
    eighths = [int((int(n) - int(low)) * 8 // (int(high) - int(low))) for n in x.tolist()]
    counts = np.bincount(eighths, minlength=8)
    assert counts.size == 8
    slack = 1.1 if dtype.bits > 8 else 1.3  # an eighth of few numbers has one more or less
    assert 1000 / 1.15 / slack < counts.min() <= counts.max() < 1000 * 1.15 * slack


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, math.inf),
        (-math.inf, 0),
        (-math.inf, math.inf),
        (math.nan, 1),
        (0, math.nan),
        (math.inf, 5),
    ],
)
@pytest.mark.parametrize("dtype", list(LARGEST), ids=str)
def test_a_range_with_an_end_that_is_no_number_gives_its_low_end(
    dtype: DType, low: float, high: float
) -> None:
    x = drawn(dtype, low, high, size=50)
    assert same_bits(x, np.full(50, low, dtype.numpy))


def test_integers_are_the_high_half_of_a_product() -> None:
    key = Threefry().evaluate(np.asarray(5), np.asarray(0))
    bits = Threefry().evaluate(key, np.arange(300)).view(np.uint64).tolist()
    rng = np.random.default_rng(1)
    for low, high in np.sort(rng.integers(-(2**63), 2**63 - 1, (20, 2)), axis=1).tolist():
        expected = [low + ((high - low) * n >> 64) for n in bits]
        assert drawn(I64, low, high, size=300).tolist() == expected


@pytest.mark.parametrize("dtype", [F32, I8, I64], ids=str)
def test_an_empty_range_gives_its_low_end(dtype: DType) -> None:
    assert set(drawn(dtype, 3, 3).tolist()) == {3}
    assert set(drawn(dtype, 3, -3).tolist()) == {3}


def test_numbers_are_those_of_the_typed_language() -> None:
    """Key threefry(seed, count), as by hand."""
    key = Threefry().evaluate(np.asarray(5), np.asarray(7)).item()
    x = nk.random.uniform(nk.random.key(key), (6,)).numpy()
    np.testing.assert_array_equal(x, drawn(F32, 0, 1, count=7, size=6))


def test_seeds_and_counts_give_other_numbers() -> None:
    rows = [drawn(F64, 0, 1, seed=seed, count=count, size=8) for seed in (0, 1) for count in (0, 1)]
    assert len({row.tobytes() for row in rows}) == 4
    np.testing.assert_array_equal(drawn(F64, 0, 1, size=3), drawn(F64, 0, 1, size=8)[:3])
    assert Random(()).evaluate_with(0, 0, np.float32(0), np.float32(1)).shape == ()
    assert Random((2, 0)).evaluate_with(0, 0, np.float32(0), np.float32(1)).shape == (2, 0)


def test_random_takes_its_turn_even_if_nobody_looks() -> None:
    assert Random.effect is Effect.WRITE
    assert Random((2,)).infer(f64(), f64()) == f64(2)


@pytest.mark.parametrize(
    ("types", "message", "error"),
    [
        ((f64(1), f64()), "random takes scalar bounds, not f64[1]", RankError),
        ((f64(), i32()), "the bounds f64[] and i32[] differ in type", DTypeError),
        ((boolean(), boolean()), "random takes float or integer elements, not bool", DTypeError),
    ],
)
def test_misuse_of_random_is_explained(
    types: tuple[TensorType, ...], message: str, error: type[NNKitError]
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Random((2,)).infer(*types)
