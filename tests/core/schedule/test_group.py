"""Nests over the same rows share their loop, when that keeps rows in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import (
    Add,
    Combinator,
    Dot,
    Exp,
    Gather,
    Multiply,
    PadShape,
    Reduce,
    Reverse,
    Subtract,
    Transpose,
)
from nnkit.core.schedule.ops import compensated_outputs
from nnkit.core.schedule.target import Target
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

from .decided import Decided, decided

TARGET = Target(vector_bytes=64, l1_bytes=32 << 10, l2_bytes=1 << 20)


@pytest.fixture(autouse=True)
def _without_row_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of nests that could be passes over rows as well (`test_row_kernels`)."""
    monkeypatch.setenv("NNKIT_DISABLE", "rows")


def scheduled(
    build: Callable[..., Value | Sequence[Value]], *types: TensorType, is_run: bool = True
) -> Decided:
    """The nests of a program, as they are decided; its kernels must keep its results, which takes long to evaluate."""
    module = module_of(build, *types)
    arguments = arguments_for(module)
    expected = results(module, arguments) if is_run else ()
    for step in (generate_compute, fuse):
        step(module)
        verify(module)
    found = decided(module, TARGET)
    verify(module)
    for kernel in filter(is_kernel, module.functions["main"].entry.instructions):
        assert not list(accesses_outside(kernel.regions[0].entry))
    if is_run:
        assert_close(expected, results(module, arguments))
    return found


def groups(found: Decided) -> list[int]:
    return [nest.group for nest in found.loops]


def test_the_nests_of_softmax_share_the_loop_over_rows() -> None:
    assert groups(scheduled(softmax, f32(256, 512))) == [0, 0, 0]


def test_what_fits_the_cache_needs_no_group() -> None:
    assert groups(scheduled(softmax, f32(8, 64))) == [-1, -1, -1]


def test_rows_that_do_not_fit_are_not_grouped() -> None:
    assert groups(scheduled(softmax, f32(4, 200_000), is_run=False)) == [-1, -1, -1]


def test_cross_entropy_and_its_gradient_are_one_walk_over_the_rows() -> None:
    nests = scheduled(cross_entropy_gradient, f32(256, 300), TensorType((256,), I32))
    wide = [op for op in nests.loops if len(op.extents) == 2]
    assert len(wide) >= 3
    assert {op.group for op in wide} == {0}
    together = [op for op in nests.loops if op.group == 0]
    assert all(op.extents[op.order[0]] == 256 and op.vector != op.order[0] for op in together)
    assert all(op.accumulators == 1 for op in together if len(op.order) == 1)


def test_reading_other_rows_ends_the_group() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        e = b.emit(Exp(), x)
        row = b.emit(PadShape(1), b.emit(Reduce(Combinator.ADD, (1,)), e))
        return [b.emit(Subtract(), e, b.emit(Reverse((0,)), row))]

    assert groups(scheduled(build, f32(256, 512))) == [-1, -1]


def test_what_lies_between_is_moved_out() -> None:
    def build(b: Builder, x: Value, y: Value) -> list[Value]:
        soft = softmax(b, x)
        other = b.emit(Reduce(Combinator.MAX, (0, 1)), y)
        total = b.emit(Reduce(Combinator.ADD, (0, 1)), b.emit(Transpose(), soft))
        again = softmax(b, b.emit(Multiply(), soft, x))
        return [b.emit(Add(), other, total), again]

    nests = scheduled(build, f32(256, 512), f32(100, 100))
    found = groups(nests)
    assert found.count(0) >= 5
    positions = [index for index, group in enumerate(found) if group == 0]
    assert positions == list(range(positions[0], positions[0] + len(positions)))


def test_an_index_within_the_row_keeps_the_group() -> None:
    def build(b: Builder, x: Value, columns: Value) -> list[Value]:
        soft = softmax(b, x)
        return [soft, b.emit(Gather(1), soft, columns)]

    nests = scheduled(build, f32(256, 512), TensorType((64,), I32))
    assert groups(nests) == [0, 0, 0, 0]


def test_groups_are_numbered_apart() -> None:
    def build(b: Builder, x: Value) -> Value:
        turned = b.emit(Transpose(), softmax(b, x))
        return softmax(b, b.emit(Multiply(), turned, turned))

    found = groups(scheduled(build, f32(256, 512)))
    assert len({group for group in found if group >= 0}) == 2
    assert np.all(np.diff([group for group in found if group >= 0]) >= 0)


@pytest.mark.parametrize(("rows", "summed"), [(25, 1000), (1000, 20)])
def test_sums_that_are_finished_behind_the_group_are_not_read_in_it(rows: int, summed: int) -> None:
    """Σ over an axis in blocks, with compensation, in memory: its parts are added up behind all loops.

    What it computes is tested compiled (`tests/nnkit/test_row_groups.py`), on one thread and several.
    """

    def build(b: Builder, x: Value, q: Value) -> Value:
        weights = b.emit(Exp(), b.emit(Reduce(Combinator.ADD, (2,)), b.emit(Multiply(), x, x)))
        weighted = b.emit(Multiply(), b.emit(PadShape(2), weights), x)
        sums = b.emit(Reduce(Combinator.ADD, (1,)), weighted)
        return b.emit(Dot(), q, b.emit(PadShape(2), sums))

    shapes = (rows, summed, 10), (rows, 10, 10)
    nests = scheduled(build, *(TensorType(shape, F64) for shape in shapes), is_run=False)
    (late,) = (n for n, op in enumerate(nests.loops) if compensated_outputs(op))
    readers = [op for op, read in zip(nests.loops, nests.reads, strict=True) if late in read]
    group = nests.loops[late].group
    assert readers and all(reader.group != group or group < 0 for reader in readers)
