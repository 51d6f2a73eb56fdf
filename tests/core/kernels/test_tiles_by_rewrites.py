"""Kernels that are made fast by rewrites, step by step: the loops that come out, and the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.instruction import Block, Instruction
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.cse import cse
from nnkit.core.kernels.fuse import fuse
from nnkit.core.kernels.hoist import hoist_all
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.interchange import interchange
from nnkit.core.kernels.loops import body_of, loop_op, loops_of
from nnkit.core.kernels.ops import Fma
from nnkit.core.kernels.promote import promote
from nnkit.core.kernels.split import split, split_balanced
from nnkit.core.kernels.unroll import unroll_and_jam
from nnkit.core.kernels.vectorise import vectorise
from nnkit.core.ops import Add, DataTypeCast, Divide, Exp, Maximum, Multiply, Subtract
from nnkit.core.types import F32, F64, Array, TensorType
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import module_of
from tests.values import same_bits


def shape_of(block: Block) -> list[object]:
    """The loops of a body, and what stands in the innermost, counted."""
    loops = loops_of(block)
    if not loops:
        return [Counter(i.op.name for i in block.instructions if not i.op.is_terminator)]
    found: list[object] = []
    for loop in loops:
        op = loop_op(loop)
        found.append((op.count, op.step, shape_of(body_of(loop))))
    return found


def only(block: Block) -> Instruction:
    (loop,) = loops_of(block)
    return loop


def run(build: KernelBuilder, *arguments: Array) -> Array:
    module = module_of(build)
    verify(module)
    assert not list(accesses_outside(build.block))
    return np.asarray(evaluate(module, "main", *arguments))


def product(*, transposed: bool, updates: bool) -> KernelBuilder:
    """C = A · B, 12×20, by a sum that is carried or one in memory, where C holds zeros first."""
    shape = (20, 7) if transposed else (7, 20)
    build = KernelBuilder(
        [TensorType((12, 7), F32), TensorType(shape, F32)], [TensorType((12, 20), F32)]
    )
    (a, b), (c,) = build.operands, build.outputs
    with build.loop(12) as rows, build.loop(20) as columns:
        i, j = rows.index, columns.index
        zero = build.constant(F32, 0)
        if updates:
            build.store(zero, c, i, j)
        with build.loop(7, carrying=[] if updates else [zero]) as sum:
            k = sum.index
            u, v = build.load(a, i, k), build.load(b, *((j, k) if transposed else (k, j)))
            s = build.load(c, i, j) if updates else sum.carried[0]
            t = build.emit(Fma(), u, v, s)
            if updates:
                build.store(t, c, i, j)
            else:
                sum.yields(t)
        if not updates:
            build.store(sum.results[0], c, i, j)
    return build


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_by_register_tiles(transposed: bool, updates: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 7), np.float32)
    w = rng.standard_normal((20, 7) if transposed else (7, 20), np.float32)
    expected = run(product(transposed=transposed, updates=updates), x, w)
    build = product(transposed=transposed, updates=updates)
    block = build.block
    if updates:
        columns = only(body_of(only(block)))
        promote(body_of(columns), only(body_of(columns)))
    interchange(block, only(block))
    main = split(block, only(block), 8)
    assert main.rest is not None
    vectorise(block, main.rest, 4)
    panel = split(body_of(main.outer), main.inner, 4)
    vectorise(body_of(panel.outer), panel.inner, 4)
    unroll_and_jam(body_of(main.outer), panel.outer)
    for body in (block, body_of(main.outer)):
        rows = loops_of(body)[-1]
        for part in split_balanced(body, rows, 5):
            unroll_and_jam(body_of(part.outer), part.inner)
    cse(block)
    hoist_all(block)
    wide = Counter({"loadAt": 4 + 2, "fma": 8})
    narrow = Counter({"loadAt": 4 + 1, "fma": 4})
    assert shape_of(block) == [
        (2, 8, [(3, 4, [(7, 1, [wide])])]),
        (3, 4, [(7, 1, [narrow])]),
    ]
    assert same_bits(run(build, x, w), expected)


def rows_softmax(extent: int) -> KernelBuilder:
    """Softmax of each row: the maximum, the sum of exponentials, the quotients."""
    type = TensorType((6, extent), F64)
    build = KernelBuilder([type], [type])
    (x,), (y,) = build.operands, build.outputs
    with build.loop(6) as rows:
        i = rows.index
        with build.loop(extent, carrying=[build.constant(F64, -np.inf)]) as top:
            top.yields(build.emit(Maximum(), top.carried[0], build.load(x, i, top.index)))
        with build.loop(extent, carrying=[build.constant(F64, 0)]) as sum:
            shifted = build.emit(Subtract(), build.load(x, i, sum.index), top.results[0])
            power = build.emit(Exp(), shifted)
            build.store(power, y, i, sum.index)
            sum.yields(build.emit(Add(), sum.carried[0], power))
        with build.loop(extent) as quotients:
            power = build.load(y, i, quotients.index)
            build.store(build.emit(Divide(), power, sum.results[0]), y, i, quotients.index)
    return build


def by_columns(build: KernelBuilder) -> None:
    """Each row by vectors along it: reductions have a result per lane."""
    body = body_of(only(build.block))
    top, sum, quotients = loops_of(body)
    for loop in (top, sum):
        left = vectorise(body, loop, 4, reassociate=True).rest
        assert left is not None
    main = split(body, quotients, 4)
    vectorise(body_of(main.outer), main.inner, 4)
    assert main.rest is not None
    vectorise(body, main.rest, 4)


def by_rows(build: KernelBuilder) -> None:
    """Four rows at a time, one per lane; the two that are left in a half of a vector."""
    main = split(build.block, only(build.block), 4)
    assert main.rest is not None
    vectorise(body_of(main.outer), main.inner, 4)
    vectorise(build.block, main.rest, 4)


@pytest.mark.parametrize(("schedule", "is_exact"), [(by_columns, False), (by_rows, True)])
def test_softmax_by_vectors(schedule: Callable[[KernelBuilder], None], is_exact: bool) -> None:
    x = np.random.default_rng(0).standard_normal((6, 11))
    expected = run(rows_softmax(11), x)
    build = rows_softmax(11)
    schedule(build)
    cse(build.block)
    hoist_all(build.block)
    found = run(build, x)
    np.testing.assert_allclose(found, expected, rtol=0 if is_exact else 1e-14)


def test_reductions_over_one_pass() -> None:
    """Mean and mean of squares, and what is made of each element, in one loop that loads it once."""
    row, one = TensorType((9,), F64), TensorType((), F64)
    build = KernelBuilder([row], [one, one, row])
    (x,), (mean, squares, doubled) = build.operands, build.outputs
    sums = []
    for power in (1, 2):
        with build.loop(9, carrying=[build.constant(F64, 0)]) as loop:
            u = build.load(x, loop.index)
            u = build.emit(Multiply(), u, u) if power == 2 else u
            loop.yields(build.emit(Add(), loop.carried[0], u))
        sums.append(loop.results[0])
    with build.loop(9) as loop:
        u = build.load(x, loop.index)
        number = build.emit(DataTypeCast(F64), loop.index)
        build.store(build.emit(Add(), build.emit(Add(), u, u), number), doubled, loop.index)
    build.store(sums[0], mean)
    build.store(sums[1], squares)
    first, second, third = loops_of(build.block)
    fuse(build.block, fuse(build.block, first, second), third)
    cse(build.block)
    assert shape_of(build.block) == [
        (9, 1, [Counter({"loadAt": 1, "add": 4, "multiply": 1, "dataTypeCast": 1, "storeAt": 1})])
    ]
    loop = only(build.block)
    vectorise(build.block, loop, 4, reassociate=True)
    module = module_of(build)
    verify(module)
    numbers = np.arange(9) / 8
    found = evaluate(module, "main", numbers)
    assert found[0] == numbers.sum() and found[1] == (numbers * numbers).sum()
    assert same_bits(found[2], 2 * numbers + np.arange(9))


@pytest.mark.parametrize("lanes", [2, 4])
def test_each_lane_has_a_buffer_of_its_own(lanes: int) -> None:
    """Reversed rows of a matrix by way of a local row, of which iteration i leaves element 1 − i out."""
    type = TensorType((2, 3), F64)

    def write() -> KernelBuilder:
        build = KernelBuilder([type], [type])
        (x,), (y,) = build.operands, build.outputs
        with build.loop(2) as rows:
            i = rows.index
            row = build.local(TensorType((3,), F64))
            with build.loop(3) as columns:
                build.store(build.load(x, i, columns.index), row, columns.index)
            build.store(build.constant(F64, 0), row, IndexSum(1, {i: -1}))
            with build.loop(3) as columns:
                value = build.load(row, IndexSum(2, {columns.index: -1}))
                build.store(value, y, i, columns.index)
        return build

    x = np.arange(6.0).reshape(2, 3)
    expected = run(write(), x)
    build = write()
    vectorise(build.block, only(build.block), lanes)
    assert same_bits(run(build, x), expected)
    assert expected.tolist() == [[2, 0, 0], [5, 4, 0]]
