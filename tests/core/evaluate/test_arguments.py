"""What may be given for values of each type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, ShapeError
from nnkit.core.evaluate import EnumValue, FunctionValue
from nnkit.core.evaluate.arguments import convert
from nnkit.core.evaluate.runtime_values import undefined
from nnkit.core.types import (
    BF16,
    BOOL,
    F32,
    I8,
    I64,
    STACK,
    VOID,
    ArrayType,
    BoxType,
    FunctionType,
    OpaqueType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from tests.core.ops.program_samples import TREE

S, N = scalar(F32), scalar(I64)
PAIR = StructType("P", (("a", S), ("b", ArrayType(2, N))))


def test_tensors_are_rounded_to_their_type() -> None:
    assert convert(S, 1).dtype == np.float32
    assert convert(scalar(BF16), 1 + 2.0**-12) == 1
    assert convert(N, 3.0).dtype == np.int64
    assert convert(scalar(BOOL), 1).dtype == np.bool_
    rows = convert(TensorType((2, 2), F32), np.asfortranarray([[1, 2], [3, 4]]))
    assert rows.flags.c_contiguous and rows.tolist() == [[1, 2], [3, 4]]


def test_aggregates_are_tuples_and_lists() -> None:
    assert convert(PAIR, [1, (2, 3)]) == (1, (2, 3))
    assert convert(VOID, []) == ()


def test_enums_are_cases_with_what_they_carry() -> None:
    leaf = EnumValue("leaf", (1,))
    assert convert(TREE, ("leaf", [1])) == leaf
    assert convert(TREE, EnumValue("node", (leaf, ("none", ())))) == EnumValue(
        "node", (leaf, EnumValue("none"))
    )


def test_deep_enums_take_no_stack() -> None:
    given: Any = ("leaf", (1,))
    for _ in range(20_000):
        given = ("node", (("none", ()), given))
    found = convert(TREE, given)
    for _ in range(20_000):
        found = found.carried[1]
    assert found == EnumValue("leaf", (1,))


@pytest.mark.parametrize(
    ("type", "data"),
    [
        (FunctionType((), S), FunctionValue("f")),
        (PointerType(S), 1 << 20),
        (BoxType(S), 1 << 20),
        (STACK, 1 << 20),
        (OpaqueType("O"), "anything"),
    ],
    ids=str,
)
def test_references_are_kept(type: Type, data: Any) -> None:
    assert convert(type, data) is data
    assert convert(type, None) == undefined(type)


@pytest.mark.parametrize(
    ("type", "data", "error", "message"),
    [
        (S, [1], ShapeError, "a f32 was expected, not an array of shape [1]"),
        (TensorType((2,), F32), [[1], [2, 3]], ShapeError, "not rows of different lengths"),
        (S, "1", DTypeError, "a f32 was expected, not a str"),
        (S, None, DTypeError, "a f32 was expected, not a NoneType"),
        (S, 1j, DTypeError, "a f32 was expected, not a complex"),
        (N, 1.5, DTypeError, "1.5 is no i64"),
        (N, np.nan, DTypeError, "nan is no i64"),
        (N, 2**70, DTypeError, "a i64 was expected, not a int"),
        (TensorType((2,), I8), [1, 300], DTypeError, "300 is no i8"),
        (scalar(BOOL), 2, DTypeError, "2 is no bool"),
        (PAIR, 1, DTypeError, "a $P was expected, not a int"),
        (PAIR, (1,), ShapeError, "a $P is made of 2 values, not 1"),
        (PAIR, (1, (2,)), ShapeError, "a [2 x i64] is made of 2 values, not 1"),
        (ArrayType(1 << 60, S), (1,), ShapeError, "values, not 1"),
        (TREE, "leaf", DTypeError, "a case of $Tree and what it carries was expected, not a str"),
        (TREE, ("twig", ()), DTypeError, "$Tree has no case ?twig"),
        (TREE, ("leaf", ()), ShapeError, "a $Tree is made of 1 values, not 0"),
        (TREE, ("leaf", 1), DTypeError, "a $Tree was expected, not a int"),
        (TREE, ("none", (1,)), ShapeError, "a $Tree is made of 0 values, not 1"),
        (TupleType((S, FunctionType((), S))), (1, "f"), DTypeError, "a () -> f32 was expected"),
        (PointerType(S), 0.0, DTypeError, "a *f32 was expected, not a float"),
        (BoxType(S), EnumValue("none"), DTypeError, "a box{f32} was expected, not a EnumValue"),
        (STACK, [], DTypeError, "a stack was expected, not a list"),
    ],
)
def test_anything_else_is_refused(type: Type, data: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        convert(type, data)
    assert message in str(caught.value)
