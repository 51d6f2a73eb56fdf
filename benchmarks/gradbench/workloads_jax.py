"""The problems in JAX, as its documentation would have them: jit, grad, jvp, vmap, scan, in f64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .mixture_jax import mixture
from .native import scene_of
from .protocol import Json

jax.config.update("jax_enable_x64", True)

Array = np.ndarray[Any, Any]


def build(module: str, function: str, given: Json) -> Callable[[], list[Array]]:
    """A call that waits for its results."""
    compute, *arguments = BUILD[module](function, given)
    compiled, placed = jax.jit(compute), [jnp.asarray(each) for each in arguments]

    def call() -> list[Array]:
        leaves = jax.tree_util.tree_leaves(jax.block_until_ready(compiled(*placed)))
        return [np.asarray(leaf) for leaf in leaves]

    return call


def lse(function: str, given: Json) -> Any:
    def primal(x: Any) -> Any:
        largest = jax.lax.stop_gradient(x.max())
        return largest + jnp.log(jnp.exp(x - largest).sum())

    return primal if function == "primal" else jax.grad(primal), np.array(given["x"])


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


def kmeans(function: str, given: Json) -> Any:
    def cost(centroids: Any, points: Any) -> Any:
        products = points @ centroids.T
        squares = (points**2).sum(axis=1)[:, None] + (centroids**2).sum(axis=1)
        return (squares - 2 * products).min(axis=1).sum()

    def direction(centroids: Any, points: Any) -> Any:
        slope = jax.grad(partial(cost, points=points))
        value, curvature = jax.jvp(slope, [centroids], [jnp.ones_like(centroids)])
        return value / curvature

    data = np.array(given["centroids"]), np.array(given["points"])
    return cost if function == "cost" else direction, *data


def adjustment(function: str, given: Json) -> Any:
    def project(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        r, center, f, center_of_image, k = jnp.split(camera, (3, 6, 7, 9))
        x = point - center
        square = r @ r
        turned = square != 0
        angle = jnp.sqrt(jnp.where(turned, square, 1.0))
        axis = r / angle
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        rotated = x * cosine + jnp.cross(axis, x) * sine + axis * (axis @ x) * (1 - cosine)
        x = jnp.where(turned, rotated, x + jnp.cross(r, x))
        q = x[:2] / x[2]
        radius = q @ q
        return weight * (q * f * (1 + radius * (k[0] + radius * k[1])) + center_of_image - feature)

    def objective(cameras: Any, points: Any, weights: Any, features: Any, at: Any, of: Any) -> Any:
        return jax.vmap(project)(cameras[at], points[of], weights, features), 1 - weights**2

    def jacobian(cameras: Any, points: Any, weights: Any, features: Any, at: Any, of: Any) -> Any:
        rows = jax.vmap(jax.jacrev(project, argnums=(0, 1, 2)))
        camera, point, weight = rows(cameras[at], points[of], weights, features)
        values = jnp.concatenate([camera, point, weight[:, :, None]], axis=2)
        p, n, m = len(weights), len(cameras), len(points)
        by_weight = 11 * n + 3 * m + jnp.arange(p)
        by_camera, by_point = 11 * at[:, None] + jnp.arange(11), 3 * of[:, None] + jnp.arange(3)
        row = jnp.concatenate([by_camera, 11 * n + by_point, by_weight[:, None]], axis=1)
        columns = jnp.stack([row, row], axis=1).ravel()
        begins = jnp.concatenate([jnp.arange(0, 30 * p, 15), jnp.arange(30 * p, 31 * p + 1)])
        values = jnp.concatenate([values.ravel(), -2 * weights])
        return values, jnp.concatenate([columns, by_weight]), begins

    return objective if function == "objective" else jacobian, *scene_of(given)


BUILD = {"lse": lse, "gmm": mixture, "lstm": lstm, "kmeans": kmeans, "ba": adjustment}
