"""k-means, and from there the mixture of Gaussians by expectation and maximisation."""

import math

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i32

CLUSTERS, STEPS = 4, 30
Vector = Tensor1D[f64]
Points = Tensor2D[f64]


def sample(count: int) -> Points:
    """Points of four clusters."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [5.0, 1.0], [1.0, 5.0], [6.0, 6.0]])
    scales = np.array([[1.0, 0.5], [0.5, 1.0], [0.8, 0.8], [0.4, 1.2]])
    which = rng.integers(CLUSTERS, size=count)
    return Tensor2D(centers[which] + scales[which] * rng.normal(size=(count, 2)), f64)


@nk.staged
def k_means(x: Rep[Points], centers: Rep[Points]) -> Rep[Points]:
    def move(_: Rep[Scalar[i32]], centers: Rep[Points]) -> Rep[Points]:
        nearest = nk.square(x[:, None] - centers).sum(axis=-1).argmin(axis=1)
        counts = nk.bincount(nearest, length=CLUSTERS).cast(f64)
        return nk.segment_sum(x, nearest, CLUSTERS) / nk.maximum(counts, 1.0)[:, None]

    return nk.fori(0, STEPS, move, centers)


@nk.staged
def log_densities(
    x: Rep[Points], w: Rep[Vector], means: Rep[Points], variances: Rep[Points]
) -> Rep[Points]:
    squares = nk.square(x[:, None] - means) / variances + nk.log(2 * math.pi * variances)
    return nk.log(w) - squares.sum(axis=-1) / 2


@nk.staged
def improve(
    x: Rep[Points], w: Rep[Vector], means: Rep[Points], variances: Rep[Points]
) -> tuple[Rep[Vector], Rep[Points], Rep[Points]]:
    shares = nk.softmax(log_densities(x, w, means, variances), axis=1)
    totals = shares.sum(axis=0)
    means = shares.T @ x / totals[:, None]
    return totals / x.shape[0], means, shares.T @ nk.square(x) / totals[:, None] - nk.square(means)


def main() -> None:
    x = sample(2000)
    means = k_means(x, x[:CLUSTERS])
    weights = Tensor1D(np.full(CLUSTERS, 1 / CLUSTERS), f64)
    variances = Tensor2D(np.ones((CLUSTERS, 2)), f64)
    for _ in range(STEPS):
        weights, means, variances = improve(x, weights, means, variances)
    densities = log_densities(x, weights, means, variances).numpy()
    print(f"log-likelihood {np.log(np.exp(densities).sum(axis=1)).mean():.3f} a point")
    print(means.numpy().round(2))


if __name__ == "__main__":
    main()
