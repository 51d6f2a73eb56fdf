"""Compiled nests compute what the evaluator does, for every way to loop over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pytest

from nnkit.core.ir.builder import Builder
from nnkit.core.ir.instruction import Value
from nnkit.core.ops.arithmetic import Add, Multiply
from nnkit.core.ops.casting import DataTypeCast
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.comparison import LessThan, Select
from nnkit.core.ops.literal import constant
from nnkit.core.ops.nest import (
    Access,
    Affine,
    Bounds,
    Index,
    Loaded,
    Output,
    build_nest,
    coordinate,
)
from nnkit.core.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    Array,
    DType,
    Shape,
    TensorType,
    scalar,
)

from .running import (
    ALL_DTYPES,
    CheckFailed,
    Decisions,
    agree,
    compare,
    expected,
    run,
    run_all,
    sample,
    scheduled,
)

Build: TypeAlias = Callable[..., Sequence[Value]]

D0, D1, D2 = (coordinate(axis) for axis in range(3))


def ways(extents: Shape, lanes: Sequence[int] = (1, 4, 16)) -> Iterator[Decisions]:
    """Every order of the axes, every vector axis, some numbers of lanes and accumulators."""
    axes = range(len(extents))
    for order in itertools.permutations(axes):
        for vector in (-1, *axes):
            for count in lanes if vector >= 0 else (1,):
                for accumulators in (1, 3):
                    yield Decisions(order, vector, count, accumulators)


def check(
    types: Sequence[TensorType],
    build: Build,
    extents: Shape,
    *,
    exact: bool = True,
    arrays: Sequence[Array] | None = None,
) -> None:
    """Assert that all ways agree with the evaluator."""
    given = arrays or [sample(type, seed) for seed, type in enumerate(types)]
    decisions = list(ways(extents))
    functions = [scheduled(types, build, decided) for decided in decisions]
    wanted = expected(functions[0], given)
    for decided, function, found in zip(
        decisions, functions, run_all(functions, given), strict=True
    ):
        try:
            compare(function, wanted, found, exact=exact)
        except AssertionError as error:
            error.add_note(str(decided))
            raise


def mapped(
    extents: Shape,
    reads: Sequence[Access],
    written: Output,
    body: Callable[..., Value] | None = None,
) -> Build:
    """A nest of one result; the body is given as a function of (builder, coordinates, scalars)."""

    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        def rule(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return [read[-1] if body is None else body(inner, at, *read)]

        return build_nest(b, extents, list(zip(xs, reads, strict=True)), [written], rule)

    return build


def access(*indices: Index, bounds: Bounds = Bounds.INSIDE) -> Access:
    return Access(indices, bounds)


def written(
    shape: Shape,
    *indices: Index,
    by: Combinator | None = None,
    bounds: Bounds = Bounds.INSIDE,
    dtype: DType = F32,
) -> Output:
    return Output(TensorType(shape, dtype), indices, by, bounds)


def total(b: Builder, at: Sequence[Value], *scalars: Value) -> Value:
    """The sum of what was read."""
    first, *rest = scalars
    for value in rest:
        first = b.emit(Add(), first, value)
    return first


def product(b: Builder, at: Sequence[Value], u: Value, v: Value) -> Value:
    return b.emit(Multiply(), u, v)


def f32(*shape: int) -> TensorType:
    return TensorType(shape, F32)


def i32(*shape: int) -> TensorType:
    return TensorType(shape, I32)


# Elementwise.


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_copies_every_element_type(dtype: DType) -> None:
    type = TensorType((3, 21), dtype)
    check([type], mapped((3, 21), [access(D0, D1)], Output(type, (D0, D1))), (3, 21))


def test_broadcasts_rows_columns_and_scalars() -> None:
    reads = [access(D0, D1), access(D1), access(D0, Affine()), access()]
    types = [f32(5, 19), f32(19), f32(5, 1), f32()]
    check(types, mapped((5, 19), reads, written((5, 19), D0, D1), total), (5, 19))


def test_transposes() -> None:
    reads = [access(D1, D0), access(D0, D1)]
    check(
        [f32(19, 5), f32(5, 19)], mapped((5, 19), reads, written((5, 19), D0, D1), total), (5, 19)
    )


def test_writes_transposed() -> None:
    check([f32(5, 19)], mapped((5, 19), [access(D0, D1)], written((19, 5), D1, D0)), (5, 19))


@pytest.mark.parametrize("dtype", [F32, BOOL, BF16, F64], ids=str)
def test_reads_and_writes_backwards(dtype: DType) -> None:
    type = TensorType((21,), dtype)
    backwards = D0 * -1 + 20
    check([type], mapped((21,), [access(backwards)], Output(type, (D0,))), (21,))
    check([type], mapped((21,), [access(D0)], Output(type, (backwards,))), (21,))


def test_strides_and_offsets() -> None:
    reads = [access(D0 * 2 + 1), access(D0 * 3), access(D0 + 4)]
    check([f32(50), f32(70), f32(30)], mapped((23,), reads, written((23,), D0), total), (23,))


def test_writes_with_gaps_that_are_zero() -> None:
    check([f32(19)], mapped((19,), [access(D0)], written((60,), D0 * 3 + 2)), (19,))


def test_unit_axes_have_no_loop() -> None:
    reads = [access(D0, D1, D2)]
    build = mapped((1, 19, 1), reads, written((1, 19, 1), D0, D1, D2))
    check([f32(1, 19, 1)], build, (1, 19, 1))


def test_coordinates_are_numbers() -> None:
    def body(b: Builder, at: Sequence[Value]) -> Value:
        rows = b.emit(Multiply(), at[0], constant(b, scalar(I64), 100))
        return b.emit(DataTypeCast(F32), b.emit(Add(), rows, at[1]))

    check([], mapped((3, 21), [], written((3, 21), D0, D1), body), (3, 21))


def test_a_scalar_program_has_no_loops() -> None:
    check([f32(), f32()], mapped((), [access(), access()], written(()), product), ())


def test_several_results_of_one_nest() -> None:
    outputs = [
        written((5, 19), D0, D1),
        written((19, 5), D1, D0),
        written((5,), D0, by=Combinator.ADD),
    ]

    def build(b: Builder, x: Value, y: Value) -> Sequence[Value]:
        def rule(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return total(inner, at, *read), read[0], product(inner, at, read[0], read[1])

        reads = [(x, access(D0, D1)), (y, access(D1))]
        return build_nest(b, (5, 19), reads, outputs, rule)

    check([f32(5, 19), f32(19)], build, (5, 19), exact=False)


# Reductions.


COMBINATORS = [
    (Combinator.ADD, F32),
    (Combinator.ADD, F64),
    (Combinator.ADD, F16),
    (Combinator.ADD, BF16),
    (Combinator.ADD, I32),
    (Combinator.MULTIPLY, I64),
    (Combinator.MAX, F32),
    (Combinator.MIN, F64),
    (Combinator.MAX, I32),
    (Combinator.AND, BOOL),
    (Combinator.OR, BOOL),
]


@pytest.mark.parametrize(("by", "dtype"), COMBINATORS, ids=str)
@pytest.mark.parametrize("kept", [(), (0,), (1,), (0, 1)], ids=str)
def test_reduces(by: Combinator, dtype: DType, kept: tuple[int, ...]) -> None:
    extents = (5, 37)
    indices = tuple(coordinate(axis) for axis in kept)
    output = Output(TensorType(tuple(extents[axis] for axis in kept), dtype), indices, by)
    build = mapped(extents, [access(D0, D1)], output)
    check([TensorType(extents, dtype)], build, extents, exact=False)


@pytest.mark.parametrize("by", [Combinator.MAX, Combinator.MIN], ids=str)
def test_extremes_keep_nan(by: Combinator) -> None:
    x = sample(f32(3, 37))
    for place in range(37):
        x[1] = 1.0
        x[1, place] = np.nan
        build = mapped((3, 37), [access(D0, D1)], written((3,), D0, by=by))
        for decided in (Decisions(vector=1, lanes=16), Decisions(accumulators=4)):
            found = run(scheduled([f32(3, 37)], build, decided), [x])[0]
            assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize("by", [Combinator.MAX, Combinator.MIN], ids=str)
def test_extremes_of_zeros_do_not_depend_on_the_order(by: Combinator, dtype: DType) -> None:
    """−0 < +0, in whatever order elements are joined: along one axis, over all, and where they are scattered."""
    extents = (40, 37)
    signs = np.random.default_rng(1).random(extents) < np.linspace(0, 1, 40)[:, None]
    x = np.where(signs, -0.0, 0.0).astype(dtype.numpy)
    x[7, 5] = np.nan
    for indices in ((D0,), (D1,), ()):
        shape = tuple(extents[axis] for axis, at in enumerate((D0, D1)) if at in indices)
        output = Output(TensorType(shape, dtype), indices, by)
        build = mapped(extents, [access(D0, D1)], output)
        check([TensorType(extents, dtype)], build, extents, arrays=[x])
    where = np.random.default_rng(2).integers(0, 5, 40, np.int32)
    reads = [access(D0), access(D0, D1)]
    output = Output(TensorType((5, 37), dtype), (Loaded(0), D1), by, Bounds.CHECK)
    build = mapped(extents, reads, output)
    check([i32(40), TensorType(extents, dtype)], build, extents, arrays=[where, x])


def test_multiplies_matrices() -> None:
    reads = [access(D0, D2), access(D2, D1)]
    output = written((5, 18), D0, D1, by=Combinator.ADD)
    build = mapped((5, 18, 7), reads, output, product)
    check([f32(5, 7), f32(7, 18)], build, (5, 18, 7), exact=False)


def test_reduces_what_does_not_depend_on_the_axis() -> None:
    output = written((3,), D0, by=Combinator.ADD)
    check([f32(3)], mapped((3, 37), [access(D0)], output), (3, 37), exact=False)


def test_sums_windows() -> None:
    output = written((27,), D0 + D1, by=Combinator.ADD)
    check(
        [f32(19), f32(9)],
        mapped((19, 9), [access(D0), access(D1)], output, product),
        (19, 9),
        exact=False,
    )


# Indices outside.


@pytest.mark.parametrize("bounds", [Bounds.ZERO, Bounds.CLIP], ids=str)
@pytest.mark.parametrize("dtype", [F32, BOOL, F16, I64], ids=str)
def test_reads_outside(bounds: Bounds, dtype: DType) -> None:
    type = TensorType((6, 19), dtype)
    for row, column in ((D0 + -1, D1 + -2), (D0 * -1 + 6, D1 * -1 + 20), (D0 * 2, D1 * 2)):
        read = access(row, column, bounds=bounds)
        output = Output(TensorType((7, 23), dtype), (D0, D1))
        check([type], mapped((7, 23), [read], output), (7, 23))


def test_reads_of_nothing_are_zero() -> None:
    read = access(D0, bounds=Bounds.ZERO)
    check([f32(0)], mapped((19,), [read], written((19,), D0)), (19,))


# clipped without a combinator, several points write one element: which of them is not said
@pytest.mark.parametrize(
    ("bounds", "by"),
    [(Bounds.ZERO, None), (Bounds.ZERO, Combinator.ADD), (Bounds.CLIP, Combinator.ADD)],
    ids=str,
)
def test_writes_outside(bounds: Bounds, by: Combinator | None) -> None:
    output = written((5, 17), D0 + -1, D1 + -2, by=by, bounds=bounds)
    check([f32(7, 23)], mapped((7, 23), [access(D0, D1)], output), (7, 23), exact=False)


# Indices that are read.


def rows(bounds: Bounds) -> tuple[Build, list[TensorType]]:
    reads = [access(D0), access(Loaded(0), D1, bounds=bounds)]
    return mapped((6, 21), reads, written((6, 21), D0, D1)), [i32(6), f32(4, 21)]


def elements(bounds: Bounds) -> tuple[Build, list[TensorType]]:
    reads = [access(D0), access(Loaded(0), bounds=bounds)]
    return mapped((21,), reads, written((21,), D0)), [i32(21), f32(40)]


@pytest.mark.parametrize("bounds", list(Bounds), ids=str)
def test_gathers(bounds: Bounds) -> None:
    low, high = (0, 4) if bounds in (Bounds.INSIDE, Bounds.CHECK) else (-3, 9)
    build, types = rows(bounds)
    picked = np.random.default_rng(1).integers(low, high, 6).astype(np.int32)
    check(types, build, (6, 21), arrays=[picked, sample(types[1])])
    build, types = elements(bounds)
    low, high = (0, 40) if bounds in (Bounds.INSIDE, Bounds.CHECK) else (-30, 70)
    picked = np.random.default_rng(1).integers(low, high, 21).astype(np.int32)
    check(types, build, (21,), arrays=[picked, sample(types[1])])


@pytest.mark.parametrize("wrong", [-1, 40, 2**31 - 1, -(2**31)])
def test_a_failed_check_says_index_and_extent(wrong: int) -> None:
    build, types = elements(Bounds.CHECK)
    for place in (0, 5, 20):
        picked = np.zeros(21, np.int32)
        picked[place] = wrong
        for decided in (Decisions(), Decisions(vector=0, lanes=4), Decisions(vector=0, lanes=16)):
            function = scheduled(types, build, decided)
            with pytest.raises(CheckFailed) as caught:
                run(function, [picked, sample(types[1])])
            assert caught.value.args[1:] == (wrong, 40)  # what is left of vectors has its own check


def test_checks_are_numbered() -> None:
    reads = [access(D0), access(Loaded(0), Loaded(0), bounds=Bounds.CHECK)]
    types = [i32(3), f32(9, 5)]
    function = scheduled(types, mapped((3,), reads, written((3,), D0)))
    with pytest.raises(CheckFailed) as caught:
        run(function, [np.array([1, 7, 20], np.int32), sample(types[1])])
    assert caught.value.args == (2, 7, 5)


@pytest.mark.parametrize("bounds", list(Bounds), ids=str)
@pytest.mark.parametrize("by", [Combinator.ADD, Combinator.MAX, None], ids=str)
def test_scatters(bounds: Bounds, by: Combinator | None) -> None:
    inside = bounds in (Bounds.INSIDE, Bounds.CHECK)
    picked = np.random.default_rng(1).integers(*((0, 4) if inside else (-3, 9)), 6).astype(np.int32)
    if by is None:
        picked = np.array([3, 0, 2], np.int32) if inside else np.array([3, 0, 7], np.int32)
    if by is None and bounds is Bounds.CLIP:
        picked = np.array([-4, 1, 7], np.int32)
    count = len(picked)
    reads = [access(D0), access(D0, D1)]
    output = written((4, 21), Loaded(0), D1, by=by, bounds=bounds)
    types = [i32(count), f32(count, 21)]
    build = mapped((count, 21), reads, output)
    check(types, build, (count, 21), arrays=[picked, sample(types[1])], exact=False)
    output = written((4,), Loaded(0), by=by, bounds=bounds)
    build = mapped((count,), [access(D0), access(D0)], output)
    types = [i32(count), f32(count)]
    check(types, build, (count,), arrays=[picked, sample(types[1])], exact=False)


def test_a_failed_check_of_a_write() -> None:
    output = written((4,), Loaded(0), by=Combinator.ADD, bounds=Bounds.CHECK)
    types = [i32(6), f32(6)]
    function = scheduled(types, mapped((6,), [access(D0), access(D0)], output))
    with pytest.raises(CheckFailed) as caught:
        run(function, [np.array([0, 1, 2, 3, 4, 5], np.int32), sample(types[1])])
    assert caught.value.args == (1, 4, 4)


# Empty extents.


@pytest.mark.parametrize("extents", [(0, 5), (5, 0), (0, 0)], ids=str)
def test_empty_boxes_leave_the_identity(extents: Shape) -> None:
    for by in (Combinator.ADD, Combinator.MULTIPLY, Combinator.MAX):
        output = written(extents[:1], D0, by=by)
        check([f32(*extents)], mapped(extents, [access(D0, D1)], output), extents)
        check([f32(*extents)], mapped(extents, [access(D0, D1)], written((), by=by)), extents)
    check([f32(*extents)], mapped(extents, [access(D0, D1)], written((7,), D0)), extents)


# Groups.


def test_a_group_shares_its_outermost_loop() -> None:
    """Rows are summed and divided among themselves, with a sum over all rows beside it."""

    def build(b: Builder, x: Value) -> Sequence[Value]:
        def first(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return read

        reads = [(x, access(D0, D1))]
        (sums,) = build_nest(b, (6, 21), reads, [written((6,), D0, by=Combinator.ADD)], first)

        def second(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return [total(inner, at, *read)]

        reads = [(x, access(D0, D1)), (sums, access(D0))]
        (shifted,) = build_nest(b, (6, 21), reads, [written((6, 21), D0, D1)], second)
        reads = [(shifted, access(D0, D1))]
        everything = build_nest(b, (6, 21), reads, [written((), by=Combinator.ADD)], first)
        return shifted, everything[0]

    for decided in (
        Decisions(group=0),
        Decisions(vector=1, lanes=16, accumulators=2, group=0),
        Decisions(vector=1, lanes=4, group=3),
    ):
        function = scheduled([f32(6, 21)], build, decided)
        agree(function, [sample(f32(6, 21))], exact=False)


def test_a_group_with_different_steps_is_written_one_by_one() -> None:
    def build(b: Builder, x: Value) -> Sequence[Value]:
        def double(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return [inner.emit(Add(), read[0], read[0])]

        (y,) = build_nest(b, (21,), [(x, access(D0))], [written((21,), D0)], double)
        return build_nest(b, (21,), [(y, access(D0))], [written((21,), D0)], double)

    function = scheduled(
        [f32(21)], build, Decisions(vector=0, lanes=16, group=0), Decisions(group=0)
    )
    agree(function, [sample(f32(21))])


def test_a_group_over_an_axis_of_one_point_does_not_share_the_next() -> None:
    def build(b: Builder, x: Value) -> Sequence[Value]:
        def double(inner: Builder, at: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            return [inner.emit(Add(), read[0], read[0])]

        result = written((1, 21), D0, D1)
        (y,) = build_nest(b, (1, 21), [(x, access(D0, D1))], [result], double)
        return build_nest(b, (1, 21), [(y, access(D0, D1 * -1 + 20))], [result], double)

    agree(scheduled([f32(1, 21)], build, Decisions(group=0)), [sample(f32(1, 21))])


# What does not vary stays out of the loops.


def test_invariant_work_is_outside_the_inner_loop() -> None:
    def body(b: Builder, at: Sequence[Value], u: Value, v: Value) -> Value:
        first = b.emit(LessThan(), u, constant(b, scalar(F32), 0))
        chosen = b.emit(Select(), u, b.emit(Multiply(), u, u), first)
        return b.emit(Add(), chosen, v)

    build = mapped((6, 64), [access(D0), access(D0, D1)], written((6, 64), D0, D1), body)
    check([f32(6), f32(6, 64)], build, (6, 64))


BLOCKED = [
    Decisions((0, 0, 1), vector, lanes, blocks=(9, 0, 0)) for vector, lanes in ((-1, 1), (1, 8))
] + [
    Decisions((0, 1, 0), -1, 1, blocks=(9, 0, 0)),
    Decisions((0, 1, 0), 0, 8, blocks=(16, 0, 0)),
    Decisions((1, 1, 0), -1, 1, blocks=(9, 0, 0)),
    Decisions((1, 0, 1), -1, 1, blocks=(9, 0, 0)),
    Decisions((1, 0, 1), 1, 8, blocks=(16, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("decided", BLOCKED, ids=str)
def test_blocks_of_any_axis_reduce_to_the_same(decided: Decisions, axis: int, dtype: DType) -> None:
    """Of a summed axis or a kept one: no result begins with what lay in memory."""

    def build(b: Builder, x: Value) -> list[Value]:
        whole = Access((coordinate(0), coordinate(1)))
        combinator = Combinator.OR if dtype == BOOL else Combinator.ADD
        written = Output(
            TensorType((x.tensor.shape[axis],), dtype), (coordinate(axis),), combinator
        )
        return build_nest(b, x.tensor.shape, [(x, whole)], [written], lambda _, __, read: read)

    type = TensorType((25, 21), dtype)
    agree(scheduled([type], build, decided), [sample(type)], exact=not dtype.is_float)
