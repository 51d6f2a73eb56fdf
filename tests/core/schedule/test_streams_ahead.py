"""What nests go through in memory is fetched ahead where it is large, in nests and in the kernels that they become."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.ir import Block, Builder, Module, Value
from nnkit.core.kernels.access_ops import LoadAt, PrefetchAt
from nnkit.core.kernels.loops import inside
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops import (
    Add,
    Combinator,
    Dot,
    Gather,
    Multiply,
    Reduce,
    Reverse,
    Subtract,
    Transpose,
)
from nnkit.core.ops.nest import Bounds
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import I64, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.core.schedule.decided import decided

TARGET = Target(vector_bytes=64, registers=32, fma=True, l2_bytes=1 << 12)


def _plus(b: Builder, x: Value, y: Value) -> Value:
    return b.emit(Add(), b.emit(Multiply(), x, x), y)


def _turned(b: Builder, x: Value) -> Value:
    return b.emit(Add(), x, b.emit(Transpose(), x))


def _from_the_last(b: Builder, x: Value) -> Value:
    return b.emit(Add(), x, b.emit(Reverse((0,)), x))


def _weighed(b: Builder, x: Value, index: Value, w: Value) -> list[Value]:
    y = b.emit(Multiply(), b.emit(Gather(0, Bounds.INSIDE), x, index), w)
    return [y, b.emit(Reduce(Combinator.ADD, (0,)), y)]


def _sum(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0, 1)), x)


def _scheduled(build: Callable[..., object], *types: TensorType, target: Target = TARGET) -> Module:
    module = module_of(build, *types)
    schedule(fused(module), target)
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return module


def test_which_operands_and_results_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_DISABLE", "rows,blocks")
    large, narrow = f32(30, 50), Target(vector_bytes=16, l2_bytes=1 << 12)
    rows: tuple[tuple[Callable[..., object], tuple[TensorType, ...], Target, list[int]], ...] = (
        (_plus, (large, large), TARGET, [0, 1, 2]),
        (_plus, (large, f32(50)), TARGET, [0, 2]),  # a row stays in the nearest cache
        (_plus, (f32(20, 15), f32(20, 15)), TARGET, []),  # all fits
        (_plus, (large, large), narrow, []),  # a line has four vectors
        (_turned, (f32(40, 40),), TARGET, []),  # jumps from row to row
        (_from_the_last, (large,), TARGET, []),
        (_sum, (large,), TARGET, [0]),
        # an element of the column serves a row
        (_plus, (f32(400, 32), f32(400, 1)), TARGET, [0, 2]),
        # the matrix comes again for each of the rows
        (_plus, (f32(400, 32), f32(4096, 1, 32)), TARGET, []),
    )
    for build, types, target, wanted in rows:
        (op,) = decided(fused(module_of(build, *types)), target).loops
        assert [number for number, _ in op.fetch] == wanted, (build, types)
        assert all(far == 1024 for _, far in op.fetch)
    monkeypatch.setenv("NNKIT_DISABLE", "prefetch")
    (op,) = decided(fused(module_of(_plus, large, large)), TARGET).loops
    assert not op.fetch


def test_kernels_fetch_each_line_of_whole_vectors() -> None:
    """Three streams; the rest of the only axis, 1500 = 93 · 16 + 12, is fetched by no one."""
    module = module_of(_plus, f32(30, 50), f32(30, 50))
    arguments = arguments_for(module)
    expected = results(module, arguments)
    module = _scheduled(_plus, f32(30, 50), f32(30, 50))
    (kernel,) = (i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel))
    body: Block = kernel.regions[0].entry
    found = [i for i in inside(body) if isinstance(i.op, PrefetchAt)]
    assert [str(i.op.indices[0]) for i in found] == ["d0 + 1024"] * 3
    assert len({i.operands[0] for i in found}) == 3
    assert_close(expected, results(module, arguments))


def test_a_matrix_at_an_index_is_fetched_by_blocks_of_its_rows() -> None:
    """Short rows that are stored and summed: eight at a time are added in registers, column by column."""
    types = (f32(6, 64, 32), TensorType((), I64), f32(64, 1))
    module = module_of(_weighed, *types)
    arguments = list(arguments_for(module))
    arguments[1] = np.asarray(3)
    expected = results(module, arguments)
    (op,) = decided(fused(module_of(_weighed, *types)), TARGET).loops
    assert (op.order, op.vector) == ((0, 1, 0), 1)
    module = _scheduled(_weighed, *types)
    (kernel,) = (i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel))
    found = [i for i in inside(kernel.regions[0].entry) if isinstance(i.op, PrefetchAt)]
    assert found
    assert {str(i.operands[0].type) for i in found} == {"*<6 x 64 x 32 x f32>", "*<64 x 32 x f32>"}
    assert_close(expected, results(module, arguments))


@pytest.mark.parametrize(("width", "is_fetched"), [(64, False), (1000, False), (1024, True)])
def test_short_parts_at_an_index_are_not_fetched(width: int, is_fetched: bool) -> None:
    """What lies 4 KB behind a short row is another row, and the loop that reads it may be on its way back."""

    def row(b: Builder, x: Value, index: Value, y: Value) -> Value:
        return b.emit(Add(), b.emit(Gather(0, Bounds.INSIDE), x, index), y)

    types = f32(40, width), TensorType((), I64), f32(width)
    (op,) = decided(fused(module_of(row, *types)), TARGET).loops
    assert bool(op.fetch) == is_fetched


def test_what_follows_a_product_is_fetched_while_it_is_summed() -> None:
    """Each line of an update that is larger than the second cache, before the sum that it is added to; a row is not."""
    module = _scheduled(_update, f32(40, 30), f32(30, 48), f32(40, 48), f32(48))
    (kernel,) = (i for i in module.functions["main"].entry.instructions if isinstance(i.op, Kernel))
    update = kernel.regions[0].entry.arguments[2]
    found = [i for i in inside(kernel.regions[0].entry) if isinstance(i.op, PrefetchAt)]
    loads = [i for i in inside(kernel.regions[0].entry) if isinstance(i.op, LoadAt)]
    lines = sum(-(-i.result.tensor.bytes // 64) for i in loads if i.operands[0] is update)
    assert len(found) == lines > 0
    assert {i.operands[0] for i in found} == {update}
    arguments = arguments_for(module)
    wanted = arguments[2] - arguments[0] @ arguments[1] + arguments[3]
    assert_close([wanted], results(module, arguments))


def _update(b: Builder, x: Value, w: Value, old: Value, row: Value) -> Value:
    return b.emit(Add(), b.emit(Subtract(), old, b.emit(Dot(), x, w)), row)
