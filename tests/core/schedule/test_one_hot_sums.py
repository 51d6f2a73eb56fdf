"""Sums to which one element contributes read that element alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ops import (
    Add,
    Combinator,
    DataTypeCast,
    Equal,
    Iota,
    Multiply,
    Negate,
    PadShape,
    Reduce,
    Select,
    constant,
)
from nnkit.core.ops.nest import Nest
from nnkit.core.schedule.one_hot_sums import read_one_hot_sums
from nnkit.core.types import F32, I32, I64, DType, TensorType, scalar
from nnkit.core.verify import verify
from tests.core.compute.building import f32, module_of, results
from tests.rows import each

LABELS = [3, 0, -1, 7, 9, 1]


def _hot(b: Builder, labels: Value, classes: int, dtype: DType = I64) -> Value:
    """Which class is that of the label, row by row."""
    numbers = b.emit(Iota((classes,), 0, dtype))
    labels = b.emit(DataTypeCast(dtype), labels)
    return b.emit(Equal(), numbers, b.emit(PadShape(1), labels))


def _sum(b: Builder, x: Value, *axes: int) -> Value:
    return b.emit(Reduce(Combinator.ADD, axes), x)


def _picked(b: Builder, x: Value, labels: Value) -> Value:
    zero = constant(b, scalar(F32), 0)
    return _sum(b, b.emit(Select(), x, zero, _hot(b, labels, 8)), 1)


def _picked_by_i32(b: Builder, x: Value, labels: Value) -> Value:
    zero = constant(b, scalar(F32), 0)
    return _sum(b, b.emit(Select(), b.emit(Negate(), x), zero, _hot(b, labels, 8, I32)), 1)


def _total(b: Builder, x: Value, labels: Value) -> Value:
    zero = constant(b, scalar(F32), 0)
    chosen = b.emit(Select(), b.emit(Multiply(), x, x), zero, _hot(b, labels, 8))
    return _sum(b, b.emit(Negate(), chosen), 0, 1)


def _coordinates(b: Builder, x: Value, labels: Value) -> Value:
    numbers = b.emit(DataTypeCast(F32), b.emit(Iota((8,), 0, I64)))
    zero = constant(b, scalar(F32), 0)
    return _sum(b, b.emit(Select(), b.emit(Add(), x, numbers), zero, _hot(b, labels, 8)), 1)


def _no_zero(b: Builder, x: Value, labels: Value) -> Value:
    one = constant(b, scalar(F32), 1)
    return _sum(b, b.emit(Select(), x, one, _hot(b, labels, 8)), 1)


def _times_infinity(b: Builder, x: Value, labels: Value) -> Value:
    """0 · ∞ is NaN, so that every element counts."""
    zero = constant(b, scalar(F32), 0)
    return _sum(b, b.emit(Multiply(), b.emit(Select(), x, zero, _hot(b, labels, 8)), x), 1)


def _largest(b: Builder, x: Value, labels: Value) -> Value:
    zero = constant(b, scalar(F32), 0)
    return b.emit(Reduce(Combinator.MAX, (1,)), b.emit(Select(), x, zero, _hot(b, labels, 8)))


def points(module: Module) -> int:
    """Of all nests."""
    body = module.functions["main"].entry
    return sum(i.op.points for i in body.instructions if isinstance(i.op, Nest))


@each(
    ("build", "is_read_alone"),
    [
        (_picked, True),
        (_picked_by_i32, True),
        (_total, True),
        (_coordinates, True),
        (_no_zero, False),
        (_times_infinity, False),
        (_largest, False),
    ],
)
def test_only_the_element_that_counts_is_read(
    build: Callable[..., Value], is_read_alone: bool
) -> None:
    module = module_of(build, f32(6, 8), TensorType((6,), I32))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 8)).astype(np.float32)
    x[0, 1], x[0, 3], x[1, 5], x[2, 7] = np.nan, -0.0, np.inf, -np.inf
    arguments = [x, np.asarray(LABELS, np.int32)]
    expected = results(module, arguments)
    generate_compute(module)
    fuse(module)
    read_one_hot_sums(module.functions["main"].entry)
    verify(module)
    assert (points(module) < 48) == is_read_alone
    found = results(module, arguments)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(expected[0]))


def test_the_switch_leaves_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "one-hot")
    module = module_of(_picked, f32(6, 8), TensorType((6,), I32))
    generate_compute(module)
    fuse(module)
    read_one_hot_sums(module.functions["main"].entry)
    assert points(module) >= 48
