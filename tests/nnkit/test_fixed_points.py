"""`fixed_point`: its derivatives are those of the equation, of any order, whatever the iterations were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    Field,
    NNKitError,
    RankError,
    Rep,
    Scalar,
    StagingError,
    Struct,
    Tensor1D,
    Tensor2D,
    f32,
    f64,
    i32,
)
from nnkit.callables import StagedFunction

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


class State(Struct):
    x: Field[Vector]
    s: Field[Number]


def newton(x: Rep[Number], a: Rep[Number]) -> Rep[Number]:
    return (x + a / x) * 0.5


def slow(x: Rep[Number], a: Rep[Number]) -> Rep[Number]:
    """√a too, with a slope of 1 − √a / 2 there, so that the linear systems take many iterations."""
    return x + (a - x * x) * 0.25


def by_loop(a: Rep[Number]) -> Rep[Number]:
    return nk.while_loop(lambda x: nk.abs(x * x - a) > 1e-14, lambda x: newton(x, a), a)


def orders(f: StagedFunction, at: float) -> list[float]:
    """The value and derivatives to third order, by all modes of the first two."""
    x, one = f64(at), f64(1.0)
    slope = nk.gradient(of=f, wrt=0)
    along = nk.fn(Number)(lambda x: nk.jvp(of=f)(x, nk.const(one)).unpack()[1])
    second = nk.gradient(of=slope, wrt=0)
    found = [f(x), slope(x), along(x), second(x), nk.gradient(of=along, wrt=0)(x)]
    found += [
        nk.jvp(of=slope)(x, one)[1],
        nk.jvp(of=along)(x, one)[1],
        nk.gradient(of=second, wrt=0)(x),
    ]
    return [float(one) for one in found]


@pytest.mark.parametrize("step", [newton, slow])
def test_derivatives_are_those_of_the_equation(step: Callable[..., Any]) -> None:
    """√a: 1/2√a, −¼ a^−³ᐟ², ⅜ a^−⁵ᐟ²; by Newton's method the loop's own derivatives are the same."""
    found = orders(nk.fn(Number)(lambda a: nk.fixed_point(step, nk.ones_like(a), a)), 1.7)
    first, second, third = 0.5 * 1.7**-0.5, -0.25 * 1.7**-1.5, 0.375 * 1.7**-2.5
    expected = [1.7**0.5, first, first, second, second, second, second, third]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    if step is newton:
        np.testing.assert_allclose(orders(nk.fn(Number)(by_loop), 1.7)[:3], found[:3], rtol=1e-11)


def contraction(x: Rep[Vector], w: Rep[Matrix], b: Rep[Vector]) -> Rep[Vector]:
    return nk.tanh(w @ x) * 0.5 + b


def test_a_system_against_the_solution_of_its_linear_equations() -> None:
    rng = np.random.default_rng(1)
    w, b, seed = rng.normal(size=(4, 4)) * 0.4, rng.normal(size=4), rng.normal(size=4)
    f = nk.fn(Matrix, Vector)(lambda w, b: nk.fixed_point(contraction, nk.zeros_like(b), w, b))
    x = np.asarray(f(w, b))
    np.testing.assert_allclose(np.tanh(w @ x) * 0.5 + b, x, rtol=1e-12)
    slope = 0.5 / np.cosh(w @ x) ** 2
    adjoint = np.linalg.solve(np.eye(4) - (slope[:, None] * w).T, seed)
    dw, db = nk.vjp(of=f)(w, b, seed)
    np.testing.assert_allclose(np.asarray(db), adjoint, rtol=1e-11)
    np.testing.assert_allclose(np.asarray(dw), np.outer(adjoint * slope, x), rtol=1e-11)
    nk.check_gradients(f, w, b)


def test_the_start_has_no_influence() -> None:
    f = nk.fn(Number, Number)(lambda x0, a: nk.fixed_point(slow, x0, a))
    assert float(nk.gradient(of=f, wrt=0)(f64(1.0), f64(2.0))) == 0
    assert float(nk.jvp(of=f, wrt=0)(f64(1.0), f64(2.0), f64(1.0))[1]) == 0


def test_nothing_of_the_iterations_is_kept() -> None:
    """The way back has no tape; the loop's own derivative has one."""
    by_rule = nk.fn(Number)(lambda a: nk.fixed_point(slow, nk.ones_like(a), a))
    tape = "enum $tape"
    assert tape in nk.gradient(of=nk.fn(Number)(by_loop), wrt=0).ir(f64(2.0), stage="optimized")
    slope = nk.gradient(of=by_rule, wrt=0)
    assert tape not in slope.ir(f64(2.0), stage="optimized")
    assert tape not in nk.gradient(of=slope, wrt=0).ir(f64(2.0), stage="optimized")


