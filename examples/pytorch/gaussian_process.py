"""A Gaussian process, whose scales are fitted by the marginal likelihood, in PyTorch."""

import math

import torch
from torch import Tensor


def kernel(logs: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Squared exponentials with an amplitude and a length."""
    squares = (a[:, None] - b[None, :]) ** 2
    return torch.exp(2 * logs[0] - squares / (2 * torch.exp(2 * logs[1])))


def covariance(logs: Tensor, x: Tensor) -> Tensor:
    noise = torch.exp(2 * logs[2]) + 1e-8
    return kernel(logs, x, x) + noise * torch.eye(len(x), dtype=x.dtype)


def loss(logs: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The negative logarithm of the marginal likelihood."""
    factor = torch.linalg.cholesky(covariance(logs, x))
    white = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
    determinant = 2 * factor.diagonal().log().sum()
    return (white.square().sum() + determinant + len(x) * math.log(2 * math.pi)) / 2


def predict(logs: Tensor, x: Tensor, y: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation at new points."""
    factor = torch.linalg.cholesky(covariance(logs, x))
    cross = torch.linalg.solve_triangular(factor, kernel(logs, x, new), upper=False)
    white = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
    variance = torch.exp(2 * logs[0]) - cross.square().sum(0)
    return (cross.T @ white)[:, 0], variance.sqrt()


def main() -> None:
    torch.manual_seed(0)
    x = torch.linspace(0, 10, 80).double()
    y = torch.sin(x) + 0.1 * torch.randn(80).double()
    logs = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logs], lr=0.05)
    for step in range(1, 201):
        optimizer.zero_grad()
        value = loss(logs, x, y)
        value.backward()
        optimizer.step()
        if step % 50 == 0:
            scales = logs.detach().exp().numpy().round(3)
            print(f"{step:3}: {value.item():8.3f}, amplitude, length and noise {scales}")
    mean, deviation = predict(logs.detach(), x, y, torch.tensor([2.5, 12.0]).double())
    print(f"at 2.5: {mean[0]:.2f} ± {deviation[0]:.2f}, at 12: {mean[1]:.2f} ± {deviation[1]:.2f}")


if __name__ == "__main__":
    main()
