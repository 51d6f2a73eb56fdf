"""An array is used for another result only when nobody can tell."""

import ctypes
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, Signature, TupleNode, drop_kept_results
from nnkit.jit.entry.outputs import outputs_to_recycle

from .programs import Array, Compiler, Program, Tensor2D, filling

COUNT = ArrayNode("i64", ())
ROW = ArrayNode("i64", (1, 6))


def filler(compiler: Compiler, result: ArrayNode = ROW, *, kept_bytes: int = 1 << 20) -> Program:
    """The program that fills its result with its argument."""
    signature = Signature((COUNT,), result)
    return compiler(signature, filling(signature), kept_bytes=kept_bytes)


def number(value: int) -> Array:
    """An argument."""
    return np.array(value, np.int64)


def in_a_cycle(y: object) -> object:
    """A list that holds the array and itself."""
    box = [y]
    box.append(box)
    return box


HOLDERS: dict[str, Callable[[Any], object]] = {
    "name": lambda y: y,
    "view": lambda y: y[0],
    "reshaped": lambda y: y.reshape(3, 2),
    "transposed": lambda y: y.T,
    "other dtype": lambda y: y.view(np.float64),
    "subclass": lambda y: y.view(np.matrix),
    "strided": lambda y: np.lib.stride_tricks.as_strided(y, (3,), (8,)),
    "memoryview": memoryview,
    "cast memoryview": lambda y: memoryview(y).cast("B"),
    "from buffer": lambda y: np.frombuffer(memoryview(y), np.int64),
    "ctypes": lambda y: (ctypes.c_int64 * 6).from_buffer(y),
    "flat": lambda y: y.flat,
    "iterator": iter,
    "nditer": lambda y: np.nditer(y),
    "dlpack": lambda y: np.from_dlpack(y),
    "capsule": lambda y: y.__dlpack__(),
    "array struct": lambda y: y.__array_struct__,
    "broadcast": lambda y: np.broadcast_to(y, (2, 1, 6)),
    "bound method": lambda y: y.sum,
    "closure": lambda y: lambda: y,
    "cycle": in_a_cycle,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_never_while_something_holds_it(compiler: Compiler, name: str) -> None:
    program = filler(compiler)
    holders: list[object] = []
    addresses: set[int] = set()
    contents: list[Any] = []
    for value in range(5):
        y = program(number(value))
        addresses.add(y.ctypes.data)
        contents.append((ctypes.c_int64 * 6).from_address(y.ctypes.data))
        holders.append(HOLDERS[name](y))
        del y
    for _ in range(5):
        addresses.add(program(number(99)).ctypes.data)
    assert [[*content] for content in contents] == [[value] * 6 for value in range(5)]
    assert len(addresses) >= 6


def test_never_while_a_weak_reference_exists(native: Compiler) -> None:
    program = filler(native)
    y = program(number(1))
    reference = weakref.ref(y)
    del y
    others = [program(number(2)) for _ in range(4)]
    y = reference()
    assert y is None or (y == 1).all()
    assert all((other == 2).all() for other in others)


def test_a_weak_reference_whose_callback_calls(native: Compiler) -> None:
    """Python code that runs when an array is dropped may call the same program, and changes nothing."""
    program = filler(native)
    answers: list[Array] = []
    y = program(number(1))
    reference = weakref.ref(y, lambda _: answers.append(program(number(3))))
    del y
    results = [program(number(index)) for index in range(10, 16)]
    assert [result[0, 0] for result in results] == [*range(10, 16)]
    assert reference() is None
    assert [answer[0, 0] for answer in answers] == [3]


def reshape(y: Any) -> None:
    """In place."""
    y.shape = (2, 3)


def restride(y: Any) -> None:
    """In place, where NumPy lets any number be: the first axis has one element."""
    y.strides = (8, 8)


def retype(y: Any) -> None:
    """In place."""
    y.dtype = np.dtype(np.float64)


def freeze(y: Array) -> None:
    """In place."""
    y.flags.writeable = False


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", [reshape, restride, retype, freeze])
def test_never_after_a_change(native: Compiler, change: Callable[[Any], None]) -> None:
    program = filler(native)
    fresh = np.empty((1, 6), np.int64)
    for value in range(6):
        y = program(number(value))
        assert (y.shape, y.strides, y.dtype) == (fresh.shape, fresh.strides, fresh.dtype)
        assert y.flags.num == fresh.flags.num
        assert (y == value).all()
        change(y)
        del y


def test_two_arrays_are_enough_for_a_loop(native: Compiler) -> None:
    program = filler(native)
    addresses: set[int] = set()
    y = None
    for value in range(20):
        y = program(number(value))
        addresses.add(y.ctypes.data)
    assert len(addresses) == 2


def test_a_wrapped_array_is_used_again(native: Compiler) -> None:
    program = filler(native, ArrayNode("i64", (1, 6), Tensor2D))
    seen = {id(program(number(value)).array) for value in range(20)}
    assert len(seen) <= 2


def test_the_latest_results_are_the_ones_kept(native: Compiler) -> None:
    program = filler(native)
    many = [program(number(value)) for value in range(10)]
    latest = {y.ctypes.data for y in many[-2:]}
    del many
    assert {y.ctypes.data for y in (program(number(1)), program(number(2)))} == latest


def test_without_memory_to_keep_every_array_is_new(native: Compiler) -> None:
    program = filler(native, kept_bytes=0)
    y = program(number(1))
    state: Any = program
    assert [*state.__self__[4]] == [None, None]
    assert y.flags.num == np.empty((1, 6), np.int64).flags.num


def test_dropping_what_is_kept(native: Compiler) -> None:
    program = filler(native)
    for _ in range(3):
        program(number(1))
    state: Any = program
    places: Array = state.__self__[4]
    assert any(place is not None for place in places)
    drop_kept_results(program)
    assert [*places] == [None, None]
    assert (program(number(5)) == 5).all()


def test_dropping_is_harmless_with_the_python_entry() -> None:
    program = filler(Compiler(False))
    drop_kept_results(program)
    assert (program(number(5)) == 5).all()


def test_the_smallest_are_kept() -> None:
    leaves = [ArrayNode("f64", (size,)) for size in (100, 1, 50, 0)]
    assert outputs_to_recycle(leaves, 0) == {3}
    assert outputs_to_recycle(leaves, 16) == {1, 3}
    assert outputs_to_recycle(leaves, 16 + 800) == {1, 2, 3}
    assert outputs_to_recycle(leaves, 1 << 20) == {0, 1, 2, 3}


def test_outputs_have_arrays_of_their_own(native: Compiler) -> None:
    signature = Signature((COUNT,), TupleNode((ROW, ROW)))
    program = native(signature, filling(signature))
    for value in range(6):
        a, b = program(number(value))
        assert not np.shares_memory(a, b)
        assert (a == value).all() and (b == value).all()


def test_collecting_garbage_between_calls_changes_nothing(native: Compiler) -> None:
    program = filler(native)
    for value in range(6):
        y = program(number(value))
        gc.collect()
        assert (y == value).all()
