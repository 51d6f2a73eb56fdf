"""What a user may hand over: every layout is taken, no element type is converted, no number is lost."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.arrays import SURFACE, adopt, from_numbers, stored_dtype
from nnkit.core.errors import DTypeError, RankError, ShapeError
from nnkit.core.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, DType
from tests.nearest import all_nearest, half_ways
from tests.values import same_bits

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def adopted(array: Any, dtype: DType | None = None, rank: int = 2) -> np.ndarray[Any, Any]:
    return adopt(array, name=f"Tensor{rank}D", rank=rank, dtype=dtype, copy=False)


def rounded(data: object, dtype: DType, rank: int = 1) -> np.ndarray[Any, Any]:
    return from_numbers(data, name=f"Tensor{rank}D", rank=rank, dtype=dtype)


def test_a_contiguous_native_array_is_not_copied() -> None:
    assert np.shares_memory(adopted(VALUES), VALUES) and adopted(VALUES) is not VALUES


def test_a_read_only_array_is_not_copied() -> None:
    array = VALUES.copy()
    array.flags.writeable = False
    assert np.shares_memory(adopted(array), array) and not adopted(array).flags.writeable


def misaligned() -> np.ndarray[Any, Any]:
    array = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    array[:] = VALUES
    assert not array.flags.aligned
    return array


LAYOUTS = {
    "strided": np.repeat(VALUES, 2, axis=1)[:, ::2],
    "reversed": VALUES[::-1, ::-1].copy()[::-1, ::-1],
    "column-major": np.asfortranarray(VALUES),
    "byte-swapped": VALUES.astype(VALUES.dtype.newbyteorder("S")),
    "misaligned": misaligned(),
    "record": np.rec.fromarrays([VALUES, VALUES], names="a, b").a,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_layouts_are_copied(name: str) -> None:
    array = adopted(LAYOUTS[name])
    assert array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, VALUES)


def test_copies_begin_with_a_cache_line_unless_they_are_small() -> None:
    for count in (1, 127, 128, 1000, 100_000):
        array = np.arange(count, dtype=np.float32)
        made = adopt(array, name="Tensor1D", rank=1, dtype=F32)
        assert not np.shares_memory(made, array)
        assert array.nbytes < 512 or made.ctypes.data % 64 == 0
        np.testing.assert_array_equal(made, array)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0), (1, 1)])
def test_empty_axes_are_kept(shape: tuple[int, int]) -> None:
    assert adopted(np.zeros(shape, np.int8)).shape == shape


def test_arrays_of_either_c_long_are_one_type() -> None:
    for code in "lq":
        array = adopted(np.zeros(2, code), rank=1)
        assert array.dtype.num == np.dtype(np.int64).num
        assert stored_dtype(array) is I64


def test_a_numpy_scalar_is_an_array_of_rank_0() -> None:
    assert adopted(np.float64(2.0), rank=0).shape == ()


def test_bf16_is_adopted_as_bits() -> None:
    bits = np.array([0x3F80, 0xC000], np.uint16)
    assert stored_dtype(adopted(bits, BF16, rank=1)) is BF16
    np.testing.assert_array_equal(BF16.load(bits), [1.0, -2.0])


@pytest.mark.parametrize("rank", range(5))
def test_another_rank_is_an_error(rank: int) -> None:
    for found in {0, 1, 2, 3, 4, 5} - {rank}:
        with pytest.raises(RankError, match=f"has rank {found} instead of {rank}"):
            adopted(np.zeros((1,) * found), rank=rank)


@pytest.mark.parametrize("dtype", SURFACE, ids=str)
def test_another_element_type_is_an_error(dtype: DType) -> None:
    for other in SURFACE:
        if other not in (dtype, BF16):
            with pytest.raises(DTypeError, match="not converted silently"):
                adopted(np.zeros((1, 1), other.storage), dtype)


def test_records_are_an_error() -> None:
    for dtype in (None, BF16):
        with pytest.raises(DTypeError, match="the element types are"):
            adopted(np.zeros(2, [("a", "u2")]), dtype, rank=1)


@pytest.mark.parametrize("code", ["u1", "u2", "c8", "O", "U3", "M8[s]", "g"])
def test_what_no_tensor_holds_is_an_error(code: str) -> None:
    with pytest.raises(DTypeError, match="the element types are f16, bf16"):
        adopted(np.zeros((1, 1), code))


def test_a_masked_array_is_an_error() -> None:
    with pytest.raises(DTypeError, match="no holes"):
        adopted(np.ma.masked_array(VALUES, VALUES > 2))


def test_nested_lists_have_the_shape_of_numpy() -> None:
    data = [[[1, 2.5], (3, 4)], [[5, 6], np.array([7.0, 8.0])]]
    array = rounded(data, F32, rank=3)
    assert array.shape == (2, 2, 2) and array.dtype == np.float32
    np.testing.assert_array_equal(array.ravel(), [1, 2.5, 3, 4, 5, 6, 7, 8])


@pytest.mark.parametrize(
    ("data", "rank", "error", "message"),
    [
        (
            [[1], [2, 3]],
            2,
            ShapeError,
            "ragged lists: along axis 1 one row has 1 elements and another 2",
        ),
        ([[[1]], [[2], [3]]], 3, ShapeError, "ragged lists: along axis 1"),
        ([], 2, ShapeError, "the length of its rows is unknown"),
        ([1, 2], 2, RankError, "nested 1 deep: it needs 2 levels, found int"),
        ([[1], 2], 2, RankError, "found int"),
        ([[1]], 1, RankError, "nested more than 1 deep"),
        ([1], 0, RankError, "nested more than 0 deep"),
        ("12", 1, RankError, "found str"),
        (["1"], 1, DTypeError, "f32 needs a number, got '1'"),
        ([1j], 1, DTypeError, "f32 needs a number, got 1j"),
        ([None], 1, DTypeError, "f32 needs a number, got None"),
    ],
)
def test_lists_that_are_no_tensor(
    data: object, rank: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rounded(data, F32, rank)


def test_an_empty_list_is_an_empty_vector() -> None:
    assert rounded([], F32).shape == (0,)
    assert rounded([[], []], F32, rank=2).shape == (2, 0)


@pytest.mark.parametrize("dtype", [I8, I32, I64], ids=str)
def test_integers_out_of_range_are_errors(dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    lowest, highest = int(limits.min), int(limits.max)
    assert rounded([lowest, highest], dtype).tolist() == [lowest, highest]
    for value in (lowest - 1, highest + 1, 10**400):
        with pytest.raises(DTypeError, match=f"{value} is out of range of {dtype}"):
            rounded([0, value], dtype)


@pytest.mark.parametrize(
    ("value", "dtype"), [(65520.0, F16), (3.4e38, BF16), (3.5e38, F32), (10**400, F64)], ids=str
)
def test_floats_out_of_range_are_errors(value: float, dtype: DType) -> None:
    with pytest.raises(DTypeError, match=f"out of range of {dtype}"):
        rounded([value], dtype)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_infinities_and_nan_are_kept(dtype: DType) -> None:
    values = dtype.load(rounded([math.inf, -math.inf, math.nan, -0.0], dtype))
    np.testing.assert_array_equal(values, [np.inf, -np.inf, np.nan, 0.0])
    assert math.copysign(1.0, values[3]) == -1.0


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_every_kind_of_number_is_rounded_once(dtype: DType) -> None:
    """Fractions, integers and floats half way between neighbors, and a little beside."""
    middles = half_ways(dtype, np.random.default_rng(5), 50)[1:]
    mixed: list[Any] = [middle * (1 + step) for middle in middles for step in (0, BESIDE, -BESIDE)]
    mixed += [float(middle) for middle in middles]
    mixed += [
        2**k + 2 ** (k - p) + step for k in range(54, 63) for p in (8, 24, 53) for step in (0, 1)
    ]
    finite = [x for x in mixed if np.isfinite(all_nearest([x], dtype)[0])]
    assert same_bits(dtype.load(rounded(finite, dtype)), all_nearest(finite, dtype))


BESIDE = Fraction(1, 10**100)


def test_kinds_are_not_mixed() -> None:
    with pytest.raises(DTypeError, match=r"i32 needs an integer, got 1\.0"):
        rounded([1.0], I32)
    with pytest.raises(DTypeError, match="boolean needs True or False, got 1"):
        rounded([1], BOOL)
    assert rounded([True, np.False_], BOOL).tolist() == [True, False]
    assert rounded([np.int64(3), 4], I8).tolist() == [3, 4]
    assert rounded([True, np.float32(0.5), 2], F64).tolist() == [1.0, 0.5, 2.0]


def bf16_neighbours(value: float) -> tuple[float, float]:
    """The bf16 numbers around a positive normal number."""
    (bits,) = struct.unpack(">I", struct.pack(">f", value))
    below = struct.unpack(">f", struct.pack(">I", bits & 0xFFFF0000))[0]
    if Fraction(below) > Fraction(value):  # packing rounded up past a boundary
        bits -= 0x10000
        below = struct.unpack(">f", struct.pack(">I", bits & 0xFFFF0000))[0]
    above = struct.unpack(">f", struct.pack(">I", (bits & 0xFFFF0000) + 0x10000))[0]
    return below, above


@given(st.floats(min_value=1e-30, max_value=1e30), st.booleans())
def test_bf16_is_the_nearest(value: float, negative: bool) -> None:
    below, above = bf16_neighbours(value)
    sign = -1.0 if negative else 1.0
    found = abs(float(BF16.load(rounded([sign * value], BF16))[0]))
    errors = {x: abs(Fraction(x) - Fraction(value)) for x in (below, above)}
    assert found in errors and errors[found] == min(errors.values())


def test_bf16_rounds_once_and_ties_to_even() -> None:
    tie = 1 + 2.0**-8  # halfway between 1 and 1 + 2**-7
    above = tie + 2.0**-40  # a detour over float32 would make it the tie
    values = BF16.load(rounded([tie, above, 1 + 3 * 2.0**-8], BF16))
    assert values.tolist() == [1.0, 1 + 2.0**-7, 1 + 2.0**-6]
