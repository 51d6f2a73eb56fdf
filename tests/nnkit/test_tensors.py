"""Concrete tensors: what they hold, what they refuse, and how other libraries read them."""

from __future__ import annotations

import copy
import pickle
import typing
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from nnkit import (
    AnyTensor,
    Batched,
    Bool,
    Dim,
    DType,
    DTypeError,
    Float,
    NNKitError,
    Ranked,
    RankError,
    Scalar,
    ShapeError,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    named,
    tensors,
)

RANKED: Any = tensors.RANKED
DTYPES: Any = tensors.DTYPES
wrap: Any = tensors.wrap
ELEMENT_TYPES: list[Any] = list(DTYPES.values())
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


class Batch(Dim): ...


class In(Dim): ...


def zeros(dtype: type[DType], rank: int) -> AnyTensor:
    return RANKED[rank](np.zeros((2,) * rank, dtype.core.storage), dtype)


def test_a_tensor_shares_the_array() -> None:
    tensor = Tensor2D(MATRIX)
    assert np.shares_memory(tensor.numpy(), MATRIX)
    assert (tensor.shape, tensor.ndim, tensor.size, tensor.dtype) == ((2, 3), 2, 6, f32)


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
@pytest.mark.parametrize("rank", range(5))
def test_every_rank_and_element_type(rank: int, dtype: type[DType]) -> None:
    tensor = zeros(dtype, rank)
    assert type(tensor) is RANKED[rank]
    assert tensor.rank == tensor.ndim == rank
    assert tensor.dtype is dtype
    assert np.asarray(tensor).dtype == dtype.core.numpy
    assert type(wrap(tensor._array)) is type(tensor)


@pytest.mark.parametrize("cls", RANKED)
def test_a_wrong_rank_is_never_accepted(cls: type[AnyTensor]) -> None:
    for rank in {0, 1, 2, 3, 4} - {cls.rank}:
        with pytest.raises(RankError, match=f"{cls.__name__} of an array of shape"):
            cls(np.zeros((1,) * rank))
        with pytest.raises(RankError):
            cls(zeros(f32, rank))


def test_the_declared_element_type_is_checked() -> None:
    with pytest.raises(DTypeError, match=r"Tensor2D\[f64\] of an array of float32"):
        Tensor2D(MATRIX, f64)
    with pytest.raises(DTypeError, match=r"Tensor2D\[boolean\] of an array of float32"):
        Tensor2D[boolean](MATRIX)
    with pytest.raises(DTypeError, match="made with the element type"):
        Tensor2D[f32](MATRIX, f64)
    assert np.shares_memory(Tensor2D[f32, Batch](MATRIX).numpy(), MATRIX)
    assert Tensor2D[f64]([[1, 2]]).dtype is f64


def test_lists_need_an_element_type() -> None:
    with pytest.raises(DTypeError, match="without an element type"):
        Tensor1D([1.0])
    with pytest.raises(DTypeError, match="an element type is one of f16, bf16"):
        Tensor1D([1.0], np.float32)
    with pytest.raises(ShapeError, match="ragged"):
        Tensor2D([[1.0], [2.0, 3.0]], f32)


def test_tensors_are_taken_as_arrays() -> None:
    tensor = Tensor1D([1.0, 2.0], bf16)
    assert Tensor1D(tensor).dtype is bf16
    assert np.shares_memory(Tensor1D(tensor)._array, tensor._array)


def test_families_make_nothing() -> None:
    with pytest.raises(DTypeError, match="an element type is one of"):
        Float(1.0)
    for cls in (AnyTensor, Ranked, Batched):
        with pytest.raises(RankError, match="Tensor0D to Tensor4D"):
            cls(MATRIX)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (f16, 0.5),
        (bf16, 0.5),
        (f32, 0.5),
        (f64, 0.5),
        (i8, -3),
        (i32, -3),
        (i64, 3),
        (boolean, True),
    ],
)
def test_a_scalar_gives_its_value_back(dtype: type[DType], value: Any) -> None:
    scalar: Any = dtype(value)
    assert type(scalar) is Tensor0D and scalar.dtype is dtype
    assert (float(scalar), int(scalar), bool(scalar)) == (float(value), int(value), bool(value))
    assert float(dtype(np.asarray(value)[()])) == float(value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (i8, 128),
        (i32, 2**31),
        (i64, 2**63),
        (i32, 1.0),
        (boolean, 1),
        (f16, 1e6),
        (f32, "1"),
        (f32, 1j),
    ],
)
def test_a_scalar_out_of_range_is_an_error(dtype: type[DType], value: object) -> None:
    with pytest.raises(DTypeError):
        dtype(value)


