"""lstm: the loss of a character model of LSTM layers with diagonal weights, and its gradient.

A scan over the characters carries the hidden and the cell states.  The prediction and its loss, which no later step
depends on, are computed of all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64

from .protocol import Function, Json

Matrix = Tensor2D[f64]
Row = Rep[Tensor1D[f64]]
Rows = Rep[Matrix]
Loss = Callable[[Matrix, Matrix, Matrix, Matrix], Scalar[f64]]
Slope = Callable[[Matrix, Matrix, Matrix, Matrix], tuple[Matrix, Matrix]]


def layer(weights: Rows, biases: Rows, below: Row, hidden: Row, cell: Row) -> tuple[Row, Row]:
    """The next hidden and cell state; the rows of weights and biases: forget, in, out, change."""
    forget = nk.sigmoid(below * weights[0] + biases[0])
    write = nk.sigmoid(hidden * weights[1] + biases[1])
    read = nk.sigmoid(below * weights[2] + biases[2])
    change = nk.tanh(hidden * weights[3] + biases[3])
    cell = cell * forget + write * change
    return read * nk.tanh(cell), cell


@cache
def functions(layers: int) -> tuple[Rep[Loss], Rep[Slope]]:
    """The loss and its gradient, for so many layers: a step goes through them one after the other."""

    @nk.staged
    def loss(main: Rows, extra: Rows, state: Rows, sequence: Rows) -> Rep[Scalar[f64]]:
        parameters = main.reshape(layers, 2, 4, -1)

        def step(states: Rows, character: Row) -> tuple[Rows, Row]:
            top, rows = character * extra[0], list[Row]()
            for k in range(layers):
                hidden, cell = states[2 * k], states[2 * k + 1]
                top, cell = layer(parameters[k, 0], parameters[k, 1], top, hidden, cell)
                rows += [top, cell]
            return nk.stack(rows), top

        _, tops = sequence[:-1].scan(state, step)
        logits = tops.tensor() * extra[1] + extra[2]
        normalizer = nk.log(2.0 + nk.exp(logits).sum(axis=1, keepdims=True))
        return -(sequence[1:] * (logits - normalizer)).mean()

    return loss, nk.gradient(of=loss, wrt=(0, 1))


def objective(main: Matrix, extra: Matrix, state: Matrix, sequence: Matrix) -> Scalar[f64]:
    return functions(state.shape[0] // 2)[0](main, extra, state, sequence)


def jacobian(main: Matrix, extra: Matrix, state: Matrix, sequence: Matrix) -> tuple[Matrix, Matrix]:
    return functions(state.shape[0] // 2)[1](main, extra, state, sequence)


def prepare(given: Json) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    names = ("main_params", "extra_params", "state", "sequence")
    main, extra, state, sequence = (np.array(given[name], np.float64) for name in names)
    return Tensor2D(main), Tensor2D(extra), Tensor2D(state), Tensor2D(sequence)


def encode(slopes: tuple[Matrix, Matrix]) -> Json:
    return np.concatenate([slope.numpy().ravel() for slope in slopes]).tolist()


FUNCTIONS = {
    "objective": Function(prepare, objective, float),
    "jacobian": Function(prepare, jacobian, encode),
}
