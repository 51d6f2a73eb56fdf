"""Newton's method for a logistic regression, with the Hessian that `nk.hessian` gives, and error bars from it.

Is a handwritten digit a three or an eight?  The Hessian of the loss at its minimum is the inverse covariance of the
weights: it says how sure the model is of each pixel, and of each of its answers.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, f64

HERE = Path(__file__).parent
PRIOR = 0.5  # the inverse variance of a weight before anything was seen
HELD_OUT = 100


# fmt: off
class Example(Dim): ...
class Weight(Dim): ...
# fmt: on


Weights = Tensor1D[f64, Weight]
Pixels = Tensor2D[f64, Example, Weight]
Answers = Tensor1D[f64, Example]
Array = npt.NDArray[np.float64]


@nk.staged
def loss(w: Rep[Weights], x: Rep[Pixels], y: Rep[Answers]) -> Rep[Scalar[f64]]:
    """The negative logarithm of the posterior; an answer is 1 for an eight."""
    z = x @ w
    return nk.logsumexp(nk.stack([z * 0, z]), axis=0).sum() - z @ y + PRIOR / 2 * w @ w


slope = nk.gradient(of=loss, wrt=0)
hessian = nk.hessian(of=loss, wrt=0)


@nk.staged
def by_hand(w: Rep[Weights], x: Rep[Pixels]) -> Rep[Tensor2D[f64, Weight, Weight]]:
    """Xᵀ diag(p (1 - p)) X + prior, to compare with."""
    p = nk.sigmoid(x @ w)
    identity = nk.one_hot(nk.arange(65, nk.i64), 65, f64)
    return (x * (p * (1 - p)).reshape(-1, 1)).T @ x + PRIOR * identity


def main() -> None:
    table: Array = np.loadtxt(HERE / "data/digits.csv.gz", delimiter=",")
    table = np.random.default_rng(0).permutation(table[np.isin(table[:, 64], (3, 8))])
    pixels: Array = np.hstack([table[:, :64] / 16, np.ones((len(table), 1))])
    answers: Array = (table[:, 64] == 8).astype(np.float64)
    x, y = Tensor2D(pixels[HELD_OUT:], f64), Tensor1D(answers[HELD_OUT:], f64)

    weights: Array = np.zeros(65)
    for k in range(8):
        w = Tensor1D(weights, f64)
        first, second = slope(w, x, y).numpy(), hessian(w, x, y).numpy()
        assert np.allclose(second, by_hand(w, x).numpy(), rtol=1e-10)
        print(f"{k}: loss {float(loss(w, x, y)):9.5f}, gradient {np.linalg.norm(first):.1e}")
        weights = weights - np.linalg.solve(second, first)

    covariance = np.linalg.inv(hessian(Tensor1D(weights, f64), x, y).numpy())
    unseen = pixels[:HELD_OUT]
    odds = unseen @ weights
    spread = np.sqrt(np.einsum("ni,ij,nj->n", unseen, covariance, unseen))
    right = (odds > 0) == (answers[:HELD_OUT] == 1)
    sure = abs(odds) > 2 * spread
    print(f"{right.mean():.0%} of {HELD_OUT} unseen digits read right,")
    print(f"{right[sure].mean():.0%} of the {sure.sum()} of which the model is sure")
    sys.exit(0 if right[sure].all() and right.mean() >= 0.95 else "that is too few")


if __name__ == "__main__":
    main()
