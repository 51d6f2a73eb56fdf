"""An LSTM adds two numbers that were marked in a sequence, in PyTorch."""

import torch
from torch import Tensor, nn

LENGTH, BATCH, HIDDEN, STEPS = 40, 64, 32, 1000


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, HIDDEN)
        self.answer = nn.Linear(HIDDEN, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.lstm(x)
        return self.answer(hidden[-1]).squeeze(1)


def sample() -> tuple[Tensor, Tensor]:
    """Sequences of numbers with a mark in each half, and the sums of the marked ones."""
    numbers, marks = torch.rand(LENGTH, BATCH), torch.zeros(LENGTH, BATCH)
    half, rows = LENGTH // 2, torch.arange(BATCH)
    marks[torch.randint(half, (BATCH,)), rows] = 1
    marks[torch.randint(half, (BATCH,)) + half, rows] = 1
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(0)


def main() -> None:
    torch.manual_seed(0)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, STEPS + 1):
        x, wanted = sample()
        optimizer.zero_grad()
        loss = ((model(x) - wanted) ** 2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 250 == 0:
            print(f"{step:4}: error {loss.item():.4f}")


if __name__ == "__main__":
    main()
