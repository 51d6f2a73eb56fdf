"""Derivatives of derivatives of loops of unknown length and recursions, in all nestings, against closed forms.

f(x, n) = s², where s = Σ xⁿ⁺¹ and the powers are made in as many iterations or calls as are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f64, i64
from nnkit.core.types import Array

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Row = Tensor1D[f64]
Number = Scalar[f64]
Count = Scalar[i64]

X, V, W, Z = np.array([[0.9, -0.5, 0.8], [0.2, 0.7, -0.4], [1.0, -0.3, 0.6], [-0.4, 0.5, 0.3]])
N: Final = i64(2)


@nk.staged
def by_while(x: Rep[Row], n: Rep[Count]) -> Rep[Number]:
    y, _ = nk.while_loop(lambda c: c[1] > 0, lambda c: (c[0] * x, c[1] - 1), (x, n))
    s = y.sum()
    return s * s


@nk.staged
def by_fori(x: Rep[Row], n: Rep[Count]) -> Rep[Number]:
    s = nk.fori(0, n, lambda i, y: y * x, x).sum()
    return s * s


@nk.staged
def power(x: Rep[Row], n: Rep[Count]) -> Rep[Row]:
    return nk.cond(n > 0, lambda: power(x, n - 1) * x, lambda: x)


@nk.staged
def by_calls(x: Rep[Row], n: Rep[Count]) -> Rep[Number]:
    s = power(x, n).sum()
    return s * s


@nk.staged
def by_schedule(x: Rep[Row], n: Rep[Count]) -> Rep[Number]:
    s = nk.fori(0, n, lambda i, y: y * x, x, checkpoint=nk.every_sqrt()).sum()
    return s * s


def a(*vs: Array) -> Any:
    """The second derivative of s."""
    return np.sum(6 * X * np.prod(vs, axis=0))


def b(v: Array) -> Any:
    """The first one."""
    return np.sum(3 * X**2 * v)


S: Final = np.sum(X**3)
SECOND: Final = 2 * 3 * X**2 * b(V) + 2 * S * 6 * X * V
"""D²f[V], a gradient."""
THIRD: Final = 2 * (6 * X * V * b(W) + 6 * X * W * b(V) + a(V, W) * 3 * X**2) + 12 * S * V * W
"""D³f[V, W]."""
FOURTH: Final = (
    12 * (V * Z * b(W) + W * Z * b(V) + V * W * b(Z))
    + 12 * X * (V * a(W, Z) + W * a(V, Z) + Z * a(V, W))
    + 2 * 6 * np.sum(V * W * Z) * 3 * X**2
)
"""D⁴f[V, W, Z]."""


def third_by(hvp: Any) -> Any:
    """⟨w, D²f[v]⟩, of x, v, w and n."""

    @nk.staged
    def weighted(x: Rep[Row], v: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        return (hvp(x, n, v) * w).sum()

    return weighted


def hvp_of(f: Any) -> Any:
    return nk.hvp(of=f, wrt=0)


def jvp_of_a_gradient(f: Any) -> Any:
    return nk.jvp(of=nk.gradient(of=f, wrt=0), wrt=0)


def linearized(f: Any) -> tuple[Array, Array]:
    value, df = nk.linearize(hvp_of(f), wrt=0)(X, N, V)
    np.testing.assert_allclose(value, SECOND, rtol=1e-12)
    return np.array(df(W)), np.array(df.transpose(W))


def split_apart(f: Any) -> Array:
    halves = nk.split(third_by(hvp_of(f)), wrt=0, save="none")
    _, kept = halves.forward(X, V, W, N)
    return np.array(halves.backward(kept, f64(1.0)))


def by_series(f: Any) -> Array:
    """The second coefficient of ⟨w, ∇f(x + t·v)⟩ is ½ D³f[w, v, v]."""
    slope = nk.gradient(of=f, wrt=0)

    @nk.staged
    def weighted(x: Rep[Row], w: Rep[Row], n: Rep[Count]) -> Rep[Number]:
        return (slope(x, n) * w).sum()

    series = nk.taylor(of=weighted, order=2, wrt=0)

    @nk.staged
    def last(x: Rep[Row], w: Rep[Row], n: Rep[Count], v: Rep[Row]) -> Rep[Number]:
        return series(x, w, n, v)[2]

    return 2 * np.array(nk.gradient(of=last, wrt=1)(X, W, N, V)) / THIRD_VV


THIRD_VV: Final = 2 * (12 * X * V * b(V) + a(V, V) * 3 * X**2) + 12 * S * V * V
"""D³f[V, V]."""

NESTINGS: Final[dict[str, tuple[Callable[[Any], Any], Any]]] = {
    "reverse of hvp": (
        lambda f: nk.gradient(of=third_by(hvp_of(f)), wrt=0)(X, V, W, N), THIRD,
    ),
    "reverse of hvp by its direction": (
        lambda f: nk.gradient(of=third_by(hvp_of(f)), wrt=1)(X, W, V, N), SECOND,
    ),
    "jvp of hvp": (lambda f: nk.jvp(of=hvp_of(f), wrt=0)(X, N, V, W)[1], THIRD),
    "vjp of hvp": (lambda f: nk.vjp(of=hvp_of(f), wrt=0)(X, N, V, W), THIRD),
    "jacobian of hvp": (lambda f: nk.jacobian(of=hvp_of(f), wrt=0)(X, N, V).numpy() @ W, THIRD),
    "hessian of hvp": (
        lambda f: nk.hessian(of=third_by(hvp_of(f)), wrt=0)(X, V, W, N).numpy() @ Z, FOURTH,
    ),
    "hvp of hvp": (
        lambda f: nk.hvp(of=third_by(hvp_of(f)), wrt=0)(X, V, W, N, Z), FOURTH,
    ),
    "batch": (
        lambda f: nk.vmap(nk.gradient(of=third_by(hvp_of(f)), wrt=0), in_axes=(None, 0, 0, None))(
            X, np.stack([V, W]), np.stack([W, V]), N
        ), np.stack([THIRD, THIRD]),
    ),
    "series of a gradient": (by_series, np.ones(3)),
    "linear map": (linearized, (THIRD, THIRD)),
    "halves": (split_apart, THIRD),
}  # fmt: skip

CASES = [
    *((by_while, name) for name in NESTINGS),
    *((f, name) for f in (by_fori, by_calls) for name in ("reverse of hvp", "hvp of hvp")),
    (by_schedule, "reverse of hvp"),
]


@pytest.mark.parametrize(
    ("f", "name"), CASES, ids=lambda x: x if isinstance(x, str) else x.__name__
)
def test_derivatives_of_derivatives_of_loops_and_recursion(f: Any, name: str) -> None:
    found, expected = NESTINGS[name]
    np.testing.assert_allclose(np.asarray(found(f)), expected, rtol=1e-10)
