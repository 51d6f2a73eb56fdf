"""An LSTM adds two numbers that were marked in a sequence."""

import nnkit as nk
import numpy as np
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor3D, f32, nn

LENGTH, BATCH, HIDDEN, STEPS = 40, 64, 32, 1000


class Adder(Struct):
    lstm: Field[nn.LSTM]
    answer: Field[nn.Linear]


@nk.staged
def loss(p: Rep[Adder], x: Rep[Tensor3D[f32]], wanted: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
    _, (hidden, _) = nn.lstm(p[Adder.lstm], x)
    return nk.mse(nn.linear(p[Adder.answer], hidden).squeeze(1), wanted)


def sample(rng: np.random.Generator) -> tuple[Tensor3D[f32], Tensor1D[f32]]:
    """Sequences of numbers with a mark in each half, and the sums of the marked ones."""
    x, half = np.zeros((LENGTH, BATCH, 2), np.float32), LENGTH // 2
    x[:, :, 0] = rng.uniform(size=(LENGTH, BATCH))
    for first in (0, half):
        x[first + rng.integers(half, size=BATCH), np.arange(BATCH), 1] = 1
    return Tensor3D(x), Tensor1D(x.prod(axis=2).sum(axis=0), f32)


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(5e-3)
    one, two = nk.random.split(nk.random.key(0))
    p = Adder(nn.LSTM.init(one, 2, HIDDEN), nn.Linear.init(two, HIDDEN, 1))
    step = nk.optim.training_step(loss, optimizer=optimizer, clip_norm=1.0)
    state = optimizer.init(p)
    for k in range(1, STEPS + 1):
        p, state, value = step(p, state, *sample(rng))
        if k % 250 == 0:
            print(f"{k:4}: error {value:.4f}")


if __name__ == "__main__":
    main()
