"""Concrete tensors: what they hold, what they refuse, and how other libraries read them."""

from __future__ import annotations

import copy
import operator
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
    IndexOutOfRangeError,
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
FROZEN = MATRIX.copy()
FROZEN.flags.writeable = False


class Batch(Dim): ...


class In(Dim): ...


def zeros(dtype: type[DType], rank: int) -> AnyTensor:
    return RANKED[rank](np.zeros((2,) * rank, dtype.core.storage), dtype)


def test_a_read_only_view_of_a_buffer_is_copied_if_the_buffer_can_be_written_to() -> None:
    for buffer, shares in ((bytearray(MATRIX.tobytes()), False), (MATRIX.tobytes(), True)):
        view = np.frombuffer(buffer, MATRIX.dtype).reshape(MATRIX.shape)
        view.flags.writeable = False
        tensor = Tensor2D(view)
        assert np.shares_memory(tensor.numpy(), view) == shares
        if isinstance(buffer, bytearray):
            buffer[:] = bytes(len(buffer))
        np.testing.assert_array_equal(tensor, MATRIX)


def test_a_tensor_copies_what_can_be_written_to() -> None:
    """Its value does not change, whatever is written later to the array that it came from, or that it gives."""
    array = MATRIX.copy()
    view = array[:]
    view.flags.writeable = False  # but `array` can be written to
    copied = [Tensor2D(array), Tensor2D(view), Tensor2D[f32](array), Tensor2D(array, copy=True)]
    shared = Tensor2D(array, copy=False)
    array[:] = 7.0
    for tensor in copied:
        np.testing.assert_array_equal(tensor, MATRIX)
    np.testing.assert_array_equal(shared, array)
    assert np.shares_memory(Tensor2D(FROZEN).numpy(), FROZEN)
    assert not np.shares_memory(Tensor2D(FROZEN, copy=True).numpy(), FROZEN)
    assert np.shares_memory(Tensor2D(FROZEN[:1]).numpy(), FROZEN)
    tensor = Tensor2D(FROZEN.copy())
    for given in (tensor.numpy(), np.asarray(tensor)):
        with pytest.raises(ValueError, match="read-only"):
            given[0, 0] = 1.0
    written = np.array(tensor)
    written[:] = 5.0
    np.testing.assert_array_equal(tensor, MATRIX)


def test_what_is_known_of_a_tensor() -> None:
    tensor = Tensor2D(MATRIX)
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
    assert np.shares_memory(Tensor2D[f32, Batch](FROZEN).numpy(), FROZEN)
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
        with pytest.raises(RankError, match="Tensor0D to Tensor5D"):
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
    tensor = Tensor2D(FROZEN)
    assert np.shares_memory(np.asarray(tensor), FROZEN)
    assert not np.shares_memory(np.array(tensor), FROZEN)
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, dtype=np.float64, copy=False)
    assert np.sum(tensor) == 15.0


def test_dlpack_shares_memory() -> None:
    tensor = Tensor2D(MATRIX)
    array = np.from_dlpack(tensor)
    assert np.shares_memory(array, tensor.numpy())
    assert Tensor2D(MATRIX).__dlpack_device__() == (1, 0)


def test_tensors_are_immutable() -> None:
    tensor: Any = Tensor2D(MATRIX)
    for change in ("_array", "shape", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(tensor, change, MATRIX)
        with pytest.raises(FrozenInstanceError):
            delattr(tensor, change)
    assert not hasattr(tensor, "__dict__")


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


BINARY: list[Any] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.pow,
    operator.lshift,
    operator.rshift,
]
SHIFTS = (operator.lshift, operator.rshift)
LOGIC = (operator.and_, operator.or_, operator.xor)
COMPARISONS = (operator.eq, operator.ne)


def takes(operate: Any, dtype: type[DType]) -> bool:
    """Whether the language has the operator for the element type."""
    if dtype is boolean:
        return operate in (*LOGIC, *COMPARISONS)
    if dtype.core.is_float:
        return operate not in (*LOGIC, *SHIFTS, operator.floordiv)
    return operate is not operator.truediv


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_operators_are_those_of_numpy_without_promotion(dtype: type[DType]) -> None:
    is_bool = dtype is boolean
    x: Any = Tensor2D([[True, False, True]] if is_bool else [[1, 2, 3], [4, 5, -6]], dtype)
    y: Any = Tensor1D([True, True, False] if is_bool else [3, 2, 5], dtype)
    number: Any = True if is_bool else 2
    a, b = np.asarray(x), np.asarray(y)
    for operate in BINARY:
        if operate is operator.pow or operate in SHIFTS:
            x, y = (
                (x, y) if is_bool else (abs(x), abs(y))
            )  # negative ones are refused, or not defined
            a, b = np.asarray(x), np.asarray(y)
        if not takes(operate, dtype):
            with pytest.raises(DTypeError, match=r"takes|cast"):
                operate(x, y)
            continue
        with np.errstate(all="ignore"):
            pairs = [
                (operate(x, y), operate(a, b)),
                (operate(y, x), operate(b, a)),
                (operate(x, number), operate(a, a.dtype.type(number))),
                (operate(number, y), operate(b.dtype.type(number), b)),
            ]
            if dtype is not bf16:
                pairs += [(operate(x, b), operate(a, b)), (operate(a, y), operate(a, b))]
        for found, wanted in pairs:
            assert isinstance(found, AnyTensor), operate
            assert found.dtype is (boolean if wanted.dtype == bool else dtype), operate
            rounded = dtype.core.round(wanted) if found.dtype is dtype else wanted
            np.testing.assert_array_equal(np.asarray(found), rounded, str(operate))
    if not dtype.core.is_float:
        np.testing.assert_array_equal(~x, ~a)
    if is_bool:
        return
    for unary in (operator.neg, operator.pos, operator.abs):
        np.testing.assert_array_equal(unary(x), unary(a))
    assert (x @ y).dtype is dtype and (x @ b if dtype is not bf16 else x @ y).shape == (2,)
    np.testing.assert_array_equal(x @ y, a @ b)
    np.testing.assert_array_equal(a.T @ x, a.T @ a) if dtype is not bf16 else None


