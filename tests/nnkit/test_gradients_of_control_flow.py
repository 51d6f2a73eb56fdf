"""Gradients through choices, loops and recursion where they are easily wrong.

Slopes that are infinite where nothing is computed, seeds of zero, what is carried in other types than f64, rows, random
numbers, values that are held fixed, and what is captured.  Forward mode of the same is in `tests/ir/gradients-of-*.dl`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, bf16, boolean, f16, f32, f64, i8, i64

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number = Scalar[f64]
Count = Scalar[i64]
Flag = Scalar[boolean]
Row = Tensor1D[f64]
Rows = Tensor2D[f64]


def difference(f: Any, position: int, *arguments: Any, step: float = 1e-6) -> Any:
    """The central difference of the sum of f(*arguments), by each element of one of them."""
    x = np.asarray(arguments[position].numpy())
    slopes = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        ends: list[float] = []
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            changed = [*arguments]
            changed[position] = moved if x.ndim else f64(float(moved))
            ends.append(float(np.sum(f(*changed).numpy())))
        slopes[at] = (ends[0] - ends[1]) / (2 * step)
    return slopes


# Infinite slopes that must not come in.


@nk.staged
def chosen(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.cond(n > 3, lambda: nk.sqrt(x) + 1.0 / x, lambda: x * 2.0)


@nk.staged
def not_entered(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n - 3, lambda i, r: r / x + nk.sqrt(x), x * 2.0)


@nk.staged
def not_entered_while(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.while_loop(lambda r: r > 0.0, lambda r: r * nk.sqrt(x) / x, x) + x * n.cast(f64) / 3.0


@nk.staged
def chosen_in_a_loop(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, r: nk.cond(i > 5, lambda: r / x, lambda: r + x), x) * 0.5


@nk.staged
def selected_in_a_loop(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, r: r + nk.select(x > 0.0, nk.sqrt(x), 0.0), x * 2.0)


@nk.staged
def chosen_in_a_recursion(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    def deeper() -> Rep[Number]:
        rest = chosen_in_a_recursion(x, n - 1)
        return nk.cond(n > 9, lambda: rest / nk.sqrt(x), lambda: rest + x * 0.5)

    return nk.cond(n == 1, lambda: x, deeper)


BLIND = (
    chosen, not_entered, not_entered_while, chosen_in_a_loop, selected_in_a_loop, chosen_in_a_recursion,
)  # fmt: skip


@pytest.mark.parametrize("f", BLIND)
def test_what_is_not_run_has_no_slope(f: Any) -> None:
    """Each of them is 2x at n = 3 and x = 0."""
    d: Any = nk.gradient(of=f, wrt=0)
    assert float(d(f64(0.0), i64(3))) == 2.0
    assert float(nk.gradient(of=d, wrt=0)(f64(0.0), i64(3))) == 0.0


@nk.staged
def two_carries(x: Rep[Number], n: Rep[Count]) -> tuple[Rep[Number], Rep[Number]]:
    """x (n + 1), and the 2ⁿ-th root of x, whose slope at 0 is infinite."""
    return nk.fori(0, n, lambda i, c: (c[0] + x, nk.sqrt(c[1])), (x, x))


def test_a_result_that_is_not_asked_for_has_no_influence() -> None:
    assert float(nk.gradient(of=two_carries, wrt=0, from_=0)(f64(0.0), i64(3))) == 4.0
    assert float(nk.gradient(of=two_carries, wrt=0, from_=1)(f64(0.0), i64(3))) == np.inf


def test_a_seed_of_zeros_gives_zeros() -> None:
    """Through infinite slopes, too."""
    f: Any = two_carries
    d: Any = nk.gradient(of=f, wrt=0, from_=1, seedable=True, keeping=(0,))
    slope, kept = d(f64(0.0), i64(3), f64(0.0))
    assert (float(slope), float(kept)) == (0.0, 0.0)
    slope, kept = d(f64(2.0), i64(3), f64(0.0))
    assert (float(slope), float(kept)) == (0.0, 8.0)


# What is carried and saved in other types.


def test_what_a_choice_of_every_iteration_was_is_remembered() -> None:
    """Carried beside the numbers: a truth value, an integer of eight bits."""

    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        def step(_: Any, carried: Any) -> Any:
            r, b, k = carried
            return nk.select(b, r * x, nk.sin(r)), r > 0.5, k + b.cast(i8) * i8(3)

        r, _, k = nk.fori(0, n, step, (x, x > 0.0, nk.const(i8(1))))
        return r * k.cast(f64)

    d: Any = nk.gradient(of=f, wrt=0)
    for x in (0.9, 0.4, -0.7):
        for n in (0, 1, 4):
            expected = difference(f, 0, f64(x), i64(n))
            np.testing.assert_allclose(d(f64(x), i64(n)), expected, rtol=1e-8, atol=1e-9)


def next_of(x: Any, r: Any) -> Any:
    return nk.sin(r) * x + nk.cond(r > x, lambda: r * r * x, lambda: r - x)


@nk.staged
def curve_f64(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, r: next_of(x, r), x)


@nk.staged
def curve_f32(x: Rep[Scalar[f32]], n: Rep[Count]) -> Rep[Scalar[f32]]:
    return nk.fori(0, n, lambda i, r: next_of(x, r), x)


@nk.staged
def curve_f16(x: Rep[Scalar[f16]], n: Rep[Count]) -> Rep[Scalar[f16]]:
    return nk.fori(0, n, lambda i, r: next_of(x, r), x)


@nk.staged
def curve_bf16(x: Rep[Scalar[bf16]], n: Rep[Count]) -> Rep[Scalar[bf16]]:
    return nk.fori(0, n, lambda i, r: next_of(x, r), x)


NARROW: list[tuple[Any, Any, float]] = [
    (curve_f32, f32, 1e-5), (curve_f16, f16, 2e-2), (curve_bf16, bf16, 1e-1),
]  # fmt: skip


@pytest.mark.parametrize(("f", "dtype", "tolerance"), NARROW)
def test_narrow_floats_are_saved_as_they_are(f: Any, dtype: Any, tolerance: float) -> None:
    expected = float(nk.gradient(of=curve_f64, wrt=0)(f64(0.75), i64(4)))
    found = nk.gradient(of=f, wrt=0)(dtype(0.75), i64(4))
    assert found.dtype is dtype
    np.testing.assert_allclose(float(found), expected, rtol=tolerance)


# Rows.


def test_rows_read_and_written_in_a_loop() -> None:
    @nk.staged
    def f(rows: Rep[Rows], n: Rep[Count]) -> Rep[Number]:
        def step(i: Any, carried: Any) -> Any:
            total, xs = carried
            here = nk.arange(4, nk.i32) == i % 4
            row = nk.tanh(xs[i % 2]) * total
            changed = nk.select(here.reshape(4, 1), row.reshape(1, 3), xs)
            return total * 0.5 + (xs[i % 4] * xs[0]).sum(), changed

        total, xs = nk.fori(0, n, step, (rows[1].sum(), rows))
        return total + (xs * xs).sum()

    rows = Tensor2D(np.random.default_rng(0).normal(size=(4, 3)))
    d: Any = nk.gradient(of=f, wrt=0)
    for n in (0, 1, 5):
        expected = difference(f, 0, rows, i64(n))
        np.testing.assert_allclose(d(rows, i64(n)), expected, rtol=1e-6, atol=1e-8)


def test_rows_outside_of_what_there_is_stop_the_gradient() -> None:
    @nk.staged
    def f(xs: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        return nk.fori(0, n, lambda i, r: r * xs[i], xs[0])

    d: Any = nk.gradient(of=f, wrt=0)
    with pytest.raises(nk.IndexOutOfRangeError, match="index 3 is out of range"):
        d(np.ones(3), i64(4))
    assert d(np.ones(3), i64(3)).numpy().shape == (3,)


# Random numbers and values held fixed.


def test_random_numbers_in_a_loop_are_the_same_in_both_passes() -> None:
    """f is linear in x, so x·f' is f, bit for bit with factors of 2."""

    @nk.staged
    def dropped(x: Rep[Row], key: Rep[Count], n: Rep[Count]) -> Rep[Row]:
        def step(_: Any, carried: tuple[Rep[Row], Rep[Count]]) -> tuple[Rep[Row], Rep[Count]]:
            y, key = carried
            key, now = nk.random.split(key)
            kept = nk.random.uniform(now, (16,), dtype=f64) > 0.25
            return nk.select(kept, y * 2.0, 0.0), key

        return nk.fori(0, n, step, (x, key))[0]

    x, key = Tensor1D(np.arange(1.0, 17.0)), nk.random.key(3)
    d: Any = nk.gradient(of=dropped, wrt=0, keeping=(0,))
    for n in (0, 1, 2, 5):
        slopes, kept = d(x, key, i64(n))
        np.testing.assert_array_equal(slopes.numpy() * x.numpy(), kept.numpy())
        np.testing.assert_array_equal(kept.numpy(), dropped(x, key, i64(n)).numpy())
        assert n == 0 or 0 < np.count_nonzero(kept.numpy()) < 16


