"""gmm: the log posterior of a mixture of Gaussians under a Wishart prior, and its gradient.

The precision of component c is QᵀQ with Q lower triangular: exp(q) on the diagonal, l below it, column by column.
"""

from __future__ import annotations

import math

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f64, i64

from .inputs import entries_of_triangle
from .protocol import Function, Json

Matrix = Tensor2D[f64]


class Mixture(Struct):
    alpha: Field[Tensor1D[f64]]  # (k)  weights of the components, as logarithms, up to a constant
    mu: Field[Matrix]  # (k, d)         means
    q: Field[Matrix]  # (k, d)          logarithms of the diagonals
    l: Field[Matrix]  # (k, d(d-1)/2)   what is below them


class Wishart(Struct):
    gamma: Field[Scalar[f64]]
    m: Field[Scalar[f64]]


@nk.staged
def log_density(
    p: Rep[Mixture], x: Rep[Matrix], prior: Rep[Wishart], places: Rep[Tensor2D[i64]]
) -> Rep[Scalar[f64]]:
    """All of the log posterior but its constant.

    `places` says where in (exp q, l) an entry of Q is, and is outside of it for those that are 0.
    """
    alpha, mu, q, l = p[Mixture.alpha], p[Mixture.mu], p[Mixture.q], p[Mixture.l]
    scale, below = nk.exp(q), l
    entries = nk.concat([scale, below], axis=1)

    def distances(component: Rep[tuple[Matrix, Tensor1D[f64]]]) -> Rep[Tensor1D[f64]]:
        Q, center = component.unpack()
        return nk.square(x @ Q.T - Q @ center).sum(axis=1)

    factors = nk.take(entries, places, axis=1, mode="fill", fill_value=0)
    squares = nk.zip(factors, mu).map(distances)  # (k, n)
    logits = (alpha + q.sum(axis=1)).expand_dims(1) - 0.5 * squares
    likelihood = (nk.logsumexp(logits, axis=0) - nk.logsumexp(alpha)).sum()
    frobenius = nk.square(scale).sum() + nk.square(below).sum()
    gamma = prior[Wishart.gamma]
    return likelihood - 0.5 * gamma * gamma * frobenius + prior[Wishart.m] * q.sum()


slope = nk.gradient(of=log_density, wrt=0)


def constant(p: Mixture, x: Matrix, prior: Wishart) -> float:
    """What does not depend on the mixture."""
    (n, d), (k,) = x.numpy().shape, p.alpha.numpy().shape
    gamma, nu = float(prior.gamma), d + float(prior.m) + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi)
    log_gamma += sum(math.lgamma((nu + 1 - j) / 2) for j in range(1, d + 1))
    per_component = nu * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma
    return k * per_component - n * d / 2 * math.log(2 * math.pi)


def objective(p: Mixture, x: Matrix, prior: Wishart, places: Tensor2D[i64]) -> float:
    return float(log_density(p, x, prior, places)) + constant(p, x, prior)


def prepare(given: Json) -> tuple[Mixture, Matrix, Wishart, Tensor2D[i64]]:
    k, d = given["k"], given["d"]
    p = Mixture(
        Tensor1D(np.array(given["alpha"], np.float64)),
        Tensor2D(np.array(given["mu"], np.float64)),
        Tensor2D(np.array(given["q"], np.float64)),
        Tensor2D(np.array(given["l"], np.float64).reshape(k, d * (d - 1) // 2)),
    )
    prior = Wishart(nk.f64(given["gamma"]), nk.f64(given["m"]))
    x = np.array(given["x"], np.float64).reshape(given["n"], d)
    return p, Tensor2D(x), prior, Tensor2D(entries_of_triangle(d))


def encode(p: Mixture) -> Json:
    matrices = {"mu": p.mu, "q": p.q, "l": p.l}
    return {
        "alpha": p.alpha.numpy().tolist(),
        **{name: matrix.numpy().tolist() for name, matrix in matrices.items()},
    }


FUNCTIONS = {
    "objective": Function(prepare, objective, float),
    "jacobian": Function(prepare, slope, encode),
}
