"""Totals in memory whose loop threads share: right, and in the same order whoever runs which part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Function, Value
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import Combinator, DataTypeCast, Multiply, Reduce, ShapeCast, Sqrt
from nnkit.core.schedule import shared_totals
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, I32, DType, TensorType
from tests.core.compute.building import fused, module_of
from tests.jit.emit.running import agree, run
from tests.jit.sharing import alone, sharing_everything
from tests.values import same_bits

STREAMED = Target(vector_bytes=64, registers=32, l2_bytes=1, threads=2)
"""A machine with so small a cache that sums of columns are kept in memory."""


def _columns(b: Builder, x: Value, by: Combinator) -> Value:
    return b.emit(Reduce(by, (0,)), x)


def _computed(b: Builder, x: Value, by: Combinator) -> list[Value]:
    """A result for each element beside what columns come to, by a factor for each row."""
    first = b.emit(ShapeCast((x.tensor.shape[0], 1)), b.emit(Reduce(Combinator.MAX, (1,)), x))
    y = b.emit(Multiply(), x, b.emit(Sqrt(), b.emit(Multiply(), first, first)))
    return [y, _columns(b, y, by), _columns(b, b.emit(Multiply(), y, x), Combinator.ADD)]


def _widened(b: Builder, x: Value, by: Combinator) -> list[Value]:
    """And what all of it comes to, which the loop carries."""
    y = b.emit(DataTypeCast(F64), x)
    return [_columns(b, y, by), b.emit(Reduce(Combinator.ADD, (0, 1)), b.emit(Multiply(), y, y))]


def _parallel_loops(function: Function) -> int:
    kernels = filter(is_kernel, function.entry.instructions)
    loops = [i for kernel in kernels for i in inside(kernel.regions[0].entry) if is_loop(i)]
    return sum(1 for loop in loops if loop_op(loop).grain)


@settings(max_examples=60)
@given(
    build=st.sampled_from((_columns, _computed, _widened)),
    by=st.sampled_from((Combinator.ADD, Combinator.MAX, Combinator.MIN)),
    dtype=st.sampled_from((F32, F64, I32)),
    rows=st.integers(2, 300),
    columns=st.integers(2, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_join_to_what_all_rows_come_to(
    build: object, by: Combinator, dtype: DType, rows: int, columns: int, seed: int
) -> None:
    assert callable(build)
    dtype = F32 if dtype is I32 and build is not _columns else dtype
    module = module_of(lambda b, x: build(b, x, by), TensorType((rows, columns), dtype))
    x = np.random.default_rng(seed).standard_normal((rows, columns)) * 1000
    with sharing_everything():
        schedule(fused(module), STREAMED)
        function = module.functions["main"]
        arrays = [x.astype(dtype.numpy)]
        agree(function, arrays, exact=False)
        found = run(function, arrays)
        with alone():
            assert all(map(same_bits, found, run(function, arrays)))
    if build is _columns:
        np.testing.assert_allclose(
            found[0],
            {Combinator.ADD: np.sum, Combinator.MAX: np.max, Combinator.MIN: np.min}[by](
                arrays[0].astype(np.float64), axis=0
            ),
            rtol=1e-6,
            atol=1e-3,
        )


@pytest.mark.parametrize("by", (Combinator.ADD, Combinator.MAX), ids=str)
def test_long_sums_of_columns_are_shared(by: Combinator) -> None:
    def scheduled(rows: int) -> Function:
        module = module_of(lambda b, x: _computed(b, x, by), TensorType((rows, 256), F32))
        schedule(fused(module), Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 16))
        return module.functions["main"]

    whole = scheduled(2048)
    assert all(
        any(is_loop(i) and loop_op(i).grain for i in inside(kernel.regions[0].entry))
        for kernel in filter(is_kernel, whole.entry.instructions)
    )
    assert _parallel_loops(scheduled(2 * shared_totals.LEAST_ROWS - 1)) < _parallel_loops(whole)


def test_sums_of_parts_round_as_sums_do() -> None:
    """10⁵ numbers that cancel: the error is that of one rounding, not of a sum of parts."""
    module = module_of(lambda b, x: _columns(b, x, Combinator.ADD), TensorType((100_000, 16), F32))
    schedule(fused(module), STREAMED)
    function = module.functions["main"]
    assert _parallel_loops(function)
    x = np.random.default_rng(5).standard_normal((100_000, 16)).astype(np.float32)
    x[50_000:] = -x[:50_000][::-1]
    x[7] += 3
    (found,) = run(function, [x])
    exact = x.astype(np.float64).sum(axis=0)
    bound = (8 + np.log2(100_000)) * 2.0**-24 * np.abs(x).astype(np.float64).sum(axis=0)
    assert np.all(np.abs(found - exact) <= bound)
