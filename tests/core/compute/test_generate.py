"""Every op becomes nests that compute the same; products go to the library where that pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given

from nnkit.core.compute.generate import generate_compute
from nnkit.core.compute.ops import MatrixProduct
from nnkit.core.driver.stages import passes_to
from nnkit.core.errors import InternalError
from nnkit.core.ir import Builder, Stage, Value
from nnkit.core.ir.instruction import Emitter, Pure
from nnkit.core.ops import (
    Add,
    Apply,
    Combinator,
    Concatenate,
    Dot,
    Literal,
    Nest,
    Reduce,
    Return,
    Scan,
    ShapeCast,
    Transpose,
    splat,
)
from nnkit.core.ops.contraction import LEAST_PRODUCT
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.types import F16, F64, I32, FunctionType, TensorType
from nnkit.core.verify import verify
from tests.programs import Program, programs
from tests.values import flat

from .building import arguments_for, assert_close, f32, module_of, nests, results

LEGAL = (Nest, MatrixProduct, Scan, Concatenate, Literal, ShapeCast, Return)


@given(programs(tame=True))
def test_stage_compute_keeps_the_results(program: Program) -> None:
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    arguments = flat(program.arguments)
    expected = results(program.module, arguments, program.entry)
    generate_compute(program.module)
    verify(program.module)
    for instruction in program.module.functions[program.entry].entry.instructions:
        assert isinstance(instruction.op, LEGAL)
    assert_close(expected, results(program.module, arguments, program.entry))


@pytest.mark.parametrize("flip_u", [False, True])
@pytest.mark.parametrize("flip_v", [False, True])
@pytest.mark.parametrize("flip_result", [False, True])
def test_transposes_fold_into_a_product(flip_u: bool, flip_v: bool, flip_result: bool) -> None:
    def build(b: Builder, u: Value, v: Value) -> Value:
        left = b.emit(Transpose(), u) if flip_u else u
        right = b.emit(Transpose((1, 0)), v) if flip_v else v
        product = b.emit(Dot(), left, right)
        return b.emit(Transpose(), product) if flip_result else product

    m, k, n = 40, 30, 50
    module = module_of(
        build, f32(*((k, m) if flip_u else (m, k))), f32(*((n, k) if flip_v else (k, n)))
    )
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    names = [i.op.name for i in module.functions["main"].entry.instructions]
    assert names == ["matrixProduct", "return"]
    assert_close(expected, results(module, arguments))


def test_products_of_heads_fold_what_moves_the_last_axis() -> None:
    """Scores q · kᵀ of heads, with k itself for a gradient; what is left are copies of whole rows, k's once."""

    def build(b: Builder, q: Value, k: Value) -> list[Value]:
        heads = b.emit(Transpose((0, 2, 1, 3)), q)
        scores = b.emit(Dot(), heads, b.emit(Transpose((0, 2, 3, 1)), k))
        slope = b.emit(Dot(), scores, b.emit(Transpose((0, 2, 1, 3)), k))
        other = b.emit(Dot(), b.emit(Transpose((0, 2, 3, 1)), q), scores)
        return [slope, b.emit(Transpose((0, 3, 1, 2)), other)]

    module = module_of(build, f32(2, 30, 3, 40), f32(2, 30, 3, 40))
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    found = [i.op for i in module.functions["main"].entry.instructions]
    flags = [(i.transpose_a, i.transpose_b) for i in found if isinstance(i, MatrixProduct)]
    assert sorted(flags) == [(False, False), (False, True), (True, False)]
    copies = [i for i in found if isinstance(i, Nest)]
    assert len(copies) == 3  # q, k, and the second result
    assert all(str(i.accesses[0].indices[-1]) == "d3" for i in copies)
    assert_close(expected, results(module, arguments))


def test_a_product_that_others_use_is_not_transposed_twice() -> None:
    def build(b: Builder, u: Value, v: Value) -> list[Value]:
        product = b.emit(Dot(), u, v)
        return [product, b.emit(Transpose(), product)]

    module = module_of(build, f32(40, 40), f32(40, 40))
    generate_compute(module)
    names = [i.op.name for i in module.functions["main"].entry.instructions]
    assert names == ["matrixProduct", "nest", "return"]


def test_batches_broadcast_in_a_product() -> None:
    module = module_of(
        lambda b, u, v: b.emit(Dot(), u, b.emit(Transpose((0, 2, 1)), v)),
        f32(2, 1, 30, 30),
        f32(3, 30, 30),
    )
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    assert not nests(module)
    assert_close(expected, results(module, arguments))


