"""Rows that read one large tensor go side by side, with the same sums; others do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nnkit.core.ir import Builder, Instruction, Value
from nnkit.core.kernels.loops import is_loop, loop_op
from nnkit.core.ops import Combinator, Dot, Exp, Multiply, Reduce
from nnkit.core.schedule.target import Target
from nnkit.core.types import F64, TensorType
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.rows import each

from .checked import kernels_in

TARGET = Target(vector_bytes=64, registers=32, fma=True, l1_bytes=4096)


def f64(*shape: int) -> TensorType:
    return TensorType(shape, F64)


def _product(b: Builder, a: Value, x: Value) -> Value:
    return b.emit(Dot(), a, x)


def _weighed(b: Builder, a: Value, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), a, x))


def _largest(b: Builder, a: Value, x: Value) -> Value:
    return b.emit(Reduce(Combinator.MAX, (1,)), b.emit(Multiply(), a, x))


def _costly(b: Builder, a: Value, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Exp(), b.emit(Multiply(), a, x)))


def _alone(b: Builder, a: Value, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), a, a))


def _jammed(kernels: list[Instruction]) -> int:
    """How many rows the loops over rows have side by side, at most."""
    loops = [
        one for kernel in kernels for one in filter(is_loop, kernel.regions[0].entry.instructions)
    ]
    return max(loop_op(one).step for one in loops)


@each(
    ("build", "types", "target", "rows"),
    [
        (_product, (f32(9, 3000), f32(3000)), TARGET, 4),
        (_product, (f64(8, 1027), f64(1027)), TARGET, 4),
        (_product, (f64(8, 1027), f64(1027)), replace(TARGET, vector_bytes=32, registers=16), 2),
        (_product, (f64(3, 1027), f64(1027)), TARGET, 2),
        (_weighed, (f32(6, 2000), f32(2000)), TARGET, 4),
        (_largest, (f32(6, 2000), f32(2000)), TARGET, 4),
        (_product, (f32(9, 500), f32(500)), TARGET, 1),  # which stays in the nearest cache
        (_costly, (f32(6, 2000), f32(2000)), TARGET, 1),
        (_alone, (f32(6, 2000), f32(2000)), TARGET, 1),
    ],
)
def test_rows_side_by_side(
    build: Callable[..., object],
    types: tuple[TensorType, ...],
    target: Target,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = module_of(build, *types)
    arguments = arguments_for(before)
    found = [results(before, arguments)]
    for disabled in ("", "jam"):
        monkeypatch.setenv("NNKIT_DISABLE", disabled)
        module = fused(module_of(build, *types))
        assert _jammed(kernels_in(module, target)) == (1 if disabled else rows)
        found.append(results(module, arguments))
    expected, jammed, plain = found
    assert_close(expected, jammed)
    for x, y in zip(jammed, plain, strict=True):
        assert np.array_equal(x, y)  # each row is summed as before
