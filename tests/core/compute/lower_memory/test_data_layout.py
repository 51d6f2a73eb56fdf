"""Layout: sizes and offsets are C's, leaves are the values, deep types cost no depth."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.lower_memory.data_layout import MOST_LEAVES, DataLayout, reaches_cells
from nnkit.core.errors import UnsupportedError
from nnkit.core.types import (
    DTYPES,
    STACK,
    ArrayType,
    BoxType,
    EnumType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    scalar,
)

C: dict[str, Any] = {
    "bool": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "f16": ctypes.c_uint16, "bf16": ctypes.c_uint16, "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}  # fmt: skip
ENUM = EnumType("E")
ENUM.define([("none", ()), ("some", (ENUM,))])
F32 = scalar(DTYPES["f32"])
WORDS: tuple[Type, ...] = (PointerType(F32), BoxType(F32), STACK, ENUM, FunctionType((), F32))


def types() -> st.SearchStrategy[Type]:
    shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    tensors = st.builds(TensorType, shapes, st.sampled_from(list(DTYPES.values())))
    return st.recursive(
        st.one_of(tensors, st.sampled_from(WORDS)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4).map(lambda parts: TupleType(tuple(parts))),
            st.builds(ArrayType, st.integers(0, 3), inner),
        ),
        max_leaves=8,
    )


def in_c(type: Type) -> Any:
    """The same in ctypes."""
    match type:
        case TensorType(shape, dtype):
            made = C[dtype.name]
            for extent in reversed(shape):
                made = made * extent
            return made
        case ArrayType(count, element):
            return in_c(element) * count
        case TupleType(elements):
            fields = [(f"f{number}", in_c(element)) for number, element in enumerate(elements)]
            return made_struct(fields)
        case _:
            return ctypes.c_void_p


def made_struct(fields: list[tuple[str, Any]]) -> Any:
    class Struct(ctypes.Structure):
        _fields_ = fields

    return Struct


@given(types())
def test_layout_is_that_of_c(type: Type) -> None:
    layout, made = DataLayout(), in_c(type)
    extent = layout.extent(type)
    assert extent.bytes == ctypes.sizeof(made)
    if isinstance(type, TupleType):
        assert extent.alignment == ctypes.alignment(made)
        for number, element in enumerate(type.elements):
            expected = getattr(made, f"f{number}").offset
            assert layout.offset(type, number) == (expected, element)


@given(types())
def test_leaves_are_in_order_and_where_their_keys_lead(type: Type) -> None:
    layout = DataLayout()
    leaves = layout.leaves(type)
    assert len(leaves) == layout.extent(type).leaves
    assert [leaf for _, leaf in leaves] == list(flattened(type))
    offsets = [offset for offset, _ in leaves]
    assert offsets == sorted(offsets)
    for number, element in enumerate(elements_of(type) or ()):
        found, inner = layout.slice_of(type, [number])
        start, _ = layout.offset(type, number)
        assert inner == element
        assert leaves[found] == [(start + offset, leaf) for offset, leaf in layout.leaves(element)]


def flattened(type: Type) -> list[Type]:
    elements = elements_of(type)
    if elements is None:
        return [type]
    return [leaf for element in elements for leaf in flattened(element)]


def test_a_struct_lies_as_a_tuple_of_its_fields() -> None:
    parts = (scalar(DTYPES["i8"]), F32, PointerType(F32))
    struct = StructType("S", tuple(zip("abc", parts, strict=True)))
    assert DataLayout().extent(struct) == DataLayout().extent(TupleType(parts))
    assert DataLayout().slice_of(struct, ["b"]) == (slice(1, 2), F32)


def test_deep_types_are_walked_without_recursion() -> None:
    type: Type = F32
    for _ in range(200):
        type = TupleType((type, F32))
    assert DataLayout().extent(type).bytes == 4 * 201
    assert len(DataLayout().leaves(type)) == 201


def test_values_of_too_many_leaves_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=f"more than {MOST_LEAVES} tensors"):
        DataLayout().leaves(ArrayType(1 << 20, ArrayType(1 << 20, F32)))


def test_functions_take_leaves_and_return_one_tensor_or_a_tuple() -> None:
    flat = DataLayout().flat
    pair = TupleType((F32, PointerType(F32)))
    word = scalar(DTYPES["i64"])
    assert flat(FunctionType((pair, STACK), F32)) == FunctionType((F32, word, word), F32)
    assert flat(FunctionType((), ENUM)) == FunctionType((), word)
    assert flat(FunctionType((), pair)) == FunctionType((), TupleType((F32, word)))


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        (F32, False),
        (PointerType(F32), False),
        (ENUM, True),
        (STACK, True),
        (PointerType(BoxType(TupleType((F32, ENUM)))), True),
        (FunctionType((ENUM,), STACK), False),
    ],
    ids=str,
)
def test_what_may_lead_to_a_cell(type: Type, expected: bool) -> None:
    assert reaches_cells([type]) is expected