@pytest.mark.parametrize(
    ("u", "v", "expected"),
    [
        (f32(16, 64), f32(64, 16), True),
        (f32(16, 64), f32(64, 15), False),
        (f32(100, 16, 8), f32(8, 16), True),
        (f32(100, 16, 8), f32(100, 8, 16), False),
        (f32(LEAST_PRODUCT), f32(LEAST_PRODUCT), False),
        (f32(200), f32(200, 100), True),
        (f32(3, 200, 100), f32(100), True),
        (f32(20), f32(20, 100), False),
        (TensorType((64, 64), F64), TensorType((64, 64), F64), True),
        (TensorType((64, 64), F16), TensorType((64, 64), F16), False),
        (TensorType((64, 64), I32), TensorType((64, 64), I32), False),
        (f32(0, 64), f32(64, 64), False),
    ],
    ids=str,
)
def test_which_products_use_the_library(u: TensorType, v: TensorType, expected: bool) -> None:
    module = module_of(lambda b, x, y: b.emit(Dot(), x, y), u, v)
    arguments = arguments_for(module)
    before = results(module, arguments)
    generate_compute(module)
    assert bool(nests(module)) is not expected
    assert_close(before, results(module, arguments))


def test_a_batch_against_one_matrix_is_one_tall_product() -> None:
    module = module_of(lambda b, x, y: b.emit(Dot(), x, y), f32(2, 5, 30, 40), f32(40, 50))
    generate_compute(module)
    (product,) = [i for i in module.functions["main"].entry.instructions if i.op == MatrixProduct()]
    assert product.operands[0].tensor.shape == (300, 40)


@pytest.mark.parametrize("flip", [False, True])
def test_a_transposed_batch_stays_a_batch(flip: bool) -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        product = b.emit(Dot(), b.emit(Transpose((0, 2, 1)), x), y)
        return b.emit(Transpose((0, 2, 1)), product) if flip else product

    module = module_of(build, f32(3, 40, 30), f32(40, 50))
    arguments = arguments_for(module)
    before = results(module, arguments)
    generate_compute(module)
    assert not nests(module)
    assert_close(before, results(module, arguments))


@dataclass(frozen=True)
class Circle(Pure):
    """An op whose rule emits the op itself."""

    name: ClassVar[str] = "circle"
    syntax: ClassVar[str] = "circle {x}"

    def infer(self, x: TensorType) -> TensorType:
        return x

    def nest(self, b: Emitter, x: Value) -> Value:
        return b.emit(self, x)


def test_rules_that_go_round_in_circles_are_found() -> None:
    module = module_of(lambda b, x: b.emit(Circle(), x), f32(2))
    with pytest.raises(InternalError, match="@main: the nest rules of its ops go round in circles"):
        generate_compute(module)


def test_what_is_dead_is_not_lowered() -> None:
    def build(b: Builder, x: Value) -> Value:
        b.emit(Add(), b.emit(Circle(), x), x)
        return x

    module = module_of(build, f32(2))
    generate_compute(module)
    assert [i.op.name for i in module.functions["main"].entry.instructions] == ["return"]


def test_repeated_elements_are_written_by_a_nest() -> None:
    module = module_of(lambda b: b.emit(splat(f32(1000, 1000), 2.5)))
    generate_compute(module)
    (nest,) = nests(module)
    assert nest.operands == ()
    assert np.all(results(module, [])[0] == 2.5)


def test_what_nobody_reads_is_dropped() -> None:
    def build(b: Builder, x: Value) -> Value:
        b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Add(), x, x))
        return b.emit(Add(), x, x)

    module = module_of(build, f32(3))
    generate_compute(module)
    assert len(nests(module)) == 1


def test_calls_stay_calls() -> None:
    type = FunctionType((f32(2),), f32(2))
    module = module_of(lambda b, x: b.emit(Apply("main", type), x), f32(2))
    generate_compute(module)
    call, _ = module.functions["main"].entry.instructions
    assert call.op == Apply("main", type) and call.result.type == f32(2)


def test_the_stage_is_checked() -> None:
    module = module_of(lambda b, x: b.emit(Add(), x, x), f32(2))
    generate_compute(module)
    assert module.stage is Stage.COMPUTE
    with pytest.raises(InternalError, match="from stage optimized, not compute"):
        generate_compute(module)
