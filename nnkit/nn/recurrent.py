"""Recurrent layers: what is remembered of a sequence, step by step.

Sources: Hochreiter & Schmidhuber 1997 (LSTM); Cho et al. 2014 (GRU, in the form whose reset gate follows the product).
"""

from __future__ import annotations

from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

import nnkit as nk
from nnkit import Field, Float, Rep, Struct, Tensor1D, Tensor2D, Tensor3D

from .parameters import A, B, D, E, F, Hidden, I, In, J, Key, initialized, parameters, uniform

G = TypeVar("G", bound=Float)
P = TypeVar("P", bound=int)
Q = TypeVar("Q", bound=int)
LSTMState: TypeAlias = tuple[Rep[Tensor2D[G, P, Q]], Rep[Tensor2D[G, P, Q]]]
"""What an LSTM hands on: its output and its cells."""


class LSTM(Struct, Generic[D, In, Hidden]):
    """Long short-term memory: `nn.lstm(p, x)` along a sequence, `nn.lstm_cell(p, x, state)` for one step.

    Shapes: input_weight (n, 4 m), hidden_weight (m, 4 m), bias (4 m), for the gates input, forget, candidate, output.
    """

    input_weight: Field[Tensor2D[D, In]]
    hidden_weight: Field[Tensor2D[D, Hidden]]
    bias: Field[Tensor1D[D]]

    @staticmethod
    def init(key: Key, inputs: int, hidden: int, /, *, dtype: type[E] | None = None) -> LSTM[E]:
        """PyTorch's values: all uniform between ±1/√hidden (its two biases are one here)."""
        shapes = (inputs, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
        makers = [uniform(shape, hidden) for shape in shapes]
        made: LSTM[E] = initialized(LSTM, key, dtype, makers)
        return made


class GRU(Struct, Generic[D, In, Hidden]):
    """A gated recurrent unit: `nn.gru(p, x)` along a sequence, `nn.gru_cell(p, x, hidden)` for one step.

    Shapes: input_weight (n, 3 m), hidden_weight (m, 3 m), biases (3 m), for reset, update and candidate.
    """

    input_weight: Field[Tensor2D[D, In]]
    hidden_weight: Field[Tensor2D[D, Hidden]]
    input_bias: Field[Tensor1D[D]]
    hidden_bias: Field[Tensor1D[D]]

    @staticmethod
    def init(key: Key, inputs: int, hidden: int, /, *, dtype: type[E] | None = None) -> GRU[E]:
        """PyTorch's values: all uniform between ±1/√hidden."""
        shapes = (inputs, 3 * hidden), (hidden, 3 * hidden), (3 * hidden,), (3 * hidden,)
        makers = [uniform(shape, hidden) for shape in shapes]
        made: GRU[E] = initialized(GRU, key, dtype, makers)
        return made


def lstm_cell(
    p: Rep[LSTM[F, A, B]], x: Rep[Tensor2D[F, I, A]], state: LSTMState[F, I, B], /
) -> LSTMState[F, I, B]:
    """One step: the new output and cells.

    Shapes: x (b, n), state of two (b, m) → two (b, m).
    """
    input_weight, hidden_weight, bias = parameters(p, LSTM, "lstm_cell")
    made: LSTMState[F, I, B] = _lstm_step(hidden_weight, x @ input_weight + bias, *state)
    return made


def lstm(
    p: Rep[LSTM[F, A, B]], x: Rep[Tensor3D[F, J, I, A]], /, state: LSTMState[F, I, B] | None = None
) -> tuple[Rep[Tensor3D[F, J, I, B]], LSTMState[F, I, B]]:
    """The outputs of all steps, and the last output and cells; the first ones are zeros, unless given.

    Shapes: x (t, b, n), state of two (b, m) → (t, b, m) and two (b, m).
    """
    input_weight, hidden_weight, bias = parameters(p, LSTM, "lstm")
    gates: Rep[Any] = x @ input_weight + bias  # of all steps at once

    def step(carry: Any, now: Rep[Any]) -> tuple[Any, Rep[Any]]:
        made = _lstm_step(hidden_weight, now, *carry)
        return made, made[0]

    zeros = _start(gates, hidden_weight)
    last, outputs = gates.scan((zeros, zeros) if state is None else state, step)
    return outputs.tensor(), last


def _lstm_step(weight: Rep[Any], now: Rep[Any], hidden: Rep[Any], cell: Rep[Any]) -> Any:
    i, f, g, o = nk.split(now + hidden @ weight, 4, axis=1)
    cell = nk.sigmoid(f) * cell + nk.sigmoid(i) * nk.tanh(g)
    return nk.sigmoid(o) * nk.tanh(cell), cell


def gru_cell(
    p: Rep[GRU[F, A, B]], x: Rep[Tensor2D[F, I, A]], hidden: Rep[Tensor2D[F, I, B]], /
) -> Rep[Tensor2D[F, I, B]]:
    """One step: the new output.

    Shapes: x (b, n), hidden (b, m) → (b, m).
    """
    input_weight, hidden_weight, *biases = parameters(p, GRU, "gru_cell")
    made: Rep[Any] = _gru_step(hidden_weight, biases[1], x @ input_weight + biases[0], hidden)
    return made


def gru(
    p: Rep[GRU[F, A, B]],
    x: Rep[Tensor3D[F, J, I, A]],
    /,
    hidden: Rep[Tensor2D[F, I, B]] | None = None,
) -> tuple[Rep[Tensor3D[F, J, I, B]], Rep[Tensor2D[F, I, B]]]:
    """The outputs of all steps, and the last one; that before the first is zeros, unless given.

    Shapes: x (t, b, n), hidden (b, m) → (t, b, m) and (b, m).
    """
    input_weight, hidden_weight, *biases = parameters(p, GRU, "gru")
    gates: Rep[Any] = x @ input_weight + biases[0]  # of all steps at once

    def step(carry: Any, now: Rep[Any]) -> tuple[Any, Rep[Any]]:
        made = _gru_step(hidden_weight, biases[1], now, carry)
        return made, made

    last, outputs = gates.scan(_start(gates, hidden_weight) if hidden is None else hidden, step)
    return outputs.tensor(), last


def _gru_step(weight: Rep[Any], bias: Rep[Any], now: Rep[Any], hidden: Any) -> Any:
    reset_x, update_x, candidate_x = nk.split(now, 3, axis=1)
    reset_h, update_h, candidate_h = nk.split(hidden @ weight + bias, 3, axis=1)
    reset, update = nk.sigmoid(reset_x + reset_h), nk.sigmoid(update_x + update_h)
    candidate = nk.tanh(candidate_x + reset * candidate_h)
    return (1 - update) * candidate + update * hidden


def _start(gates: Rep[Any], weight: Rep[Any]) -> Rep[Any]:
    """Zeros for each sequence: of the element type of the layer."""
    return nk.zeros_like(gates[0, :, : weight.shape[0]])
