"""The scheduled program computes the same, holds only what can be emitted, and prints and parses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.compute.ops import MatrixProduct
from nnkit.core.driver.stages import passes_to
from nnkit.core.errors import InternalError
from nnkit.core.ir import Builder, Stage, Value
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops import (
    Add,
    Aggregate,
    Combinator,
    Dot,
    Literal,
    Return,
    Scan,
    ShapeCast,
    Transpose,
)
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule.ops import Empty, Loops
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.product_kernels import is_kernel_product
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, assert_close, f32, module_of, results
from tests.patience import PATIENCE
from tests.programs import Program, programs
from tests.values import flat

TARGETS = [
    Target(),
    Target(vector_bytes=64, l1_bytes=16),
    Target(vector_bytes=4),
    Target(vector_bytes=64, l2_bytes=64),
    Target(vector_bytes=64, registers=32, fma=True),
    Target(vector_bytes=32, l2_bytes=64, fma=True),
]
LEGAL = (
    *(Literal, ShapeCast, Loops, Kernel, Empty),
    *(Aggregate, Return),
)


@given(programs(tame=True, max_instructions=20), st.sampled_from(TARGETS), st.booleans())
def test_stage_schedule_keeps_the_results(program: Program, target: Target, is_fused: bool) -> None:
    module = program.module
    module.stage = Stage.OPTIMIZABLE
    run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    arguments = flat(program.arguments)
    expected = results(module, arguments, program.entry)
    generate_compute(module)
    if is_fused:
        fuse(module)
    schedule(module, target)
    verify(module)
    assert all(isinstance(i.op, LEGAL) for i in module.functions[program.entry].entry.instructions)
    assert_close(expected, results(module, arguments, program.entry))
    text = print_module(module)
    assert print_module(parse_module(text)) == text


def test_products_with_a_vector() -> None:
    """They are tiles from two vectors of columns on, else nests."""
    target = Target(fma=True, l2_bytes=1 << 17)
    by_columns = ((600, 48, True), (60, 517, True), (600, 44, True), (2000, 12, False))
    for k, n, is_tile in by_columns:
        for build, *types in (
            (lambda b, x, w: b.emit(Dot(), x, w), f32(1, k), f32(k, n)),
            (lambda b, x, w: b.emit(Dot(), x, w), f32(k), f32(k, n)),
            (lambda b, x, w: b.emit(Dot(), b.emit(Transpose(), w), x), f32(k), f32(k, n)),
        ):
            _check_product_with_a_vector(build, types, target, is_tile=is_tile)
    for types in (
        (f32(44, 600), f32(600)),
        (f32(44, 600), f32(600, 1)),
        (f32(3, 44, 600), f32(600)),
    ):
        _check_product_with_a_vector(
            lambda b, w, x: b.emit(Dot(), w, x), types, target, is_tile=False
        )


def _check_product_with_a_vector(
    build: Callable[..., Value], types: Sequence[TensorType], target: Target, *, is_tile: bool
) -> None:
    module = module_of(build, *types)
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    block = module.functions["main"].entry
    (product,) = [i for i in block.instructions if isinstance(i.op, MatrixProduct)]
    assert is_kernel_product(product, target) == is_tile, types
    schedule(module, target)
    ops = {type(i.op) for i in block.instructions}
    assert Kernel in ops, types
    assert_close(expected, results(module, arguments))


def test_the_stage_is_checked() -> None:
    module = module_of(lambda b, x: b.emit(Add(), x, x), f32(2))
    with pytest.raises(InternalError, match="cannot be scheduled"):
        schedule(module, Target())
    generate_compute(module)
    schedule(module, Target())
    assert module.stage is Stage.SCHEDULE


def test_scheduling_is_linear() -> None:
    def build(b: Builder, x: Value) -> Value:
        for _ in range(1500):
            x = b.emit(Scan(Combinator.ADD, 0), b.emit(Add(), x, x))
        return x

    module = module_of(build, f32(4))
    generate_compute(module)
    fuse(module)
    start = time.process_time()
    schedule(module, Target())
    assert time.process_time() - start < 3 * PATIENCE
