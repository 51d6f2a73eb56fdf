"""Newton's method for a logistic regression."""

from pathlib import Path

import nnkit as nk
import numpy as np
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
PRIOR = 0.5


def load() -> tuple[Tensor2D[f64], Tensor1D[f64]]:
    """Threes and eights: 64 pixels and a one, and whether it is an eight."""
    table = np.loadtxt(DIGITS, delimiter=",")
    table = np.random.default_rng(0).permutation(table[np.isin(table[:, 64], (3, 8))])
    pixels = np.hstack([table[:, :64] / 16, np.ones((len(table), 1))])
    return Tensor2D(pixels, f64), Tensor1D((table[:, 64] == 8).astype(np.float64), f64)


@nk.staged
def loss(w: Rep[Tensor1D[f64]], x: Rep[Tensor2D[f64]], y: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
    """The negative logarithm of the posterior."""
    return nk.binary_cross_entropy(x @ w, y, reduction="sum") + PRIOR / 2 * (w @ w)


def main() -> None:
    x, y = load()
    w = Tensor1D(np.zeros(x.shape[1]), f64)
    gradient, hessian = nk.gradient(of=loss, wrt=0), nk.hessian(of=loss, wrt=0)
    for k in range(8):
        value, slope = loss(w, x[100:], y[100:]), gradient(w, x[100:], y[100:])
        print(f"{k}: loss {value:9.5f}, gradient {np.linalg.norm(slope):.1e}")
        w = w - Tensor1D(np.linalg.solve(hessian(w, x[100:], y[100:]), slope), f64)
    right = (x[:100] @ w > 0).numpy() == (y[:100] == 1).numpy()
    print(f"{right.mean():.0%} of 100 unseen digits read right")


if __name__ == "__main__":
    main()
