"""How far results are apart: bits, units in the last place, and what is no float."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.evaluate import EnumValue
from nnkit.core.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    Array,
    ArrayType,
    DType,
    EnumType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from nnkit.tools.agreement import Gap, default_tolerance, largest_gap

FLOATS = (BF16, F16, F32, F64)
V = TensorType((4,), F32)


def gap_of(type: Type, one: object, other: object, tolerance: float | None = None) -> Gap:
    found = largest_gap(type, one, other, tolerance)
    assert found is not None
    return found


def further(dtype: DType, x: float, ulps: int) -> Array:
    """The float that is so many further from zero than x."""
    bits = dtype.store(np.asarray(x)).view(f"u{dtype.bytes}")
    return dtype.load((bits + np.asarray(ulps, bits.dtype)).view(dtype.storage))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(mantissa=st.floats(1, 1.9), exponent=st.integers(-14, 10), sign=st.sampled_from([1.0, -1.0]))
def test_units_are_those_of_the_type(
    dtype: DType, mantissa: float, exponent: int, sign: float
) -> None:
    x = float(dtype.round(np.asarray(sign * math.ldexp(mantissa, exponent))))
    allowed = default_tolerance(dtype)
    assert largest_gap(scalar(dtype), x, x) is None
    for ulps in (1, 2, allowed // 4):
        gap = gap_of(scalar(dtype), x, further(dtype, x, ulps))
        # the unit is that of the larger number, which may be twice as large
        assert gap.ulps in (ulps, *(ulps / 2 + half / 2 for half in range(ulps + 1))), gap
        assert gap.is_allowed
    assert not gap_of(scalar(dtype), x, 2 * x).is_allowed
    assert not gap_of(scalar(dtype), x, further(dtype, x, 1), 0).is_allowed


def test_two_thirds_of_the_digits_agree_by_default() -> None:
    assert [default_tolerance(dtype) for dtype in FLOATS] == [8, 16, 256, 1 << 18]


def test_what_is_left_when_larger_numbers_cancel() -> None:
    """A rounding error of the largest number, seen in one that is much smaller."""
    one = np.array([1.0, 1e-6, 0.0, -1.0], np.float32)
    other = one + np.array([0, 6e-8, 6e-8, 0], np.float32)
    assert gap_of(V, one, other).is_allowed
    assert not gap_of(V, one, one + np.array([0, 1e-3, 0, 0], np.float32)).is_allowed
    assert not gap_of(scalar(F32), 1e-6, 2e-6).is_allowed


@pytest.mark.parametrize("tolerance", [None, 1e9])
def test_what_is_not_finite_is_the_same_or_not(tolerance: float | None) -> None:
    for one, other in ((np.nan, 1.0), (np.inf, 3e38), (np.inf, -np.inf), (np.nan, np.inf)):
        gap = gap_of(scalar(F32), np.float32(one), np.float32(other), tolerance)
        assert not gap.is_allowed and "ulp" not in str(gap)
    same = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    assert largest_gap(V, same, same.copy(), tolerance) is None


def test_the_sign_of_zero_is_one_unit() -> None:
    gap = gap_of(scalar(F64), 0.0, -0.0)
    assert gap.ulps == 1 and gap.is_allowed
    assert not gap_of(scalar(F64), 0.0, -0.0, 0).is_allowed
    assert gap_of(scalar(F32), np.float32(1e-45), np.float32(0)).ulps == 1, "the smallest of all"


@pytest.mark.parametrize("dtype", [I32, BOOL], ids=str)
def test_what_is_no_float_is_exact(dtype: DType) -> None:
    gap = gap_of(scalar(dtype), np.asarray(1, dtype.numpy), np.asarray(0, dtype.numpy), 1e9)
    assert not gap.is_allowed
    assert str(gap) in ("1 and 0", "True and False")


def test_the_place_of_the_largest_gap_is_named() -> None:
    struct = StructType("S", (("a b", V), ("n", scalar(I32))))
    type = TupleType((struct, ArrayType(2, scalar(F32))))
    zeros = np.zeros(4, np.float32)
    one = ((zeros, np.int32(3)), (np.float32(1), np.float32(2)))
    worse = ((zeros, np.int32(3)), (np.float32(1), further(F32, 2.0, 3)))
    assert str(gap_of(type, one, worse)) == "3 ulps (256 allowed) at (1)(1): 2.0 and 2.0000007"
    worst = ((zeros, np.int32(4)), (np.float32(1), further(F32, 2.0, 3)))
    assert str(gap_of(type, one, worst)) == "3 and 4 at (0)#n"
    zeros = zeros + np.array([0, 0, 1, 0], np.float32)
    assert str(gap_of(type, one, ((zeros, np.int32(3)), one[1]))).endswith(
        'at (0)#"a b"[2]: 0.0 and 1.0'
    )


def test_enums() -> None:
    tree = EnumType("Tree")
    tree.define((("leaf", (scalar(F32),)), ("node", (tree, tree))))
    leaves = [EnumValue("leaf", (np.float32(x),)) for x in (1, 2)]
    node = EnumValue("node", (leaves[0], leaves[0]))
    assert largest_gap(tree, node, node) is None
    assert "?node(1)?leaf(0)" in str(gap_of(tree, node, EnumValue("node", (leaves[0], leaves[1]))))
    assert not gap_of(tree, node, leaves[0]).is_allowed


def test_tensors_without_elements_agree() -> None:
    empty = np.zeros((0, 2), np.float32)
    assert largest_gap(TensorType((0, 2), F32), empty, empty) is None
    assert largest_gap(TupleType(()), (), ()) is None
