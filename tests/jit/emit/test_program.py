"""Whole programs: random ones through every stage, and what a program brings besides its nests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import passes_to
from nnkit.core.ir.builder import Builder, start_function
from nnkit.core.ir.instruction import Instruction, Value
from nnkit.core.ir.module import Function, Module, Stage
from nnkit.core.ir.placement import output
from nnkit.core.kernels.guarded_ops import GUARDED
from nnkit.core.kernels.ops import KERNEL, Kernel
from nnkit.core.ops import ALL, PROGRAM
from nnkit.core.ops.arithmetic import Add
from nnkit.core.ops.builtin import Builtin
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.contraction import Dot
from nnkit.core.ops.convolution import Convolve
from nnkit.core.ops.literal import Literal, dense, splat
from nnkit.core.ops.movement import ShapeCast
from nnkit.core.ops.reduction import Reduce
from nnkit.core.ops.scan import Scan
from nnkit.core.ops.special import Digamma, Lgamma, Trigamma
from nnkit.core.ops.transcendental import FloatFunction, FlushedExp
from nnkit.core.ops.window import ReduceWindow
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule import plan
from nnkit.core.schedule.group import GroupedInstruction
from nnkit.core.schedule.ops import Empty
from nnkit.core.schedule.switches import SWITCHES, VARIABLE
from nnkit.core.schedule.target import Target
from nnkit.core.text.operations import OPS
from nnkit.core.types import BF16, F16, F32, Array, DType, TensorType
from nnkit.jit.emit.program import INLINE_BYTES, WRITERS
from tests.programs import Program, programs

from .running import agree, expected, finish, run, sample, scheduled, tolerance

INEXACT = (
    FloatFunction, FlushedExp, Reduce, Dot, Scan, ReduceWindow, Convolve, Builtin,
)  # fmt: skip
EXACT = tuple(op for op in ALL if not issubclass(op, INEXACT))
"""Ops whose result has only one right answer, to the sign of zero."""

UNSTABLE = (Lgamma, Digamma, Trigamma)
"""Functions with zeros and poles where the error is not relative; their own tests know how to compare."""

SEEDS = st.integers(0, 100)


def test_the_ops_of_the_last_stage_are_those_that_are_written() -> None:
    late = {op for op in (*ALL, *PROGRAM, *OPS.values()) if Stage.SCHEDULE in op.stages}
    assert late == {*WRITERS, *KERNEL[1:], *GUARDED}  # what stands in kernels is written by them


def scheduled_entry(
    program: Program, seed: int, *, fused: bool = False
) -> tuple[Function, list[Array]]:
    """The entry after every stage but differentiation, and its flat arguments.

    Loops are as the schedule wants them for seed 0, else any that are allowed.
    """
    module = program.module
    module.stage = Stage.OPTIMIZABLE
    run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    generate_compute(module)
    if fused:
        fuse(module)
    choices, write = Random(seed), plan.write_nest_kernels

    def write_shuffled(steps: Sequence[GroupedInstruction], *args: Any, **more: Any) -> Any:
        return write([shuffled(step, choices) if seed else step for step in steps], *args, **more)

    with mock.patch.object(plan, "write_nest_kernels", write_shuffled):
        plan.schedule(module, Target(vector_bytes=64))
    return module.functions[program.entry], flat(program.arguments)


def shuffled(step: GroupedInstruction, choices: Random) -> GroupedInstruction:
    """The same nest, looped in some way, perhaps along an axis in blocks; those of groups have their loop in common."""
    loops = step.loops
    if loops is None or loops.group >= 0:
        return step
    axes = range(len(loops.extents))
    order = choices.sample(axes, len(axes))
    vector = choices.choice([-1, *axes])
    lanes = choices.choice([1, 2, 4, 8, 16]) if vector >= 0 else 1
    accumulators = choices.choice([1, 2, 3, 4])
    blocks: list[int] = []
    if order and choices.choice([False, True]):
        axis = choices.choice(order)
        points = lanes if axis == vector else 1
        points *= accumulators if axis == order[-1] else 1
        place = choices.choice([0, order.index(axis)])
        order.insert(place, axis)
        blocks = [0] * len(order)
        blocks[place] = choices.choice([1, 2, 3]) * points
    return replace(
        step,
        loops=replace(
            loops,
            order=tuple(order),
            vector=vector,
            lanes=lanes,
            accumulators=accumulators,
            blocks=tuple(blocks),
            compensated=bool(blocks) and choices.choice([False, True]),
        ),
    )


def flat(data: object) -> list[Array]:
    """The leaves of nested tuples of arrays."""
    if isinstance(data, tuple):
        return [leaf for element in data for leaf in flat(element)]
    return [np.asarray(data)]


@given(programs(ops=EXACT), SEEDS, st.booleans())
def test_exact_programs_agree_bit_by_bit(program: Program, seed: int, fused: bool) -> None:
    function, arrays = scheduled_entry(program, seed, fused=fused)
    agree(function, arrays)


@given(programs(ops=EXACT), SEEDS, st.sets(st.sampled_from(sorted(SWITCHES)), min_size=1))
def test_what_is_disabled_changes_no_bit(program: Program, seed: int, disabled: set[str]) -> None:
    with mock.patch.dict(os.environ, {VARIABLE: ",".join(disabled)}):
        function, arrays = scheduled_entry(program, seed, fused="fuse" not in disabled)
    agree(function, arrays)


@given(programs(ops=[op for op in ALL if op not in UNSTABLE], tame=True), SEEDS)
def test_every_instruction_agrees(program: Program, seed: int) -> None:
    """Each on what the evaluator computed before it, so that errors do not add up."""
    function, arrays = scheduled_entry(program, seed)
    values: dict[Value, Array] = dict(zip(function.parameters, arrays, strict=True))
    for instruction in function.entry.instructions:
        if not all(isinstance(result.type, TensorType) for result in instruction.results):
            continue
        if instruction.op.is_terminator:
            continue
        operands = [values[operand] for operand in instruction.operands]
        function = alone(instruction)
        wanted = expected(function, operands)
        values.update(zip(instruction.results, wanted, strict=True))
        if not isinstance(instruction.op, Literal | ShapeCast | Empty):
            check(instruction, operands, wanted, run(function, operands))


def alone(instruction: Instruction) -> Function:
    """The function that is one instruction."""
    b = start_function([operand.type for operand in instruction.operands])
    op, outputs = instruction.op, tuple(map(output, range(len(instruction.results))))
    placement = replace(instruction.placement, results=outputs)
    made = b.emit_many(op, b.block.arguments, instruction.regions, placement=placement)
    return finish(b, made)


def check(
    instruction: Instruction, operands: list[Array], wanted: list[Array], found: list[Array]
) -> None:
    """Assert that compiled code computes what the evaluator does, up to rounding; sums of products round most."""
    op = instruction.op
    points = max([1, *[operand.size for operand in operands]])
    for value, x, y in zip(instruction.results, wanted, found, strict=True):
        dtype = value.tensor.dtype
        if not dtype.is_float:
            np.testing.assert_array_equal(y, x, strict=True)
            continue
        finite = [
            float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a))) for a in (*operands, x)
        ]
        scale = max(1.0, *finite) ** 2 * points if isinstance(op, Kernel) else 1.0
        bound = tolerance(dtype)
        assert y.dtype == x.dtype
        x, y = x.astype(np.float64), y.astype(np.float64)  # f16 cannot hold every bound
        np.testing.assert_allclose(y, x, rtol=bound * 4, atol=bound * min(scale, 1e30))


@pytest.mark.parametrize("count", [3, INLINE_BYTES])
def test_constants_small_and_large(count: int) -> None:
    type = TensorType((count,), F32)

    def build(b: Builder, x: Value) -> list[Value]:
        values, ones = b.emit(dense(type, sample(type, 1))), b.emit(splat(type, 1.5))
        return [Add().nest(b, Add().nest(b, x, values), ones)]

    agree(scheduled([type], build), [sample(type)])


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_sums_of_narrow_floats_are_rounded_once(dtype: DType) -> None:
    """In f16, 2048 + 1 is 2048, in bf16 256 + 1 is 256: sums of many rows must not be kept so."""
    type = TensorType((4096, 200), dtype)
    b = start_function([type])
    total = Reduce(Combinator.ADD, (0,)).nest(b, b.block.arguments[0])
    module = Module(stage=Stage.COMPUTE)
    function = module.add(finish(b, [total]))
    plan.schedule(module, Target(vector_bytes=64))
    assert (run(function, [np.ones((4096, 200), dtype.numpy)])[0] == 4096).all()
