"""`check_gradients`: what is right passes, in every element type, and whatever is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError,
    Field,
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


class State(Struct):
    w: Field[Vector]
    n: Field[Scalar[i32]]
    b: Field[Number]


def stateful(p: Rep[State], x: Rep[Vector]) -> tuple[Rep[State], Rep[Scalar[i32]]]:
    w = nk.tanh(p[State.w] * x) * p[State.b] * p[State.n].cast(f64)
    return p.set(State.w, w), p[State.n]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (nk.fn(Vector, Number)(lambda x, y: (nk.sin(x) * y).sum()), [[1.0, 2.0, 3.0], 0.5]),
        (nk.fn(Tensor2D[f64], Tensor2D[f64])(lambda x, w: nk.softmax(x @ w)), [np.eye(3), np.ones((3, 2)) / 3]),
        (nk.staged(stateful), [State(w=[1.0, -2.0], n=3, b=0.3), [0.5, 0.1]]),
        (nk.fn(Vector)(lambda x: nk.fori(0, 4, lambda i, c: nk.sin(c) * x, x)), [[0.5, 1.5]]),
        (nk.fn(Number)(lambda a: nk.while_loop(lambda r: r * r - a > 1e-13, lambda r: (r + a / r) * 0.5, a)), [3.0]),
        (nk.fn(Number, Number)(lambda x, y: nk.exp(x * 1e3) * 1e6 + y * 1e-9), [0.001, 1e5]),
        (nk.fn(Vector)(lambda x: x * x * 1e-12), [[1e-3, 0.0, 1e8]]),
        (nk.fn(Tensor1D[f32], Scalar[f32])(lambda x, y: nk.exp(nk.sin(x) * y)), [np.array([1, 2, 3], np.float32), 0.5]),
        (nk.fn(Tensor1D[nk.f16])(lambda x: nk.exp(nk.sin(x))), [np.array([1, 2, 3], np.float16)]),
        (nk.fn(Tensor1D[nk.bf16])(lambda x: nk.exp(nk.sin(x))), [Tensor1D([1.0, 2.0], nk.bf16)]),
        (nk.fn(Tensor1D[f64])(lambda x: nk.exp(x).sum()), [np.linspace(0, 1, 200)]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_right_passes(function: StagedFunction, arguments: list[Any]) -> None:
    given = [np.array(a, np.float64) if isinstance(a, list) else a for a in arguments]
    nk.check_gradients(function, *given)


def failure(action: Callable[[], None]) -> str:
    with pytest.raises(DifferentiationError) as caught:
        action()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def ruled(jvp: Callable[..., Any]) -> StagedFunction:
    made = nk.fn(State)(lambda p: nk.sin(p[State.w]) * p[State.b])
    made.defjvp(jvp)
    return made


def derivative(p: Rep[State], dp: Rep[State]) -> Any:
    return nk.cos(p[State.w]) * p[State.b] * dp[State.w] + nk.sin(p[State.w]) * dp[State.b]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_wrong_rule_is_named_with_parameter_element_and_both_numbers(mode: Any) -> None:
    def wrong(p: Rep[State], dp: Rep[State]) -> Any:
        off = nk.const(np.array([1.0, 1.001]))
        return derivative(p, dp.set(State.w, dp[State.w] * off))

    p = State(w=[0.5, 0.25], n=1, b=2.0)
    message = failure(lambda: nk.check_gradients(ruled(wrong), p, modes=(mode,)))
    assert "by p.w[1] is" in message and f"(order 1, {mode})" in message
    if mode == "forward":
        assert f"of the result[1] by p.w[1] is {2 * np.cos(0.25) * 1.001:.7g}" in message
        assert f"by differences {2 * np.cos(0.25):.7g}" in message
    assert "a rule (defjvp, defvjp) that is not the derivative" in message
    nk.check_gradients(ruled(derivative), p, modes=(mode,))


def test_a_rule_that_is_wrong_from_the_second_order_on() -> None:
    def wrong(x: Rep[Number], dx: Rep[Number]) -> Rep[Number]:
        return nk.stop_gradient(nk.cos(x)) * dx

    function = nk.fn(Number)(lambda x: nk.sin(x))
    function.defjvp(wrong)
    nk.check_gradients(function, 0.5, order=1)
    message = failure(lambda: nk.check_gradients(function, 0.5))
    assert "(order 2, forward of forward)" in message and "stop_gradient" in message


def test_modes_that_are_not_transposes_of_each_other() -> None:
    """The differences are as far off as both modes together, but not the modes from each other."""
    function = nk.fn(Number)(lambda x: x * 1.0)
    function.defjvp(lambda x, dx: dx * (1 + 1e-12))
    function.defvjp(lambda x, seed: (seed,))
    message = failure(lambda: nk.check_gradients(function, 0.5, order=1))
    assert "forward and reverse mode are not transposes of each other" in message
    nk.check_gradients(function, 0.5, order=1, modes=("reverse",))


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x: nk.relu(x), 0.0, "a kink or a jump here: the slope is 0 to the left and 1 to the right"),
        (lambda x: nk.maximum(x, 2 * x), 0.0, "jumps here"),  # at a tie it is the mean, as is the difference
        (lambda x: nk.floor(x), 2.0, "a kink or a jump here"),
        (lambda x: nk.abs(x), 0.0, "jumps here"),  # of second order
        (lambda x: nk.sqrt(x), 0.0, "not finite beside this point"),
        (lambda x: nk.stop_gradient(x) * x, 1.0, "stop_gradient"),
    ],
)  # fmt: skip
def test_likely_reasons(function: Callable[..., Any], at: float, expected: str) -> None:
    assert expected in failure(lambda: nk.check_gradients(nk.fn(Number)(function), at))


def test_large_tensors_are_sampled_and_moved_as_a_whole() -> None:
    """One wrong element among 400 is not drawn; the random direction moves it."""
    off = np.ones(400)
    off[7] = 1.01

    function = nk.fn(Vector)(lambda x: x * x)
    function.defjvp(lambda x, dx: 2 * x * dx * nk.const(off))
    message = failure(lambda: nk.check_gradients(function, np.ones(400), modes=("forward",)))
    assert "of the result[7] by x" in message and "along a random direction" in message


def test_options() -> None:
    function = nk.fn(Number)(lambda x: x * x)
    assert "order=0" in failure(lambda: nk.check_gradients(function, 1.0, order=0))
    assert "modes=" in failure(lambda: nk.check_gradients(function, 1.0, modes=("back",)))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    counted = nk.fn(Scalar[i32])(lambda n: n + 1)
    assert "no argument of <lambda> has floats" in failure(lambda: nk.check_gradients(counted, 1))
    with pytest.raises(StagingError, match="check_gradients takes a staged function"):
        nk.check_gradients(np.sin, 1.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
