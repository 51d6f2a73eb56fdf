"""Sorts of every element type, by counting and by digits, beside the evaluator and NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Stage, finish_function, start_function
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import Loop, executed, is_kernel
from nnkit.core.ops import Return
from nnkit.core.ops.sorting import ArgSort
from nnkit.core.schedule import sort_kernels
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.sort_kernels import digit_of, write_sort
from nnkit.core.schedule.target import Target
from nnkit.core.types import BOOL, DTYPES, F32, F64, Array, DType, Shape, TensorType, one_or_tuple
from nnkit.core.verify import verify
from tests.jit.sharing import sharing_everything

from .running import agree

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


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_sorts(dtype: DType, is_shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one thread, or by several that share rows: as NumPy does it, and compiled code as the evaluator."""
    digits = {shape: digit for shape, _, digit in WAYS}
    monkeypatch.setattr(sort_kernels, "digit_of", lambda type, axis: digits[type.shape])
    ops = [ArgSort(axis, number % 2 == 1) for number, (_, axis, _) in enumerate(WAYS)]
    types = [TensorType(shape, dtype) for shape, _, _ in WAYS]
    with sharing_everything() if is_shared else nullcontext():
        module = sorted_rows(ops, types)
    arguments = [elements(type) for type in types]
    found = evaluate(module, "f", *arguments)
    assert isinstance(found, tuple)
    for op, x, y in zip(ops, arguments, found, strict=True):
        np.testing.assert_array_equal(y, op.evaluate(x))
    agree(module.functions["f"], arguments)


def sorted_rows(ops: Sequence[ArgSort], types: Sequence[TensorType]) -> Module:
    """A scheduled function `f` of several sorts."""
    b = start_function(types)
    pairs = zip(ops, b.block.arguments, strict=True)
    made = [value for op, x in pairs for value in b.emit_many(op, [x])]
    b.emit_many(Return(), made)
    module = Module(stage=Stage.COMPUTE)
    module.add(finish_function("f", b, one_or_tuple([x.type for x in made])))
    schedule(module, Target(vector_bytes=64, registers=32, threads=2))
    verify(module)
    for kernel in filter(is_kernel, module.functions["f"].entry.instructions):
        assert not list(accesses_outside(kernel.regions[0].entry))
    return module


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
        write_sort(b, made.producer, Target(threads=threads))
        kernel = b.block.instructions[-1]
        assert is_kernel(kernel)
        grains = [one.op.grain for _, one in executed(kernel) if isinstance(one.op, Loop)]
        return max(grains), max(kernel.op.copies)

    assert decided((1000, 1000), 4) == (8, 4)
    assert decided((1000, 1000), 1) == (8, 1)
    assert decided((2, 100_000), 4) == (1, 2)
    assert decided((1, 100_000), 4) == decided((10, 10), 4) == (0, 0)
