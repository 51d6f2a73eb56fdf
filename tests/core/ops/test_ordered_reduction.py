"""Folds by a function: order, initial values, what is outside of windows, and what they refuse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, NNKitError, RankError, ShapeError
from nnkit.core.ir import Effect
from nnkit.core.ops import (
    ORDERED,
    Add,
    Combinator,
    OrderedReduction,
    PaddingMode,
    Reduce,
    ReduceBy,
    ReduceInOrder,
    ReduceWindow,
    ReduceWindowBy,
    ReduceWindowInOrder,
    Scan,
    ScanBy,
    ScanInOrder,
    Subtract,
)
from nnkit.core.types import BF16, F16, F32, Array, DType, FunctionType, TensorType, Type
from tests.nearest import epsilon

from .running import result_of
from .samples import boolean, f32, f64, i64

F = FunctionType((f64(), f64()), f64())


def digits(function: Any, total: Array, x: Array) -> Array:
    """A function that is not associative: its result tells the order."""
    return np.asarray(10.0 * total + x)


def folded(op: OrderedReduction, x: Any, *init: float) -> Any:
    operands = [np.asarray(x, np.float64), *(np.asarray(v) for v in init), None]
    result = op.evaluate_by(digits, *operands)
    types: list[Type] = [f64(*operands[0].shape), *(f64() for _ in init), F]
    assert op.infer(*types) == f64(*result.shape)
    return result.tolist()


def test_elements_are_taken_from_left_to_right() -> None:
    assert folded(ReduceBy((0,)), [1, 2, 3], 4) == 4123
    assert folded(ReduceBy((0,)), [1, 2, 3]) == 123
    assert folded(ReduceBy((0, 1)), [[1, 2], [3, 4]]) == 1234
    assert folded(ReduceBy((1, 0)), [[1, 2], [3, 4]]) == 1234
    assert folded(ReduceBy((0,)), [[1, 2], [3, 4]], 5) == [513, 524]
    assert folded(ReduceBy((1,)), [[1, 2], [3, 4]]) == [12, 34]


def test_reductions_of_nothing() -> None:
    assert folded(ReduceBy((0,)), np.zeros((0, 2)), 5) == [5, 5]
    assert folded(ReduceBy((1,)), np.zeros((0, 2))) == []
    assert folded(ReduceBy(()), [1, 2]) == [1, 2]
    assert folded(ReduceBy(()), [1, 2], 3) == [31, 32]
    assert folded(ReduceBy(()), 1, 3) == 31


def test_scans() -> None:
    assert folded(ScanBy(0), [1, 2, 3]) == [1, 12, 123]
    assert folded(ScanBy(0), [1, 2, 3], 4) == [41, 412, 4123]
    assert folded(ScanBy(0, exclusive=True), [1, 2, 3], 4) == [4, 41, 412]
    assert folded(ScanBy(0, reverse=True), [1, 2, 3]) == [321, 32, 3]
    assert folded(ScanBy(0, True, True), [1, 2, 3], 4) == [432, 43, 4]
    assert folded(ScanBy(1), [[1, 2], [3, 4]]) == [[1, 12], [3, 34]]
    assert folded(ScanBy(0), [[1, 2], [3, 4]]) == [[1, 2], [13, 24]]
    assert folded(ScanBy(0), np.zeros((0, 2)), 1) == []


def test_windows_leave_out_what_is_outside() -> None:
    assert folded(ReduceWindowBy((2,)), [1, 2, 3], 0) == [12, 23]
    assert folded(ReduceWindowBy((2,), (2,), PaddingMode.FULL), [1, 2, 3], 4) == [41, 423]
    assert folded(ReduceWindowBy((2,), (), ((2, 0),)), [1, 2], 4) == [4, 41, 412]
    assert folded(ReduceWindowBy((2, 2)), [[1, 2], [3, 4]], 0) == [[1234]]
    assert folded(ReduceWindowBy((), ()), 1, 4) == 41


PAIRS: list[tuple[OrderedReduction, Any, Any, Any]] = [
    (ReduceBy((0, 2)), Reduce(Combinator.ADD, (0, 2)), np.add, 0),
    (ReduceBy((1,)), Reduce(Combinator.MAX, (1,)), np.maximum, None),
    (ScanBy(1, True, True), Scan(Combinator.MULTIPLY, 1, True, True), np.multiply, 1),
    (ScanBy(2), Scan(Combinator.MIN, 2), np.minimum, None),
    (ReduceWindowBy((2, 1, 2), (1, 2, 1), PaddingMode.HALF),
     ReduceWindow(Combinator.ADD, (2, 1, 2), (1, 2, 1), PaddingMode.HALF), np.add, 0),
]  # fmt: skip


@pytest.mark.parametrize(("by", "op", "ufunc", "init"), PAIRS, ids=lambda x: getattr(x, "name", ""))
def test_by_a_function_that_is_an_operation(
    by: OrderedReduction, op: Any, ufunc: Any, init: Any
) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (3, 2, 4)).astype(np.float64)
    start = [] if init is None else [np.float64(init)]
    found = by.evaluate_by(lambda _, total, element: ufunc(total, element), x, *start, None)
    np.testing.assert_array_equal(found, op.evaluate(x))


def in_order(op: OrderedReduction, x: Any, *init: float) -> Any:
    """What the evaluator makes of a fold in order."""
    types = [f64(*np.shape(x)), *(f64() for _ in init)]
    assert isinstance(op.infer(*types), TensorType)
    return result_of(op, types, [np.asarray(x, np.float64), *map(np.asarray, init)]).tolist()


def test_operations_that_are_not_associative_go_in_order() -> None:
    minus, over = ORDERED["subtract"], ORDERED["divide"]
    assert in_order(ReduceInOrder((0,), by=minus), [1, 2, 3]) == -4
    assert in_order(ReduceInOrder((0,), by=minus), [1, 2, 3], 10) == 4
    assert in_order(ReduceInOrder((0, 1), by=over), [[16, 2], [4, 8]]) == 0.25
    assert in_order(ReduceInOrder((1,), by=ORDERED["power"]), [[2, 3], [3, 2]]) == [8, 9]
    assert in_order(ReduceInOrder((), by=minus), [1, 2], 3) == [2, 1]
    assert in_order(ScanInOrder(0, by=minus), [1, 2, 3]) == [1, -1, -4]
    assert in_order(ScanInOrder(0, True, True, by=minus), [1, 2, 3], 4) == [-1, 1, 4]
    assert in_order(ReduceWindowInOrder((2,), by=minus), [1, 2, 4], 0) == [-3, -6]
    assert in_order(ReduceWindowInOrder((2,), (), PaddingMode.FULL, by=minus), [1, 2], 9) == [
        8,
        6,
        7,
    ]


@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=str)
def test_each_step_is_rounded(dtype: DType) -> None:
    """As a loop of the operation does it: half of the last digit is lost each time."""
    steps = np.array([1, *[epsilon(dtype) / 4] * 8])
    op = ReduceInOrder((0,), by=ORDERED["subtract"])
    assert result_of(op, [TensorType((9,), dtype)], [dtype.round(steps)]) == 1


MINUS = Subtract()
ERRORS: list[tuple[OrderedReduction, tuple[Type, ...], str, type[NNKitError]]] = [
    (ReduceBy((0,)), (f64(2), FunctionType((f64(),), f64())), "combines by a (f64, f64) -> f64, not", DTypeError),
    (ReduceBy((0,)), (f32(2), F), "combines by a (f32, f32) -> f32", DTypeError),
    (ReduceBy((0,)), (f64(2), f64()), "not a f64", DTypeError),
    (ReduceBy((0,)), (f64(2), i64(), F), "starts from a f64, not a i64", DTypeError),
    (ReduceBy((0,)), (F, F), "reduce takes a tensor, not a (f64, f64) -> f64", DTypeError),
    (ReduceBy((0,)), (f64(2),), "takes a tensor, an initial value and the function", RankError),
    (ReduceBy((2,)), (f64(2), F), "axis 2 is out of range", RankError),
    (ReduceBy((0, 0)), (f64(2), F), "an axis is named twice", ShapeError),
    (ReduceBy((0,)), (f64(0), F), "reduce of no elements of f64[0] by a function needs an init", ShapeError),
    (ScanBy(1), (f64(2), F), "axis 1 is out of range", RankError),
    (ScanBy(0, exclusive=True), (f64(2), F), "an exclusive scan by a function needs an init", ShapeError),
    (ReduceWindowBy((2,)), (f64(2), F), "reduceWindow by a function needs an init", ShapeError),
    (ReduceInOrder((0,), by=MINUS), (f64(2), F), "starts from a f64, not a (f64, f64) -> f64", DTypeError),
    (ReduceInOrder((0,), by=MINUS), (), "takes a tensor and an initial value", RankError),
    (ReduceInOrder((0,), by=MINUS), (boolean(2),), "takes float or integer elements, not bool", DTypeError),
    (ReduceInOrder((0,), by=Add()), (f64(2),), "floorDivide, modulo, power, not by add", DTypeError),
    (ReduceInOrder((0,), by=MINUS), (f64(0),), "by subtract needs an init", ShapeError),
    (ScanInOrder(0, exclusive=True, by=MINUS), (f64(2),), "an exclusive scan by subtract needs an init", ShapeError),
    (ReduceWindowInOrder((2,), by=MINUS), (f64(2),), "reduceWindow by subtract needs an init", ShapeError),
    (ReduceWindowBy((2, 2)), (f64(2), f64(), F), "dims has 2 entries for the 1 axes", RankError),
]  # fmt: skip


@pytest.mark.parametrize(("op", "types", "message", "error"), ERRORS, ids=lambda x: str(x)[:40])
def test_misuse_is_explained(
    op: OrderedReduction, types: tuple[Type, ...], message: str, error: type[NNKitError]
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        op.infer(*types)


def test_folds_do_what_their_functions_do() -> None:
    for op in (ReduceBy, ScanBy, ReduceWindowBy):
        assert op.effect is Effect.CALL
        assert op.takes_any
    for pure in (ReduceInOrder, ScanInOrder, ReduceWindowInOrder):
        assert pure.effect is Effect.NONE
