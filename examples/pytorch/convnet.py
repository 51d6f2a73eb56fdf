"""A convolutional network reads handwritten digits, in PyTorch."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, max_pool2d

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding="same")
        self.second = nn.Conv2d(16, 32, 3, padding="same")
        self.last = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = max_pool2d(torch.relu(self.first(x)), 2)
        x = max_pool2d(torch.relu(self.second(x)), 2)
        return self.last(x.flatten(1))


def load() -> tuple[Tensor, Tensor]:
    table = np.loadtxt(DIGITS, np.float32, delimiter=",")
    table = np.random.default_rng(0).permutation(table)
    images = torch.from_numpy(table[:, :64] / 16).reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(table[:, 64].astype(np.int64))


def main() -> None:
    torch.manual_seed(0)
    images, labels = load()
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(1, 16):
        order = torch.randperm(len(images) - 360) + 360
        losses = []
        for batch in order.split(64):
            optimizer.zero_grad()
            loss = cross_entropy(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 5 == 0:
            print(f"{epoch:2}: loss {np.mean(losses):.4f}")
    with torch.no_grad():
        right = network(images[:360]).argmax(dim=1) == labels[:360]
    print(f"{right.float().mean():.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
