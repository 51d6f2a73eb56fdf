"""`taylor` of functions and programs: against known series, and tangents of tangents of tangents.

What runs is compiled; `run` also evaluates the differentiated IR, after the raw one was read back from text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

import nnkit as nk
from benchmarks.asymptotics import instructions
from nnkit import (
    DifferentiationError,
    Rep,
    Scalar,
    ShapeError,
    Tensor1D,
    Tensor2D,
    Tensor5D,
    bf16,
    f16,
    f32,
    f64,
    i32,
    i64,
)
from nnkit.callables import StagedFunction
from nnkit.staging.staged_functions import PythonFunction

from .test_derivative_functions import PROGRAMS, floats, like, run

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number, Vector, Matrix = Scalar[f64], Tensor1D[f64], Tensor2D[f64]
Count = Scalar[i64]
ORDER = 8
"""Of known series: as far as Taylor's method for an equation of high accuracy goes."""


def elementwise(function: Callable[[Any], Any]) -> Any:
    def f(x: Rep[Number]) -> Rep[Number]:
        result: Rep[Number] = function(x)
        return result

    return nk.staged(f)


def nested(of: Any, wrt: Sequence[int], order: int, arguments: Any, directions: Any) -> list[Any]:
    """The coefficients by tangents of tangents of … along the same directions."""
    count = len(of.stageable.parameter_names)
    names = (*of.stageable.parameter_names, *(f"v{k}" for k in wrt))
    found, before = [of(*arguments)], of
    for k in range(1, order + 1):
        before = _tangent(before, wrt, count, names)
        found.append(floats(before(*arguments, *directions)) / math.factorial(k))
    return found


def _tangent(before: Any, wrt: Sequence[int], count: int, names: tuple[str, ...]) -> Any:
    taken = len(before.stageable.parameter_names)
    push = nk.jvp(before, wrt=tuple(wrt))

    def tangent(*given: Any) -> Any:
        return push(*given[:taken], *given[count:])[1]

    made = PythonFunction(tangent, "tangent", names, (None,) * len(names), None)
    return StagedFunction(made)


@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if not callable(p.wrt)])
def test_the_series_of_a_program_is_that_of_tangents_of_tangents(name: str) -> None:
    program, rng = PROGRAMS[name], np.random.default_rng(2)
    wrt = (program.wrt,) if isinstance(program.wrt, int) else program.wrt
    directions = [like(program.arguments[k], rng) for k in wrt]
    found = run(nk.taylor(program.of, order=3, wrt=wrt), *program.arguments, *directions)
    expected = nested(program.of, wrt, 3, program.arguments, directions)
    assert type(found[3]) is type(found[0])
    for one, other in zip(found, (floats(expected[0]), *expected[1:]), strict=True):
        np.testing.assert_allclose(floats(one), other, rtol=1e-9, atol=1e-10)


def test_by_a_field() -> None:
    program, rng = PROGRAMS["field"], np.random.default_rng(2)
    directions = rng.normal(size=3), rng.normal(size=(3, 3))
    found = run(nk.taylor(program.of, order=2, wrt=program.wrt), *program.arguments, *directions)
    along = like(program.arguments[0], rng)
    along = type(along)(along._fields[0], type(along._fields[1])(directions[1], np.zeros(3)))
    whole = nk.taylor(program.of, order=2, wrt=(0, 1))(*program.arguments, along, directions[0])
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


