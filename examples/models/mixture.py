"""k-means, and from there the mixture of Gaussians by expectation and maximisation."""

import nnkit as nk
import numpy as np
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

CLUSTERS, STEPS = 4, 30
Matrix = Rep[Tensor2D[f64]]
Mixture = tuple[Rep[Tensor1D[f64]], Matrix, Matrix]


def sample(rng: np.random.Generator, count: int) -> Tensor2D[f64]:
    """Points of four clusters."""
    centers = np.array([[0.0, 0.0], [5.0, 1.0], [1.0, 5.0], [6.0, 6.0]])
    scales = np.array([[1.0, 0.5], [0.5, 1.0], [0.8, 0.8], [0.4, 1.2]])
    which = rng.integers(CLUSTERS, size=count)
    return Tensor2D(rng.normal(centers[which], scales[which]), f64)


def k_means(x: Matrix, centers: Matrix) -> Matrix:
    return nk.segment_mean(x, nk.norm(x[:, None] - centers, axis=-1).argmin(axis=1), CLUSTERS)


def log_densities(x: Matrix, mixture: Mixture) -> Matrix:
    weights, means, variances = mixture
    squares = nk.square(x[:, None] - means) / variances + nk.log(2 * np.pi * variances)
    return nk.log(weights) - squares.sum(axis=-1) / 2


def improve(x: Matrix, mixture: Mixture) -> Mixture:
    shares = nk.softmax(log_densities(x, mixture), axis=1)
    totals = shares.sum(axis=0)
    means = shares.T @ x / totals[:, None]
    return totals / x.shape[0], means, shares.T @ nk.square(x) / totals[:, None] - nk.square(means)


@nk.staged
def fit(x: Matrix) -> tuple[Matrix, Rep[Scalar[f64]]]:
    means = nk.fori(0, STEPS, lambda _, centers: k_means(x, centers), x[:CLUSTERS])
    start = nk.full((CLUSTERS,), 1 / CLUSTERS, f64), means, nk.ones_like(means)
    mixture = nk.fori(0, STEPS, lambda _, mixture: improve(x, mixture), start)
    return mixture[1], nk.logsumexp(log_densities(x, mixture), axis=1).mean()


def main() -> None:
    means, likelihood = fit(sample(np.random.default_rng(0), 2000))
    print(f"log-likelihood {likelihood:.3f} a point\n{np.round(means, 2)}")


if __name__ == "__main__":
    main()
