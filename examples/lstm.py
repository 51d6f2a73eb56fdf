"""An LSTM adds numbers that were marked, far apart in a sequence: the gradient of a `scan`.

Of each sequence of pairs, a number and a mark, the answer is the sum of the two numbers with a mark.
Whoever forgets the first has an error of 1/12, its variance, at the least; the LSTM is to have 0.01.
S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997), section 5.4.
"""

import sys

import numpy as np
import numpy.typing as npt

import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32

LENGTH, BATCH, HIDDEN, STEPS, RATE = 40, 64, 32, 1500, 5e-3


# fmt: off
class Time(Dim): ...
class Sequence(Dim): ...
class Input(Dim): ...
class Hidden(Dim): ...
class Gate(Dim): ...  # four times as many as hidden: forget, update, output, candidate
# fmt: on


class Params(Struct):
    read: Field[Tensor2D[f32, Input, Gate]]
    remember: Field[Tensor2D[f32, Hidden, Gate]]
    bias: Field[Tensor1D[f32, Gate]]
    answer: Field[Tensor1D[f32, Hidden]]


class State(Struct):
    params: Field[Params]
    mean: Field[Params]  # of the gradient, and of its square, as Adam keeps them
    square: Field[Params]
    step: Field[Scalar[f32]]


Cells = Tensor2D[f32, Sequence, Hidden]
Sequences = Tensor3D[f32, Time, Sequence, Input]
Answers = Tensor1D[f32, Sequence]


@nk.staged
def loss(p: Rep[Params], x: Rep[Sequences], wanted: Rep[Answers]) -> Rep[Scalar[f32]]:
    def step(
        carry: tuple[Rep[Cells], Rep[Cells]], now: Rep[Tensor2D[f32, Sequence, Input]]
    ) -> tuple[tuple[Rep[Cells], Rep[Cells]], Rep[Answers]]:
        hidden, cell = carry
        gates = now @ p[Params.read] + hidden @ p[Params.remember] + p[Params.bias]
        forget, update, output, candidate = (
            gates[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4)
        )
        cell = cell * nk.sigmoid(forget + 1) + nk.sigmoid(update) * nk.tanh(candidate)
        hidden = nk.sigmoid(output) * nk.tanh(cell)
        return (hidden, cell), hidden @ p[Params.answer]

    start = nk.zeros((BATCH, HIDDEN), f32)
    _, answers = x.scan((start, start), step)
    return nk.square(answers.tensor()[-1] - wanted).mean()


@nk.staged
def train(
    s: Rep[State], x: Rep[Sequences], wanted: Rep[Answers]
) -> tuple[Rep[State], Rep[Scalar[f32]]]:
    value, slope = nk.value_and_gradient(of=loss, wrt=0)(s[State.params], x, wanted).unpack()
    params, mean, square, step = s[State.params], s[State.mean], s[State.square], s[State.step] + 1
    rate = RATE * nk.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    for field in nk.fields(Params):
        mean = mean.set(field, 0.9 * mean[field] + 0.1 * slope[field])
        square = square.set(field, 0.999 * square[field] + 0.001 * nk.square(slope[field]))
        params = params.set(
            field, params[field] - rate * mean[field] / (nk.sqrt(square[field]) + 1e-8)
        )
    s = s.set(State.params, params).set(State.mean, mean).set(State.square, square)
    return s.set(State.step, step), value


def start(rng: np.random.Generator) -> State:
    def around(*shape: int) -> npt.NDArray[np.float32]:
        return rng.normal(scale=HIDDEN**-0.5, size=shape).astype(np.float32)

    def params(scale: float) -> Params:
        read, remember = around(2, 4 * HIDDEN), around(HIDDEN, 4 * HIDDEN)
        return Params(
            Tensor2D(read * np.float32(scale), f32),
            Tensor2D(remember * np.float32(scale), f32),
            Tensor1D(np.zeros(4 * HIDDEN, np.float32)),
            Tensor1D(around(HIDDEN) * np.float32(scale), f32),
        )

    return State(params(1), params(0), params(0), f32(0.0))


def examples(rng: np.random.Generator) -> tuple[Tensor3D[f32], Tensor1D[f32]]:
    """A batch of sequences with a mark in each half, and their answers."""
    x = np.zeros((LENGTH, BATCH, 2), np.float32)
    x[:, :, 0] = rng.uniform(size=(LENGTH, BATCH))
    for half in (0, LENGTH // 2):
        x[half + rng.integers(LENGTH // 2, size=BATCH), np.arange(BATCH), 1] = 1
    return Tensor3D(x), Tensor1D((x[:, :, 0] * x[:, :, 1]).sum(axis=0), f32)


def main() -> None:
    rng = np.random.default_rng(0)
    state, errors = start(rng), list[float]()
    for k in range(1, STEPS + 1):
        state, value = train(state, *examples(rng))
        errors.append(float(value))
        if k % 250 == 0:
            print(f"{k:4}: error {np.mean(errors[-50:]):.4f}")
    sys.exit(0 if np.mean(errors[-50:]) < 0.01 else "it forgets")


if __name__ == "__main__":
    main()
