"""Stores of a loop that fill rows of a buffer are made elsewhere first; where they do not, the rewrite is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.instruction import Instruction, Value
from nnkit.core.kernels.access_ops import PrefetchAt, StreamInto
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.errors import IllegalRewrite
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.loops import inside
from nnkit.core.kernels.stage_stores import LoopRows, stage_stores
from nnkit.core.text import print_module
from nnkit.core.types import F64, TensorType
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import module_of

ROWS, BLOCK, COLUMNS = 24, 8, 3


def index(value: Value, times: int = 1, plus: int = 0) -> IndexSum:
    return IndexSum(plus, {value: times})


def columns(
    build: KernelBuilder, shape: tuple[int, ...] = (), begin: int = 0, count: int = COLUMNS
) -> Instruction:
    """A loop over blocks of rows whose columns are stored one after the other, of what is read in the first one."""
    (x,), to = build.operands, build.outputs[0]
    with build.loop(ROWS, step=BLOCK) as block:
        for column in range(count):
            with build.loop(BLOCK, step=4) as row:
                at = index(block.index).plus(index(row.index))
                read = build.load(x, at, lanes=4, steps=(1,))
                if shape:
                    build.store(read, to, at, IndexSum(column, {}), steps=(1, 0))
                else:
                    there = IndexSum(begin + column, {}).plus(at, COLUMNS)
                    build.store(read, to, there, steps=(COLUMNS,))
    assert block.loop is not None
    return block.loop


def built(
    write: Callable[[KernelBuilder], Instruction], *shape: int
) -> tuple[KernelBuilder, Instruction]:
    build = KernelBuilder([TensorType((ROWS,), F64)], [TensorType(shape, F64)])
    return build, write(build)


def results(build: KernelBuilder) -> Any:
    module = module_of(build)
    verify(module)
    return evaluate(module, "main", np.arange(ROWS, dtype=np.float64)), print_module(module)


@pytest.mark.parametrize("shape", [(ROWS * COLUMNS,), (ROWS, COLUMNS)])
def test_columns_are_written_as_rows(shape: tuple[int, ...]) -> None:
    build, loop = built(lambda b: columns(b, shape if len(shape) > 1 else ()), *shape)
    stage_stores(loop, build.outputs[0], LoopRows(COLUMNS, IndexSum(0, {})))
    found, text = results(build)
    assert np.array_equal(np.ravel(found), np.repeat(np.arange(ROWS), COLUMNS))
    assert text.count("streamInto") == 1 and f"allocateLocal <{BLOCK * COLUMNS} x f64>" in text


def test_what_lies_beside_the_rows_stays() -> None:
    """Another part of the buffer is written in the same loop."""

    def write(build: KernelBuilder) -> Instruction:
        x, to = build.operands[0], build.outputs[0]
        loop = columns(build, begin=ROWS)
        body = loop.regions[0].entry
        at = index(body.arguments[0])
        inner = KernelBuilder([], [])
        inner.store(inner.load(x, at, lanes=BLOCK, steps=(1,)), to, at, steps=(1,))
        body.instructions[-1:-1] = inner.block.instructions
        return loop

    build, loop = built(write, ROWS + ROWS * COLUMNS)
    stage_stores(loop, build.outputs[0], LoopRows(COLUMNS, IndexSum(ROWS, {})))
    found, _ = results(build)
    numbers = np.arange(ROWS)
    assert np.array_equal(np.ravel(found), np.concatenate([numbers, np.repeat(numbers, COLUMNS)]))


def test_fetches_of_what_is_written_are_left_out() -> None:
    def write(build: KernelBuilder) -> Instruction:
        loop = columns(build)
        body = loop.regions[0].entry
        inner = KernelBuilder([], [])
        with inner.loop(BLOCK * COLUMNS, step=8) as line:
            there = index(line.index, plus=BLOCK * COLUMNS).plus(index(body.arguments[0]), COLUMNS)
            inner.prefetch(build.outputs[0], there)
        body.instructions[:0] = inner.block.instructions
        return loop

    build, loop = built(write, ROWS * COLUMNS)
    stage_stores(loop, build.outputs[0], LoopRows(COLUMNS, IndexSum(0, {})))
    assert not any(isinstance(one.op, PrefetchAt) for one in inside(build.block))
    assert sum(isinstance(one.op, StreamInto) for one in inside(build.block)) == 1
    results(build)


def with_a_load(build: KernelBuilder) -> Instruction:
    loop = columns(build)
    body = loop.regions[0].entry
    inner = KernelBuilder([], [])
    to = build.outputs[0]
    inner.store(inner.load(to, index(body.arguments[0], COLUMNS)), to, IndexSum(0, {}))
    body.instructions[-1:-1] = inner.block.instructions
    return loop


def with_a_fill(build: KernelBuilder) -> Instruction:
    loop = columns(build)
    body = loop.regions[0].entry
    inner = KernelBuilder([], [])
    inner.fill(build.outputs[0], inner.constant(F64, 0.0))
    body.instructions[:0] = inner.block.instructions
    return loop


@pytest.mark.parametrize(
    ("write", "rows", "why"),
    [
        (
            lambda b: columns(b, count=COLUMNS - 1),
            LoopRows(COLUMNS, IndexSum(0, {})),
            "does not fill its rows",
        ),
        (columns, LoopRows(COLUMNS, IndexSum(1, {})), "may touch rows of the loop"),
        (columns, LoopRows(COLUMNS - 1, IndexSum(0, {})), "may touch rows of the loop"),
        (with_a_load, LoopRows(COLUMNS, IndexSum(0, {})), "may touch rows of the loop"),
        (with_a_fill, LoopRows(COLUMNS, IndexSum(0, {})), "touches all of the buffer"),
    ],
)
def test_refused(write: Callable[[KernelBuilder], Instruction], rows: LoopRows, why: str) -> None:
    build, loop = built(write, ROWS * COLUMNS)
    before = [(one.op, *one.operands) for one in inside(build.block)]
    with pytest.raises(IllegalRewrite, match=why):
        stage_stores(loop, build.outputs[0], rows)
    assert [(one.op, *one.operands) for one in inside(build.block)] == before
