"""What `cse`, `hoist` and `promote` leave: rows of a kernel, what is done to it, and how often each op stands where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nnkit.core.ir.instruction import Block, Value
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.cse import cse
from nnkit.core.kernels.hoist import hoist, hoist_all
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.loops import loops_of
from nnkit.core.kernels.promote import promote
from nnkit.core.ops import Add, Multiply
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import module_of

VECTOR = TensorType((8,), F32)


def sums(build: KernelBuilder, *values: Value) -> Value:
    total = values[0]
    for value in values[1:]:
        total = build.emit(Add(), total, value)
    return total


def loads_twice(build: KernelBuilder) -> None:
    (x,), (y,) = build.operands, build.outputs
    with build.loop(7) as loop:
        i = loop.index
        following = build.index_value(IndexSum(1, {i: 1}))
        loads = [build.load(x, i), build.load(x, following), build.load(x, IndexSum(1, {i: 1}))]
        build.store(sums(build, *loads, build.load(x, i)), y, i)


def loads_what_is_stored(build: KernelBuilder) -> None:
    """y[i] is known between the stores to y[i] and y[0], y[i + 1] is not."""
    (x,), (y,) = build.operands, build.outputs
    with build.loop(7) as loop:
        i = loop.index
        build.store(build.load(x, i), y, i)
        build.store(build.load(x, 3), y, IndexSum(1, {i: 1}))
        known = build.load(y, i)
        build.store(build.load(x, 4), y, 0)
        build.store(sums(build, known, build.load(y, i)), y, i)


def vectors_in_part(build: KernelBuilder) -> None:
    """Of a vector of which 3 lanes are stored a load has zeros, where the value has others."""
    (x,), (y,) = build.operands, build.outputs
    value = build.load(x, 0, lanes=4, steps=(1,))
    build.store(value, y, 0, steps=(1,), active=3)
    known = build.load(y, 0, lanes=4, steps=(1,), active=3)
    build.store(known, y, 4, steps=(1,))
    build.store(build.load(y, 4, lanes=4, steps=(1,)), y, 0, steps=(1,))


def lanes_of_vectors(build: KernelBuilder) -> None:
    """y[3] is a lane of what was stored with y[2], y[4], …, of which three were; y[7] is not."""
    (x,), (y,) = build.operands, build.outputs
    value = build.load(x, 0, lanes=4, steps=(1,))
    build.store(value, y, 1, steps=(2,), active=3)
    build.store(sums(build, build.load(y, 3), build.load(y, 7)), y, 0)


def loop_that_writes(build: KernelBuilder) -> None:
    """x[0] is known in the loop and after it; y[0] is not."""
    (x,), (y,) = build.operands, build.outputs
    before = sums(build, build.load(x, 0), build.load(y, 0))
    with build.loop(4) as loop:
        build.store(sums(build, build.load(x, 0), build.load(y, 0)), y, loop.index)
    build.store(sums(build, before, build.load(x, 0), build.load(y, 0)), y, 0)


def nothing_used(build: KernelBuilder) -> None:
    (x,), _ = build.operands, build.outputs
    build.local(VECTOR)
    with build.loop(4, carrying=[build.constant(F32, 0)]) as loop:
        loop.yields(sums(build, loop.carried[0], build.load(x, loop.index)))


def local_row(build: KernelBuilder) -> None:
    """t[i] = x[i], y[i] = t[i] in one loop, as two that were fused: t is not needed."""
    (x,), (y,) = build.operands, build.outputs
    local = build.local(VECTOR)
    with build.loop(8) as loop:
        build.store(build.load(x, loop.index), local, loop.index)
        build.store(build.load(local, loop.index), y, loop.index)


def invariants(build: KernelBuilder) -> None:
    """x[j] · x[2] does not depend on i, nor does x[2] on j."""
    (x,), (y,) = build.operands, build.outputs
    with build.loop(8) as outer, build.loop(4) as inner:
        product = build.emit(Multiply(), build.load(x, outer.index), build.load(x, 2))
        number = build.emit(Add(), product, build.constant(F32, 1))
        old = build.load(y, inner.index)
        build.store(sums(build, old, number), y, inner.index)


def does_not_run(build: KernelBuilder) -> None:
    (x,), (y,) = build.operands, build.outputs
    with build.loop(0) as loop:
        build.store(build.load(x, 2), y, loop.index)


def updates(build: KernelBuilder) -> None:
    """y[i] += x[j], and y[i + 4] the same, by j."""
    (x,), (y,) = build.operands, build.outputs
    with build.loop(4) as outer, build.loop(8) as inner:
        for place in (IndexSum(0, {outer.index: 1}), IndexSum(4, {outer.index: 1})):
            sum = build.emit(Add(), build.load(y, place), build.load(x, inner.index))
            build.store(sum, y, place)


def counts(block: Block, name: str) -> str:
    """How often an op stands in a block, and in its loops."""
    own = sum(i.op.name == name for i in block.instructions)
    inner = "".join(f"[{counts(loop.regions[0].entry, name)}]" for loop in loops_of(block))
    return f"{own}{inner}"


def first_loop(block: Block) -> Block:
    return loops_of(block)[0].regions[0].entry


ROWS: list[tuple[Callable[[KernelBuilder], None], Callable[[Block], object], str, str]] = [
    (loads_twice, cse, "loadAt", "0[2]"),
    (loads_twice, cse, "affineIndex", "0[0]"),
    (loads_what_is_stored, cse, "loadAt", "0[4]"),
    (vectors_in_part, cse, "loadAt", "1"),
    (vectors_in_part, cse, "shuffle", "1"),
    (lanes_of_vectors, cse, "loadAt", "2"),
    (lanes_of_vectors, cse, "extractLane", "1"),
    (loop_that_writes, cse, "loadAt", "3[1]"),
    (nothing_used, cse, "loadAt", "0"),
    (nothing_used, cse, "allocateLocal", "0"),
    (local_row, cse, "storeAt", "0[1]"),
    (local_row, cse, "allocateLocal", "0[0]"),
    (invariants, lambda b: hoist(first_loop(b), loops_of(first_loop(b))[0]), "loadAt", "0[2[1]]"),
    (invariants, lambda b: hoist(first_loop(b), loops_of(first_loop(b))[0]), "literal", "0[1[0]]"),
    (invariants, hoist_all, "loadAt", "1[1[1]]"),
    (invariants, hoist_all, "multiply", "0[1[0]]"),
    (does_not_run, hoist_all, "loadAt", "0[1]"),
    (updates, lambda b: promote(first_loop(b), loops_of(first_loop(b))[0]), "loadAt", "0[2[2]]"),
    (updates, lambda b: promote(first_loop(b), loops_of(first_loop(b))[0]), "storeAt", "0[2[0]]"),
]


def test_results_in_the_place_of_one_operand_are_not_each_other() -> None:
    """Each may lie there, and one of them does."""
    build = KernelBuilder([VECTOR], [VECTOR, VECTOR])
    (x,), (y, z) = build.operands, build.outputs
    loaded = build.load(x, 0)
    build.store(loaded, y, 0)
    build.store(sums(build, loaded, loaded), z, 0)
    build.store(build.load(y, 0), z, 1)
    cse(build.block, aliases=[(x, y), (x, z)])
    stored = build.block.instructions[-1].operands[0]
    assert stored.op is not None and stored.op.name == "loadAt"  # and not the sum that lies in z


@pytest.mark.parametrize(("write", "rewrite", "name", "expected"), ROWS)
def test_what_is_left(
    write: Callable[[KernelBuilder], None],
    rewrite: Callable[[Block], object],
    name: str,
    expected: str,
) -> None:
    build = KernelBuilder([VECTOR], [VECTOR])
    write(build)
    rewrite(build.block)
    verify(module_of(build))
    assert counts(build.block, name) == expected
