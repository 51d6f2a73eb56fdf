"""What nests read the other way round is turned by squares, whatever sizes leave over; the evaluator finds the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from nnkit.core.ir import Builder, Instruction, Module, Value
from nnkit.core.kernels.indices import access_of
from nnkit.core.kernels.loops import inside
from nnkit.core.kernels.ops import AllocateLocal, Shuffle
from nnkit.core.ops import Add, Combinator, DataTypeCast, Multiply, Pad, Reduce, Slice, Transpose
from nnkit.core.ops.literal import splat
from nnkit.core.schedule import turned_reads
from nnkit.core.schedule.target import Target
from nnkit.core.types import F32, F64, I8, I64, TensorType, scalar
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.rows import each

from .checked import kernels_in

WIDE = Target(vector_bytes=64, registers=32, fma=True)
NARROW = Target(vector_bytes=16)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few points are worth it, and blocks are short."""
    monkeypatch.setattr(turned_reads, "_LEAST_POINTS", 1)
    monkeypatch.setattr(turned_reads, "_BLOCK", 32)
    monkeypatch.setattr(turned_reads, "_MANY_BLOCKS", 4)


def _kernels(module: Module, target: Target) -> list[Instruction]:
    return kernels_in(fused(module), target)


def _shuffles(kernels: list[Instruction]) -> int:
    return sum(isinstance(one.op, Shuffle) for k in kernels for one in inside(k.regions[0].entry))


def _far_loads(kernels: list[Instruction]) -> int:
    """Loads whose lanes are rows apart."""
    accesses = [access_of(one) for k in kernels for one in inside(k.regions[0].entry)]
    return sum(a is not None and not a.is_store and any(a.steps[:-1]) for a in accesses)


def _local_sizes(kernels: list[Instruction]) -> list[int]:
    """The elements of buffers that kernels have of their own."""
    return [
        one.op.type.size
        for k in kernels
        for one in inside(k.regions[0].entry)
        if isinstance(one.op, AllocateLocal)
    ]


def turned(b: Builder, x: Value, *order: int) -> Value:
    return b.emit(Transpose(order), x)


def _doubled(b: Builder, x: Value) -> Value:
    return b.emit(Add(), turned(b, x), turned(b, x))


def _symmetric(b: Builder, x: Value) -> Value:
    return b.emit(Add(), x, turned(b, x))


def _batch(b: Builder, x: Value) -> Value:
    y = turned(b, x, 0, 2, 1)
    return b.emit(Multiply(), y, y)


def _last_first(b: Builder, x: Value) -> Value:
    y = turned(b, x, 2, 0, 1)
    return b.emit(Multiply(), y, y)


def _parts(b: Builder, x: Value) -> Value:
    """Of one buffer, at different places."""
    rows, columns = x.tensor.shape
    first = b.emit(Slice((1, 0), (rows, columns - 2)), x)
    second = b.emit(Slice((0, 2), (rows - 1, columns)), x)
    return b.emit(Add(), turned(b, first), turned(b, second))


def _halves(b: Builder, x: Value) -> Value:
    """Of one buffer, far apart."""
    rows, columns = x.tensor.shape
    first = b.emit(Slice((0, 0), (rows // 2, columns)), x)
    second = b.emit(Slice((rows - rows // 2, 0), (rows, columns)), x)
    return b.emit(Add(), turned(b, first), turned(b, second))


def _shifted(b: Builder, x: Value) -> Value:
    """Of one buffer, along the columns that are turned together."""
    rows, columns = x.tensor.shape
    first = b.emit(Slice((0, 0), (rows - 3, columns)), x)
    second = b.emit(Slice((3, 0), (rows, columns)), x)
    return b.emit(Add(), turned(b, first), turned(b, second))


def _wider(b: Builder, x: Value, y: Value) -> Value:
    return b.emit(Multiply(), b.emit(DataTypeCast(F64), turned(b, x)), y)


def _padded(b: Builder, x: Value) -> Value:
    y = turned(b, b.emit(Pad((1, 1), (1, 1)), x, b.emit(splat(scalar(F32), 0))))
    return b.emit(Multiply(), y, y)


def _summed(b: Builder, x: Value) -> Value:
    y = turned(b, x)
    return b.emit(Reduce(Combinator.ADD, (1,)), b.emit(Multiply(), y, y))


def f64(*shape: int) -> TensorType:
    return TensorType(shape, F64)


@each(
    ("build", "types"),
    [
        (_doubled, (f32(64, 64),)),
        (_doubled, (f32(200, 48),)),  # the loop over blocks of a row is outermost
        (_symmetric, (f32(192, 192),)),  # blocks of rows in blocks of rows
        (_doubled, (f32(75, 53),)),
        (_doubled, (f32(147, 33),)),
        (_doubled, (f64(51, 70),)),
        (_doubled, (TensorType((40, 40), I64),)),
        (_symmetric, (f32(67, 67),)),
        (_batch, (f32(3, 40, 37),)),
        (_last_first, (f32(35, 3, 40),)),
        (_parts, (f32(60, 45),)),
        (_halves, (f32(161, 45),)),
        (_shifted, (f32(44, 45),)),
        (_wider, (f32(50, 40), f64(40, 50))),
    ],
)
def test_turned(build: Callable[..., object], types: tuple[TensorType, ...]) -> None:
    for target in (WIDE, NARROW, replace(WIDE, vector_bytes=32)):
        before = module_of(build, *types)
        arguments = arguments_for(before)
        expected = results(before, arguments)
        module = module_of(build, *types)
        kernels = _kernels(module, target)
        assert _shuffles(kernels)
        assert max(_local_sizes(kernels)) <= 16 * 32
        assert_close(expected, results(module, arguments))


@each(
    ("build", "types"),
    [
        (_doubled, (f32(200, 30),)),  # too few rows
        (_doubled, (f32(12, 64),)),  # rows of too few numbers
        (_doubled, (TensorType((80, 80), I8),)),
        (_padded, (f32(60, 60),)),
        (_summed, (f32(60, 60),)),
    ],
)
def test_left(build: Callable[..., object], types: tuple[TensorType, ...]) -> None:
    assert not _shuffles(_kernels(module_of(build, *types), WIDE))


def test_what_is_left_over_is_less_than_a_block_of_rows() -> None:
    """Only rows that fill no block are loaded number by number."""
    for rows in range(32, 49):
        kernels = _kernels(module_of(_doubled, f32(77, rows)), WIDE)
        assert (_far_loads(kernels) > 0) == (rows % 16 > 0)


def test_random_sizes() -> None:
    rng = Random(0)
    for _ in range(60):
        shape = rng.randint(8, 90), rng.randint(8, 90)
        target = rng.choice([WIDE, NARROW, replace(WIDE, vector_bytes=32)])
        build = rng.choice([_doubled, _parts, _shifted])
        before = module_of(build, TensorType(shape, rng.choice([F64, I64])))
        arguments = arguments_for(before)
        expected = results(before, arguments)
        module = module_of(build, before.functions["main"].entry.arguments[0].tensor)
        _kernels(module, target)
        for x, y in zip(expected, results(module, arguments), strict=True):
            assert np.array_equal(x, y)
