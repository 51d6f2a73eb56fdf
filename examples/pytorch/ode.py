"""Fit the rates of a differential equation to measurements, in PyTorch."""

import torch
from torch import Tensor

STEPS, EVERY, STEP = 500, 20, 0.04
TRUTH, GUESS = [1.1, 0.4, 0.4, 0.1], [0.8, 0.3, 0.6, 0.15]


def speed(rates: Tensor, y: Tensor) -> Tensor:
    """Hares and foxes, by Lotka and Volterra."""
    hares, foxes = y
    eaten = hares * foxes
    return torch.stack([rates[0] * hares - rates[1] * eaten, rates[3] * eaten - rates[2] * foxes])


def step(rates: Tensor, y: Tensor) -> Tensor:
    k1 = speed(rates, y)
    k2 = speed(rates, y + STEP / 2 * k1)
    k3 = speed(rates, y + STEP / 2 * k2)
    k4 = speed(rates, y + STEP * k3)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(rates: Tensor, y: Tensor) -> Tensor:
    found = []
    for _ in range(STEPS):
        y = step(rates, y)
        found.append(y)
    return torch.stack(found)[EVERY - 1 :: EVERY]


def main() -> None:
    torch.manual_seed(0)
    start = torch.tensor([10.0, 5.0]).double()
    clean = solve(torch.tensor(TRUTH).double(), start)
    seen = clean.log() + 0.05 * torch.randn(clean.shape).double()
    logs = torch.tensor(GUESS).double().log().requires_grad_()
    optimizer = torch.optim.Adam([logs], lr=0.05)
    for k in range(1, 81):
        optimizer.zero_grad()
        loss = ((solve(logs.exp(), start).log() - seen) ** 2).sum()
        loss.backward()
        optimizer.step()
        if k % 20 == 0:
            print(f"{k:3}: {loss.item():8.4f} at {logs.detach().exp().numpy().round(3)}")


if __name__ == "__main__":
    main()
