"""An LSTM adds two numbers that were marked in a sequence."""

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32

LENGTH, BATCH, HIDDEN, STEPS = 40, 64, 32, 1000
Matrix = Tensor2D[f32]
State = tuple[Rep[Matrix], Rep[Matrix]]


class Adder(Struct):
    w: Field[Matrix]
    b: Field[Tensor1D[f32]]
    answer: Field[Tensor1D[f32]]


@nk.staged
def loss(p: Rep[Adder], x: Rep[Tensor3D[f32]], wanted: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
    def step(state: State, now: Rep[Matrix]) -> tuple[State, Rep[Matrix]]:
        hidden, cell = state
        gates = nk.concat([now, hidden], axis=1) @ p[Adder.w] + p[Adder.b]
        forget, update, output, candidate = nk.split(gates, 4, axis=1)
        cell = cell * nk.sigmoid(forget + 1) + nk.sigmoid(update) * nk.tanh(candidate)
        hidden = nk.sigmoid(output) * nk.tanh(cell)
        return (hidden, cell), hidden

    start = nk.zeros((x.shape[1], HIDDEN), f32)
    (hidden, _), _ = x.scan((start, start), step)
    return nk.mse(hidden @ p[Adder.answer], wanted)


def sample(rng: np.random.Generator) -> tuple[Tensor3D[f32], Tensor1D[f32]]:
    """Sequences of numbers with a mark in each half, and the sums of the marked ones."""
    x, half = np.zeros((LENGTH, BATCH, 2), np.float32), LENGTH // 2
    x[:, :, 0] = rng.uniform(size=(LENGTH, BATCH))
    for first in (0, half):
        x[first + rng.integers(half, size=BATCH), np.arange(BATCH), 1] = 1
    return Tensor3D(x), Tensor1D(x.prod(axis=2).sum(axis=0), f32)


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(5e-3)
    w = rng.normal(0, HIDDEN**-0.5, (2 + HIDDEN, 4 * HIDDEN)).astype(np.float32)
    answer = rng.normal(0, HIDDEN**-0.5, HIDDEN).astype(np.float32)
    p = Adder(Tensor2D(w), Tensor1D(np.zeros(4 * HIDDEN, np.float32)), Tensor1D(answer))
    step, state = (
        nk.optim.training_step(loss, optimizer=optimizer, clip_norm=1.0),
        optimizer.init(p),
    )
    for k in range(1, STEPS + 1):
        p, state, value = step(p, state, *sample(rng))
        if k % 250 == 0:
            print(f"{k:4}: error {value:.4f}")


if __name__ == "__main__":
    main()
