"""Recurrences whose products with the rows of a tensor are computed for all rows at once: values and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f64


@nk.staged
def by_fold(
    x: Rep[Tensor2D[f64]], w: Rep[Tensor2D[f64]], u: Rep[Tensor2D[f64]], h: Rep[Tensor1D[f64]]
) -> Rep[f64]:
    return x.fold(h, lambda h, row: nk.tanh(row @ w + h @ u)).sum()


@nk.staged
def by_index(
    x: Rep[Tensor2D[f64]], w: Rep[Tensor2D[f64]], u: Rep[Tensor2D[f64]], h: Rep[Tensor1D[f64]]
) -> Rep[f64]:
    return nk.fori(0, x.shape[0], lambda i, h: nk.tanh(x[i] @ w + h @ u), h).sum()


@nk.staged
def backwards(
    x: Rep[Tensor2D[f64]], w: Rep[Tensor2D[f64]], u: Rep[Tensor2D[f64]], h: Rep[Tensor1D[f64]]
) -> Rep[f64]:
    return nk.fori(0, x.shape[0], lambda i, h: nk.tanh(w.T @ nk.sin(x[-1 - i]) + h @ u), h).sum()


@pytest.mark.parametrize("rounds", [1, 6])
def test_values_and_derivatives(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    x, w, u, h = (rng.normal(size=shape) for shape in ((rounds, 9), (9, 8), (8, 8), (8,)))
    given = (Tensor2D(x, f64), Tensor2D(w, f64), Tensor2D(u, f64), Tensor1D(h, f64))
    forth, back = h, h
    for n in range(rounds):
        forth = np.tanh(x[n] @ w + forth @ u)
        back = np.tanh(np.sin(x[-1 - n]) @ w + back @ u)
    for f, expected in ((by_fold, forth), (by_index, forth), (backwards, back)):
        np.testing.assert_allclose(float(f(*given)), expected.sum(), rtol=1e-12)
        nk.check_gradients(f, *given, order=1)
