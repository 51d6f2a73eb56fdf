"""Which arguments an entry takes; all others go to the fallback, as they were given."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode
from nnkit.jit.entry.signature import STORAGE

from .programs import (
    Array,
    Compiler,
    FallbackCalled,
    Layer,
    Program,
    Tensor,
    Tensor0D,
    Tensor2D,
    copying,
    example,
    struct,
    tensor,
)

MATRIX = ArrayNode("f32", (3, 4), Tensor2D)
X = example(MATRIX)


def copy_of(compiler: Compiler, leaf: ArrayNode) -> Program:
    """The program that returns its argument."""
    signature = Signature((leaf,), leaf)
    return compiler(signature, copying(signature, [0]))


class Subclass(np.ndarray[Any, np.dtype[Any]]):
    """An array that is not exactly one."""


class DerivedTensor(Tensor2D):
    """A tensor that is not exactly one."""

    __slots__ = ()


def misaligned() -> Array:
    """The right values at an odd address."""
    memory = np.zeros(X.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(X.tobytes(), np.uint8)
    return memory.view(np.float32).reshape(X.shape)


def unset() -> object:
    """A tensor whose slot was never set."""
    return object.__new__(Tensor2D)


REFUSED: dict[str, object] = {
    "None": None,
    "list": X.tolist(),
    "scalar": 1.5,
    "NumPy scalar": np.float32(1.5),
    "dtype": X.astype(np.float64),
    "dtype of equal size": X.view(np.int32),
    "rank 1": X.reshape(12),
    "rank 3": X.reshape(1, 3, 4),
    "rank 0": np.array(1, np.float32),
    "shape": X.reshape(4, 3),
    "empty": X[:0],
    "larger": np.zeros((3, 5), np.float32),
    "transposed": example(ArrayNode("f32", (4, 3))).T,
    "column order": np.asfortranarray(X),
    "gaps": np.zeros((3, 8), np.float32)[:, ::2],
    "reversed": X[::-1],
    "swapped bytes": X.astype(">f4"),
    "misaligned": misaligned(),
    "subclass": X.view(Subclass),
    "matrix": X.view(np.matrix),
    "masked": np.ma.masked_array(X),
    "tensor class": tensor(Tensor0D, X),
    "derived tensor": tensor(DerivedTensor, X),
    "base tensor": tensor(Tensor, X),
    "unset": unset(),
    "tensor of list": tensor(Tensor2D, X.tolist()),
    "tensor of tensor": tensor(Tensor2D, tensor(Tensor2D, X)),
    "tensor of other shape": tensor(Tensor2D, X.T),
    "tensor class itself": Tensor2D,
    "tuple": (X,),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(compiler: Compiler, name: str) -> None:
    seen: list[tuple[tuple[object, ...], dict[str, object]]] = []

    def fallback(*arguments: object, **keywords: object) -> object:
        seen.append((arguments, keywords))
        return "answer"

    signature = Signature((MATRIX, MATRIX), MATRIX)
    program = compiler(signature, copying(signature, [0]), fallback=fallback)
    given = REFUSED[name]
    assert program(X, given) == "answer"
    assert program(given, X) == "answer"
    (first, no_keywords), (second, _) = seen
    assert first[0] is second[1] is X
    assert first[1] is second[0] is given
    assert no_keywords == {}


def test_refused_numbers_of_arguments(compiler: Compiler) -> None:
    seen: list[tuple[int, list[str]]] = []

    def fallback(*arguments: object, **keywords: object) -> None:
        seen.append((len(arguments), [*keywords]))

    signature = Signature((MATRIX, MATRIX), MATRIX)
    program = compiler(signature, copying(signature, [0]), fallback=fallback)
    program()
    program(X)
    program(X, X, X)
    program(X, y=X)
    program(X, X, out=X)
    assert seen == [(0, []), (1, []), (3, []), (1, ["y"]), (2, ["out"])]


def test_refused_memory_map(compiler: Compiler, tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 4))
    with pytest.raises(FallbackCalled):
        copy_of(compiler, MATRIX)(mapped)


@pytest.mark.parametrize(
    "given",
    [
        None,
        (X, X),
        [X, X],
        struct(Layer),
        struct(Layer, X),
        struct(Layer, X, X, X),
        struct(Layer, X, None),
        struct(Layer, X, (X,)),
        object.__new__(Layer),
        type("Other", (Layer,), {"__slots__": ()})(),
        X,
    ],
    ids=["None", "tuple", "list", "0", "1", "3", "no array", "nested", "unset", "derived", "array"],
)
def test_refused_records(compiler: Compiler, given: object) -> None:
    signature = Signature((RecordNode(Layer, (MATRIX, MATRIX)),), MATRIX)
    program = compiler(signature, copying(signature, [1]))
    program(struct(Layer, X, X))
    with pytest.raises(FallbackCalled):
        program(given)


@pytest.mark.parametrize("given", [None, (), (X,), (X, X, X), [X, X], struct(Layer, X, X), X])
def test_refused_tuples(compiler: Compiler, given: object) -> None:
    signature = Signature((TupleNode((MATRIX, MATRIX)),), MATRIX)
    program = compiler(signature, copying(signature, [1]))
    program((X, X))
    with pytest.raises(FallbackCalled):
        program(given)


def test_a_record_whose_slot_holds_no_tuple(compiler: Compiler) -> None:
    signature = Signature((RecordNode(Layer, (MATRIX,)),), MATRIX)
    layer = struct(Layer)
    layer._fields = [X]
    with pytest.raises(FallbackCalled):
        compiler(signature, copying(signature, [0]))(layer)


def test_an_unwrapped_leaf_takes_no_tensor(compiler: Compiler) -> None:
    with pytest.raises(FallbackCalled):
        copy_of(compiler, ArrayNode("f32", (3, 4)))(tensor(Tensor2D, X))


def test_read_only_is_taken(compiler: Compiler) -> None:
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(copy_of(compiler, MATRIX)(x).array, X)


@pytest.mark.parametrize("dtype", STORAGE)
def test_a_dtype_object_of_its_own_is_taken(compiler: Compiler, dtype: str) -> None:
    """Arrays from pickle have a dtype that is equal to NumPy's, but not the same object."""
    leaf = ArrayNode(dtype, (2, 3))
    x: Array = pickle.loads(pickle.dumps(example(leaf)))
    assert x.dtype is not leaf.storage
    np.testing.assert_array_equal(copy_of(compiler, leaf)(x), x)


@pytest.mark.parametrize(("dtype", "same"), [("i64", np.longlong), ("i64", np.int_)])
def test_other_names_of_a_dtype_are_taken(
    compiler: Compiler, dtype: str, same: type[np.generic]
) -> None:
    leaf = ArrayNode(dtype, (4,))
    x = example(leaf).astype(np.dtype(same))
    np.testing.assert_array_equal(copy_of(compiler, leaf)(x), x)


def test_strides_of_short_axes_do_not_matter(compiler: Compiler) -> None:
    leaf = ArrayNode("f32", (1, 5, 1))
    x = np.lib.stride_tricks.as_strided(example(leaf), (1, 5, 1), (1000, 4, 12))
    assert x.flags.c_contiguous
    np.testing.assert_array_equal(copy_of(compiler, leaf)(x), x)


def test_views_without_gaps_are_taken(compiler: Compiler) -> None:
    table = example(ArrayNode("f32", (5, 3, 4)))
    np.testing.assert_array_equal(copy_of(compiler, MATRIX)(table[2]).array, table[2])
