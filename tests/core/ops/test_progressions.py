"""What is known of indices is what the evaluator finds, for random sums and products of iotas and literals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Value
from nnkit.core.ops import Add, DataTypeCast, Iota, Multiply, Negate, Subtract
from nnkit.core.ops.literal import constant, dense
from nnkit.core.ops.progressions import emit_progression, progression_of
from nnkit.core.types import I8, I32, I64, DType, TensorType, scalar
from tests.core.passes.laws import module_of

NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "radd", "sub", "rsub", "mul", "neg", "cast"]), NUMBERS),
    max_size=5,
)


def _wrapped(number: int, dtype: DType) -> int:
    """The integer of the type that a number of any size is."""
    return int(np.array(number).astype(np.int64).astype(dtype.numpy))


def _applied(b: Builder, x: Value, steps: Sequence[tuple[str, int]]) -> Value:
    for how, number in steps:
        dtype = x.tensor.dtype
        by = constant(b, scalar(dtype), _wrapped(number, dtype))
        match how:
            case "add":
                x = b.emit(Add(), x, by)
            case "radd":
                x = b.emit(Add(), by, x)
            case "sub":
                x = b.emit(Subtract(), x, by)
            case "rsub":
                x = b.emit(Subtract(), by, x)
            case "mul":
                x = b.emit(Multiply(), x, by)
            case "neg":
                x = b.emit(Negate(), x)
            case _:
                x = b.emit(DataTypeCast(I64 if dtype is I32 else I32), x)
    return x


@given(st.integers(1, 6) | st.just(200), st.sampled_from([I8, I32, I64]), STEPS)
def test_of_an_iota(count: int, dtype: DType, steps: Sequence[tuple[str, int]]) -> None:
    found: list[Any] = []
    x_type: list[DType] = []

    def build(b: Builder) -> Value:
        x = _applied(b, b.emit(Iota((count,), 0, dtype)), steps)
        found.append(progression_of(x))
        x_type.append(x.tensor.dtype)
        return x

    module = module_of([], build)
    computed = evaluate(module, "main").tolist()
    if found[0] is not None:
        assert list(found[0]) == computed
    if not steps:
        assert found[0] == (range(count) if dtype is not I8 or count < 129 else None)
    if found[0] is not None:
        again = module_of([], lambda b: emit_progression(b, found[0], x_type[0]))
        assert evaluate(again, "main").tolist() == computed


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from([I32, I64]))
@example([2**31 - 1, -(2**31)], I32)
@example([2**63 - 1, -(2**63)], I64)
@example([2**62, -(2**63)], I64)
@example([0, 2**30, -(2**31)], I32)
@example([-(2**63), -(2**63) + 1, 2**63 - 1], I64)
def test_of_a_literal(numbers: list[int], dtype: DType) -> None:
    numbers = [_wrapped(number, dtype) for number in numbers]
    steps = {after - before for before, after in pairwise(numbers)}
    found: list[Any] = []

    def build(b: Builder) -> Value:
        x = b.emit(dense(TensorType((len(numbers),), dtype), numbers))
        found.append(progression_of(x))
        return x

    module_of([], build)
    # a step that the type does not have is none that indices go by
    limits = np.iinfo(dtype.numpy)
    is_even = len(steps) < 2 and all(step and limits.min <= step <= limits.max for step in steps)
    assert (found[0] is not None and list(found[0]) == numbers) if is_even else found[0] is None


@given(
    st.integers(1, 6),
    st.integers(-5, 5).filter(bool),
    st.integers(-9, 9),
    st.sampled_from([I32, I64]),
)
def test_of_what_is_emitted(count: int, step: int, first: int, dtype: DType) -> None:
    numbers = range(first, first + count * step, step)
    found: list[Any] = []

    def build(b: Builder) -> Value:
        x = emit_progression(b, numbers, dtype)
        found.append(progression_of(x))
        return x

    assert evaluate(module_of([], build), "main").tolist() == list(numbers)
    assert found[0] == numbers


def test_a_number_that_is_broadcast_is_none() -> None:
    def build(b: Builder) -> Value:
        one = b.emit(Iota((1,), 0, I64))
        many = b.emit(Add(), one, b.emit(dense(TensorType((3,), I64), [4, 4, 4])))
        assert progression_of(one) == range(1) and progression_of(many) is None
        return many

    module_of([], build)


def test_scalars_are_known_by_what_they_are_computed_of() -> None:
    def build(b: Builder, index: Value) -> Value:
        last = b.emit(Subtract(), constant(b, scalar(I64), 9), index)
        assert progression_of(last) is None
        assert progression_of(last, {index: range(2, 6)}) == range(7, 3, -1)
        return last

    module_of([scalar(I64)], build)
