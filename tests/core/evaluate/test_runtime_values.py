"""What values are, and the one that is undefined."""

from __future__ import annotations

import time

import numpy as np
import pytest

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import EnumValue, FunctionValue, undefined
from nnkit.core.types import (
    BF16,
    BOOL,
    F32,
    STACK,
    VOID,
    ArrayType,
    BoxType,
    EnumType,
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
from tests.patience import PATIENCE

S = scalar(F32)


def test_undefined_is_zero() -> None:
    tensor = undefined(TensorType((2, 0), BF16))
    assert tensor.shape == (2, 0) and tensor.dtype == np.float32
    assert undefined(scalar(BOOL)).dtype == np.bool_
    pair = StructType("P", (("a", S), ("b", ArrayType(2, TupleType((S, VOID))))))
    assert undefined(pair) == (0, ((0, ()), (0, ())))
    assert undefined(ArrayType(0, EnumType("Empty"))) == ()


@pytest.mark.parametrize(
    "type", [PointerType(S), BoxType(S), STACK, FunctionType((), S), OpaqueType("O")], ids=str
)
def test_undefined_is_null(type: Type) -> None:
    null = None if isinstance(type, FunctionType | OpaqueType) else 0
    assert undefined(type) == null


def test_undefined_is_the_first_case_that_needs_no_other() -> None:
    assert undefined(TREE) == EnumValue("leaf", (0,))
    outer = EnumType("Outer")
    outer.define([("again", (outer,)), ("tree", (TREE, PointerType(outer)))])
    assert undefined(outer) == EnumValue("tree", (EnumValue("leaf", (0,)), 0))


def test_enums_without_values_stop_the_program() -> None:
    endless = EnumType("Endless")
    endless.define([("more", (S, endless))])
    for type in (endless, TupleType((S, endless)), ArrayType(3, EnumType("Empty"))):
        with pytest.raises(TrapError, match=r"there is no value of \$E"):
            undefined(type)


def test_values_that_are_too_large_stop_the_program() -> None:
    start = time.process_time()
    doubled: Type = TupleType((S, S))
    for _ in range(60):
        doubled = TupleType((doubled, doubled))
    wide = ArrayType(1 << 60, S)
    nested = ArrayType(1 << 20, ArrayType(1 << 20, S))
    for type in (wide, nested, doubled):
        with pytest.raises(TrapError, match="out of memory"):
            undefined(type)
    assert time.process_time() - start < 1 * PATIENCE


def test_deep_types_take_no_stack() -> None:
    type: Type = S
    for _ in range(5_000):
        type = TupleType((type,))
    value = undefined(type)
    for _ in range(5_000):
        [value] = value
    assert value == 0


def test_enums_are_written_as_literals() -> None:
    one = np.asarray(np.float32(1))
    tree = EnumValue("node", (EnumValue("leaf", (one,)), (one, (), None), FunctionValue("f")))
    assert repr(tree) == "?node(?leaf(1.0), (1.0, (), None), @f)"
    deep = EnumValue("end")
    for _ in range(50_000):
        deep = EnumValue("more", (deep,))
    assert repr(deep) == "?more(" * 50_000 + "?end" + ")" * 50_000
