"""`lstm` in JAX, in a file of its own, which imports nothing of NNKit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .protocol import Json


def lstm(function: str, given: Json) -> Any:
    def objective(main: Any, extra: Any, state: Any, sequence: Any) -> Any:
        layers = len(state) // 2
        parameters = main.reshape(layers, 2, 4, -1)

        def step(states: Any, character: Any) -> Any:
            top, rows = character * extra[0], []
            for k, (w, b) in enumerate(parameters):
                hidden, cell = states[2 * k], states[2 * k + 1]
                forget, write = (
                    jax.nn.sigmoid(top * w[0] + b[0]),
                    jax.nn.sigmoid(hidden * w[1] + b[1]),
                )
                read, change = jax.nn.sigmoid(top * w[2] + b[2]), jnp.tanh(hidden * w[3] + b[3])
                cell = cell * forget + write * change
                top = read * jnp.tanh(cell)
                rows += [top, cell]
            return jnp.stack(rows), top

        _, tops = jax.lax.scan(step, state, sequence[:-1])
        logits = tops * extra[1] + extra[2]
        normalizer = jnp.log(2 + jnp.exp(logits).sum(axis=1, keepdims=True))
        return -(sequence[1:] * (logits - normalizer)).mean()

    names = ("main_params", "extra_params", "state", "sequence")
    data = [np.array(given[name], float) for name in names]
    return objective if function == "objective" else jax.grad(objective, argnums=(0, 1)), *data
