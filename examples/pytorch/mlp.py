"""A perceptron with dropout, trained by Adam to read digits, in PyTorch."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"


class Network(nn.Module):
    def __init__(self, hidden: int, rate: float) -> None:
        super().__init__()
        self.first = nn.Linear(64, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 10)
        self.dropout = nn.Dropout(rate)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(torch.relu(self.first(x)))
        x = self.dropout(torch.relu(self.second(x)))
        return self.last(x)


def load() -> tuple[Tensor, Tensor]:
    table = np.loadtxt(DIGITS, np.float32, delimiter=",")
    table = np.random.default_rng(0).permutation(table)
    return torch.from_numpy(table[:, :64] / 16), torch.from_numpy(table[:, 64].astype(np.int64))


def main() -> None:
    torch.manual_seed(0)
    images, labels = load()
    network = Network(hidden=128, rate=0.2)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(30):
        order = torch.randperm(len(images) - 360) + 360
        for batch in order.split(64):
            optimizer.zero_grad()
            loss = cross_entropy(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        right = network(images[:360]).argmax(dim=1) == labels[:360]
    print(f"{right.float().mean():.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