def test_bf16_reads_as_float32() -> None:
    tensor = Tensor1D([0.1, -2.0], bf16)
    assert tensor._array.dtype == np.uint16
    assert np.asarray(tensor).tolist() == [0.10009765625, -2.0]
    with pytest.raises(DTypeError, match="NumPy has no bf16"):
        tensor.numpy()
    with pytest.raises(DTypeError, match="NumPy has no bf16"):
        np.from_dlpack(tensor)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(tensor, copy=False)


def test_the_array_protocol() -> None:
    tensor = Tensor2D(MATRIX)
    assert np.shares_memory(np.asarray(tensor), MATRIX)
    assert not np.shares_memory(np.array(tensor), MATRIX)
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, dtype=np.float64, copy=False)
    assert np.sum(tensor) == 15.0


def test_dlpack_shares_memory() -> None:
    array = np.from_dlpack(Tensor2D(MATRIX))
    assert np.shares_memory(array, MATRIX)
    assert Tensor2D(MATRIX).__dlpack_device__() == (1, 0)


def test_tensors_are_immutable() -> None:
    tensor: Any = Tensor2D(MATRIX)
    for change in ("_array", "shape", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(tensor, change, MATRIX)
        with pytest.raises(FrozenInstanceError):
            delattr(tensor, change)
    assert not hasattr(tensor, "__dict__")


def test_tensors_have_no_arithmetic() -> None:
    tensor: Any = Tensor2D(MATRIX)
    for operation in ("__add__", "__matmul__", "__getitem__", "__iter__", "__neg__"):
        assert not hasattr(tensor, operation)


def test_equality_is_identity() -> None:
    first, second = Tensor2D(MATRIX), Tensor2D(MATRIX)
    assert first == first and first != second
    assert len({first, second, first}) == 2
    assert (first == MATRIX) is False
    assert first.__eq__("an expression") is NotImplemented


def test_the_truth_of_many_is_an_error() -> None:
    with pytest.raises(RankError, match="neither true nor false"):
        bool(Tensor1D([True], boolean))


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_copies_and_pickles(dtype: type[DType]) -> None:
    tensor = zeros(dtype, 2)
    assert copy.copy(tensor) is tensor
    for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert type(other) is Tensor2D and other.dtype is dtype
        assert not np.shares_memory(other._array, tensor._array)
        np.testing.assert_array_equal(other, tensor)


def test_how_tensors_print() -> None:
    assert repr(Tensor2D([[0, 0.5]], f32)) == "Tensor2D([[0. , 0.5]], f32)"
    assert repr(Tensor1D([True], boolean)) == "Tensor1D([ True], boolean)"
    assert repr(bf16(0.1)) == "Tensor0D(0.10009766, bf16)"
    assert repr(Tensor2D(np.zeros((0, 3)))) == "Tensor2D([], f64, shape=(0, 3))"
    assert repr(Tensor1D(np.zeros(2000))).endswith("0.], f64, shape=(2000,))")


def test_annotations_work_at_run_time() -> None:
    def f(x: Tensor2D[f32, Batch, In], y: Scalar[f32] | Tensor4D[f64], z: Bool) -> Tensor3D[i8]:
        raise AssertionError

    hints = typing.get_type_hints(f, localns={**globals(), **vars(tensors)})
    assert typing.get_origin(hints["x"]) is Tensor2D
    assert typing.get_args(hints["x"]) == (f32, Batch, In)
    assert hints["y"] == Tensor0D[f32] | Tensor4D[f64]
    assert hints["z"] == Tensor0D[boolean]
    assert hints["return"] == Tensor3D[i8]
    assert AnyTensor[Float] == AnyTensor[Float]
    with pytest.raises(TypeError, match="Tensor1D has 1 dimensions to name, got 2"):
        Tensor1D[f32, Batch, In]


def test_named_changes_only_the_type() -> None:
    tensor = Tensor2D(MATRIX)
    assert named(tensor, Batch, In) is tensor
    with pytest.raises(RankError, match="rank 2 cannot take 1 names"):
        named(tensor, Batch)


def test_errors_are_the_builtins_a_user_expects() -> None:
    with pytest.raises(ValueError, match="rank"):
        Tensor1D(MATRIX)
    with pytest.raises(TypeError):
        i8(300)
    assert issubclass(DTypeError, NNKitError) and issubclass(RankError, ShapeError)
