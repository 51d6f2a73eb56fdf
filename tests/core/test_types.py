"""Types: equality, text, sizes, element types, and the shape rules that ops share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import DTypeError, ShapeError
from nnkit.core.text.cursor import Cursor
from nnkit.core.text.types import parse_type
from nnkit.core.types import (
    BF16,
    BOOL,
    DTYPES,
    F16,
    F32,
    F64,
    I8,
    I64,
    VOID,
    DType,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    broadcast_shapes,
    elements_of,
    same_dtype,
    scalar,
)

PAIR = StructType("Pair", (("a", scalar(F32)), ("b", TensorType((2,), I64))))


def types() -> st.SearchStrategy[Type]:
    """Types nested a few levels deep."""
    tensors = st.builds(
        lambda shape, dtype: TensorType(tuple(shape), dtype),
        st.lists(st.integers(0, 1000), max_size=4),
        st.sampled_from(list(DTYPES.values())),
    )
    return st.recursive(
        tensors | st.just(PAIR),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda found: TupleType(tuple(found))),
            st.builds(
                lambda found, result: FunctionType(tuple(found), result),
                st.lists(inner, max_size=2),
                inner,
            ),
        ),
        max_leaves=8,
    )


@given(type=types())
def test_the_text_of_a_type_reads_back(type: Type) -> None:
    cursor = Cursor(str(type))
    cursor.type_of = lambda token: PAIR
    again = parse_type(cursor)
    assert again == type and hash(again) == hash(type)
    assert cursor.token.kind == "end"


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (scalar(F32), "f32"),
        (TensorType((1, 784), F32), "<1 x 784 x f32>"),
        (TensorType((0,), BOOL), "<0 x bool>"),
        (VOID, "void"),
        (TupleType((scalar(F32),)), "(f32)"),
        (TupleType((scalar(F32), VOID)), "(f32, void)"),
        (PAIR, "$Pair"),
        (FunctionType((), VOID), "() -> void"),
        (FunctionType((PAIR,), TupleType((PAIR, PAIR))), "($Pair) -> ($Pair, $Pair)"),
    ],
)
def test_types_are_written_as_in_dlvm(type: Type, text: str) -> None:
    assert str(type) == text


def test_sizes() -> None:
    type = TensorType((3, 4), BF16)
    assert (type.rank, type.size, type.bytes) == (2, 12, 24)
    assert (scalar(F64).size, scalar(F64).bytes) == (1, 8)
    assert TensorType((5, 0), F64).bytes == 0
    assert type.words == "bf16[3, 4]" and scalar(I8).words == "i8[]"
    assert type.with_shape([7]) == TensorType((7,), BF16)
    assert type.with_dtype(I8) == TensorType((3, 4), I8)


@pytest.mark.parametrize(("shape", "said"), [((-1,), "negative"), ((2**24, 2**24), "larger than")])
def test_impossible_shapes_are_refused(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        TensorType(shape, F32)


def test_elements_of_aggregates() -> None:
    assert elements_of(PAIR) == (scalar(F32), TensorType((2,), I64))
    assert elements_of(VOID) == ()
    assert elements_of(scalar(F32)) is None and elements_of(FunctionType((), VOID)) is None
    assert PAIR.index("b") == 1
    with pytest.raises(KeyError):
        PAIR.index("c")


def test_element_types() -> None:
    assert [d.name for d in DTYPES.values() if d.is_float] == ["f16", "bf16", "f32", "f64"]
    assert [d.name for d in DTYPES.values() if d.is_integer] == ["i8", "i16", "i32", "i64"]
    assert not BOOL.is_numeric and BF16.is_numeric
    assert {d.name: d.bytes for d in (BOOL, I8, F16, BF16, F32, I64)} == {
        "bool": 1, "i8": 1, "f16": 2, "bf16": 2, "f32": 4, "i64": 8,
    }  # fmt: skip


@given(number=st.floats(width=32, allow_nan=False))
def test_bf16_rounds_to_nearest_even(number: float) -> None:
    rounded = float(BF16.round(np.float32(number)))
    bits = int(np.float32(number).view(np.uint32))
    below, above = (
        float(np.uint32(b & 0xFFFFFFFF).view(np.float32))
        for b in (bits & ~0xFFFF, (bits & ~0xFFFF) + 0x10000)
    )
    assert rounded in (below, above) or (math.isinf(rounded) and math.isinf(above))
    if math.isfinite(above) and math.isfinite(number):
        nearer = below if abs(number - below) < abs(number - above) else above
        if abs(number - below) != abs(number - above):
            assert rounded == nearer
        else:
            assert rounded == (below if (bits >> 16) % 2 == 0 else above)


def test_bf16_keeps_what_is_special() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-133], np.float32)
    again = BF16.load(BF16.store(special))
    np.testing.assert_array_equal(again, special)
    np.testing.assert_array_equal(np.signbit(again)[:4], np.signbit(special)[:4])
    assert BF16.store(special).dtype == np.uint16
    assert np.isnan(BF16.load(BF16.store(np.array([0x7F800001], np.uint32).view(np.float32))))


@given(shapes=st.lists(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple), max_size=4))
def test_shapes_broadcast_as_in_numpy(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="cannot be broadcast: extents"):
            broadcast_shapes(shapes)
    else:
        assert broadcast_shapes(shapes) == expected


def test_one_element_type_for_all() -> None:
    assert same_dtype("add", [scalar(F32), TensorType((2,), F32)]) == F32
    with pytest.raises(
        DTypeError, match=r"cannot add f32\[\] and f64\[\]: element types f32 and f64"
    ):
        same_dtype("add", [scalar(F32), scalar(F64)])


@pytest.mark.parametrize("dtype", [F16, F32, F64], ids=str)
def test_formats_of_floats_are_those_of_numpy(dtype: DType) -> None:
    known = np.finfo(dtype.numpy)
    assert dtype.digits == known.nmant + 1 and dtype.least_exponent == known.minexp
    assert dtype.normal_range == (float(known.smallest_normal), float(known.max))
    infinity, nan = (np.asarray(x, dtype.numpy).view(f"u{dtype.bytes}") for x in (np.inf, np.nan))
    assert int(nan) == int(infinity) | dtype.quiet_bit


def test_bf16_has_the_range_of_f32_in_steps_of_256() -> None:
    assert BF16.least_exponent == F32.least_exponent and BF16.digits == 8
    assert BF16.normal_range == (F32.normal_range[0], float.fromhex("0x1.fep127"))
    assert int(BF16.store(np.asarray(np.nan))) == 0x7F80 | BF16.quiet_bit
