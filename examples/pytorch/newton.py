"""Newton's method for a logistic regression in PyTorch."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
PRIOR = 0.5


def load() -> tuple[Tensor, Tensor]:
    """Threes and eights: 64 pixels and a one, and whether it is an eight."""
    table = np.loadtxt(DIGITS, delimiter=",")
    table = np.random.default_rng(0).permutation(table[np.isin(table[:, 64], (3, 8))])
    pixels = np.hstack([table[:, :64] / 16, np.ones((len(table), 1))])
    return torch.from_numpy(pixels), torch.from_numpy((table[:, 64] == 8).astype(np.float64))


def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The negative logarithm of the posterior."""
    misfit = binary_cross_entropy_with_logits(x @ w, y, reduction="sum")
    return misfit + PRIOR / 2 * (w @ w)


def main() -> None:
    x, y = load()
    w = torch.zeros(x.shape[1], dtype=torch.float64)
    gradient, hessian = torch.func.grad(loss), torch.func.hessian(loss)
    for k in range(8):
        slope = gradient(w, x[100:], y[100:])
        print(f"{k}: loss {loss(w, x[100:], y[100:]):9.5f}, gradient {slope.norm():.1e}")
        w = w - torch.linalg.solve(hessian(w, x[100:], y[100:]), slope)
    right = (x[:100] @ w > 0) == (y[:100] == 1)
    print(f"{right.double().mean():.0%} of 100 unseen digits read right")


if __name__ == "__main__":
    main()
