"""Results that are given: written where they share no memory with anything else, and refused where they do."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode

from .programs import Compiler, FallbackCalled, Layer, Tensor2D, copying, example, struct, tensor

ROW = ArrayNode("i64", (4,), Tensor2D)
NOTHING = ArrayNode("i64", (0,), Tensor2D)
LAYER = RecordNode(Layer, (ROW, ROW))


def wrapped(array: Any) -> Any:
    return tensor(Tensor2D, array)


def test_results_are_written_to_what_is_given_which_is_returned(compiler: Compiler) -> None:
    signature = Signature((ROW, ROW), TupleNode((LAYER, ROW)), given_result=True)
    program = compiler(signature, copying(signature, [1, 0, 1]))
    x, y = example(ROW), example(ROW, 9)
    arrays = [np.zeros(4, np.int64) for _ in range(3)]
    out = struct(Layer, *map(wrapped, arrays[:2])), wrapped(arrays[2])
    before = [sys.getrefcount(one) for one in (out, *arrays, x)]
    for _ in range(100):
        assert program(wrapped(x), y, out=out) is out
    assert [list(one) for one in arrays] == [list(y), list(x), list(y)]
    assert [sys.getrefcount(one) for one in (out, *arrays, x)] == before


def test_every_overlap_is_found(compiler: Compiler) -> None:
    """Of an argument and a result, and of two results, in ranges of four of twelve numbers."""
    memory, elsewhere = np.zeros(12, np.int64), np.zeros(4, np.int64)
    signature = Signature((ROW,), TupleNode((ROW, ROW)), given_result=True)
    program = compiler(signature, copying(signature, [0, 0]))
    for first, second in itertools.product(range(9), repeat=2):
        a, b = memory[first : first + 4], memory[second : second + 4]
        for given in (
            (wrapped(a), (wrapped(b), wrapped(elsewhere))),
            (wrapped(a), (wrapped(elsewhere), wrapped(b))),
            (wrapped(elsewhere), (wrapped(a), wrapped(b))),
            (a, (wrapped(elsewhere), wrapped(b))),
        ):
            if abs(first - second) < 4:
                with pytest.raises(FallbackCalled):
                    program(given[0], out=given[1])
            else:
                assert program(given[0], out=given[1]) is given[1]


def test_what_is_empty_overlaps_nothing(compiler: Compiler) -> None:
    signature = Signature((ROW, NOTHING), TupleNode((NOTHING, ROW)), given_result=True)
    program = compiler(signature, copying(signature, [1, 0]))
    memory = np.zeros(8, np.int64)
    out = wrapped(memory[2:2]), wrapped(memory[4:])
    assert program(wrapped(memory[:4]), wrapped(memory[3:3]), out=out) is out


def test_what_is_given_is_wrapped_and_writable(compiler: Compiler) -> None:
    signature = Signature((ROW,), ROW, given_result=True)
    program = compiler(signature, copying(signature, [0]))
    x, frozen = example(ROW), np.zeros(4, np.int64)
    frozen.flags.writeable = False
    bad = [
        np.zeros(4, np.int64),
        wrapped(frozen),
        wrapped(np.zeros(5, np.int64)),
        wrapped(np.zeros(4)),
        wrapped(np.zeros(8, np.int64)[::2]),
        wrapped("no array"),
        tensor(Tensor2D, None),
        (),
        None,
    ]
    for out in bad:
        with pytest.raises(FallbackCalled):
            program(x, out=out)
    good = wrapped(np.zeros(4, np.int64))
    misfits: list[tuple[Any, dict[str, Any]]] = [
        ((), {}), ((x,), {}), ((x, good), {}), ((), {"out": good}), ((x, x), {"out": good}), ((x,), {"in": good}),
        ((x,), {"out": good, "in": x}), ((x,), {"in": x, "out": good}), ((x, good), {"out": good}),
    ]  # fmt: skip
    for given, keywords in misfits:
        with pytest.raises(FallbackCalled):
            program(*given, **keywords)
    assert not good.array.any()
    assert program(x, out=good) is good and list(good.array) == list(x)


def test_without_a_result_to_be_given_no_keyword_fits(compiler: Compiler) -> None:
    """Whatever its name; and native code looks at that before it looks at anything else."""
    signature = Signature((ROW,), ROW)
    program = compiler(signature, copying(signature, [0]))
    good = wrapped(np.zeros(4, np.int64))
    for keywords in ({"out": good}, {"in": good}):
        with pytest.raises(FallbackCalled):
            program(example(ROW), **keywords)
