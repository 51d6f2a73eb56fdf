"""kmeans: the cost of a clustering, and the direction of a Newton step in the centroids, J / diag H.

H is diagonal, as every point counts for one centroid only: its diagonal is H·1.
"""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, i64

from .protocol import Function, Json

Matrix = Tensor2D[f64]
Indices = Tensor1D[i64]


@nk.staged
def nearest(points: Rep[Matrix], centroids: Rep[Matrix]) -> Rep[Indices]:
    """For each point the centroid that minimizes |p - c|², which is |p|² + 2(|c|²/2 - p·c)."""
    halves = 0.5 * nk.square(centroids).sum(axis=1)
    return (halves - points @ centroids.T).argmin(axis=1)


@nk.staged
def spread(points: Rep[Matrix], centroids: Rep[Matrix], chosen: Rep[Indices]) -> Rep[Scalar[f64]]:
    """Σ over points of the squared distance to the chosen centroid."""
    return nk.square(points - nk.take(centroids, chosen)).sum()


slope = nk.gradient(of=spread, wrt=1)
curvature = nk.hvp(of=spread, wrt=1)


@nk.staged
def cost(points: Rep[Matrix], centroids: Rep[Matrix]) -> Rep[Scalar[f64]]:
    return spread(points, centroids, nearest(points, centroids))


@nk.staged
def direction(points: Rep[Matrix], centroids: Rep[Matrix]) -> Rep[Matrix]:
    chosen = nearest(points, centroids)  # piecewise constant, so the derivatives do not see it
    diagonal = curvature(points, centroids, chosen, nk.ones_like(centroids))
    return slope(points, centroids, chosen) / diagonal


def prepare(given: Json) -> tuple[Matrix, Matrix]:
    points, centroids = (np.array(given[name], np.float64) for name in ("points", "centroids"))
    return Tensor2D(points), Tensor2D(centroids)


FUNCTIONS = {
    "cost": Function(prepare, cost, float),
    "dir": Function(prepare, direction, lambda step: step.numpy().tolist()),
}