def test_derivatives_that_nobody_asked_for_are_not_made() -> None:
    """The first derivative has one linear system, and nothing of the second."""
    slope = nk.gradient(of=nk.fn(Number)(lambda a: nk.fixed_point(slow, a, a)), wrt=0)
    text = slope.ir(f64(2.0), stage="optimized")
    assert text.count("= while") + text.count(" while ") >= 2
    assert text.count("while carrying") == 2


def test_halves_are_differentiated_by_the_equation() -> None:
    """From a start that is the solution, where the iterations say nothing: f = a·√a and derivatives to third order."""

    @nk.staged
    def f(a: Rep[Number], start: Rep[Number]) -> Rep[Number]:
        return nk.fixed_point(slow, start, a) * a

    halves = nk.split(f, wrt=0).at(nk.spec((), f64), nk.spec((), f64))

    @nk.staged
    def value(a: Rep[Number], start: Rep[Number]) -> Rep[Number]:
        found, _ = halves.forward(a, start)
        return found

    @nk.staged
    def slope(a: Rep[Number], start: Rep[Number]) -> Rep[Number]:
        _, kept = halves.forward(a, start)
        return halves.backward(kept, nk.const(f64(1.0)))

    at = 2.3
    second = nk.gradient(of=slope, wrt=0)
    found = [
        nk.gradient(of=value, wrt=0), slope, second, nk.gradient(of=second, wrt=0)
    ]  # fmt: skip
    expected = [1.5 * at**0.5, 1.5 * at**0.5, 0.75 * at**-0.5, -0.375 * at**-1.5]
    np.testing.assert_allclose(
        [float(one(f64(at), f64(np.sqrt(at)))) for one in found], expected, rtol=1e-12
    )
    pushed = nk.jvp(of=slope, wrt=0)(f64(at), f64(np.sqrt(at)), f64(1.0))
    np.testing.assert_allclose(float(pushed[1]), expected[2], rtol=1e-12)


def test_tuples_structs_and_integers() -> None:
    def pair(x: Any, a: Rep[Number], n: Rep[Scalar[i32]]) -> Any:
        u, v = x
        return nk.cos(v) * a, nk.sin(u) * 0.5 / n.cast(f64)

    def of_pair(a: Rep[Number], n: Rep[Scalar[i32]]) -> Rep[Number]:
        u, v = nk.fixed_point(pair, (a, a), a, n)
        return u * v

    def state(p: Rep[State], a: Rep[State]) -> Rep[State]:
        x = nk.sin(p[State.x]) * 0.5 * p[State.s] + a[State.x]
        return nk.build(State, State.x << x, State.s << nk.cos(p[State.s]) * 0.3 + a[State.s])

    nk.check_gradients(nk.staged(of_pair), 0.8, 2)
    start = State(x=[0.0, 0.0], s=0.0)
    f = nk.fn(State)(lambda a: nk.fixed_point(state, nk.const(start), a))
    nk.check_gradients(f, State(x=[0.3, -0.2], s=0.4))


def test_inside_of_loops_and_choices() -> None:
    def body(a: Rep[Number]) -> Rep[Number]:
        inner = lambda c: nk.cond(c > 0.0, lambda: nk.fixed_point(slow, c, c + a), lambda: c)  # noqa: E731
        return nk.fori(0, 3, lambda i, c: inner(c), a)

    nk.check_gradients(nk.fn(Number)(body), 0.7)


def test_in_a_batch() -> None:
    root = nk.fn(Number)(lambda a: nk.fixed_point(slow, nk.ones_like(a), a))
    roots = nk.vmap(root)
    a = np.array([1.0, 2.0, 3.0])
    total = nk.fn(Vector)(lambda a: roots(a).sum())
    np.testing.assert_allclose(
        np.asarray(nk.gradient(of=total, wrt=0)(a)), 0.5 * a**-0.5, rtol=1e-12
    )
    np.testing.assert_allclose(
        np.asarray(nk.vmap(nk.gradient(of=root, wrt=0))(a)), 0.5 * a**-0.5, rtol=1e-12
    )
    np.testing.assert_allclose(
        np.asarray(nk.hessian(of=total)(a)), np.diag(-0.25 * a**-1.5), rtol=1e-11
    )


