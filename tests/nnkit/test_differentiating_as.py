"""`differentiate_as` and `stop_gradient`: values whose derivatives are not those of their formula, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    Field,
    RankError,
    Rep,
    Scalar,
    StagingError,
    Struct,
    Tensor1D,
    f64,
    i32,
)

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]


class State(Struct):
    x: Field[Vector]
    n: Field[Scalar[i32]]


def orders(function: Callable[..., Any], x: float) -> list[float]:
    """The value and the derivatives of first to third order, in reverse, forward, and mixed."""
    f = nk.fn(Number)(function)
    slope = nk.gradient(of=f, wrt=0)
    along = nk.fn(Number)(lambda x: nk.jvp(of=f)(x, nk.const(f64(1.0))).unpack()[1])
    found = [
        f(f64(x)),
        slope(f64(x)),
        along(f64(x)),
        nk.gradient(of=slope, wrt=0)(f64(x)),
        nk.gradient(of=along, wrt=0)(f64(x)),
        nk.jvp(of=slope)(f64(x), f64(1.0))[1],
        nk.jvp(of=along)(f64(x), f64(1.0))[1],
        nk.gradient(of=nk.gradient(of=slope, wrt=0), wrt=0)(f64(x)),
    ]
    return [float(one) for one in found]


def expected(value: float, first: float, second: float, third: float) -> list[float]:
    return [value, first, first, second, second, second, second, third]


def test_a_stopped_value_is_a_constant_of_any_order() -> None:
    """x³ · stop(x)² has the derivatives of x³, times x²."""
    found = orders(lambda x: x**3 * nk.stop_gradient(x) ** 2, 1.5)
    scale = 1.5**2
    np.testing.assert_allclose(
        found, expected(1.5**5, 3 * 1.5**2 * scale, 6 * 1.5 * scale, 6 * scale)
    )


def test_a_stopped_value_in_a_loop() -> None:
    """The carry is stopped in each iteration, so that only the last one has a slope."""
    found = orders(lambda x: nk.fori(0, 3, lambda i, c: nk.stop_gradient(c) * x, x), 1.5)
    np.testing.assert_allclose(found, expected(1.5**4, 1.5**3, 0, 0))


def test_the_values_of_one_function_with_the_derivatives_of_another() -> None:
    like = nk.fn(Number)(lambda x: nk.sin(x))
    rounded = nk.differentiate_as(like)(nk.fn(Number)(lambda x: nk.round(x)))
    np.testing.assert_allclose(
        orders(lambda x: rounded(x), 1.3), expected(1, np.cos(1.3), -np.sin(1.3), -np.cos(1.3))
    )


def test_in_a_loop_and_a_choice() -> None:
    identity = nk.fn(Number)(lambda x: x)
    rounded = nk.differentiate_as(identity)(nk.fn(Number)(lambda x: nk.floor(x)))

    def body(x: Rep[Number]) -> Rep[Number]:
        step = lambda c: nk.cond(c > 0.0, lambda: rounded(c * x), lambda: c)  # noqa: E731
        return nk.fori(0, 2, lambda i, c: step(c), x)

    # c₁ = ⌊x²⌋ with slope 2x, c₂ = ⌊c₁ x⌋ with slope c₁ + x · 2x
    first = 6 + 2.5 * 5
    np.testing.assert_allclose(orders(body, 2.5)[:3], [15, first, first])


def test_structs_and_several_results() -> None:
    def of(p: Rep[State]) -> tuple[Rep[State], Rep[Scalar[i32]]]:
        return nk.build(State, State.x << nk.sign(p[State.x]), State.n << p[State.n] + 1), p[
            State.n
        ]

    def like(p: Rep[State]) -> tuple[Rep[State], Rep[Scalar[i32]]]:
        return nk.build(State, State.x << p[State.x] * 3, State.n << p[State.n]), p[State.n] * 5

    made = nk.differentiate_as(nk.staged(like))(nk.staged(of))

    def total(p: Rep[State]) -> Rep[Number]:
        state, n = made(p).unpack()
        return (state[State.x] * state[State.x]).sum() * (state[State.n] + n).cast(f64)

    p = State(x=np.array([2.0, -3.0]), n=i32(2))
    found = nk.gradient(of=nk.staged(total), wrt=0)(p)
    np.testing.assert_allclose(np.asarray(found.x), 2 * np.array([1.0, -1.0]) * 3 * 5)
    assert float(nk.staged(total)(p)) == 10


def test_functions_of_other_arguments_and_results() -> None:
    one = nk.fn(Number)(lambda x: x)
    two = nk.fn(Number, Number)(lambda x, y: x + y)
    with pytest.raises(StagingError, match=r"takes 1 argument and .* 2"):
        nk.differentiate_as(two)(one)
    with pytest.raises(StagingError, match="differentiate_as takes a staged function, not a float"):
        nk.differentiate_as(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for kind, other in [
        (RankError, lambda x: nk.stack([x, x])),
        (DTypeError, lambda x: x.cast(nk.f32)),
    ]:
        made = nk.differentiate_as(nk.fn(Number)(other))(one)
        with pytest.raises(kind, match="is differentiated like one of the same result"):
            made(f64(1.0))
