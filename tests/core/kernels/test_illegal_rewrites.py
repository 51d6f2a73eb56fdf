"""What rewrites refuse, and why; the kernel is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.instruction import Block, Instruction, Value
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.distribute import distribute
from nnkit.core.kernels.errors import IllegalRewrite
from nnkit.core.kernels.fuse import fuse
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.interchange import interchange
from nnkit.core.kernels.loops import body_of, loops_of
from nnkit.core.kernels.parallelise import parallelise
from nnkit.core.kernels.promote import promote
from nnkit.core.kernels.split import balanced, peel, split, split_balanced
from nnkit.core.kernels.unroll import unroll, unroll_and_jam
from nnkit.core.kernels.vectorise import vectorise
from nnkit.core.ops import Add, DataTypeCast, Multiply
from nnkit.core.text import print_module
from nnkit.core.types import F32, I64, PointerType, TensorType
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import module_of

VECTOR = TensorType((8,), F32)
MATRIX = TensorType((8, 8), F32)


def at(index: Value, times: int = 1, offset: int = 0) -> IndexSum:
    return IndexSum(offset, {index: times})


def shift(build: KernelBuilder) -> None:
    """y[i + 1] = x[i] + y[i]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(7) as loop:
        i = loop.index
        build.store(build.emit(Add(), build.load(x, i), build.load(y, i)), y, at(i, 1, 1))


def in_place(build: KernelBuilder) -> None:
    """y[i] = x[i + 1]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(7) as loop:
        build.store(build.load(x, at(loop.index, 1, 1)), y, loop.index)


def copy(build: KernelBuilder) -> None:
    """Two loops, y[i] = x[i] and y[i] = x[i] + y[i]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        build.store(build.load(x, loop.index), y, loop.index)
    with build.loop(8) as loop:
        sum = build.emit(Add(), build.load(x, loop.index), build.load(y, loop.index))
        build.store(sum, y, loop.index)


def late(build: KernelBuilder) -> None:
    """y[i] = x[i], then y[i] = x[i] + y[7 − i] in another loop."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        build.store(build.load(x, loop.index), y, loop.index)
    with build.loop(8) as loop:
        build.store(build.load(y, at(loop.index, -1, 7)), y, loop.index)


def elsewhere(build: KernelBuilder) -> None:
    """y[i] = x[i], by a buffer that each iteration copies as a whole."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        own = build.local(TensorType((1,), F32))
        build.store(build.load(x, loop.index), own, 0)
        build.stream(own, y, loop.index)


def stored_between(build: KernelBuilder) -> None:
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        build.store(build.load(x, loop.index), y, loop.index)
    build.store(build.load(x, 0), y, 0)
    with build.loop(8) as loop:
        build.store(build.load(x, loop.index), y, loop.index)


def normalised(build: KernelBuilder) -> None:
    """s = Σ x[i], then y[i] = x[i] · s: the second needs the end of the first."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8, carrying=[build.constant(F32, 0)]) as sum:
        sum.yields(build.emit(Add(), sum.carried[0], build.load(x, sum.index)))
    with build.loop(8) as loop:
        product = build.emit(Multiply(), build.load(x, loop.index), sum.results[0])
        build.store(product, y, loop.index)


def running(build: KernelBuilder) -> None:
    """Running sums: y[i] = s += x[i]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8, carrying=[build.constant(F32, 0)]) as loop:
        sum = build.emit(Add(), loop.carried[0], build.load(x, loop.index))
        build.store(sum, y, loop.index)
        loop.yields(sum)


def mixed(build: KernelBuilder) -> None:
    """s = (s + x[i]) · x[i]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8, carrying=[build.constant(F32, 0)]) as loop:
        u = build.load(x, loop.index)
        loop.yields(build.emit(Multiply(), build.emit(Add(), loop.carried[0], u), u))
    build.store(loop.results[0], y, 0)


def vectors(build: KernelBuilder) -> None:
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(2) as loop:
        u = build.load(x, at(loop.index, 4), lanes=4, steps=(1,))
        build.store(u, y, at(loop.index, 4), steps=(1,))


def gather(build: KernelBuilder) -> None:
    """y[i] = x[k(i)] where k is computed."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        where = build.emit(DataTypeCast(I64), build.load(x, loop.index))
        build.store(build.load(x, where), y, loop.index)


