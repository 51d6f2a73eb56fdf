"""A variational autoencoder of handwritten digits, in PyTorch."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
PIXELS, HIDDEN, CODE, BATCH, EPOCHS = 64, 128, 8, 64, 30


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(PIXELS, HIDDEN)
        self.mean = nn.Linear(HIDDEN, CODE)
        self.log_variance = nn.Linear(HIDDEN, CODE)
        self.decode = nn.Linear(CODE, HIDDEN)
        self.pixels = nn.Linear(HIDDEN, PIXELS)

    def generate(self, code: Tensor) -> Tensor:
        """The logits of pixels."""
        return self.pixels(torch.relu(self.decode(code)))

    def loss(self, x: Tensor) -> Tensor:
        """The negative evidence lower bound, per image."""
        hidden = torch.relu(self.encode(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        logits = self.generate(code)
        misfit = binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
        divergence = (mean**2 + log_variance.exp() - 1 - log_variance).sum(1) / 2
        return (misfit + divergence).mean()


def main() -> None:
    torch.manual_seed(0)
    table = np.loadtxt(DIGITS, np.float32, delimiter=",")
    images = torch.from_numpy(table[:, :64] / 16)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss = model.loss(images[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 10 == 0:
            print(f"{epoch:2}: bound {np.mean(losses):.2f}")
    with torch.no_grad():
        drawn = torch.sigmoid(model.generate(torch.randn(4, CODE)))
    print((drawn[0] * 9).round().int().reshape(8, 8).numpy())


if __name__ == "__main__":
    main()
