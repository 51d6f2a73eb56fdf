"""Gradients of programs: choices, loops and recursion, in reverse and by the rows of `docs/features.md`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i64
from nnkit.core.ir.surgery import with_bodies
from nnkit.core.text import parse_module

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number = Scalar[f64]
Count = Scalar[i64]
Row = Tensor1D[f64]
Matrix = Tensor2D[f64]


def slope(f: Any, x: float, *rest: Any, h: float = 1e-6) -> float:
    """By a central difference."""
    ends = [float(f(nk.f64(x + s * h), *rest)) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


def test_only_the_branch_that_was_taken_runs() -> None:
    @nk.staged
    def f(x: Rep[Number]) -> Rep[Number]:
        return nk.cond(x >= 0.0, lambda: x * x, lambda: x)

    d = nk.gradient(of=f, wrt=0)
    assert float(d(nk.f64(4.5))) == 9.0
    assert float(d(nk.f64(-1.0))) == 1.0
    assert float(nk.gradient(of=d, wrt=0)(nk.f64(4.5))) == 2.0


@nk.staged
def power(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, r: r * x, x * 0.0 + 1.0)


@nk.staged
def recursive_power(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
    return nk.cond(n == 0, lambda: x * 0.0 + 1.0, lambda: x * recursive_power(x, n - 1))


@pytest.mark.parametrize("f", [power, recursive_power])
def test_as_many_iterations_or_calls_as_are_asked_for(f: Any) -> None:
    """xⁿ, whose first carry does not depend on x but for its shape."""
    d = nk.gradient(of=f, wrt=0)
    for n in (0, 1, 5, 1000):
        expected = n * 1.001 ** (n - 1) if n else 0.0
        np.testing.assert_allclose(d(nk.f64(1.001), nk.i64(n)), expected, rtol=1e-12)


def test_a_carry_that_starts_constant() -> None:
    @nk.staged
    def f(x: Rep[Number]) -> Rep[Number]:
        return nk.fori(0, 5, lambda i, r: r * x, nk.f64(1.0))

    third: Any = f
    for expected in (5 * 1.3**4, 20 * 1.3**3, 60 * 1.3**2):
        third = nk.gradient(of=third, wrt=0)
        np.testing.assert_allclose(third(nk.f64(1.3)), expected, rtol=1e-13)


def test_a_loop_that_ends_when_it_has_converged() -> None:
    """√a by Newton's method."""

    @nk.staged
    def root(a: Rep[Number]) -> Rep[Number]:
        return nk.while_loop(
            lambda x: nk.abs(x * x - a) > 1e-13 * a, lambda x: 0.5 * (x + a / x), a
        )

    d = nk.gradient(of=root, wrt=0)
    for a in (0.25, 2.0, 1e6):
        np.testing.assert_allclose(d(nk.f64(a)), 0.5 / np.sqrt(a), rtol=1e-11)


def test_loops_in_loops_of_any_number_of_iterations() -> None:
    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        def step(i: Rep[Count], r: Rep[Number]) -> Rep[Number]:
            grown = nk.while_loop(lambda q: q < 10.0, lambda q: q * x * r, r * nk.sin(x))
            return nk.cond(i % 2 == 0, lambda: grown / 10.0, lambda: grown / (3.0 + x))

        return nk.fori(0, n, step, x)

    d = nk.gradient(of=f, wrt=0)
    for n in (0, 1, 2, 5):
        np.testing.assert_allclose(d(nk.f64(1.7), nk.i64(n)), slope(f, 1.7, nk.i64(n)), rtol=1e-7)