def one_element(build: KernelBuilder) -> None:
    """y[3] += x[i]."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        build.store(build.emit(Add(), build.load(y, 3), build.load(x, loop.index)), y, 3)


def touched_twice(build: KernelBuilder) -> None:
    """y[3] += y[i]."""
    (_, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        build.store(build.emit(Add(), build.load(y, 3), build.load(y, loop.index)), y, 3)


def skewed(build: KernelBuilder) -> None:
    """z[i + 1, j] = z[i, j + 1]."""
    z = build.outputs[1]
    with build.loop(7) as rows, build.loop(7) as columns:
        i, j = rows.index, columns.index
        build.store(build.load(z, i, at(j, 1, 1)), z, at(i, 1, 1), j)


def imperfect(build: KernelBuilder) -> None:
    (x, *_), (y, z) = build.operands, build.outputs
    with build.loop(8) as rows:
        build.store(build.load(x, rows.index), y, rows.index)
        with build.loop(8) as columns:
            build.store(build.load(x, rows.index), z, rows.index, columns.index)


def nested_sum(build: KernelBuilder) -> None:
    """A sum over a matrix by two loops that carry it."""
    (_, m), (y, _) = build.operands, build.outputs
    with build.loop(8, carrying=[build.constant(F32, 0)]) as rows:
        with build.loop(8, carrying=rows.carried) as columns:
            u = build.load(m, rows.index, columns.index)
            columns.yields(build.emit(Add(), columns.carried[0], u))
        rows.yields(*columns.results)
    build.store(rows.results[0], y, 0)


def threads(build: KernelBuilder) -> None:
    (x, *_), (_, z) = build.operands, build.outputs
    with build.loop(8) as rows, build.loop(8, grain=2) as columns:
        build.store(build.load(x, columns.index), z, rows.index, columns.index)


def shifted_back(build: KernelBuilder) -> None:
    """z[0, i] = y[i] and y[i + 1] = x[i]: what an iteration stores, the next one loads."""
    (x, *_), (y, z) = build.operands, build.outputs
    with build.loop(7) as loop:
        build.store(build.load(y, loop.index), z, 0, loop.index)
        build.store(build.load(x, loop.index), y, at(loop.index, 1, 1))


def by_a_local(build: KernelBuilder) -> None:
    """y[i] = x[i], by a buffer of each iteration's own."""
    (x, *_), (y, *_) = build.operands, build.outputs
    with build.loop(8) as loop:
        own = build.local(TensorType((), F32))
        build.store(build.load(x, loop.index), own)
        build.store(build.load(own), y, loop.index)


Write = Callable[[KernelBuilder], None]
Apply = Callable[[Block, Instruction, KernelBuilder], Any]


def second(block: Block) -> Instruction:
    return loops_of(block)[1]


def nth(loop: Instruction, number: int) -> Instruction:
    return body_of(loop).instructions[number]


