"""Gradients as a user asks for them: every form of `wrt`, results in order, nesting, and what the IR then has.

Counts are of instructions in `f.ir(..., stage="optimizable")`: gradients have bodies there, calls are still calls.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError,
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    Tensor2D,
    f32,
    f64,
    fn,
    gradient,
    gradient_dynamic,
    i32,
    spec,
    staged,
    value_and_gradient,
)  # fmt: skip

from .modes import derivatives

F1, F2 = Tensor1D[f64], Tensor2D[f64]
random = np.random.default_rng(3)


class Params(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


class State(Struct):
    step: Field[Scalar[i32]]
    inner: Field[Params]


def values(result: Any) -> Any:
    return np.asarray(result).tolist()


def close(got: Any, want: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(got), want, tolerance, tolerance)


@staged
def f(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:
    return x @ w + b


@staged
def g(x: Rep[F2], w: Rep[F2], b: Rep[F2]) -> Rep[F2]:
    return nk.tanh(f[x, w, b])


X, W, B = random.normal(size=(1, 4)), random.normal(size=(4, 3)), random.normal(size=(1, 3))
BATCH = (spec((5, 4), f64), spec((4, 3), f64), spec((1, 3), f64))
SEED = random.normal(size=(1, 3))
Y = np.tanh(X @ W + B)
SHAPES = (spec((1, 4), f64), spec((4, 3), f64), spec((1, 3), f64))


def expected(seed: Any) -> dict[str, Any]:
    inner = seed * (1 - Y**2)
    return {"x": inner @ W.T, "w": X.T @ inner, "b": inner}


ONES, SEEDED = expected(np.ones((1, 3))), expected(SEED)


@staged
def loss(p: Rep[Params], x: Rep[F2]) -> Rep[Scalar[f64]]:
    return nk.square(x @ p[Params.w] + p[Params.b]).sum()


P = Params(W, B[0])


def loss_gradients() -> tuple[Any, Any, Any]:
    inner = 2 * (X @ W + B)
    return X.T @ inner, inner[0], inner @ W.T


@staged
def three(x: Rep[Scalar[f64]], y: Rep[Scalar[f64]]) -> Any:
    return x * y, x + y * 3.0, nk.sin(x)


# ------------------------------------------------------------------------------------------- forms of wrt


def test_the_program_of_the_slides() -> None:
    dg = gradient(of=g, wrt=(1, 2), seedable=True, keeping=(0,))
    dw, db, y = dg[X, W, B, SEED]
    close(dw, SEEDED["w"])
    close(db, SEEDED["b"])
    close(y, Y)
    text = dg.ir(*SHAPES, SHAPES[2])
    assert "[gradient @g wrt 1, 2 keeping 0 seedable]" in text


def test_of_several_results_the_text_names_one() -> None:
    scalar = nk.spec((), f64)
    for from_ in (0, 1, 2):
        text = gradient(of=three, wrt=0, from_=from_).ir(scalar, scalar)
        assert f"[gradient @three from {from_} wrt 0]" in text
    assert "[gradient @three from 0 wrt 0]" in gradient(of=three, wrt=0).ir(scalar, scalar)


def test_an_index_gives_one_derivative_and_a_tuple_a_tuple() -> None:
    for wrt, name in enumerate("xwb"):
        close(gradient(of=g, wrt=wrt)(X, W, B), ONES[name])
    (dw,) = gradient(of=g, wrt=(1,))(X, W, B)
    close(dw, ONES["w"])
    dw, y = gradient(of=g, wrt=1, keeping=(0,))(X, W, B)
    close(dw, ONES["w"])
    close(y, Y)
    dx, dw, db = gradient(of=g, wrt=(0, 1, 2))(X, W, B)
    close(dx, ONES["x"])
    close(db, ONES["b"])


def test_names_of_parameters_are_indices() -> None:
    db, dx = gradient(of=g, wrt=("b", "x"))(X, W, B)
    close(db, ONES["b"])
    close(dx, ONES["x"])
    close(gradient(of=g, wrt="w")(X, W, B), ONES["w"])
    assert (g or None) is g  # a function is true, as Python's are
    with pytest.raises(DifferentiationError, match=r"g has no parameter 'ww'.* x, w, b") as raised:
        gradient(of=g, wrt="ww")
    assert "did you mean 'w'?" in str(raised.value.__notes__)


def test_results_are_in_the_order_of_wrt() -> None:
    db, dx, dw = gradient(of=g, wrt=(2, 0, 1))(X, W, B)
    for got, name in ((db, "b"), (dx, "x"), (dw, "w")):
        close(got, ONES[name])
    db, dw = gradient(of=g, wrt=lambda x, w, b: (b, w))(X, W, B)
    close(db, ONES["b"])
    close(dw, ONES["w"])
    close(gradient(of=g, wrt=lambda x, w, b: w)(X, W, B), ONES["w"])
    (again,) = gradient(of=g, wrt=lambda x, w, b: (w,))(X, W, B)
    close(again, ONES["w"])
    listed = gradient(of=g, wrt=lambda x, w, b: [b, x])(X, W, B)
    assert len(listed) == 2


def test_structs_and_their_fields() -> None:
    dw, db, dx = loss_gradients()
    whole = gradient(of=loss, wrt=0)(P, X)
    assert type(whole) is Params
    close(whole.w, dw)
    close(whole.b, db)
    close(gradient(of=loss, wrt=Params.w)(P, X), dw)
    close(gradient(of=loss, wrt=lambda p, x: p.b)(P, X), db)
    got = gradient(of=loss, wrt=lambda p, x: (x, p.b, p), keeping=(0,))(P, X)
    close(got[0], dx)
    close(got[1], db)
    close(got[2].w, dw)
    close(got[3], np.square(X @ W + B).sum())
    value, (dp, dx2) = value_and_gradient(of=loss, wrt=(0, 1))(P, X)
    close(value, np.square(X @ W + B).sum())
    close(dp.b, db)
    close(dx2, dx)
    value, only = value_and_gradient(of=loss, wrt=Params.b)(P, X)
    close(only, db)
    value, (db2,) = value_and_gradient(of=loss, wrt=lambda p, x: (p.b,))(P, X)
    close(db2, db)
    value, (one,) = value_and_gradient(of=loss, wrt=(1,))(P, X)
    close(one, dx)


def test_integers_inside_a_struct_have_zero_derivative() -> None:
    @staged
    def advance(s: Rep[State], x: Rep[F2]) -> Rep[Scalar[f64]]:
        return loss(s[State.inner], x) * s[State.step].cast(f64)

    ds = gradient(of=advance, wrt=0)(State(np.int32(3), P), X)
    assert type(ds) is State and ds.step.dtype is i32 and int(ds.step) == 0
    close(ds.inner.w, 3 * loss_gradients()[0])
    close(
        gradient(of=advance, wrt=lambda s, x: s.inner.b)(State(np.int32(2), P), X),
        2 * loss_gradients()[1],
    )


def test_from_and_keeping_of_several_results() -> None:
    x, y = np.array(0.5), np.array(2.0)
    assert [float(d) for d in gradient(of=three, wrt=(0, 1))(x, y)] == [2.0, 0.5]
    assert [float(d) for d in gradient(of=three, wrt=(0, 1), from_=1)(x, y)] == [1.0, 3.0]
    d, kept2, kept0 = gradient(of=three, wrt=0, from_=2, keeping=(2, 0))(x, y)
    close(d, math.cos(0.5))
    close(kept2, math.sin(0.5))
    assert float(kept0) == 1.0
    d, sine = gradient_dynamic(of=three, wrt=[1], from_=1, seedable=True, keeping=(2,))(
        x, y, np.array(10.0)
    )
    assert float(d) == 30.0
    close(sine, math.sin(0.5))
    (alone,) = gradient_dynamic(of=three, wrt=[1])(x, y)
    assert float(alone) == 0.5


def test_a_seed_scales_the_gradient_exactly() -> None:
    seeded = gradient(of=g, wrt=1, seedable=True)
    plain = np.asarray(gradient(of=g, wrt=1)(X, W, B))
    assert values(seeded(X, W, B, np.full((1, 3), 1024.0))) == (plain * 1024).tolist()
    scalar = gradient(of=fn(Tensor1D[f64])(lambda x: nk.square(x).sum()), wrt=0, seedable=True)
    assert values(scalar(np.ones(2), np.array(3.0))) == [6.0, 6.0]
    promised = gradient(of=loss, wrt=1, seedable=True)
    close(promised(P, X, 2), 2 * loss_gradients()[2])  # a number takes the type of the result


def test_unused_parameters_have_zero_derivatives_of_their_type() -> None:
    h = staged(lambda x, u: x * 2.0)
    dx, du = gradient(of=h, wrt=(0, 1))(np.ones(2), np.ones((2, 3), np.float32))
    assert values(dx) == [2.0, 2.0] and values(du) == [[0.0] * 3] * 2 and du.dtype is f32
    constant = staged(lambda x: nk.const(np.ones(2)))
    assert values(gradient(of=constant, wrt=0)(np.ones(3))) == [0.0] * 3


def test_value_and_gradient_returns_both() -> None:
    value, d = value_and_gradient(of=staged(lambda x: nk.exp(x).sum()), wrt=0)(np.zeros(2))
    assert float(value) == 2.0 and values(d) == [1.0, 1.0]


# ------------------------------------------------------------------------------------------------- nesting


def test_a_gradient_of_a_polynomial() -> None:
    polynomial = fn(Scalar[f64])(lambda x: 4.0 * x * x + x + 4.0)
    assert float(gradient(of=polynomial, wrt=0)(0.3)) == pytest.approx(3.4, abs=1e-12)
    h = fn(Scalar[f64], Scalar[f64])(lambda a, b: a * a * b)
    assert (float(gradient(of=h, wrt=0)(2.0, 3.0)), float(gradient(of=h, wrt=1)(2.0, 3.0))) == (
        12.0,
        4.0,
    )


def test_gradients_of_gradients() -> None:
    d: Any = fn(Scalar[f64])(nk.sin)
    for _ in range(3):
        d = gradient(of=d, wrt=0)
    assert float(d(1.0)) == pytest.approx(-math.cos(1.0), abs=1e-12)

    cubes = fn(F1)(lambda x: (x * x * x).sum())
    hessian_times = fn(F1, F1)(lambda x, v: gradient(of=cubes, wrt=0)(x) * v)
    product = gradient(of=hessian_times, wrt=0)
    close(product(np.array([1.0, 2.0, 3.0]), np.ones(3)), [6.0, 12.0, 18.0])


def test_a_gradient_inside_another_staged_function() -> None:
    dloss = gradient(of=loss, wrt=0)

    @staged
    def train(p: Rep[Params], x: Rep[F2], rate: Rep[Scalar[f64]]) -> Rep[Params]:
        d = dloss(p, x)
        p = p.set(Params.w, p[Params.w] - d[Params.w] * rate)
        return p.set(Params.b, p[Params.b] - d[Params.b] * rate)

    dw, db, _ = loss_gradients()
    trained = train(P, X, 0.1)
    close(trained.w, W - 0.1 * dw)
    close(trained.b, B[0] - 0.1 * db)
    # how the loss after a step changes with the step size
    after = staged(lambda p, x, rate: loss(train(p, x, rate), x))
    slope = float(gradient(of=after, wrt=2)(P, X, np.array(0.01)))
    h = 1e-6
    above, below = (float(after(P, X, np.array(0.01 + s))) for s in (h, -h))
    assert slope == pytest.approx((above - below) / (2 * h), rel=1e-6)


def test_gradients_of_gradients_through_structs_seeds_and_kept_results() -> None:
    first = gradient(of=three, wrt=(0, 1), from_=0, seedable=True, keeping=(2,))
    second = gradient(of=first, wrt=(0, 2), from_=1)  # d(s·x) by x and by s
    dx, ds = second(np.array(0.5), np.array(2.0), np.array(7.0))
    assert (float(dx), float(ds)) == (7.0, 0.5)
    kept = gradient(of=first, wrt=0, from_=2)
    close(kept(np.array(0.5), np.array(2.0), np.array(7.0)), math.cos(0.5))


def test_a_tree_of_calls_differentiates_each_function_once() -> None:
    leaf = fn(Scalar[f64])(lambda x: nk.sin(x) * x)
    top = staged(lambda x: leaf(x) + leaf(x * 2.0) + leaf(leaf(x)))
    d = gradient(of=top, wrt=0)

    def plain(x: float) -> float:
        def leaf(x: float) -> float:
            return math.sin(x) * x

        return leaf(x) + leaf(2 * x) + leaf(leaf(x))

    assert float(d(np.array(0.7))) == pytest.approx(
        (plain(0.7 + 1e-6) - plain(0.7 - 1e-6)) / 2e-6, rel=1e-7
    )
    text = d.ir(spec((), f64), stage="optimizable")
    assert text.count("cos %") == 1  # one backward function for the four calls
    assert text.count("sin %") <= 2  # and one forward function, beside the primal


def test_several_gradients_of_one_function_stand_in_one_module() -> None:
    h = fn(Scalar[f64], Scalar[f64])(lambda a, b: a * a * b)
    d0, d1 = gradient(of=h, wrt=0), gradient(of=h, wrt=1)
    both = staged(lambda a, b: (d0(a, b), d1(a, b)))
    assert [float(d) for d in both(np.array(2.0), np.array(3.0))] == [12.0, 4.0]
    text = both.ir(spec((), f64), spec((), f64))
    assert text.count("[gradient @lambda wrt") == 2 and text.count("func @lambda:") == 1


def test_only_what_a_rule_needs_is_saved() -> None:
    for body, saved in ((lambda x: (x + x).sum(), False), (lambda x: (x * x).sum(), True)):
        leaf = fn(F1)(body)
        top = staged(lambda x, leaf=leaf: leaf(x) + leaf(x * 2.0))
        text = optimizable(gradient(of=top, wrt=0), spec((4,), f64))
        backward = body_of(text, "lambda_bwd").split("\n")[0]
        assert (
            "<4 x f64>" in backward.split("->")[0]
        ) == saved  # its parameters: residuals and the seed


def test_calls_ten_deep_differentiate_in_linear_time() -> None:
    sizes = []
    for depth in (5, 10):
        h: Any = fn(Scalar[f64])(lambda x: nk.tanh(x) * x)
        for _ in range(depth):
            h = fn(Scalar[f64])(lambda x, inner=h: inner(x) + inner(x * 0.5))
        sizes.append(gradient(of=h, wrt=0).ir(spec((), f64), stage="optimizable").count("\n"))
    assert sizes[1] < 2.2 * sizes[0]


# ----------------------------------------------------------------------------------- what the gradient computes


def optimizable(function: Any, *arguments: Any) -> str:
    return function.ir(*arguments, stage="optimizable")


def body_of(text: str, name: str) -> str:
    """The text of one function."""
    start = text.index(f"func @{name}:")
    return text[start : text.index("\n}", start)]


def test_only_what_is_asked_for_is_computed() -> None:
    dw = body_of(optimizable(gradient(of=f, wrt=1), *BATCH), "f_grad")
    assert dw.count("dot %") <= 1  # xᵀ · seed; no forward product, nothing for x
    assert "multiply" not in dw and "add" not in dw
    db = body_of(optimizable(gradient(of=f, wrt=2), *BATCH), "f_grad")
    assert "dot %" not in db
    dx, dw2 = (gradient(of=g, wrt=k).ir(*BATCH, stage="optimized") for k in (0, 1))
    assert dx.count("dot %") == dw2.count("dot %") == 2


def test_the_forward_pass_runs_once() -> None:
    dg = gradient(of=g, wrt=(0, 1, 2), seedable=True, keeping=(0,))
    text = dg.ir(*BATCH, spec((5, 3), f64), stage="optimized")
    assert text.count("dot %") == 3 and text.count("tanh %") == 1
    both = value_and_gradient(of=loss, wrt=0)
    assert both.ir(P, BATCH[0], stage="optimized").count("dot %") == 2


def test_no_transposed_copy_of_a_matrix_is_needed_by_its_product() -> None:
    batched = staged(lambda x, y: x @ y)
    text = gradient(of=batched, wrt=(0, 1)).ir(
        spec((5, 2, 3), f64), spec((5, 3, 4), f64), stage="optimized"
    )
    assert text.count("dot %") == 2


def test_a_gradient_by_a_bias_has_its_shape() -> None:
    h = staged(lambda x, b: nk.tanh(x + b))
    d = gradient(of=h, wrt=1)(np.zeros((6, 3)), np.zeros(3))
    assert values(d) == [6.0] * 3


def test_a_chain_of_products_does_not_blow_up() -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(1000):
            y = x * y
        return y

    d = gradient(of=fn(Scalar[f64])(chain), wrt=0)
    text = d.ir(spec((), f64), stage="optimized")
    assert text.count(" = ") <= 5 * 1000
    close(d(1.0), 1001.0)


def test_strong_zeros_of_select() -> None:
    root = staged(lambda x: nk.select(x > 0.0, nk.sqrt(x), 0.0))
    assert values(gradient(of=root, wrt=0)(np.array([0.0, 4.0]))) == [0.0, 0.25]
    sinc = staged(lambda x: nk.select(x == 0.0, 1.0, nk.sin(x) / x))
    assert values(gradient(of=sinc, wrt=0)(np.zeros(1))) == [0.0]
    logs = staged(lambda x: nk.select(x > 0.0, nk.log(x), x))
    assert values(gradient(of=logs, wrt=0)(np.array([0.0, -1.0, 2.0]))) == [1.0, 1.0, 0.5]


STRONG: dict[str, tuple[Any, list[float], list[float]]] = {
    "relu of a product": (lambda x: nk.relu(x.prod()), [-1e200, 1e200, 1e200], [0, 0, 0]),
    "choice against a product": (
        lambda x: nk.select(x.sum() > 1e300, x.prod(), 0.0), [-1e200, 1e200, 1e200], [0, 0, 0],
    ),
    "products cut off": (
        lambda x: (x.reshape(1, 3) * np.ones((2, 1))).prod(1)[:0].sum(), [-1e200, 1e200, 1e200], [0, 0, 0],
    ),
    "broadcast to nothing": (lambda x: nk.broadcast_to(nk.sqrt(x), (0, 3)).sum(), [1, 4, 0], [0, 0, 0]),
    "power of zero": (lambda x: nk.power(nk.sqrt(x), x * 0.0).sum(), [1, 4, 0], [0, 0, 0]),
    "factor of zero": (lambda x: (nk.sqrt(x) * np.array([1.0, 0.0])).sum(), [4, 0], [0.25, 0]),
    "root of a choice": (lambda x: (x * nk.sqrt(nk.relu(x * 2.0).sum())).sum(), [-1], [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", STRONG)
def test_strong_zeros_in_reverse_and_forward(name: str) -> None:
    """Evaluated and compiled; all second derivatives are finite, and those of what does not move are 0."""
    function, at, expected = STRONG[name]
    x = np.array(at, np.float64)
    for mode, found in derivatives(function, x).items():
        order = len(mode.split()[-1])
        if mode.endswith("r") and order == 1:
            np.testing.assert_array_equal(found, expected, err_msg=mode)
        elif mode.endswith("f") and order == 1:
            np.testing.assert_array_equal(found, sum(expected), err_msg=mode)
        else:
            assert np.isfinite(found).all(), mode


KINKS: dict[str, tuple[Any, list[float], list[float]]] = {
    "relu": (nk.relu, [-1.0, 0.0, 2.0], [0, 0, 1]),
    "abs": (nk.abs, [-1.0, 0.0, 2.0], [-1, 0, 1]),
    "norm": (lambda x: nk.norm(x * 0.0) + x.sum(), [1.0, 2.0], [1, 1]),
    "zero vector": (nk.norm, [0.0, 0.0], [0, 0]),
    "max tie": (lambda x: x.max(), [2.0, 1.0, 2.0], [0.5, 0, 0.5]),
    "min tie": (lambda x: x.min(), [1.0, 1.0], [0.5, 0.5]),
    "maximum tie": (lambda x: nk.maximum(x, 1.0), [1.0, 2.0], [0.5, 1]),
    "prod with a zero": (lambda x: x.prod(), [0.0, 2.0, 3.0], [6, 0, 0]),
    "prod with two": (lambda x: x.prod(), [0.0, 0.0, 3.0], [0, 0, 0]),
    "0 ** 0": (lambda x: x**0.0, [0.0, 2.0], [0, 0]),
    "power": (lambda x: 3.0 * x**2, [-1.0, 0.0, 3.0], [-6, 0, 18]),
    "duplicates": (
        lambda x: nk.square(nk.take(x, nk.const(np.array([0, 0, 2])))).sum(),
        [1.0, 2.0, 3.0, 4.0],
        [4, 0, 6, 0],
    ),
    "floor": (lambda x: nk.floor(x) * x, [1.5], [1]),
    "logsumexp of -inf": (nk.logsumexp, [-math.inf, -math.inf], [0, 0]),
    "logsumexp with -inf": (nk.logsumexp, [-math.inf, 0.0], [0, 1]),
    "argmax": (lambda x: x * x.argmax().cast(f64), [1.0, 5.0], [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_kinks_ties_and_edges(name: str) -> None:
    function, at, want = KINKS[name]
    close(gradient(of=staged(function), wrt=0)(np.array(at)), want)


def test_large_logits_have_finite_gradients() -> None:
    logits = np.array([[1e4, -1e4, 0.0]])
    labels = np.array([1])
    d = gradient(of=staged(nk.cross_entropy), wrt=0)(logits, labels)
    close(d, [[1.0, -1.0, 0.0]])
    d = gradient(of=staged(lambda x: nk.logsumexp(x)), wrt=0)(logits)
    close(d, [[1.0, 0.0, 0.0]])


def test_weights_far_below_the_largest_are_zero() -> None:
    """In gradients of logsumexp and of log_softmax, before they are subnormal numbers."""

    @staged
    def both(x: Any) -> Any:
        return nk.logsumexp(x) - nk.log_softmax(x)[0]

    for type, least in ((np.float64, -700.0), (np.float32, -80.0)):
        x = np.array([0.0, least, np.nextafter(type(least), type(-np.inf)), -np.inf], type)
        assert both(x) == 0
        found = np.asarray(gradient(of=both, wrt=0)(x), type)
        power = 2 * math.exp(least)
        np.testing.assert_allclose(found, np.array([1, power, 0, 0], type), rtol=1e-5)


def test_power_by_its_exponent() -> None:
    d = gradient(of=staged(lambda x, y: x**y), wrt=1)
    close(
        d(np.array([2.0, 3.0, 0.0]), np.array([3.0, 2.0, 2.0])),
        [8 * math.log(2), 9 * math.log(3), 0.0],
    )


def test_random_numbers_are_the_same_in_a_gradient() -> None:
    @staged
    def dropout(x: Any, key: Any) -> Any:
        mask = nk.random.uniform(key, (64,), dtype=f64) < 0.5
        return nk.select(mask, x * x, 0.0), mask.cast(f64)

    x = np.linspace(1, 2, 64)
    key = nk.random.key(5)
    d, mask = gradient(of=dropout, wrt=0, keeping=(1,))(x, key)
    close(d, 2 * x * np.asarray(mask))
    assert 10 < np.asarray(mask).sum() < 54


# --------------------------------------------------------------------------------------------- long programs


def test_eight_gradients_of_gradients_stay_small() -> None:
    f: Any = fn(Scalar[f64])(nk.tanh)
    for _ in range(8):
        f = gradient(of=f, wrt=0)
    polynomial = np.polynomial.Polynomial([0.0, 1.0])  # in y = tanh x, whose derivative is 1 − y²
    for _ in range(8):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    x = np.array(0.7)
    assert float(f(x)) == pytest.approx(float(polynomial(math.tanh(0.7))), rel=1e-10)
    assert len(f.ir(x, stage="optimizable").splitlines()) < 8 * 120


def seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_ten_thousand_additions_stage_differentiate_and_compile() -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(10_000):
            y = y + x
        return y.sum()

    h = staged(chain)
    found: list[Any] = []
    assert seconds(lambda: found.append(h(np.ones(3)))) < 60
    assert float(found[0]) == 30_003.0
    assert seconds(lambda: found.append(gradient(of=h, wrt=0)(np.ones(3)))) < 60
    assert values(found[1]) == [10_001.0] * 3


def test_calls_hundreds_deep() -> None:
    h: Any = staged(lambda x: x + 1.0)
    for depth in range(400):
        h = staged(lambda x, inner=h: inner(x) + 1.0)
        if depth % 80 == 0:
            h.ir(spec((1,), f64))  # staged now: Python's own stack ends some 130 calls deeper
    assert values(h(np.zeros(1))) == [401.0]
    assert values(gradient(of=h, wrt=0)(np.zeros(1))) == [1.0]