def test_trees_of_calls() -> None:
    @nk.staged
    def tree(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(
            n <= 1, lambda: nk.sin(x), lambda: tree(x * 1.1, n // 2) * tree(x, n - n // 2) + x
        )

    d = nk.gradient(of=tree, wrt=0)
    for n in (1, 2, 7, 64):
        np.testing.assert_allclose(
            d(nk.f64(0.9), nk.i64(n)), slope(tree, 0.9, nk.i64(n)), rtol=1e-7
        )


def test_functions_that_call_each_other() -> None:
    @nk.staged
    def even(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(n == 0, lambda: x, lambda: nk.sin(odd(x, n - 1)) * x)

    @nk.staged
    def odd(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(n == 0, lambda: x * x, lambda: nk.exp(even(x, n - 1) * 0.1) + x)

    d = nk.gradient(of=even, wrt=0)
    for n in (0, 1, 2, 3, 6):
        np.testing.assert_allclose(
            d(nk.f64(0.7), nk.i64(n)), slope(even, 0.7, nk.i64(n)), rtol=1e-7
        )


def test_rows_that_are_scanned_mapped_and_folded() -> None:
    @nk.staged
    def f(xs: Rep[Row], w: Rep[Number]) -> Rep[Number]:
        last, ys = xs.scan(w, lambda c, x: (nk.tanh(c * w + x), c * x))
        squares = xs.map(lambda x: x * x * last)
        return last + (ys.tensor() * squares).sum() + xs.fold(w, lambda c, x: c + x + c * x)

    rng = np.random.default_rng(0)
    xs, w = rng.normal(size=7), 0.7
    by_xs, by_w = nk.gradient(of=f, wrt=(0, 1))(xs, nk.f64(w))
    expected = []
    for k in range(7):
        step = np.eye(7)[k] * 1e-6
        ends = [float(f(xs + s * step, nk.f64(w))) for s in (1, -1)]
        expected.append((ends[0] - ends[1]) / 2e-6)
    np.testing.assert_allclose(by_xs, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(by_w, slope(lambda v: f(xs, v), w), rtol=1e-7)


def test_rows_that_are_filtered() -> None:
    """As many as pass, first and second derivatives in both modes; what does not pass has no influence."""

    @nk.staged
    def f(xs: Rep[Row]) -> Rep[Number]:
        kept, count = (xs * xs).filter(lambda e: e > 1.0)
        return nk.sin(kept).sum() * count.cast(nk.f64)

    for xs in ([0.5, 1.5, -2.0, 0.1, 3.0], [0.5, -0.1], []):
        row = np.array(xs)
        count = int((row * row > 1.0).sum())
        expected = np.where(row * row > 1.0, np.cos(row * row) * 2 * row, 0.0) * count
        np.testing.assert_allclose(nk.gradient(of=f, wrt=0)(row), expected, rtol=1e-14)
        nk.check_gradients(f, row, order=2)


def test_a_reduction_by_a_users_function() -> None:
    """a + b + ab over 1, 2, 3, 4."""

    @nk.staged
    def f(xs: Rep[Row]) -> Rep[Number]:
        return xs.fold(nk.f64(0.0), lambda a, b: a + b + a * b)

    found = nk.gradient(of=f, wrt=0)(np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(found, [60.0, 40.0, 30.0, 24.0])


def test_a_carry_without_cotangent_costs_nothing() -> None:
    """Of a sum and a product in one loop, the gradient of the sum saves and carries nothing of the product."""

    @nk.staged
    def both(xs: Rep[Row]) -> tuple[Rep[Number], Rep[Number]]:
        start = nk.const(nk.f64(0.0)), nk.const(nk.f64(1.0))
        return nk.fori(0, 50, lambda i, c: (c[0] + xs[i], c[1] * xs[i]), start)

    g = nk.gradient(of=both, wrt=0)
    np.testing.assert_array_equal(g(np.arange(50.0)), np.ones(50))
    (gradient,) = [
        function
        for function in parse_module(g.ir(np.arange(50.0), stage="optimizable")).functions.values()
        if function.name.endswith("grad")
    ]
    assert "multiply" not in {i.op.name for i in with_bodies(gradient.entry.instructions)}
    other = nk.gradient(of=both, wrt=0, from_=1)
    xs = np.linspace(0.9, 1.1, 50)
    np.testing.assert_allclose(other(xs), np.prod(xs) / xs, rtol=1e-13)


def test_derivatives_of_any_order_of_loops_and_recursion() -> None:
    """√a by Newton's method, and xⁿ by calls: what a backward loop reads from a tape is differentiated again."""

    @nk.staged
    def root(a: Rep[Number]) -> Rep[Number]:
        return nk.while_loop(lambda x: nk.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)

    d: Any = root
    for expected in (0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5, -15 / 16 * 2**-3.5):
        d = nk.gradient(of=d, wrt=0)
        np.testing.assert_allclose(d(nk.f64(2.0)), expected, rtol=1e-12)
    for f in (power, recursive_power):
        d = f
        for expected in (5 * 1.3**4, 20 * 1.3**3, 60 * 1.3**2, 120 * 1.3):
            d = nk.gradient(of=d, wrt=0)
            np.testing.assert_allclose(d(nk.f64(1.3), nk.i64(5)), expected, rtol=1e-12)


def test_a_gradient_of_a_loop_in_another_function_is_differentiated_by_point_and_seed() -> None:
    @nk.staged
    def f(x: Rep[Row], n: Rep[Count]) -> tuple[Rep[Number], Rep[Row]]:
        y = nk.fori(0, n, lambda i, c: nk.tanh(c * x) + x * c, x)
        return y.sum(), y * y

    g = nk.gradient(of=f, wrt=0, from_=1, seedable=True, keeping=(0, 1))

    @nk.staged
    def weighted(x: Rep[Row], seed: Rep[Row], v: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        slope, total, squares = g(x, n, seed)
        return (slope * v).sum() * total + (squares * squares).sum()

    h = nk.gradient(of=weighted, wrt=(0, 1, 2))
    point = [np.array(row) for row in ([0.3, -0.5, 0.8], [1.0, 2.0, -1.0], [0.5, -0.25, 2.0])]
    n = nk.i64(4)
    for position, found in enumerate(h(*point, n)):
        for k in range(3):
            ends = []
            for sign in (1, -1):
                moved = [row.copy() for row in point]
                moved[position][k] += sign * 1e-6
                ends.append(float(weighted(*moved, n)))
            np.testing.assert_allclose(found.numpy()[k], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_what_a_loop_reads_of_an_array_row_by_row_costs_no_more_than_the_rows() -> None:
    """No body of the gradient computes anything of the size of the arrays."""

    @nk.staged
    def f(m: Rep[Matrix], v: Rep[Row]) -> Rep[Number]:
        def step(i: Rep[Count], c: Rep[Number]) -> Rep[Number]:
            inner = nk.fori(0, 3, lambda k, d: d + nk.sin(m[i, k] * v[k]) * d, c)
            return inner + (nk.take(m, i, axis=1) * m[i] * v[0]).sum() * 0.1 + v[5 - i] * c

        return nk.fori(0, 6, step, v.sum())

    rng = np.random.default_rng(1)
    point = [rng.normal(size=(6, 6)), rng.normal(size=6)]
    g = nk.gradient(of=f, wrt=(0, 1))
    for position, found in enumerate(g(*point)):
        for place in np.ndindex(point[position].shape):
            ends = []
            for sign in (1, -1):
                moved = [array.copy() for array in point]
                moved[position][place] += sign * 1e-6
                ends.append(float(f(*moved)))
            expected = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(found.numpy()[place], expected, rtol=1e-6, atol=1e-7)

    @nk.staged
    def rows(x: Rep[Row]) -> Rep[Number]:
        return nk.fori(0, 1000, lambda i, c: c + nk.sin(x[i]) * c, x[0])

    slopes = nk.gradient(of=rows, wrt=0)
    module = parse_module(slopes.ir(np.zeros(1000), stage="optimizable"))
    loops = [i for f in module.functions.values() for i in f.entry.instructions if i.regions]
    assert len(loops) == 3  # the primal, and both halves of the gradient
    made = [x.tensor.size for i in with_bodies(loops) if not i.regions for x in i.results]
    assert max(made) == 1


def test_a_checkpoint_saves_the_arguments_alone_with_the_same_bits() -> None:
    @nk.staged
    def step(x: Rep[Row], w: Rep[Row]) -> Rep[Row]:
        y = nk.tanh(x * w)
        return y * nk.exp(y) + nk.sin(x)

    small = nk.checkpoint(step)

    @nk.staged
    def plain_sum(x: Rep[Row], w: Rep[Row]) -> Rep[Number]:
        return nk.fori(0, 10, lambda i, c: step(c, w), x).sum()

    @nk.staged
    def small_sum(x: Rep[Row], w: Rep[Row]) -> Rep[Number]:
        return nk.fori(0, 10, lambda i, c: small(c, w), x).sum()

    rng = np.random.default_rng(2)
    point = rng.normal(size=4), rng.normal(size=4)
    saved: list[int] = []
    for order in (1, 2):
        both = []
        for f in (plain_sum, small_sum):
            g: Any = nk.gradient(of=f, wrt=1)
            if order == 2:
                first = nk.gradient(of=f, wrt=1)
                g = nk.gradient(
                    of=nk.fn(Row, Row)(lambda x, w, d=first: (d(x, w) * d(x, w)).sum()), wrt=1
                )
            both.append(g(*point).numpy())
            module = parse_module(g.ir(*point, stage="optimizable"))
            stacks = [
                x
                for function in module.functions.values()
                for i in with_bodies(function.entry.instructions)
                for x in i.results
                if i.op.name == "for" and x.tensor.shape == (10, 4)
            ]
            saved.append(len(stacks))
        # the second derivatives add up cotangents in another order
        np.testing.assert_allclose(*both, rtol=0 if order == 1 else 1e-14)
    assert saved[:2] == [3, 1]  # exp y, tanh and x, or the carry alone


def test_only_staged_functions_have_checkpoints() -> None:
    with pytest.raises(nk.StagingError, match="takes a staged function, not the function <lambda>"):
        nk.checkpoint(lambda x: x)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
    with pytest.raises(nk.StagingError, match="power_grad is a derivative"):
        nk.checkpoint(nk.gradient(of=power, wrt=0))