ILLEGAL: list[tuple[str, Write, Apply]] = [
    ("not independent: a load of %y0 and a store to %y0", shift, lambda b, l, _: vectorise(b, l, 8)),
    ("not independent: a load of %x0 and a store to %y0", in_place,
     lambda b, l, k: vectorise(b, l, 8, aliases=[(k.operands[0], k.outputs[0])])),
    ("8 iterations are no vector of 4 lanes: split them", copy, lambda b, l, _: vectorise(b, l, 4)),
    ("only with `reassociate`", normalised, lambda b, l, _: vectorise(b, l, 8)),
    ("not only combined with others", running, lambda b, l, _: vectorise(b, l, 8, reassociate=True)),
    ("not combined by one associative", mixed, lambda b, l, _: vectorise(b, l, 8, reassociate=True)),
    ("have no vector of 16 lanes", normalised, lambda b, l, _: vectorise(b, l, 16, reassociate=True)),
    ("has vectors already", vectors, lambda b, l, _: vectorise(b, l, 2)),
    ("is not only loaded and stored", elsewhere, lambda b, l, _: vectorise(b, l, 8)),
    ("at an index that was computed", gather, lambda b, l, _: vectorise(b, l, 8)),
    ("carry values to each other cannot be jammed", normalised, lambda b, l, _: unroll_and_jam(b, l)),
    ("not independent", shift, lambda b, l, _: unroll_and_jam(b, l)),
    ("not one loop alone", imperfect, lambda b, l, _: interchange(b, l)),
    ("not one loop alone", copy, lambda b, l, _: interchange(b, l)),
    ("change the order of a store to %y1 and a load of %y1", skewed, lambda b, l, _: interchange(b, l)),
    ("carry values are not exchanged", nested_sum, lambda b, l, _: interchange(b, l)),
    ("needs what the first yields", normalised, lambda b, l, _: fuse(b, l, second(b))),
    ("change the order of a store to %y0 and a load of %y0", late, lambda b, l, _: fuse(b, l, second(b))),
    ("a storeAt stands between the loops", stored_between, lambda b, l, _: fuse(b, l, second(b))),
    ("the second half needs what a loadAt gives", copy, lambda b, l, _: distribute(b, l, nth(l, 1))),
    ("nothing to do", copy, lambda b, l, _: distribute(b, l, nth(l, 0))),
    ("nothing to do", copy, lambda b, l, _: distribute(b, l, nth(l, -1))),
    ("uses what the loop carries", running, lambda b, l, _: distribute(b, l, nth(l, -2))),
    ("change the order of a store to %y0 and a load of %y0", shifted_back,
     lambda b, l, _: distribute(b, l, nth(l, 2))),
    ("is not only loaded and stored", elsewhere, lambda b, l, _: distribute(b, l, nth(l, -2))),
    ("from 0 by 1 that one thread runs", by_a_local,
     lambda b, l, _: (parallelise(b, l, 2), distribute(b, l, nth(l, -3)))),
    ("stands before the first", copy, lambda b, l, _: fuse(b, second(b), l)),
    ("from 0 upto 8 by 1 and from 0 upto 8 by 1 parallel 2 differ", copy,
     lambda b, l, _: (parallelise(b, second(b), 2), fuse(b, l, second(b)))),
    ("updates no element", copy, lambda b, l, _: promote(b, l)),
    ("something else in the loop may touch", touched_twice, lambda b, l, _: promote(b, l)),
    ("is parallel, or does not run", threads, lambda b, l, _: promote(body_of(l), loops_of(body_of(l))[0])),
    ("a store to %y0, in different iterations", one_element, lambda b, l, _: parallelise(b, l, 1)),
    ("carry values to each other are not parallel", normalised, lambda b, l, _: parallelise(b, l, 1)),
    ("at least one iteration, not 0", copy, lambda b, l, _: parallelise(b, l, 0)),
    ("a loop inside is parallel already", threads, lambda b, l, _: parallelise(b, l, 1)),
    ("8 iterations has no run of 9", copy, lambda b, l, _: split(b, l, 9)),
    ("8 iterations has no run of 0", copy, lambda b, l, _: split(b, l, 0)),
    ("no run has at most 0", copy, lambda b, l, _: split_balanced(b, l, 0)),
    ("cannot be cut after 8", copy, lambda b, l, _: peel(b, l, 8)),
    ("does not stand in this block", copy, lambda b, l, _: unroll(body_of(l), l)),
    ("loadAt is not a loop", copy, lambda b, l, _: unroll(body_of(l), body_of(l).instructions[0])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "write", "apply"), ILLEGAL, ids=lambda x: getattr(x, "__name__", "")
)
def test_illegal_rewrites_say_why(reason: str, write: Write, apply: Apply) -> None:
    build = KernelBuilder([VECTOR, MATRIX], [VECTOR, MATRIX])
    write(build)
    module = module_of(build)
    verify(module)
    before = print_module(module)
    with pytest.raises(IllegalRewrite) as raised:
        apply(build.block, loops_of(build.block)[0], build)
    assert reason in str(raised.value)
    assert print_module(module).replace(" parallel 2", "") == before.replace(" parallel 2", "")


def test_a_buffer_that_both_loops_use_has_an_element_for_each_iteration() -> None:
    """Of their own; and what is computed of the index alone is computed in both."""
    build = KernelBuilder([VECTOR], [VECTOR])
    by_a_local(build)
    (loop,) = loops_of(build.block)
    first, second = distribute(build.block, loop, nth(loop, -3))
    assert [one.op.name for one in build.block.instructions] == ["allocateLocal", "loop", "loop"]
    assert build.block.instructions[0].result.type == PointerType(VECTOR)
    unroll_and_jam(build.block, first)
    vectorise(build.block, second, 8)
    module = module_of(build)
    verify(module)
    numbers = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(module, "main", numbers), numbers)


def test_a_result_in_the_place_of_an_operand_is_the_only_alias() -> None:
    build = KernelBuilder([VECTOR], [VECTOR])
    in_place(build)
    vectorise(build.block, loops_of(build.block)[0], 8)
    verify(module_of(build))


@pytest.mark.parametrize("most", [1, 2, 5, 6, 7, 64, 100])
def test_balanced_sizes_differ_by_one(most: int) -> None:
    for extent in range(80):
        sizes = balanced(extent, most)
        assert sum(size * count for size, count in sizes) == extent
        assert all(0 < size <= most for size, _ in sizes)
        assert sum(count for _, count in sizes) == -(-extent // most)
        assert [size for size, _ in sizes] == [sizes[0][0] - k for k in range(len(sizes))]