KNOWN: dict[str, tuple[Any, Any, float]] = {
    "exp": (nk.exp, mpmath.exp, 0.3),
    "expm1": (nk.expm1, mpmath.expm1, 0.3),
    "sin": (nk.sin, mpmath.sin, 0.3),
    "cos": (nk.cos, mpmath.cos, 0.3),
    "tan": (nk.tan, mpmath.tan, 0.3),
    "tanh": (nk.tanh, mpmath.tanh, 0.3),
    "sinh": (nk.sinh, mpmath.sinh, 0.3),
    "asin": (nk.asin, mpmath.asin, 0.3),
    "acos": (nk.acos, mpmath.acos, 0.3),
    "atan": (nk.atan, mpmath.atan, 0.3),
    "atan, far": (nk.atan, mpmath.atan, 1.7),
    "asinh": (nk.asinh, mpmath.asinh, 0.3),
    "acosh": (nk.acosh, mpmath.acosh, 1.7),
    "atanh": (nk.atanh, mpmath.atanh, 0.3),
    "1 / (1 - x)": (lambda x: 1 / (1 - x), lambda x: 1 / (1 - x), 0.3),
    "x / (x + exp x)": (lambda x: x / (x + nk.exp(x)), lambda x: x / (x + mpmath.exp(x)), 0.3),
    "sqrt": (nk.sqrt, mpmath.sqrt, 0.7),
    "rsqrt": (nk.rsqrt, lambda x: 1 / mpmath.sqrt(x), 0.7),
    "log": (nk.log, mpmath.log, 0.7),
    "log1p": (nk.log1p, mpmath.log1p, 0.3),
    "erf": (nk.erf, mpmath.erf, 0.3),
    "erfc": (nk.erfc, mpmath.erfc, 0.3),
    "x ** 5": (lambda x: nk.power(x, 5.0), lambda x: x**5, 0.3),
    "x ** -1.5": (lambda x: nk.power(x, -1.5), lambda x: x ** mpmath.mpf(-1.5), 0.7),
    "2 ** x": (lambda x: nk.power(2.0, x), lambda x: mpmath.mpf(2) ** x, 0.7),
    "x ** x": (lambda x: nk.power(x, x), lambda x: x**x, 0.7),
    "sigmoid": (nk.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), 0.3),
    "softplus": (nk.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), 0.3),
    "gelu": (nk.gelu, lambda x: x * mpmath.ncdf(x), 0.3),
    "exp(sin x)": (lambda x: nk.exp(nk.sin(x)), lambda x: mpmath.exp(mpmath.sin(x)), 0.3),
    "tanh(x) x": (lambda x: nk.tanh(x) * x, lambda x: mpmath.tanh(x) * x, 0.3),
}


def known_series(function: Callable[[Any], Any], order: int = ORDER) -> list[float]:
    """Of a function of mpmath's numbers, at 0; differences of so many digits have those that are asked for."""
    with mpmath.workdps(60):
        return [float(c) for c in mpmath.taylor(function, 0, order)]


@pytest.mark.parametrize("name", KNOWN)
def test_known_series(name: str) -> None:
    """Along a direction that is not 1, which scales coefficient k by its power."""
    function, exact, at = KNOWN[name]
    found = run(nk.taylor(elementwise(function), order=ORDER), np.array(at), np.array(0.5))
    expected = known_series(lambda t: exact(mpmath.mpf(at) + t / 2))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


A, B = np.array([[0.3, -1.0], [0.7, 0.2]]), np.array([[1.1, 0.4], [-0.3, 0.6]])
V = np.array([0.5, -1.0, 0.25])


