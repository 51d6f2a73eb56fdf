"""Long loops have vectors of several registers, others one; results stay what they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nnkit.core.ir import Builder, Value
from nnkit.core.ops import (
    Add,
    Combinator,
    Erf,
    Gather,
    LessThan,
    Multiply,
    Reduce,
    ShapeCast,
    Tanh,
    Transpose,
)
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import F64, I64, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.core.schedule.decided import decided

AVX512 = Target(vector_bytes=64, registers=32, fma=True)
AVX2 = Target(vector_bytes=32, fma=True)


def _cheap(b: Builder, x: Value) -> Value:
    return b.emit(Add(), b.emit(Multiply(), x, x), x)


def _long(b: Builder, x: Value) -> Value:
    """A tanh and six more."""
    y = b.emit(Tanh(), x)
    for _ in range(6):
        y = b.emit(Add(), b.emit(Multiply(), y, x), y)
    return y


def _longer(b: Builder, x: Value) -> Value:
    return b.emit(Erf(), x)


def _summed(b: Builder, x: Value) -> list[Value]:
    y = b.emit(Erf(), x)
    return [y, b.emit(Reduce(Combinator.ADD, tuple(range(y.tensor.rank))), y)]


def _in_rows(b: Builder, x: Value) -> Value:
    """Two nests that share a loop over rows."""
    largest = b.emit(ShapeCast((x.tensor.shape[0], 1)), b.emit(Reduce(Combinator.MAX, (1,)), x))
    return b.emit(Erf(), b.emit(Multiply(), x, largest))


def _below(b: Builder, x: Value) -> Value:
    return b.emit(LessThan(), b.emit(Erf(), x), x)


def _turned(b: Builder, x: Value) -> Value:
    return b.emit(Erf(), b.emit(Add(), x, b.emit(Transpose(), x)))


def _at_rows(b: Builder, x: Value, indices: Value) -> Value:
    """Checked i64 that are the same along a row of floats."""
    return b.emit(Erf(), b.emit(Gather(0), x, indices))


def _lanes(build: Callable[..., object], type: TensorType, target: Target) -> int:
    """Of all nests."""
    module = module_of(build, type)
    (lanes,) = {loops.lanes for loops in decided(fused(module), target).loops}
    verify(module)
    return lanes


def test_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    long, wide = f32(1 << 14), f32(64, 512)
    rows: tuple[tuple[Callable[..., object], TensorType, Target, int], ...] = (
        (_cheap, long, AVX512, 16),
        (_long, long, AVX512, 32),
        (_longer, long, AVX512, 64),
        (_longer, long, AVX2, 16),  # of 16 registers
        (_longer, f32((1 << 15) - 1), AVX512, 64),
        (_longer, f32((1 << 14) - 1), AVX512, 16),  # few points
        (_longer, TensorType((1 << 14,), F64), AVX512, 32),
        (_longer, wide, AVX512, 64),
        (_longer, f32(512, 65), AVX512, 64),  # one axis for the loops
        (_summed, long, AVX512, 64),
        (_below, long, AVX512, 16),  # a result that is no float
        (_turned, f32(128, 128), AVX512, 16),
        (_longer, long, Target(vector_bytes=4), 1),
    )
    for build, type, target, lanes in rows:
        assert _lanes(build, type, target) == lanes, (build, type, target)
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    for columns, lanes in ((512, 64), (520, 16)):  # with whole vectors in a row, and with others
        found = decided(fused(module_of(_in_rows, f32(128, columns))), AVX512)
        largest, computed = found.loops
        assert largest.group == computed.group >= 0
        assert (largest.lanes, computed.lanes) == (16, lanes)
    for columns, lanes in ((512, 64), (520, 64), (500, 16)):
        module = module_of(_at_rows, f32(9, columns), TensorType((128,), I64))
        (computed,) = decided(fused(module), AVX512).loops
        assert (computed.vector, computed.lanes) == (1, lanes)
    monkeypatch.setenv("NNKIT_DISABLE", "wide")
    assert _lanes(_longer, long, AVX512) == 16


def test_results_stay() -> None:
    for build, type in (
        (_summed, f32((1 << 14) + 5)), (_long, f32(64, 300)), (_in_rows, f32(64, 512)),
    ):  # fmt: skip
        module = module_of(build, type)
        arguments = arguments_for(module)
        expected = results(module, arguments)
        schedule(fused(module), AVX512)
        assert_close(expected, results(module, arguments))