def test_random_factors_that_depend_on_the_index() -> None:
    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        def step(i: Rep[Scalar[nk.i32]], r: Rep[Number]) -> Rep[Number]:
            return r * x * nk.random.normal(i.cast(i64) + 7, (), dtype=f64)

        return nk.fori(0, n, step, x)

    value, slope = float(f(f64(0.7), i64(3))), float(nk.gradient(of=f, wrt=0)(f64(0.7), i64(3)))
    np.testing.assert_allclose(slope, 4 * value / 0.7, rtol=1e-13)


def test_what_is_held_fixed_in_a_loop_stays_fixed_in_every_order() -> None:
    """r ← r·fixed(r) + x: then ∂r ← ∂r·r + 1, and that is fixed."""

    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.fori(0, n, lambda i, r: r * nk.stop_gradient(r) + x, x)

    @nk.staged
    def recursive(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        def more() -> Rep[Number]:
            r = recursive(x, n - 1)
            return r * nk.stop_gradient(r) + x

        return nk.cond(n == 0, lambda: x, more)

    r, slope = 0.7, 1.0
    for _ in range(3):
        r, slope = r * r + 0.7, slope * r + 1.0
    for g in (f, recursive):
        d: Any = nk.gradient(of=g, wrt=0)
        np.testing.assert_allclose(d(f64(0.7), i64(3)), slope, rtol=1e-14)
        assert float(nk.gradient(of=d, wrt=0)(f64(0.7), i64(3))) == 0.0


# What is captured, and called.


def test_what_bodies_capture_has_its_gradient() -> None:
    """From the function around, by a function inside that a loop calls, in a choice, in a loop."""

    @nk.staged
    def f(x: Rep[Number], w: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        scale = nk.sin(x)

        @nk.staged
        def inner(y: Rep[Number]) -> Rep[Number]:
            return y * scale + (w * w).sum()

        def step(i: Rep[Scalar[nk.i32]], r: Rep[Number]) -> Rep[Number]:
            return nk.cond(i % 2 == 0, lambda: inner(r) * 0.3, lambda: inner(r * x))

        return nk.fori(1, n, step, w[0] * x)

    w = Tensor1D(np.linspace(-0.5, 1.5, 3))
    d: Any = nk.gradient(of=f, wrt=(0, 1))
    for n in (0, 2, 6):
        by_x, by_w = d(f64(0.8), w, i64(n))
        expected = difference(f, 0, f64(0.8), w, i64(n))
        np.testing.assert_allclose(by_x, expected, rtol=1e-7)
        expected = difference(f, 1, f64(0.8), w, i64(n))
        np.testing.assert_allclose(by_w, expected, rtol=1e-7, atol=1e-8)


def test_one_function_called_in_a_loop_a_choice_and_a_recursion() -> None:
    """Three kinds of callers share one forward and one backward function."""

    @nk.staged
    def shared(x: Rep[Number]) -> Rep[Number]:
        return nk.sin(x) * x

    @nk.staged
    def down(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(n < 1, lambda: shared(x), lambda: shared(down(x, n - 1)) + x)

    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        y = nk.fori(0, n, lambda i, r: shared(r) + x, x)
        return nk.cond(x > 0.0, lambda: shared(y), lambda: y) + down(x, n)

    d: Any = nk.gradient(of=f, wrt=0)
    for x in (0.6, -0.6):
        for n in (0, 1, 3):
            expected = difference(f, 0, f64(x), i64(n))
            np.testing.assert_allclose(d(f64(x), i64(n)), expected, rtol=1e-7)
    text = d.ir(f64(0.6), i64(3), stage="optimizable")
    assert text.count("func @shared_bwd") == text.count("func @shared_fwd") == 1
