"""Totals in memory whose loop threads share: right, and in the same order whoever runs which part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Function, Value
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import (
    Combinator,
    DataTypeCast,
    Divide,
    Multiply,
    Negate,
    Reduce,
    ShapeCast,
    Sqrt,
)
from nnkit.core.schedule import shared_totals
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, I32, Array, DType, TensorType
from tests.core.compute.building import fused, module_of
from tests.jit.emit.running import agree, run
from tests.jit.sharing import alone, sharing_everything
from tests.values import same_bits

Build: TypeAlias = Callable[[Builder, Value, Value, Combinator], Value | list[Value]]

STREAMED = Target(vector_bytes=64, registers=32, l2_bytes=1, threads=2)
"""A machine with so small a cache that sums of columns are kept in memory."""


def _columns(b: Builder, x: Value, column: Value, by: Combinator) -> Value:
    return b.emit(Reduce(by, (0,)), x)


def _scaled(b: Builder, x: Value, column: Value, by: Combinator) -> Value:
    """Something is computed for each row: what a block of rows comes to is folded."""
    scale = b.emit(Sqrt(), b.emit(Multiply(), column, column))
    return b.emit(Reduce(by, (0,)), b.emit(Multiply(), x, scale))


def _computed(b: Builder, x: Value, column: Value, by: Combinator) -> list[Value]:
    """A result for each element beside what columns come to, by a factor for each row."""
    y = b.emit(Multiply(), x, b.emit(Sqrt(), b.emit(Multiply(), column, column)))
    return [
        y,
        b.emit(Reduce(by, (0,)), y),
        b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Multiply(), y, x)),
    ]


def _widened(b: Builder, x: Value, column: Value, by: Combinator) -> list[Value]:
    """And what all of it comes to, which the loop carries."""
    y = b.emit(DataTypeCast(F64), x)
    return [
        b.emit(Reduce(by, (0,)), y),
        b.emit(Reduce(Combinator.ADD, (0, 1)), b.emit(Multiply(), y, y)),
    ]


def _parallel_loops(function: Function) -> int:
    kernels = filter(is_kernel, function.entry.instructions)
    loops = [i for kernel in kernels for i in inside(kernel.regions[0].entry) if is_loop(i)]
    return sum(1 for loop in loops if loop_op(loop).grain)


@settings(max_examples=max(25, settings().max_examples))
@given(
    build=st.sampled_from((_columns, _scaled, _computed, _widened)),
    by=st.sampled_from((Combinator.ADD, Combinator.MAX, Combinator.MIN)),
    dtype=st.sampled_from((F32, F64, I32)),
    rows=st.integers(2, 300),
    columns=st.integers(2, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_join_to_what_all_rows_come_to(
    build: Build, by: Combinator, dtype: DType, rows: int, columns: int, seed: int
) -> None:
    dtype = F32 if dtype is I32 and build is not _columns else dtype
    types = TensorType((rows, columns), dtype), TensorType((rows, 1), dtype)
    module = module_of(lambda b, x, column: build(b, x, column, by), *types)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)) * 1000
    with sharing_everything():
        schedule(fused(module), STREAMED)
        function = module.functions["main"]
        arrays = [x.astype(dtype.numpy), rng.standard_normal((rows, 1)).astype(dtype.numpy)]
        agree(function, arrays, exact=False)
        found = run(function, arrays)
        with alone():
            assert all(map(same_bits, found, run(function, arrays)))
    wanted = _expected(build, by, *(array.astype(np.float64) for array in arrays))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())


def _expected(build: object, by: Combinator, x: Array, column: Array) -> list[Array]:
    """By NumPy, in f64."""
    over_rows = {Combinator.ADD: np.sum, Combinator.MAX: np.max, Combinator.MIN: np.min}[by]
    y = x if build in (_columns, _widened) else x * np.abs(column)
    found = [over_rows(y, axis=0)]
    if build is _widened:
        found.append(np.sum(y * y))
    return [y, *found, np.sum(y * x, axis=0)] if build is _computed else found


@pytest.mark.parametrize("by", (Combinator.ADD, Combinator.MAX), ids=str)
def test_long_sums_of_columns_are_shared(by: Combinator) -> None:
    def scheduled(rows: int) -> Function:
        types = TensorType((rows, 256), F32), TensorType((rows, 1), F32)
        module = module_of(lambda b, x, column: _computed(b, x, column, by), *types)
        schedule(fused(module), Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 16))
        return module.functions["main"]

    whole = scheduled(2048)
    assert all(
        any(is_loop(i) and loop_op(i).grain for i in inside(kernel.regions[0].entry))
        for kernel in filter(is_kernel, whole.entry.instructions)
    )
    assert _parallel_loops(scheduled(2 * shared_totals.LEAST_ROWS - 1)) < _parallel_loops(whole)


def test_sums_of_parts_lose_nothing() -> None:
    """10⁵ equal numbers, which all round the same way, are off by two roundings, and not by what parts cut off."""
    module = module_of(
        lambda b, x: _columns(b, x, x, Combinator.ADD), TensorType((100_000, 16), F32)
    )
    schedule(fused(module), STREAMED)
    function = module.functions["main"]
    assert _parallel_loops(function)
    x = np.tile(np.float32(0.1) * np.arange(1, 17, dtype=np.float32), (100_000, 1))
    (found,) = run(function, [x])
    exact = x.astype(np.float64).sum(axis=0)
    assert np.all(np.abs(found - exact) <= 2 * 2.0**-24 * exact)


REDUCED = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2))
"""Axes of three."""


@settings(max_examples=max(30, settings().max_examples))
@given(
    shape=st.tuples(st.integers(2, 200), st.integers(1, 40), st.integers(1, 40)),
    wanted=st.lists(
        st.tuples(
            st.sampled_from(("x", "negated", "squared", "softmax")),
            st.sampled_from(REDUCED),
            st.sampled_from((Combinator.ADD, Combinator.ADD, Combinator.MAX)),
        ),
        min_size=2,
        max_size=4,
    ),
    l2_bytes=st.sampled_from((1, 1 << 14, 1 << 16, 1 << 18)),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_over_any_axes_that_share_a_loop(
    shape: tuple[int, int, int],
    wanted: list[tuple[str, tuple[int, ...], Combinator]],
    l2_bytes: int,
    seed: int,
) -> None:
    """Some keep the rows that threads share, some do not, and some are of what comes from others."""

    def build(b: Builder, x: Value) -> list[Value]:
        made = {"x": x, "negated": b.emit(Negate(), x), "squared": b.emit(Multiply(), x, x)}
        total = b.emit(Reduce(Combinator.ADD, (0,)), made["squared"])
        spread = b.emit(ShapeCast((1, *shape[1:])), total)
        made["softmax"] = b.emit(Divide(), made["squared"], b.emit(Sqrt(), spread))
        return [b.emit(Reduce(by, axes), made[name]) for name, axes, by in wanted]

    module = module_of(build, TensorType(shape, F64))
    x = np.random.default_rng(seed).standard_normal(shape) + 3
    with sharing_everything():
        schedule(fused(module), replace(STREAMED, l2_bytes=l2_bytes))
        function = module.functions["main"]
        found = run(function, [x])
        for _ in range(3):
            assert all(map(same_bits, found, run(function, [x])))
        with alone():
            assert all(map(same_bits, found, run(function, [x])))
    squared = x * x
    values = {
        "x": x,
        "negated": -x,
        "squared": squared,
        "softmax": squared / np.sqrt(squared.sum(axis=0, keepdims=True)),
    }
    for one, (name, axes, by) in zip(found, wanted, strict=True):
        over = np.sum if by is Combinator.ADD else np.max
        np.testing.assert_allclose(one, over(values[name], axis=axes), rtol=1e-12)
