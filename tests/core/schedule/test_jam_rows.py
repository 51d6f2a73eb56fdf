"""Rows that read one large tensor go side by side, with the same sums; others do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nnkit.core.ir import Builder, Instruction, Value
from nnkit.core.kernels.indices import access_of
from nnkit.core.kernels.loops import inside, is_loop, loop_op
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops import Combinator, Dot, Exp, Multiply, Reduce
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F64, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, f32, fused, module_of, results
from tests.rows import each

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


def _jammed(kernel: Instruction) -> int:
    """How many rows the loops over rows have side by side, at most."""
    body = kernel.regions[0].entry
    steps = [loop_op(one).step for one in body.instructions if is_loop(one)]
    loads = [a for one in inside(body) if (a := access_of(one)) is not None and not a.is_store]
    return max(steps, default=1) if loads else 0


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
    found = []
    for disabled in ("", "jam"):
        monkeypatch.setenv("NNKIT_DISABLE", disabled)
        module = fused(module_of(build, *types))
        schedule(module, target)
        verify(module)
        text = print_module(module)
        assert print_module(parse_module(text)) == text
        instructions = module.functions["main"].entry.instructions
        jammed = max(_jammed(one) for one in instructions if isinstance(one.op, Kernel))
        assert jammed == (1 if disabled else rows)
        found.append(results(module, arguments))
    for x, y in zip(*found, strict=True):
        assert np.array_equal(x, y)  # to the bit: each row is summed as before
