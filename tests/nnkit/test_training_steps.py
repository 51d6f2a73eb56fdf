"""Training steps: forward, backward and update in one native call, in every float type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, bf16, f16, f32, f64, i32
from nnkit.native_code import module_at


class Params(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


@nk.staged
def loss(p: Rep[Params], x: Rep[Tensor2D[f64]], y: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
    return nk.square(nk.tanh(x @ p[Params.w] + p[Params.b]) - y).mean()


@nk.staged
def step(p: Rep[Params], x: Rep[Tensor2D[f64]], y: Rep[Tensor2D[f64]]) -> Rep[Params]:
    slope = nk.gradient(of=loss, wrt=0)(p, x, y)
    for field in nk.fields(Params):
        p = p.set(field, p[field] - 0.5 * slope[field])
    return p


@nk.staged
def train(
    p: Rep[Params], x: Rep[Tensor2D[f64]], y: Rep[Tensor2D[f64]], n: Rep[Scalar[i32]]
) -> Rep[Params]:
    return nk.fori(0, n, lambda i, q: step(q, x, y), p)


def test_training_steps_are_one_call_with_parameters_in_place() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 5)), rng.normal(size=(8, 3))
    p = Params(nk.Tensor2D(rng.normal(size=(5, 3))), nk.Tensor1D(np.zeros(3)))
    w, b = np.asarray(p.w), np.asarray(p.b)
    found = p
    for _ in range(50):
        found = step(found, x, y)
        t = np.tanh(x @ w + b)
        slope = 2 * (t - y) / y.size * (1 - t * t)
        w, b = w - 0.5 * (x.T @ slope), b - 0.5 * slope.sum(axis=0)
    np.testing.assert_allclose(np.asarray(found.w), w, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(found.b), b, rtol=1e-10, atol=1e-12)
    at_once = train(p, x, y, i32(50))
    np.testing.assert_allclose(np.asarray(at_once.w), w, rtol=1e-10)
    specialization, _ = train.specialized([p, x, y, i32(50)])
    module, entry = module_at(specialization, "schedule")
    assert [*module.functions] == [entry.name], "a step calls another function"
    text = train.ir(p, x, y, i32(50), stage="schedule")
    assert "$tape" not in text and "allocate" not in text  # nothing grows with the steps


@pytest.mark.parametrize(("dtype", "ulp"), [(f16, 2.0**-10), (bf16, 2.0**-7), (f32, 2.0**-23)])
def test_gradients_of_halves_are_accumulated_in_f32(dtype: Any, ulp: float) -> None:
    """Against the gradient of the same numbers in f64: one rounding of the result, and few of what it is made of."""
    rows = 4096
    bias = nk.staged(lambda b: (nk.ones((rows, 3), dtype) * b).sum())
    slope = nk.gradient(of=bias, wrt=0)
    found = np.asarray(slope(nk.Tensor1D([1.0, 2.0, 3.0], dtype)), np.float64)
    assert found.tolist() == [4096.0] * 3
    x = np.random.default_rng(1).uniform(0.5, 1.0, (64, 5))

    def fit(of: Any) -> Any:
        short = nk.staged(lambda w, x: nk.tanh(x @ w).sum())
        return nk.gradient(of=short, wrt=0)(nk.Tensor1D([0.1] * 5, of), nk.Tensor2D(x.tolist(), of))

    wanted = np.asarray(fit(f64))
    got = np.asarray(fit(dtype), np.float64)
    assert fit(dtype).dtype is dtype
    np.testing.assert_allclose(got, wanted, rtol=4 * ulp)