def test_products_of_matrices() -> None:
    """A(t) B(t) A(t), a cubic."""

    @nk.staged
    def product(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
        return a @ b @ a

    da, db = B - 1, A + 0.5
    found = run(nk.taylor(product, order=4), A, B, da, db)
    expected = [
        A @ B @ A,
        da @ B @ A + A @ db @ A + A @ B @ da,
        da @ db @ A + da @ B @ da + A @ db @ da,
        da @ db @ da,
        np.zeros((2, 2)),
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


def test_softmax_and_logsumexp() -> None:
    x = np.array([0.1, 0.7, -0.4])

    def logsumexp(t: Any) -> Any:
        return mpmath.log(sum(mpmath.exp(a + t * v) for a, v in zip(x, V, strict=True)))

    @nk.staged
    def of_all(x: Rep[Vector]) -> tuple[Rep[Number], Rep[Vector]]:
        return nk.logsumexp(x), nk.softmax(x)

    found = run(nk.taylor(of_all, order=ORDER), x, V)
    np.testing.assert_allclose([c[0] for c in found], known_series(logsumexp), rtol=1e-12)
    for k in range(3):
        share = known_series(lambda t, k=k: mpmath.exp(x[k] + t * V[k] - logsumexp(t)))
        np.testing.assert_allclose(
            [np.asarray(c[1])[k] for c in found], share, rtol=1e-12, atol=1e-15
        )


def test_gradients_of_coefficients_are_forward_over_reverse() -> None:
    """∂c₁/∂x = H v, and 2 ∂c₂/∂x = ∂(H v)/∂x · v; the series of a gradient has them, too."""

    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Number]:
        return nk.exp(nk.sin(x)).sum() * nk.tanh(x[0] * x[2])

    def coefficient(k: int) -> Any:
        def of(x: Rep[Vector], v: Rep[Vector]) -> Rep[Number]:
            return nk.taylor(of=f, order=3, wrt=0)(x, v)[k]

        return nk.staged(of)

    x = np.array([0.3, -0.2, 0.9])
    product = nk.hvp(of=f)
    second = nk.jvp(product, wrt=0)(x, V, V)[1]
    slopes = [run(nk.gradient(of=coefficient(k), wrt=0), x, V) for k in range(4)]
    np.testing.assert_allclose(slopes[1], product(x, V), rtol=1e-11)
    np.testing.assert_allclose(slopes[2], np.asarray(second) / 2, rtol=1e-11)
    series = run(nk.taylor(nk.gradient(of=f, wrt=0), order=3), x, V)
    np.testing.assert_allclose(slopes, series, rtol=1e-10, atol=1e-12)


def test_in_loops_and_batches() -> None:
    """Taylor's method for y′ = y², of order 8: y = 1 / (1 − t), so that at 0.5 it is 2."""
    order, steps = 8, 10

    @nk.staged
    def by_picard(y: Rep[Number]) -> Rep[Number]:
        return y * y

    def coefficients(y: Rep[Number]) -> list[Rep[Number]]:
        """cₖ₊₁ = (c²)ₖ / (k + 1), each from the series of y² along what is known."""
        found = [y, by_picard(y)]
        for k in range(1, order):
            terms = sum((found[i] * found[k - i] for i in range(1, k + 1)), found[0] * found[k])
            found.append(terms / (k + 1))
        return found

    @nk.staged
    def step(y: Rep[Number], h: Rep[Number]) -> Rep[Number]:
        return sum((c * nk.power(h, float(k)) for k, c in enumerate(coefficients(y))), y * 0.0)

    @nk.staged
    def along(t: Rep[Number]) -> Rep[Number]:
        return nk.fori(0, steps, lambda _, y: step(y, t / steps), nk.f64(1.0))

    series = run(nk.taylor(along, order=3), np.array(0.5), np.array(1.0))
    np.testing.assert_allclose(series, [2, 4, 8, 16], rtol=1e-5)
    points, ones = np.array([0.1, 0.3, 0.5]), np.ones(3)
    batch = run(nk.vmap(nk.taylor(along, order=2), in_axes=(0, 0)), points, ones)
    for k, one in enumerate(batch):
        np.testing.assert_allclose(one, (1 - points) ** -(k + 1.0), rtol=1e-6)


def test_recursion_and_loops_of_unknown_length() -> None:
    """x⁶ by calls and by `while_loop`: a series of binomials."""

    @nk.staged
    def power(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return nk.cond(n == 0, lambda: x * 0 + 1, lambda: x * power(x, n - 1))

    @nk.staged
    def loop(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        start = nk.const(i64(0)), x * 0 + 1
        return nk.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), start)[1]

    expected = [math.comb(6, k) * 2.0 ** (6 - k) for k in range(ORDER + 1)]
    for f in (power, loop):
        found = run(nk.taylor(f, order=ORDER, wrt=0), np.array(2.0), np.array(6), np.array(1.0))
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("wrt", [(0,), (0, 1)])
def test_functions_with_rules_of_their_own(kind: str, wrt: tuple[int, ...]) -> None:
    """Their series are of the rule, which is told from the derivative by a factor of 2 that it has."""

    @nk.staged
    def ruled(x: Rep[Number], y: Rep[Number]) -> Rep[Number]:
        return nk.sin(x) * y

    if kind == "jvp":

        def push(x: Rep[Number], y: Rep[Number], dx: Rep[Number], dy: Rep[Number]) -> Rep[Number]:
            return 2.0 * nk.cos(x) * y * dx + nk.sin(x) * dy

        ruled.defjvp(push)
    else:
        ruled.defvjp(lambda x, y, seed: (2.0 * nk.cos(x) * y * seed, nk.sin(x) * seed))

    @nk.staged
    def through_calls(x: Rep[Number], y: Rep[Number]) -> Rep[Number]:
        return nk.tanh(ruled(x * x, y)) + ruled(y, x)

    arguments = np.array(0.3), np.array(0.7)
    directions = [np.array(1.1), np.array(-0.5)][: len(wrt)]
    for f in (ruled, through_calls):
        found = run(nk.taylor(f, order=4, wrt=wrt), *arguments, *directions)
        expected = nested(f, wrt, 4, arguments, directions)
        np.testing.assert_allclose(found, [np.ravel(one)[0] for one in expected], rtol=1e-12)


def test_order_zero_is_the_value_and_order_one_the_tangent() -> None:
    f = elementwise(lambda x: nk.exp(x) * x)
    x, v = np.array(0.4), np.array(-2.0)
    (value,) = nk.taylor(f, order=0)(x, v)
    assert float(value) == float(f(x))
    assert [*map(float, nk.taylor(f, order=1)(x, v))] == [*map(float, nk.jvp(f)(x, v))]


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x: nk.power(x, 3.0), 0.0, (0, 0, 0, 1)),
        (lambda x: nk.power(x, 0.0), 0.0, (1, 0, 0, 0)),
        (lambda x: x * x, 0.0, (0, 0, 1, 0)),
        (nk.relu, 0.0, (0, 0, 0, 0)),
        (nk.relu, 2.0, (2, 1, 0, 0)),
        (lambda x: nk.relu(x) * nk.relu(x), 2.0, (4, 4, 1, 0)),
        (nk.abs, -2.0, (2, -1, 0, 0)),
        (lambda x: nk.maximum(x, x * x), 0.5, (0.5, 1, 0, 0)),
        (lambda x: nk.maximum(x, x * x), 1.0, (1, 1.5, 0.5, 0)),
        (lambda x: nk.select(x > 0, nk.sqrt(x), 0.0), 0.0, (0, 0, 0, 0)),
        (nk.sign, 0.3, (1, 0, 0, 0)),
        (lambda x: nk.stop_gradient(x) * x, 3.0, (9, 3, 0, 0)),
    ],
)
def test_kinks_and_zeros(function: Any, at: float, expected: Any) -> None:
    """What chooses does so by the value: at a tie it takes the share that a tangent has."""
    found = run(nk.taylor(elementwise(function), order=3), np.array(at), np.array(1.0))
    np.testing.assert_array_equal(found, expected)


