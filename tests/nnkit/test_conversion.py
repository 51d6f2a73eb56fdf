"""Concrete values taken apart: what compiled code reads, what decides which code fits, what staging knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    bf16,
    boolean,
    f32,
    f64,
    i8,
    spec,
)
from nnkit.conversion import annotated, concrete, declared_type, shapes_of, signature_of, spec_of
from nnkit.core.types import BF16, BOOL, F32, I8
from nnkit.staging.spec import StructSpec, TensorSpec, TupleSpec


class Pair(Struct):
    x: Field[Tensor1D[f32]]
    n: Field[Tensor0D[i8]]


class Outer(Struct):
    pair: Field[Pair]


VECTOR = Tensor1D(np.ones(3, np.float32))
PAIR = Pair(VECTOR, i8(2))


def test_what_is_a_tensor_already_is_itself() -> None:
    assert concrete(VECTOR, None, "x") is VECTOR
    assert concrete(PAIR, None, "x") is PAIR
    outer, several = Outer(PAIR), (VECTOR, PAIR)
    assert concrete(outer, None, "x") is outer
    assert concrete(several, None, "x") is several


def test_arrays_and_numbers_become_tensors() -> None:
    array = np.ones(3, np.float32)
    made = concrete(array, None, "x")
    assert type(made) is Tensor1D and made.numpy().base is array
    mixed = concrete((array, VECTOR), None, "x")
    assert mixed[1] is VECTOR and type(mixed[0]) is Tensor1D
    scalar = concrete(0.5, TensorSpec(0, F32), "x")
    assert type(scalar) is Tensor0D and scalar.dtype is f32 and float(scalar) == 0.5
    assert concrete(True, TensorSpec(0, BOOL), "x").dtype is boolean
    assert float(concrete(3, TensorSpec(0, BF16), "x")) == 3.0
    assert concrete(np.float64(2), None, "x").dtype is f64


def test_signatures_tell_apart_what_needs_other_code() -> None:
    distinct = [
        VECTOR, Tensor1D(np.ones(4, np.float32)), Tensor1D(np.ones(3)), Tensor2D(np.ones((3, 1), np.float32)), PAIR,
        Outer(PAIR), (VECTOR,), (VECTOR, VECTOR), ((VECTOR, VECTOR),), Tensor1D([1, 1, 1], bf16), Tensor1D([1,
        1, 1], i8),
        Pair(np.ones(4, np.float32), 2), Tensor1D([True] * 3, boolean),
    ]  # fmt: skip
    assert len({signature_of(value) for value in distinct}) == len(distinct)
    assert (
        signature_of(VECTOR)
        == signature_of(Tensor1D(np.zeros(3, np.float32)))
        == signature_of(spec((3,), f32))
    )
    assert signature_of(spec((3,), bf16)) == signature_of(Tensor1D([1, 1, 1], bf16))


def test_specs_and_shapes() -> None:
    value = (VECTOR, Outer(PAIR), spec((2, 0), f64))
    assert shapes_of(value) == [(3,), (3,), (), (2, 0)]
    vector, scalar = TensorSpec(1, F32), TensorSpec(0, I8)
    assert spec_of(VECTOR) == vector
    assert spec_of(PAIR) == StructSpec(Pair, (("x", vector), ("n", scalar)))
    assert isinstance(spec_of(value), TupleSpec)
    assert spec_of(PAIR) == declared_type(Pair)


def test_annotations() -> None:
    assert annotated(Rep[Tensor1D[f32]]) == TensorSpec(1, F32)
    assert annotated(Rep[Scalar[i8]]) == TensorSpec(0, I8)
    assert annotated(Rep[nk.Bool]) == TensorSpec(0, BOOL)
    both = TupleSpec((TensorSpec(1, F32), TensorSpec(0, I8)))
    assert annotated(tuple[Rep[Tensor1D[f32]], Rep[Scalar[i8]]]) == both
    assert annotated(Rep[tuple[Tensor1D[f32], Scalar[i8]]]) == both
    assert annotated(Rep[Outer]) == spec_of(Outer(PAIR))
    for open_type in (
        None,
        Any,
        Rep[Any],
        Rep[Tensor1D],
        int,
        tuple[Rep[Any], Rep[Scalar[i8]]],
        Rep[tuple[Any, ...]],
    ):
        assert annotated(open_type) is None


def test_specs_print_as_they_are_written() -> None:
    assert repr(spec([2, np.int64(3)], f32)) == "spec((2, 3), f32)"
    assert repr(spec(3, f32)) == "spec((3,), f32)"
    assert spec((), bf16) == spec((), bf16)
    with pytest.raises(nk.ShapeError):
        spec((2.0,), f32)
