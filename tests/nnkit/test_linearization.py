"""Linear maps: the same as jvp and vjp, without running the function again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor2D, f64, i64

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Matrix = Tensor2D[f64]
Count = Scalar[i64]
rng = np.random.default_rng(8)
W, X = rng.standard_normal((4, 5)), rng.standard_normal((3, 4))


@nk.staged
def layer(w: Rep[Matrix], x: Rep[Matrix]) -> tuple[Rep[Matrix], Rep[Scalar[i64]]]:
    y = nk.fori(0, 3, lambda i, y: nk.tanh(y) * y, nk.exp(nk.tanh(x @ w)))
    return y, nk.const(i64(3))


@nk.staged
def unknown(x: Rep[Matrix], n: Rep[Count]) -> Rep[Matrix]:
    return nk.fori(0, n, lambda i, c: nk.sin(c) * x, x)


def test_a_linear_map_is_the_jvp_and_its_transpose_the_vjp() -> None:
    value, derivative = nk.linearize(layer)(W, X)
    seed = rng.standard_normal((3, 5)), i64(0)
    np.testing.assert_array_equal(value[0].numpy(), layer(W, X)[0].numpy())
    for _ in range(3):
        dw, dx = rng.standard_normal((4, 5)), rng.standard_normal((3, 4))
        moved = derivative(dw, dx)
        expected = nk.jvp(layer)(W, X, dw, dx)[1]
        np.testing.assert_allclose(moved[0].numpy(), expected[0].numpy(), rtol=1e-12)
        cts = derivative.transpose(seed)
        ends = [
            float((seed[0] * moved[0].numpy()).sum()),
            float((cts[0].numpy() * dw).sum() + (cts[1].numpy() * dx).sum()),
        ]
        np.testing.assert_allclose(*ends, rtol=1e-12)
        for one, other in zip(cts, nk.vjp(layer)(W, X, seed), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_the_function_runs_once() -> None:
    """The map holds no product x·w, nor exp and tanh of it: only what is multiplied with the tangents."""
    linear = nk.linearize(layer, wrt=1)
    _, derivative = linear(W, X)
    derivative(X)
    (pushed,) = linear._maps.values()
    (halves,) = linear._maps
    _, residuals = halves.forward(W, X)
    seed = np.zeros((3, 5)), i64(0)
    text = pushed.ir(tuple(residuals), seed, X, stage="optimized")
    assert "tanh" not in text
    assert "exp" not in text
    assert text.count(" dot ") == 1


def test_in_staged_code() -> None:
    @nk.staged
    def moved(w: Rep[Matrix], x: Rep[Matrix], vs: Rep[nk.Tensor3D[f64]]) -> Rep[nk.Tensor3D[f64]]:
        _, derivative = nk.linearize(layer, wrt=1)(w, x)

        def along(v: Any) -> Any:
            return derivative(v).unpack()[0]

        return vs.map(along)

    vs = rng.standard_normal((6, 3, 4))
    found = moved(W, X, vs).numpy()
    for v, one in zip(vs, found, strict=True):
        np.testing.assert_allclose(one, nk.jvp(layer, wrt=1)(W, X, v)[1][0].numpy(), rtol=1e-13)
    assert moved.ir(W, X, vs, stage="optimized").count(" exp ") == 1

    @nk.staged
    def pulled(w: Rep[Matrix], x: Rep[Matrix]) -> Rep[Matrix]:
        value, derivative = nk.linearize(layer, wrt=1)(w, x)
        return derivative.transpose(value)

    np.testing.assert_array_equal(
        pulled(W, X).numpy(), nk.vjp(layer, wrt=1)(W, X, layer(W, X)).numpy()
    )


def test_a_loop_whose_iterations_are_not_known() -> None:
    value, derivative = nk.linearize(unknown, wrt=0)(X, i64(4))
    np.testing.assert_array_equal(value.numpy(), unknown(X, i64(4)).numpy())
    expected = nk.jvp(unknown, wrt=0)(X, i64(4), X)[1]
    np.testing.assert_array_equal(derivative(X).numpy(), expected.numpy())
    np.testing.assert_array_equal(
        derivative.transpose(X).numpy(), nk.vjp(unknown, wrt=0)(X, i64(4), X).numpy()
    )


def test_errors() -> None:
    with pytest.raises(nk.StagingError, match="takes 2 arguments"):
        nk.linearize(layer)(W)
    with pytest.raises(nk.DifferentiationError, match="out of range"):
        nk.linearize(layer, wrt=3)
    _, derivative = nk.linearize(layer, wrt=1)(W, X)
    with pytest.raises(nk.ShapeError):
        derivative(W)


def test_loops_that_end_by_the_seed_are_no_linear_map_at_seed_zero() -> None:
    """The way back of a fixed point solves for its seed until that is solved: at seed zero, at once."""

    @nk.staged
    def settled(x: Rep[Matrix]) -> Rep[Matrix]:
        return nk.fixed_point(lambda y, x: 0.3 * nk.cos(y) + 0.2 * x, x, x)

    _, derivative = nk.linearize(settled)(X)
    dx, ct = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    moved = derivative(dx).numpy()
    np.testing.assert_allclose(moved, nk.jvp(settled)(X, dx)[1].numpy(), rtol=1e-12)
    pulled = derivative.transpose(ct)
    pulled = pulled[0] if isinstance(pulled, tuple) else pulled
    np.testing.assert_allclose((moved * ct).sum(), (dx * pulled.numpy()).sum(), rtol=1e-12)
