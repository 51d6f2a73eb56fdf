"""Nests over the same rows are one kernel, and what stays in it is not stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Instruction, Module, Value
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.dependence import require_independent
from nnkit.core.kernels.loops import body_of, loop_op, loops_of
from nnkit.core.kernels.ops import AllocateLocal, Kernel
from nnkit.core.ops import (
    Add,
    Combinator,
    Divide,
    Exp,
    Log,
    Multiply,
    PadShape,
    Reduce,
    Reverse,
    Subtract,
    Transpose,
)
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F64, I32, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import (
    arguments_for,
    assert_close,
    cross_entropy_gradient,
    f32,
    module_of,
    results,
    softmax,
)
from tests.core.schedule.decided import decided
from tests.core.schedule.row_programs import RowProgram
from tests.rows import each

TARGETS = (
    Target(vector_bytes=64, registers=32, fma=True),
    # what is ahead is fetched
    Target(vector_bytes=32, fma=True, l2_bytes=6000),
    Target(vector_bytes=16),
    Target(vector_bytes=4),
)


def scheduled(module: Module, target: Target = TARGETS[0]) -> list[Instruction]:
    """The kernels over rows of a scheduled program, which touch nothing outside of their buffers."""
    kernels = decided(module, target).kernels
    verify(module)
    for kernel in kernels:
        assert not list(accesses_outside(kernel.regions[0].entry))
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return kernels


def built(
    build: Callable[..., Value | Sequence[Value]], *types: TensorType, target: Target = TARGETS[0]
) -> tuple[Module, list[Instruction]]:
    """The scheduled program, which keeps its results, and its kernels."""
    module = module_of(build, *types)
    arguments = arguments_for(module)
    expected = results(module, arguments)
    generate_compute(module)
    fuse(module)
    kernels = scheduled(module, target)
    assert_close(expected, results(module, arguments))
    return module, kernels


def names(module: Module) -> list[str]:
    """The ops of the function, views aside."""
    found = [i.op for i in module.functions["main"].entry.instructions]
    return [op.name for op in found if not op.is_view]


def test_random_programs_over_rows_keep_their_results() -> None:
    kernels = 0
    for seed in range(24):
        program = RowProgram(seed)
        module = program.at_compute()
        expected = results(module, program.arguments)
        found = scheduled(module, TARGETS[seed % len(TARGETS)])
        kernels += len(found)
        if found:
            assert_close(expected, results(module, program.arguments))
    assert kernels > 8


def _mean_and_variance(b: Builder, x: Value) -> Value:
    """(x - mean) / variance, of rows, without their constants."""
    total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), x))
    c = b.emit(Subtract(), x, total)
    square = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), c, c)))
    return b.emit(Divide(), c, square)


def _below_the_largest(b: Builder, x: Value) -> Value:
    peak = b.emit(PadShape(1), b.emit(Reduce(Combinator.MAX, (1,)), x))
    return b.emit(Multiply(), b.emit(Subtract(), x, peak), peak)


def _softmax_of_columns(b: Builder, x: Value) -> Value:
    return softmax(b, b.emit(Transpose(), x))


def _sum(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (1,)), x)


def _below_the_sum(b: Builder, x: Value) -> Value:
    total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), x))
    return b.emit(Subtract(), x, total)


def _log_softmax(b: Builder, x: Value) -> Value:
    peak = b.emit(PadShape(1), b.emit(Reduce(Combinator.MAX, (1,)), x))
    shifted = b.emit(Subtract(), x, peak)
    total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Exp(), shifted)))
    return b.emit(Subtract(), shifted, b.emit(Log(), total))


@each(
    ("build", "types"),
    [
        (softmax, (f32(9, 70),)),
        (softmax, (TensorType((3, 64), F64),)),
        (_log_softmax, (f32(5, 100),)),
        (_mean_and_variance, (f32(6, 48),)),
        (_below_the_largest, (TensorType((6, 50), I32),)),
    ],
)
def test_rows_are_visited_once_by_one_kernel(
    build: Callable[..., Value], types: tuple[TensorType, ...]
) -> None:
    module, (kernel,) = built(build, *types)
    assert names(module) == ["kernel", "return"]
    # results lie in the place of the operand, if that is dead, and rows meanwhile in that of the result
    assert kernel.op == Kernel(types, ((0, 0),))
    assert not any(isinstance(i.op, AllocateLocal) for i in _inside(kernel))


def _inside(kernel: Instruction) -> list[Instruction]:
    found, pending = list[Instruction](), [kernel]
    while pending:
        for region in pending.pop().regions:
            found += region.entry.instructions
            pending += region.entry.instructions
    return found


def test_the_gradient_of_a_cross_entropy_is_one_visit_besides_the_check_of_its_labels() -> None:
    _, kernels = built(cross_entropy_gradient, f32(64, 80), TensorType((64,), I32))
    assert len(kernels) == 1


def test_a_row_that_no_result_can_hold_is_a_small_buffer_or_one_more_result() -> None:
    def build(b: Builder, x: Value) -> Value:
        e = b.emit(Exp(), x)
        total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), e))
        peak = b.emit(Reduce(Combinator.MAX, (1,)), b.emit(Exp(), b.emit(Subtract(), e, total)))
        return b.emit(Add(), peak, peak)

    for length, count in ((100, 1), (5000, 0)):
        _, (kernel,) = built(build, f32(3, length))
        locals = [i for i in _inside(kernel) if isinstance(i.op, AllocateLocal)]
        assert (len(locals), len(kernel.results)) == (count, 2 - count)


@each(
    ("build", "types", "target"),
    [
        # rows that are short, one row, rows that fit no cache, rows that do not lie side by side
        (softmax, (f32(9, 10),), TARGETS[0]),
        (softmax, (f32(1, 100),), TARGETS[0]),
        (softmax, (f32(3, 1000),), Target(vector_bytes=64, l2_bytes=8000)),
        (_softmax_of_columns, (f32(100, 50),), TARGETS[0]),
        # sums of a prime number of vectors and more, which no few loops in each other are
        (_below_the_sum, (f32(2, 60001),), TARGETS[0]),
        # one nest alone
        (_sum, (f32(9, 100),), TARGETS[0]),
    ],
)
def test_what_gains_nothing_stays_nests(
    build: Callable[..., Value], types: tuple[TensorType, ...], target: Target
) -> None:
    _, kernels = built(build, *types, target=target)
    assert all(len(kernel.operands) == 1 for kernel in kernels)
    assert len(kernels) <= (types[0].shape == (100, 50))


def test_a_row_read_backwards_is_another_pass() -> None:
    def build(b: Builder, x: Value) -> Value:
        e = b.emit(Exp(), b.emit(Exp(), x))
        total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), e))
        return b.emit(Add(), b.emit(Reverse((1,)), e), b.emit(Multiply(), e, total))

    built(build, f32(4, 50))


def test_the_switch_leaves_nests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "rows")
    _, kernels = built(softmax, f32(9, 70))
    assert not kernels


@each(
    ("shape", "grains"),
    [
        ((512, 300), [42]),
        ((8, 4, 64, 64), [1, 0, 0]),
        ((2, 300, 200), [0, 62]),
        ((30, 60), [0]),  # too little to share
    ],
)
def test_threads_share_rows(shape: tuple[int, ...], grains: list[int]) -> None:
    def build(b: Builder, x: Value) -> Value:
        axis = len(shape) - 1
        peak = b.emit(PadShape(axis), b.emit(Reduce(Combinator.MAX, (axis,)), x))
        return b.emit(Exp(), b.emit(Subtract(), x, peak))

    module = module_of(build, f32(*shape))
    generate_compute(module)
    fuse(module)
    (kernel,) = scheduled(module)
    found, block = list[int](), kernel.regions[0].entry
    assert isinstance(kernel.op, Kernel)
    count = len(kernel.operands)
    aliases = [(block.arguments[x], block.arguments[count + y]) for x, y in kernel.op.overwriting]
    for _ in grains:
        (loop,) = loops_of(block)
        require_independent(loop, aliases)
        found.append(loop_op(loop).grain)
        block = body_of(loop)
    assert found == grains


def test_special_numbers_are_those_of_nests() -> None:
    module = module_of(softmax, f32(5, 40))
    rows = np.zeros((5, 40), np.float32)
    rows[0, 39], rows[1, 3], rows[2, 38], rows[3] = np.nan, np.inf, -np.inf, -np.inf
    with np.errstate(all="ignore"):
        expected = results(module, [rows])
        generate_compute(module)
        fuse(module)
        assert len(scheduled(module)) == 1
        assert_close(expected, results(module, [rows]))


def test_rows_that_are_not_needed_at_once_share_a_buffer() -> None:
    """x + Σx, time and again: each row is needed until the next one is there."""

    def build(b: Builder, x: Value) -> Value:
        for _ in range(6):
            total = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), x))
            x = b.emit(Add(), b.emit(Exp(), b.emit(Multiply(), x, x)), total)
            x = b.emit(Divide(), x, b.emit(Add(), b.emit(Multiply(), x, x), x))
        return x

    _, (kernel,) = built(build, f32(3, 40))
    buffers = [
        i
        for i in kernel.regions[0].entry.instructions[0].regions[0].entry.instructions
        if isinstance(i.op, AllocateLocal)
    ]
    assert len(kernel.results) == 1
    assert len(buffers) <= 2
