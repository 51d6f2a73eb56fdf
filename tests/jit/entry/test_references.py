"""What a call owns: donated wrappers are emptied, nothing leaks, and nothing that others see is written to."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode

from .programs import (
    Compiler,
    FallbackCalled,
    Layer,
    Tensor2D,
    copying,
    example,
    failing,
    struct,
    tensor,
)

MATRIX = ArrayNode("i64", (2, 3), Tensor2D)
BARE = ArrayNode("i64", (2, 3))
LAYER = RecordNode(Layer, (MATRIX, MATRIX))
COUNT = ArrayNode("i64", ())
MARKERS = ("first", "second")


def fresh(seed: int = 0) -> Any:
    """A wrapper whose array nobody else has, as a result of a call has."""
    return tensor(Tensor2D, np.array(example(MATRIX, seed)))


def address(wrapper: Any) -> int:
    found: int = wrapper.array.ctypes.data
    return found


def updating(**options: Any) -> Signature:
    """x, y → x, y, where x is donated to the first."""
    return Signature(
        (MATRIX, MATRIX), TupleNode((MATRIX, MATRIX)), donated=(0,), reused=((0, 0),), **options
    )


def test_a_donated_wrapper_is_empty_and_its_array_is_the_result(compiler: Compiler) -> None:
    signature = updating()
    program = compiler(signature, copying(signature, [0, 1]), markers=MARKERS[:1])
    x, y = fresh(0), fresh(10)
    for _ in range(5):
        where = address(x)
        made, other = program(x, y)
        assert x.array == "first" and np.array_equal(made.array, example(MATRIX, 0))
        assert np.array_equal(other.array, y.array)
        assert not compiler.native or address(made) == where
        x = made


@pytest.mark.parametrize("held", ["array", "view", "base", "weak", "bare"])
def test_what_others_see_is_not_the_result(compiler: Compiler, held: str) -> None:
    signature = updating()
    program = compiler(signature, copying(signature, [1, 0]), markers=MARKERS[:1])
    array, kept = np.array(example(MATRIX)), list[Any]()
    if held == "base":
        array = np.array([array, array])[0]
    x: Any = array if held == "bare" else tensor(Tensor2D, array)
    kept.append({"view": array[:1], "weak": weakref.ref(array)}.get(held, array))
    seen = array.copy()
    if held in ("view", "weak", "base"):
        del array
    made, _ = program(x, fresh(50))
    assert np.array_equal(made.array, example(MATRIX, 50))
    if held in ("array", "bare"):
        assert np.array_equal(kept[0], seen)
    if held == "view":
        assert np.array_equal(kept[0], seen[:1])
    assert held == "bare" or x.array == "first"


def test_a_wrapper_that_is_given_twice_is_left_alone(compiler: Compiler) -> None:
    both = Signature(
        (LAYER, MATRIX, MATRIX),
        TupleNode((MATRIX, MATRIX)),
        donated=(0, 2),
        reused=((0, 0), (3, 1)),
    )
    program = compiler(both, copying(both, [0, 3]), markers=MARKERS)
    for positions in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (0, 1, 2, 3)):
        given = [fresh(n) for n in range(4)]
        for position in positions:
            given[position] = given[positions[0]]
        counts = [sys.getrefcount(one.array) for one in given]
        with pytest.raises(FallbackCalled):
            program(struct(Layer, given[0], given[1]), given[2], given[3])
        assert all(isinstance(one.array, np.ndarray) for one in given)
        assert [sys.getrefcount(one.array) for one in given] == counts
    given = [fresh(n) for n in range(4)]
    program(struct(Layer, given[0], given[1]), given[2], given[3])
    assert [one.array for one in (given[0], given[1], given[3])] == ["first", "first", "second"]
    with pytest.raises(FallbackCalled):
        program(struct(Layer, given[0], fresh()), fresh(), fresh())


def test_references_are_as_before(compiler: Compiler) -> None:
    signature = updating()
    program = compiler(signature, copying(signature, [0, 1]), markers=MARKERS[:1])
    x, y, shared = fresh(), fresh(1), np.array(example(MATRIX))
    watched = (y, y.array, MARKERS[0], shared, Tensor2D, np.ndarray)

    def counts() -> list[int]:
        return [sys.getrefcount(one) for one in watched]

    for rounds in range(2):
        before = counts()
        for _ in range(200):
            x, _ = program(x, y)
            program(tensor(Tensor2D, shared), y)
            program(shared, y)
            with pytest.raises(FallbackCalled):
                program(y, y)
        assert rounds == 0 or all(abs(n - m) < 10 for n, m in zip(before, counts(), strict=True)), (
            before,
            counts(),
        )


def test_a_call_that_fails_keeps_what_was_donated_and_leaks_nothing(compiler: Compiler) -> None:
    wrapped = ArrayNode("i64", (), Tensor2D)
    signature = Signature((wrapped,), wrapped, donated=(0,), reused=((0, 0),))
    program = compiler(signature, failing(signature), markers=("gone",))
    array = np.array(3)
    before = sys.getrefcount(array)
    for _ in range(50):
        x = tensor(Tensor2D, array)
        with pytest.raises(IndexError):
            program(x)
        assert x.array == "gone"
    assert sys.getrefcount(array) == before


def test_arrays_are_held_while_python_may_run(native: Compiler) -> None:
    signature = Signature((LAYER, BARE), TupleNode((MATRIX, BARE)))
    program = native(signature, copying(signature, [1, 2]), holds_arrays=True)
    given, bare = struct(Layer, fresh(0), fresh(1)), np.array(example(BARE, 2))
    arrays = [*(one.array for one in given.fields), bare]
    before = [sys.getrefcount(one) for one in arrays]
    for _ in range(100):
        made, other = program(given, bare)
    assert np.array_equal(made.array, arrays[1]) and np.array_equal(other, bare)
    assert [sys.getrefcount(one) for one in arrays] == before


def test_many_leaves(compiler: Compiler) -> None:
    """Then code for one is in functions."""
    many = TupleNode((MATRIX,) * 12)
    signature = Signature(
        (MATRIX, many), many, donated=(1,), reused=tuple((n + 1, n) for n in range(12))
    )
    program = compiler(signature, copying(signature, list(range(1, 13))), markers=("gone",))
    x, rows = fresh(), tuple(fresh(n) for n in range(12))
    made = program(x, rows)
    for n, (one, row) in enumerate(zip(made, rows, strict=True)):
        assert np.array_equal(one.array, example(MATRIX, n)) and row.array == "gone"
    assert isinstance(x.array, np.ndarray)


def test_a_result_is_given_or_donated_and_not_both() -> None:
    with pytest.raises(ValueError, match="so none is given"):
        updating(given_result=True)
    assert COUNT.bytes == 8
