"""map, fold, scan, filter and zip: along the leading axis, as Python's and NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import (
    Field,
    Rep,
    Scalar,
    ShapeError,
    Stacked,
    Struct,
    Tensor1D,
    Tensor2D,
    cond,
    const,
    f32,
    fn,
    i32,
    i64,
    staged,
    tup,
    zip,
    zip_with,
)

from .running import run

F1, F2 = Tensor1D[f32], Tensor2D[f32]
Int, Number, Ints = Scalar[i32], Scalar[f32], Tensor1D[i32]
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


class Pair(Struct):
    x: Field[Tensor1D[f32]]
    n: Field[Scalar[i32]]


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


# ---------------------------------------------------------------------------------- as NNKit's tests have it


def test_reduce_by_sum_and_by_product() -> None:
    total = fn(Ints)(lambda xs: xs.fold(const(i32(0)), lambda a, x: a + x))
    product = fn(Ints)(lambda xs: xs.fold(const(i32(1)), lambda a, x: a * x))
    assert (run(total, ints(1, 2, 3, 4)), run(product, ints(1, 2, 3, 4))) == (10, 24)


def test_map_over_a_captured_staged_value() -> None:
    def plus_sum(xs: Rep[Ints]) -> Rep[Ints]:
        total = xs.fold(const(i32(0)), lambda a, x: a + x)
        return xs.map(lambda x: x + total)

    assert run(staged(plus_sum), ints(1, 2, 3, 4)) == [11, 12, 13, 14]


def test_filter_of_odd_numbers_is_padded_and_counted() -> None:
    odd = fn(Ints)(lambda xs: xs.filter(lambda x: x % 2 != 0))
    assert run(odd, ints(1, 2, 3, 4, 5, 6)) == ([1, 3, 5, 0, 0, 0], 3)


def test_zip_and_zip_with_a_difference() -> None:
    pairs = fn(Ints, Ints)(lambda a, b: zip(a, b))
    assert run(pairs, ints(1, 2, 3), ints(4, 5, 6)) == ([1, 2, 3], [4, 5, 6])
    difference = fn(Ints, Ints)(lambda a, b: zip_with(a, b, lambda x, y: x - y))
    assert run(difference, ints(1, 2, 3), ints(4, 6, 8)) == [-3, -4, -5]


def test_functions_given_may_be_staged() -> None:
    add = fn(Int, Int)(lambda a, b: a + b)
    is_odd = fn(Int)(lambda x: x % 2 != 0)
    triple = fn(Int)(lambda x: x * 3)
    f = staged(
        lambda xs: (
            xs.map(triple),
            xs.fold(const(i32(0)), add),
            xs.filter(is_odd)[0],
            zip_with(xs, xs, add),
        )
    )
    assert run(f, ints(1, 2, 3)) == ([3, 6, 9], 6, [1, 3, 0], [2, 4, 6])


# -------------------------------------------------------------------------------------------------------- map


def test_map_over_ranks() -> None:
    assert run(staged(lambda x: x.map(lambda r: r.sum())), MATRIX) == [3, 12]
    assert run(staged(lambda x: x.map(lambda r: r * 2.0)), MATRIX) == (MATRIX * 2).tolist()
    outer = staged(lambda x: x.map(lambda r: x.map(lambda s: r * s)))
    assert run(outer, MATRIX) == (MATRIX[:, None, :] * MATRIX[None]).tolist()
    four = np.arange(16, dtype=np.float64).reshape(2, 2, 2, 2)
    assert run(staged(lambda x: x.map(lambda t: t.argmax(axis=0))), four) == four.argmax(1).tolist()
    assert run(staged(lambda x: x.map(lambda r: r > 2.0)), MATRIX) == (MATRIX > 2).tolist()


def test_map_of_nothing_and_of_one() -> None:
    f = staged(lambda x: x.map(lambda r: r.sum()))
    assert run(f, np.zeros((0, 3), np.float32)) == []
    assert run(f, np.zeros((1, 0), np.float32)) == [0]


def test_map_by_a_function_that_chooses_and_loops() -> None:
    def clip(e: Rep) -> Rep:
        return cond(e > 3.0, lambda: e * 0.0 + 3.0, lambda: e)

    assert run(staged(lambda x: x.map(lambda r: r.map(clip))), MATRIX) == [[0, 1, 2], [3, 3, 3]]
    powers = staged(lambda n: n.map(lambda k: nk.fori(0, k, lambda i, c: c * 2, k * 0 + 1)))
    assert run(powers, ints(0, 1, 5)) == [1, 2, 32]


# ------------------------------------------------------------------------------------------------ fold and scan


def test_fold_is_in_order_and_carries_several() -> None:
    digits = staged(lambda n: n.fold(const(i32(0)), lambda a, d: a * 10 + d))
    assert run(digits, ints(4, 7, 1)) == 471
    extremes = staged(
        lambda x: x.fold((x[0], x[0]), lambda c, e: (nk.minimum(c[0], e), nk.maximum(c[1], e)))
    )
    assert run(extremes, ints(3, -1, 4)) == (-1, 4)
    rows = staged(lambda x: x.fold(x[0] * 0.0, lambda a, r: a + r * r))
    assert run(rows, MATRIX) == [9, 17, 29]
    struct = staged(
        lambda p, x: x.fold(p, lambda q, r: q.set(Pair.x, q[Pair.x] + r).set(Pair.n, q[Pair.n] + 1))
    )
    assert run(struct, Pair(np.zeros(3, np.float32), i32(0)), MATRIX) == ([3, 5, 7], 2)


def test_scan_gives_the_last_carry_and_all_elements() -> None:
    @staged
    def running(x: Rep[F1]) -> tuple[Rep[Number], Rep[F1]]:
        last, sums = x.scan(x[0] * 0.0, lambda c, e: (c + e, c + e))
        assert isinstance(sums, Stacked) and repr(sums) == "<stacked Tensor1D[f32]>"
        return last, sums.tensor()

    assert run(running, np.array([1, 2, 4], np.float32)) == (7, [1, 3, 7])

    def cell(h: Any, row: Rep) -> Any:
        state, count = h
        state = nk.tanh(state + row)
        return (state, count + 1), state.sum()

    @staged
    def recurrent(x: Rep[F2], h: Rep[F1]) -> tuple[Rep[F1], Rep[Int], Rep[F1]]:
        (last, count), sums = x.scan((h, const(i32(0))), cell)
        return last, count, sums.tensor()

    h = np.zeros(3, np.float32)
    want = []
    for row in MATRIX:
        h = np.tanh(h + row)
        want.append(h.sum())
    last, count, sums = run(recurrent, MATRIX, np.zeros(3, np.float32))
    assert count == 2
    np.testing.assert_allclose(last, h, rtol=1e-6)
    np.testing.assert_allclose(sums, want, rtol=1e-6)


def test_scan_by_a_staged_function_that_returns_a_pair() -> None:
    @staged
    def step(c: Rep[Number], e: Rep[Number]) -> tuple[Rep[Number], Rep[Number]]:
        return c * 2.0 + e, c

    def all_of(x: Rep[F1]) -> Any:
        last, before = x.scan(x[0], step)
        return last, before.tensor()

    assert run(staged(all_of), np.array([1, 2, 3], np.float32)) == (19, [1, 3, 8])


# ----------------------------------------------------------------------------------------------------- filter


def test_filter_of_rows_and_of_other_types() -> None:
    positive = staged(lambda x: x.filter(lambda r: r.sum() > 3.0))
    assert run(positive, MATRIX) == ([[3, 4, 5], [0, 0, 0]], 1)
    assert run(positive, np.zeros((0, 3), np.float32)) == ([], 0)
    flags = staged(lambda p: p.filter(lambda e: e))
    assert run(flags, np.array([False, True, True])) == ([True, True, False], 2)
    count = staged(lambda x: x.filter(lambda r: r.sum() > 3.0)[1])
    assert count(MATRIX).dtype is i64


def test_filter_keeps_the_bits_of_what_it_keeps() -> None:
    values = np.array([-0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    everything = staged(lambda x: x.filter(lambda e: (e == e) | (e != e))[0])
    assert np.asarray(everything(values)).tobytes() == values.tobytes()
    only_nan = staged(lambda x: x.filter(lambda e: e != e))
    kept, count = only_nan(values)
    assert int(count) == 1 and np.isnan(kept.numpy()[0]) and (kept.numpy()[1:] == 0).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-100, 100), min_size=0, max_size=6), st.integers(2, 4))
def test_filter_is_python_s(values: list[int], divisor: int) -> None:
    f = staged(lambda x, d: x.filter(lambda e: e % d == 0))
    want = [value for value in values if value % divisor == 0]
    padded = want + [0] * (len(values) - len(want))
    assert run(f, np.array(values, np.int32), np.int32(divisor)) == (padded, len(want))


# -------------------------------------------------------------------------------------------------------- zip


def test_zip_is_gone_along_in_pairs() -> None:
    dot = staged(lambda a, b: zip(a, b).fold(a[0] * 0.0, lambda c, p: c + p[0] * p[1]))
    assert run(dot, MATRIX[0], MATRIX[1]) == 14
    chosen = staged(lambda x, n: zip(x, n).map(lambda p: p[0][p[1]]))
    assert run(chosen, MATRIX, ints(2, 0)) == [2, 3]
    both = staged(lambda x, n: zip_with(x, n, lambda r, k: r * k.cast(f32)))
    assert run(both, MATRIX, ints(2, -1)) == [[0, 2, 4], [-3, -4, -5]]

    def scanned(a: Rep, b: Rep) -> Any:
        last, sums = zip(a, b).scan(a[0] * 0, lambda c, p: (c + p[0] * p[1], c))
        return last, sums.tensor()

    assert run(staged(scanned), ints(1, 2, 3), ints(4, 5, 6)) == (32, [0, 4, 14])
    assert (
        run(staged(lambda pair: pair.map(lambda p: p[0])), (MATRIX, ints(1, 2))) == MATRIX.tolist()
    )
    three = staged(lambda a: tup(a, a, a).map(lambda p: p[0] + p[1] * p[2]))
    assert run(three, ints(2, 3)) == [6, 12]


def test_zip_of_different_extents() -> None:
    with pytest.raises(ShapeError, match="leading extents 2 and 3 differ"):
        staged(lambda x, n: zip(x, n).map(lambda p: p[0]))(MATRIX, ints(1, 2, 3))
