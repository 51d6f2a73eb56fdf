"""`gmm` in JAX, in a file of its own, which imports nothing of NNKit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .inputs import entries_of_triangle
from .protocol import Json


def mixture(function: str, given: Json) -> Any:
    d, k = given["d"], given["k"]

    def objective(alpha: Any, mu: Any, q: Any, l: Any, x: Any, places: Any) -> Any:
        scale = jnp.exp(q)
        entries = jnp.concatenate([scale, l, jnp.zeros((k, 1))], axis=1)
        Q = entries[:, places]
        images = jnp.einsum("cij,nj->cni", Q, x) - jnp.einsum("cij,cj->ci", Q, mu)[:, None]
        logits = (alpha + q.sum(axis=1))[:, None] - 0.5 * (images**2).sum(axis=2)
        likelihood = jax.nn.logsumexp(logits, axis=0) - jax.nn.logsumexp(alpha)
        frobenius = (scale**2).sum() + (l**2).sum()
        return likelihood.sum() - 0.5 * given["gamma"] ** 2 * frobenius + given["m"] * q.sum()

    by_mixture = jax.grad(objective, argnums=(0, 1, 2, 3))
    data = [np.array(given[name], float) for name in ("alpha", "mu", "q", "l", "x")]
    places = entries_of_triangle(d)
    return objective if function == "objective" else by_mixture, *data, places
