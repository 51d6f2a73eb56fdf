"""The bound on the error of sums, as a law of the loops that are decided for them.

How many roundings a number goes through until it is in the result is counted from the loops alone, the way jit writes
them, for every vector width: at most 8 + log₂ n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Builder, Function, Value
from nnkit.core.kernels.access_ops import LoadAt
from nnkit.core.kernels.ops import Kernel, executed
from nnkit.core.ops import Add, Combinator, Dot, Exp, Multiply, Reduce, Scan, ScatterAdd
from nnkit.core.schedule.ops import (
    Loops,
    accumulated_sums,
    compensated_outputs,
    is_float_sum,
    is_folded,
)
from nnkit.core.schedule.target import Target
from nnkit.core.types import F16, F32, F64, I32, I64, DType, TensorType
from nnkit.core.verify import verify
from tests.core.compute.building import module_of
from tests.core.schedule.decided import decided

WIDTHS = (4, 16, 32, 64)
EXTENTS = st.one_of(
    st.integers(1, 70),
    st.builds(lambda k, by: max(1, 2**k + by), st.integers(3, 24), st.integers(-1, 1)),
    st.integers(1, 10**7),
)


def roundings(op: Loops, written: int) -> int:
    """How often what a number contributes to a sum is rounded, the number's own rounding included."""
    kept = set(op.outputs[written].kept_axes or ())
    blocks = op.blocks or (0,) * len(op.order)
    loops = [
        (axis, block)
        for axis, block in zip(op.order, blocks, strict=True)
        if op.extents[axis] > 1 and axis not in kept
    ]
    pairs = op.compensated and any(block for _, block in loops)
    deepest = [axis for axis, block in loops if block][-1:]
    passes = inside = 1  # of a total that comes in, and of what begins inside
    spans = {axis: op.extents[axis] for axis, _ in loops}
    counts: list[tuple[int, bool, bool]] = []
    is_outermost = set(deepest)
    for number, (axis, block) in enumerate(loops):
        lanes = op.lanes if axis == op.vector else 1
        copies = op.accumulators if op.order[-1] == axis and number == len(loops) - 1 else 1
        if block:
            whole = op.extents[axis] - op.extents[axis] % _round(op, axis)
            span = min(spans[axis], whole)
            rest = spans[axis] == op.extents[axis] and whole < op.extents[axis]
            pair = pairs and axis in is_outermost
            is_outermost.discard(axis)
            counts.append((-(-span // block) + rest, axis in deepest, pair))
            spans[axis] = block
        elif number < len(loops) - 1 or copies * lanes == 1:
            counts.append((spans[axis], False, False))
        else:
            unit = copies * lanes
            whole = op.extents[axis] - op.extents[axis] % unit
            rounds = min(spans[axis], whole) // unit
            joins = (copies - 1).bit_length() if rounds else 0
            left = op.extents[axis] % unit
            singles = left // lanes + (left % lanes > 0)
            is_block = any(other == axis and size for other, size in loops)
            steps = max(rounds + joins, singles) if is_block else rounds + joins + singles
            counts.append((steps, False, False))
    for count, starts_afresh, is_pair in reversed(counts):
        if starts_afresh:
            inside += 1 if is_pair else count - 1
            passes = 0 if is_pair else count
        else:
            inside += (count - 1) * passes
            passes *= count
    tree = (op.lanes - 1).bit_length() if op.vector not in kept and op.vector >= 0 else 0
    return inside + tree + pairs


def _round(op: Loops, axis: int) -> int:
    lanes = op.lanes if axis == op.vector else 1
    return lanes * (op.accumulators if axis == op.order[-1] else 1)


def assert_bounded(nests: Sequence[Loops]) -> int:
    """Assert the bound of each float sum; how many there are."""
    found = 0
    for op in nests:
        if 0 in op.extents:
            continue
        for number, written in enumerate(op.outputs):
            if not is_float_sum(written):
                continue
            kept = written.kept_axes or ()
            count = math.prod(n for axis, n in enumerate(op.extents) if axis not in kept)
            assert roundings(op, number) <= 8 + math.log2(count), op
            assert number not in accumulated_sums(op, op.order) or op.compensated
            found += 1
    return found


def scheduled(build: object, *types: TensorType, target: Target) -> tuple[Function, list[Loops]]:
    """The function, and what was decided of its nests."""
    assert callable(build)
    module = module_of(build, *types)
    generate_compute(module)
    fuse(module)
    found = decided(module, target)
    verify(module)
    return module.functions["main"], found.loops


@given(
    extents=st.lists(EXTENTS, min_size=1, max_size=4),
    data=st.data(),
    dtype=st.sampled_from([F32, F64, F16]),
    width=st.sampled_from(WIDTHS),
)
def test_sums_over_any_axes(
    extents: list[int], data: st.DataObject, dtype: DType, width: int
) -> None:
    while math.prod(extents) > 2**36:
        extents.pop()
    axes = data.draw(st.sets(st.integers(0, len(extents) - 1), min_size=1))
    kinds = data.draw(st.sampled_from(["plain", "costly", "product"]))

    def build(b: Builder, x: Value) -> Value:
        y = {
            "plain": lambda: x,
            "costly": lambda: b.emit(Exp(), x),
            "product": lambda: b.emit(Multiply(), x, x),
        }
        return b.emit(Reduce(Combinator.ADD, tuple(sorted(axes))), y[kinds]())

    _, nests = scheduled(
        build, TensorType(tuple(extents), dtype), target=Target(vector_bytes=width)
    )
    assert assert_bounded(nests) or math.prod(extents[axis] for axis in axes) == 1


@given(
    sizes=st.tuples(EXTENTS, st.integers(1, 200), st.integers(1, 200)),
    width=st.sampled_from(WIDTHS),
    row=st.booleans(),
)
def test_products_in_nests(sizes: tuple[int, int, int], width: int, row: bool) -> None:
    k, m, n = sizes
    shapes = ((m, k), (k, n)) if not row else ((k,), (k, n))
    types = [TensorType(shape, F32) for shape in shapes]
    target = Target(vector_bytes=width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NNKIT_DISABLE", "kernels")
        _, nests = scheduled(lambda b, u, v: b.emit(Dot(), u, v), *types, target=target)
    assert assert_bounded(nests) or k == 1


@given(rows=st.integers(64, 4096), columns=st.integers(300, 3000), width=st.sampled_from(WIDTHS))
def test_sums_of_rows_and_columns_in_one_group(rows: int, columns: int, width: int) -> None:
    def build(b: Builder, x: Value) -> Sequence[Value]:
        y = b.emit(Exp(), x)
        row = b.emit(Reduce(Combinator.ADD, (1,)), y)
        total = b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Exp(), row))
        return [b.emit(Add(), b.emit(Reduce(Combinator.ADD, (0,)), y), total)]

    _, nests = scheduled(
        lambda b, x: build(b, x)[0],
        TensorType((rows, columns), F32),
        target=Target(vector_bytes=width),
    )
    assert assert_bounded(nests) >= 2


@given(
    lengths=st.tuples(EXTENTS, st.integers(1, 100), st.integers(1, 100)),
    rows=st.integers(1, 10**6),
    axis=st.integers(0, 1),
    dtype=st.sampled_from([F16, F32, F64]),
    width=st.sampled_from(WIDTHS),
)
def test_scattered_sums(
    lengths: tuple[int, int, int], rows: int, axis: int, dtype: DType, width: int
) -> None:
    """Each is compensated, unless few updates fall on an element, or f64 takes up narrower ones."""
    count, before, behind = lengths
    shape = (before, rows, behind) if axis else (rows, before, behind)
    updates = TensorType((*shape[:axis], count, *shape[axis + 1 :]), dtype)

    def build(b: Builder, x: Value, where: Value) -> Value:
        return b.emit(ScatterAdd(shape, axis), x, where)

    where = TensorType((count,), I64)
    function, nests = scheduled(build, updates, where, target=Target(vector_bytes=width))
    (added_as,) = [
        nest.outputs[0].type.dtype for nest in nests if nest.outputs[0].combinator is Combinator.ADD
    ]
    is_narrow = math.prod(shape[axis + 1 :]) == 1
    is_wide = dtype is not F64 and added_as is F64
    assert is_wide == (dtype is not F64 and is_narrow and count > 12 and count >= rows)
    is_compensated = count > 12 and not is_wide
    assert scratches(function) == is_compensated
    assert added_as.bits >= 32


def test_short_sums_are_as_before() -> None:
    _, (op,) = scheduled(
        lambda b, x: b.emit(Reduce(Combinator.ADD, (1,)), x),
        TensorType((8, 640), F32),
        target=Target(vector_bytes=64),
    )
    assert (op.order, op.blocks, op.compensated) == ((0, 1), (), False)


def scratches(function: Function) -> int:
    """How many scratch buffers its instructions have."""
    return sum(len(i.placement.scratch) for i in function.entry.instructions)


@pytest.mark.parametrize("dtype", [I32], ids=str)
def test_sums_that_are_exact_have_no_blocks(dtype: DType) -> None:
    _, (op,) = scheduled(
        lambda b, x: b.emit(Reduce(Combinator.ADD, (0,)), x),
        TensorType((100_000, 100), dtype),
        target=Target(),
    )
    assert not op.blocks and not compensated_outputs(op)


def test_large_sums_of_columns_that_compute_a_row_are_folded() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        scale = b.emit(Exp(), b.emit(Exp(), y))
        return b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Multiply(), x, scale))

    types = TensorType((10_000, 100), F32), TensorType((10_000, 1), F32)
    function, (*_, op) = scheduled(build, *types, target=Target())
    assert op.compensated and len(compensated_outputs(op)) == 1
    assert is_folded(op.order, op.blocks) == (op.order[:2] == (0, 0))
    # threads share the rows: what a part of them comes to, what is cut off, and what is folded
    assert scratches(function) == (3 if is_folded(op.order, op.blocks) else 2)


@pytest.mark.parametrize(
    ("by", "dtype", "loads"),
    [(Combinator.ADD, F32, 8 + 4), (Combinator.ADD, I32, 1), (Combinator.MAX, F32, 1)],
    ids=str,
)
def test_running_sums_go_in_blocks(by: Combinator, dtype: DType, loads: int) -> None:
    """Twelve of 8 numbers, and one of the 4 that are left."""
    type = TensorType((100,), dtype)
    function, _ = scheduled(lambda b, x: b.emit(Scan(by, 0), x), type, target=Target())
    (kernel,) = (i for i in function.entry.instructions if isinstance(i.op, Kernel))
    found = [count for count, one in executed(kernel) if isinstance(one.op, LoadAt)]
    assert (len(found), sum(found)) == (loads, 100)