def test_what_operators_refuse() -> None:
    x, n = Tensor1D([1.0, 2.0], f32), Tensor1D([1, 2], i32)
    for operate, error, message in (
        (lambda: x + n, DTypeError, "f32 and i32"),
        (lambda: x + np.ones(2), DTypeError, "f32 and f64"),
        (lambda: np.ones(2) * x, DTypeError, "f64 and f32"),
        (lambda: n + 0.5, DTypeError, "0.5"),
        (lambda: n / 2, DTypeError, "takes float elements"),
        (lambda: n**-1, DTypeError, "no negative powers"),
        (lambda: x + True, DTypeError, "a bool, not f32"),
        (lambda: x + Tensor1D([1.0, 2.0, 3.0], f32), ShapeError, "2.*3"),
        (lambda: x @ Tensor1D([1.0], f32), ShapeError, "inner dimensions"),
        (lambda: x + "1", TypeError, "unsupported operand"),
        (lambda: x + np.ones((1,) * 6, np.float32), RankError, "rank 6|at most 5"),
    ):
        with pytest.raises(error, match=message):
            operate()
    with pytest.raises(DTypeError, match="immutable"):
        np.add(np.ones(2, np.float32), np.ones(2, np.float32), out=x)
    assert (x == "text") is False and x != None  # noqa: E711  # by identity, as nothing is in common
    assert len({x, n, x}) == 2
    assert x.cast(i32).dtype is i32 and x.cast(f32) is x
    with pytest.raises(DTypeError, match="an element type is wanted"):
        x.cast(np.float32)


def test_other_functions_of_numpy_give_arrays() -> None:
    x = Tensor1D([1.0, 4.0], f32)
    assert isinstance(np.sqrt(x), np.ndarray) and np.sqrt(x).tolist() == [1.0, 2.0]
    assert np.add.reduce(x) == 5.0 and np.maximum(np.zeros(2, np.float32), x).tolist() == [1.0, 4.0]
    assert np.allclose(x, [1.0, 4.0])


def test_subscripts_are_those_of_numpy() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    x: Any = Tensor3D(values)
    index: Any = Tensor1D([1, 0], i64)
    for key in (
        0, -1, (1, 2, 3), slice(1, None), (slice(None), 1), (..., 2), (None, 0), (0, slice(None, None, -2)),
        np.array([1, 0]), (slice(None), [0, 2]), values > 11.0,
    ):  # fmt: skip
        found = x[key]
        np.testing.assert_array_equal(found, values[key])
        assert type(found) is RANKED[np.ndim(values[key])] and found.dtype is f64
    np.testing.assert_array_equal(x[index], values[[1, 0]])
    np.testing.assert_array_equal(x[x > 11.0], values[values > 11.0])
    assert np.shares_memory(x[1].numpy(), x.numpy())
    assert len(x) == 2 and [len(row) for row in x] == [3, 3]
    assert [float(one) for one in Tensor1D([1.0, 2.0], f32)] == [1.0, 2.0]
    assert 5.0 in x and 99.0 not in x
    scalar: Any = f32(1.0)
    for misuse, error, message in (
        (lambda: x[2], IndexOutOfRangeError, r"out of bounds.*shape \[2, 3, 4\]"),
        (lambda: x[None, None, None], RankError, "rank 6"),
        (lambda: x[0, 0, 0, 0], IndexOutOfRangeError, "too many indices"),
        (lambda: len(scalar), RankError, "a scalar has no length"),
        (lambda: [*scalar], RankError, "no elements to iterate"),
        (lambda: operator.setitem(x, 0, 1.0), DTypeError, "immutable"),
    ):
        with pytest.raises(error, match=message):
            misuse()


def test_numbers_of_tensors() -> None:
    loss, v = f32(0.123456), Tensor1D([1.0, 2.5], f32)
    assert f"{loss:.3f} {loss:8.2e}" == "0.123 1.23e-01" and f"{loss}" == repr(loss)
    assert (
        f"{v:.2f}" == "[1.00, 2.50]" and f"{i32(7):03d}" == "007" and f"{bf16(0.1):.3f}" == "0.100"
    )
    assert round(loss, 2) == round(float(loss), 2) and round(f32(2.6)) == 3
    assert v.tolist() == [1.0, 2.5] and loss.tolist() == loss.item() == float(loss)
    assert Tensor2D([[3]], i64).item() == 3 and isinstance(i64(3).item(), int)
    with pytest.raises(ShapeError, match=r"shape \[2\] has not one element but 2"):
        v.item()
    assert bool(loss < 1) and bool(loss != 0.5)
    assert [10, 20, 30][i64(1)] == 20 and list(range(i32(2))) == [0, 1]
    with pytest.raises(DTypeError, match="an index is an integer"):
        range(loss)  # type: ignore[call-overload]  # not an integer


def test_element_types_are_those_of_numpy_arrays() -> None:
    for dtype in ELEMENT_TYPES:
        if dtype is bf16:
            with pytest.raises(DTypeError, match="NumPy has no bf16"):
                np.zeros(3, dtype=dtype)
        else:
            assert np.zeros(3, dtype=dtype).dtype == dtype.core.numpy
            assert np.asarray([1, 0]).astype(dtype).dtype == dtype.core.numpy
