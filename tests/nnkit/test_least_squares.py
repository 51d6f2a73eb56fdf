"""Steps of least squares against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import nnkit as nk
from nnkit import RankError, Rep, Tensor1D, Tensor2D, f64

Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]


@nk.staged
def misses(p: Rep[Vector], x: Rep[Vector], y: Rep[Matrix]) -> Rep[Matrix]:
    """Of an exponential curve, in a matrix."""
    return (p[0] * nk.exp(p[1] * x))[None] - y


def test_a_step_solves_the_damped_normal_equations() -> None:
    rng = np.random.default_rng(0)
    x, y, p = rng.normal(size=4), rng.normal(size=(2, 4)), np.array([1.5, 0.5])
    step = nk.optim.gauss_newton(misses)
    for damping in (0.0, 0.3):
        found, residuals = step(Tensor1D(p), f64(damping), x, y)
        r = p[0] * np.exp(p[1] * x) - y
        row = np.stack([np.exp(p[1] * x), p[0] * x * np.exp(p[1] * x)], axis=1)
        j = np.concatenate([row, row])
        wanted = p - np.linalg.solve(j.T @ j + damping * np.eye(2), j.T @ r.ravel())
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10)
        np.testing.assert_allclose(residuals.numpy(), r, rtol=1e-12)


def test_parameters_are_a_vector() -> None:
    function = nk.fn(Matrix)(lambda m: m)
    with pytest.raises(RankError, match=r"a vector of parameters, not a Tensor2D\[f64\]"):
        nk.optim.gauss_newton(function)(np.eye(2), f64(0.0))  # type: ignore[arg-type]