def test_infinite_slopes() -> None:
    """√x at 0: as a tangent has it, and along 0 no influence."""
    series = nk.taylor(elementwise(nk.sqrt), order=3)
    assert float(series(f64(0.0), f64(1.0))[1]) == math.inf
    assert [*map(float, series(f64(0.0), f64(0.0)))] == [0, 0, 0, 0]


@pytest.mark.parametrize(("dtype", "rounding"), [(f16, 2e-2), (bf16, 1e-1), (f32, 1e-5)])
def test_other_elements(dtype: Any, rounding: float) -> None:
    def in_type(dtype: Any) -> Any:
        def f(x: Any) -> Any:
            return nk.exp(nk.sin(x)) / (x + 2.0)

        return nk.fn(Tensor1D[dtype])(f)

    x = np.array([0.25, -0.5, 1.5])
    found = nk.taylor(in_type(dtype), order=4)(
        Tensor1D(x.tolist(), dtype), Tensor1D([1.0] * 3, dtype)
    )
    expected = nk.taylor(in_type(f64), order=4)(x, x * 0 + 1)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), other, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("shape", [(2, 1, 3, 2, 1), (2, 0, 3, 1, 1)])
def test_ranks_and_extents(shape: tuple[int, ...]) -> None:
    @nk.staged
    def f(x: Rep[Tensor5D[f64]]) -> Rep[Tensor5D[f64]]:
        return nk.softmax(nk.tanh(x) * x.sum(1).expand_dims(1))

    x = np.random.default_rng(1).normal(size=shape)
    found = run(nk.taylor(f, order=3), x, x * 0.5)
    assert all(np.shape(one) == shape for one in found)


