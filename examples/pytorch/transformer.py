"""A transformer block learns to turn sequences around, in PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

LENGTH, SYMBOLS, WIDTH, HEADS, BATCH, STEPS = 12, 10, 64, 4, 64, 400


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.expand = nn.Linear(WIDTH, 4 * WIDTH)
        self.contract = nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        shape = (batch, length, HEADS, WIDTH // HEADS)
        query = self.query(x).reshape(shape).transpose(1, 2)
        key = self.key(x).reshape(shape).transpose(1, 2)
        value = self.value(x).reshape(shape).transpose(1, 2)
        scores = query @ key.transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.contract(nn.functional.gelu(self.expand(self.norm2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.symbols = nn.Parameter(torch.randn(SYMBOLS, WIDTH))
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.block = Block()
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(self.symbols[x] + self.places))


def main() -> None:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        x = torch.randint(SYMBOLS, (BATCH, LENGTH))
        optimizer.zero_grad()
        loss = cross_entropy(model(x).reshape(-1, SYMBOLS), x.flip(1).reshape(-1))
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{step:3}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
