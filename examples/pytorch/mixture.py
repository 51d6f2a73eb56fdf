"""k-means, and from there the mixture of Gaussians by expectation and maximisation, in PyTorch."""

import math

import torch
from torch import Tensor

CLUSTERS, STEPS = 4, 30


def sample(count: int) -> tuple[Tensor, Tensor]:
    """Points of four clusters, and of which."""
    centers = torch.tensor([[0.0, 0.0], [5.0, 1.0], [1.0, 5.0], [6.0, 6.0]]).double()
    scales = torch.tensor([[1.0, 0.5], [0.5, 1.0], [0.8, 0.8], [0.4, 1.2]]).double()
    which = torch.randint(CLUSTERS, (count,))
    return centers[which] + scales[which] * torch.randn(count, 2).double(), which


def k_means(x: Tensor, centers: Tensor) -> Tensor:
    for _ in range(STEPS):
        nearest = ((x[:, None] - centers) ** 2).sum(-1).argmin(1)
        counts = torch.bincount(nearest, minlength=CLUSTERS)
        sums = torch.zeros_like(centers).index_add(0, nearest, x)
        centers = sums / counts.clamp(min=1)[:, None]
    return centers


def log_densities(x: Tensor, weights: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    squares = (x[:, None] - means) ** 2 / variances + torch.log(2 * math.pi * variances)
    return torch.log(weights) - squares.sum(-1) / 2


def main() -> None:
    torch.manual_seed(0)
    x, _ = sample(2000)
    means = k_means(x, x[:CLUSTERS])
    weights = torch.full((CLUSTERS,), 1 / CLUSTERS).double()
    variances = torch.ones_like(means)
    for _ in range(STEPS):
        shares = torch.softmax(log_densities(x, weights, means, variances), dim=1)
        totals = shares.sum(0)
        weights = totals / len(x)
        means = shares.T @ x / totals[:, None]
        variances = shares.T @ x**2 / totals[:, None] - means**2
    likelihood = torch.logsumexp(log_densities(x, weights, means, variances), dim=1).mean()
    print(f"log-likelihood {likelihood:.3f} a point")
    print(means.numpy().round(2))


if __name__ == "__main__":
    main()