def test_a_fixed_point_of_fixed_points() -> None:
    def step(x: Rep[Number], a: Rep[Number]) -> Rep[Number]:
        return nk.fixed_point(slow, nk.ones_like(a), a + x * 0.5)

    f = nk.fn(Number)(lambda a: nk.fixed_point(step, nk.ones_like(a), a))
    # x² = a + x/2
    expected = (0.5 + np.sqrt(0.25 + 4 * 0.9)) / 2
    assert float(f(f64(0.9))) == pytest.approx(expected, rel=1e-12)
    assert float(nk.gradient(of=f, wrt=0)(f64(0.9))) == pytest.approx(
        1 / (2 * expected - 0.5), rel=1e-10
    )


def test_single_precision_and_a_tolerance_of_ones_own() -> None:
    f = nk.fn(Scalar[f32])(lambda a: nk.fixed_point(slow, nk.ones_like(a), a))
    assert float(nk.gradient(of=f, wrt=0)(f32(2.0))) == pytest.approx(0.5 / np.sqrt(2), rel=1e-4)
    rough = nk.fn(Number)(lambda a: nk.fixed_point(slow, nk.ones_like(a), a, tolerance=1e-3))
    error = abs(float(rough(f64(2.0))) - np.sqrt(2))
    assert 1e-9 < error < 1e-3


@pytest.mark.parametrize(
    "step",
    [lambda x, a: x + a, lambda x, a: -x + a, lambda x, a: x * 2 + a, lambda x, a: nk.sqrt(x - 1 - a)],
)  # fmt: skip
def test_what_does_not_converge_is_not_a_number(step: Callable[..., Any]) -> None:
    f = nk.fn(Number)(lambda a: nk.fixed_point(step, a, a, max_iterations=50))
    assert np.isnan(float(f(f64(1.0))))
    assert np.isnan(float(nk.gradient(of=f, wrt=0)(f64(1.0))))


def test_max_iterations_are_enough_or_not() -> None:
    def of(count: int) -> float:
        f = nk.fn(Number)(lambda a: nk.fixed_point(slow, a, a, max_iterations=count))
        return float(f(f64(2.0)))

    assert np.isnan(of(3)) and of(60) == pytest.approx(np.sqrt(2), rel=1e-13)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (RankError, lambda a: nk.fixed_point(lambda x: nk.stack([x, x]), a), "and returns a Tensor1D[f64]"),
        (DTypeError, lambda a: nk.fixed_point(lambda x: x.cast(f32), a), "and returns a Tensor0D[f32]"),
        (StagingError, lambda a: nk.fixed_point(lambda x: 1.0, a), "returns a float, not a Rep"),
        (DTypeError, lambda a: nk.fixed_point(lambda x: x, nk.const(i32(1))).cast(f64), "a fixed point is of floats"),
        (StagingError, lambda a: nk.fixed_point(lambda x: x, a, tolerance=0), "tolerance=0 is no positive number"),
        (StagingError, lambda a: nk.fixed_point(lambda x: x, a, max_iterations=0), "max_iterations=0 is no"),
    ],
)  # fmt: skip
def test_bad_input(kind: type[NNKitError], call: Callable[..., Any], message: str) -> None:
    with pytest.raises(kind) as caught:
        nk.fn(Number)(call)(f64(1.0))
    assert message in str(caught.value)


def test_values_from_around_have_no_derivative() -> None:
    f = nk.fn(Number)(lambda a: nk.fixed_point(lambda x: slow(x, a), nk.ones_like(a)))
    assert float(f(f64(2.0))) == pytest.approx(np.sqrt(2))
    with pytest.raises(
        StagingError, match="uses a value of an enclosing staged function"
    ) as caught:
        nk.gradient(of=f, wrt=0)(f64(2.0))
    assert "`nk.fixed_point(lambda x, a: ..., x0, a)`" in "".join(caught.value.__notes__)


def test_a_step_to_another_shape_is_an_error_of_fixed_point() -> None:
    f = nk.fn(nk.Tensor1D[f64])(lambda a: nk.fixed_point(lambda x, a: x[:1] + a[:1], a, a))
    with pytest.raises(
        nk.ShapeError, match=r"fixed_point carries f64\[3\] and its body returns f64\[1\]"
    ):
        f(np.ones(3))