def test_integers_among_results_have_zeros() -> None:
    @nk.staged
    def f(x: Rep[Vector]) -> tuple[Rep[Vector], Rep[Tensor1D[i32]]]:
        return x * x, nk.arange(3, i32) + 1

    found = run(nk.taylor(f, order=2), V, V)
    np.testing.assert_array_equal(found[0][1], [1, 2, 3])
    for k in (1, 2):
        np.testing.assert_array_equal(found[k][1], [0, 0, 0])


WEIGHTS = np.random.default_rng(0).normal(size=(3, 3))


@nk.staged
def perceptron(x: Rep[Vector]) -> Rep[Vector]:
    w = nk.const(Tensor2D(WEIGHTS, f64))
    return w @ nk.tanh(w @ nk.tanh(w @ x))


GROWING: dict[str, tuple[Any, Any]] = {
    "tanh(x) x": (elementwise(lambda x: nk.tanh(x) * x), f64(0.3)),
    "exp(sin x)": (elementwise(lambda x: nk.exp(nk.sin(x))), f64(0.3)),
    "perceptron": (perceptron, np.ones(3)),
}


@pytest.mark.parametrize("name", GROWING)
def test_instructions_grow_as_the_square_of_the_order(name: str) -> None:
    """Third differences vanish from where the last symbolic zero is gone, while tangents of tangents multiply."""
    f, x = GROWING[name]
    counts = [instructions(nk.taylor(f, order=order), (x, x)) for order in range(4, 14)]
    second = np.diff(counts, 2)
    assert second.max() <= 1.5 * max(second[:4].max(), 1)
    before, sizes = f, list[int]()
    for _ in range(4):
        before = _tangent(before, (0,), 1, ("x", "v"))
        sizes.append(instructions(before, (x, x)))
    assert all(after > 1.4 * earlier for earlier, after in pairwise(sizes))


@pytest.mark.parametrize("order", [-1, 1.0, "2", True, None])
def test_orders_that_are_none(order: Any) -> None:
    with pytest.raises(DifferentiationError, match=r"order=.* is no order of a Taylor series"):
        nk.taylor(perceptron, order=order)


def test_directions_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"the tangent dx of .* is f64\[3\], like x, not f64\[2\]"):
        nk.taylor(perceptron, order=2)(np.ones(3), np.ones(2))


def test_parameters_without_floats() -> None:
    @nk.staged
    def f(x: Rep[Number], n: Rep[Count]) -> Rep[Number]:
        return x * n.cast(f64)

    with pytest.raises(DifferentiationError, match="parameter n of f is a Tensor0D"):
        nk.taylor(f, order=2)
    with pytest.raises(DifferentiationError, match="wrt=2 is out of range"):
        nk.taylor(f, order=2, wrt=2)


def test_a_coefficient_that_no_rule_gives() -> None:
    """lgamma has two derivatives: the third would be of trigamma."""
    f = elementwise(nk.lgamma)
    assert len(nk.taylor(f, order=2)(f64(2.5), f64(1.0))) == 3
    with pytest.raises(DifferentiationError, match="trigamma cannot be differentiated"):
        nk.taylor(f, order=3)(f64(2.5), f64(1.0))
