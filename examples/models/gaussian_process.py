"""A Gaussian process, whose scales are fitted by the marginal likelihood."""

import math

import nnkit as nk
import numpy as np
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

Vector = Rep[Tensor1D[f64]]
Matrix = Rep[Tensor2D[f64]]


def kernel(logs: Vector, a: Vector, b: Vector) -> Matrix:
    """Squared exponentials with an amplitude and a length."""
    squares = nk.square(a[:, None] - b[None, :])
    return nk.exp(2 * logs[0] - squares / (2 * nk.exp(2 * logs[1])))


def covariance(logs: Vector, x: Vector) -> Matrix:
    noise = nk.exp(2 * logs[2]) + 1e-8
    return kernel(logs, x, x) + noise * nk.eye(x.shape[0], dtype=f64)


@nk.staged
def loss(logs: Vector, x: Vector, y: Vector) -> Rep[Scalar[f64]]:
    """The negative logarithm of the marginal likelihood."""
    factor = nk.linalg.cholesky(covariance(logs, x))
    white = nk.linalg.solve_triangular(factor, y, lower=True)
    determinant = 2 * nk.log(nk.diagonal(factor)).sum()
    return (white @ white + determinant + x.shape[0] * math.log(2 * math.pi)) / 2


@nk.staged
def predict(logs: Vector, x: Vector, y: Vector, new: Vector) -> tuple[Vector, Vector]:
    """Mean and standard deviation at new points."""
    factor = nk.linalg.cholesky(covariance(logs, x))
    cross = nk.linalg.solve_triangular(factor, kernel(logs, x, new), lower=True)
    variance = nk.exp(2 * logs[0]) - nk.square(cross).sum(axis=0)
    return nk.linalg.solve_triangular(factor, y, lower=True) @ cross, nk.sqrt(variance)


def main() -> None:
    x = Tensor1D(np.linspace(0, 10, 80), f64)
    y = Tensor1D(np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=80))
    logs, optimizer = Tensor1D(np.zeros(3), f64), nk.optim.adam(0.05)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(logs)
    for k in range(1, 201):
        logs, state, value = step(logs, state, x, y)
        if k % 50 == 0:
            print(f"{k:3}: {value:8.3f}, amplitude, length and noise {np.exp(logs).round(3)}")
    mean, deviation = predict(logs, x, y, Tensor1D([2.5, 12.0], f64))
    print(f"at 2.5: {mean[0]:.2f} ± {deviation[0]:.2f}, at 12: {mean[1]:.2f} ± {deviation[1]:.2f}")


if __name__ == "__main__":
    main()
