"""Sorts of every element type, by counting and by digits, beside the evaluator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core.ir import Placement, Value
from nnkit.core.ir.builder import start_function
from nnkit.core.ir.placement import arena, output
from nnkit.core.ops.sorting import ArgSort
from nnkit.core.schedule.ops import ScheduledArgSort
from nnkit.core.schedule.sorting import digit_of, shared_rows, sort_layout
from nnkit.core.types import BOOL, DTYPES, F32, F64, Array, DType, Shape, TensorType

from .running import agree, finish

WAYS: tuple[tuple[Shape, int, int], ...] = (
    ((1,), 0, 0), ((2, 3), 0, 0), ((2, 37), 1, 0), ((300,), 0, 8), ((2, 150, 3), 1, 11), ((5, 3), 0, 4),
)  # fmt: skip
"""Shapes, axes and digits."""


def elements(type: TensorType) -> Array:
    """Few different elements, among them the extreme ones and, of floats, zeros and NaNs of both signs."""
    random = np.random.default_rng(type.size)
    if type.dtype == BOOL:
        return random.random(type.shape) < 0.5
    if type.dtype.is_integer:
        ends = np.iinfo(type.dtype.numpy)
        return random.choice([ends.min, -2, -1, 0, 1, 2, ends.max], type.shape).astype(
            type.dtype.numpy
        )
    few = [0.0, -0.0, 1.5, -1.5, 1e-40, -3.0, 2e4, math.inf, -math.inf, math.nan, -math.nan]
    return type.dtype.round(random.choice(few, type.shape))


@pytest.mark.parametrize("grain", [0, 2])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_sorts(dtype: DType, grain: int) -> None:
    """By one thread, or by two that each sort two rows at a time."""
    types = [TensorType(shape, dtype) for shape, _, _ in WAYS]
    b = start_function(types)
    made: list[Value] = []
    for number, (_, axis, digit) in enumerate(WAYS):
        op = ScheduledArgSort(axis, number % 2 == 1, digit, grain, 1 + (grain > 0))
        placement = Placement((output(number),), (arena(64),))
        made += b.emit_many(op, [b.block.arguments[number]], placement=placement)
    size = max(
        sort_layout(ScheduledArgSort(axis, False, digit), type).bytes
        for (_, axis, digit), type in zip(WAYS, types, strict=True)
    )
    assert size > 0
    agree(finish(b, made), [elements(type) for type in types])


def test_long_rows_go_by_digits() -> None:
    assert [digit_of(TensorType((n,), F32), 0) for n in (10, 1000, 10**6)] == [0, 8, 11]
    assert [digit_of(TensorType((200, n), t), 0) for n, t in ((2, F32), (1, F64))] == [8, 0]
    assert digit_of(TensorType((1000, 2), F64), 1) == 0
    assert digit_of(TensorType((1000,), BOOL), 0) == 1


def test_threads_share_rows_that_take_long() -> None:
    """Each has room for a row, and no more of them than there are blocks of rows."""

    def decided(shape: Shape, threads: int) -> tuple[int, int]:
        b = start_function([TensorType(shape, F32)])
        (made,) = b.emit_many(ArgSort(1), b.block.arguments)
        assert made.producer is not None
        return shared_rows(ArgSort(1), made.producer, threads)

    assert decided((1000, 1000), 4) == (8, 4)
    assert decided((1000, 1000), 1) == (8, 1)
    assert decided((2, 100_000), 4) == (1, 2)
    assert decided((1, 100_000), 4) == decided((10, 10), 4) == (0, 1)
