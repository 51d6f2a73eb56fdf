"""The problems in JAX, compiled by `jit`; every call waits for its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .problems import RATE, Arrays

Call = Callable[[], tuple[Any, ...]]


def build_call(data: Arrays, mode: str) -> Call:
    return waiting(jax.jit(lambda x: (x + 1.0,)), jnp.asarray(data["x"]))


def build_affine(data: Arrays, mode: str) -> Call:
    x, w, b = (jnp.asarray(data[name]) for name in "xwb")
    return waiting(jax.jit(lambda x, w, b: (jnp.tanh(x @ w + b),)), x, w, b)


def build_forward(data: Arrays, mode: str) -> Call:
    return waiting(jax.jit(lambda p, x: (logits(p, x),)), parameters(data), jnp.asarray(data["x"]))


def build_step(data: Arrays, mode: str) -> Call:
    def step(p: Any, x: Any, labels: Any) -> Any:
        value, slope = jax.value_and_grad(lambda p: cross_entropy(logits(p, x), labels))(p)
        return value, [old - RATE * change for old, change in zip(p, slope, strict=True)]

    compiled = jax.jit(step, donate_argnums=0)
    params = parameters(data)
    x, labels = jnp.asarray(data["x"]), jnp.asarray(data["labels"])

    def call() -> tuple[Any, ...]:
        nonlocal params
        value, params = jax.block_until_ready(compiled(params, x, labels))
        return (value, *params)

    return call


def build_gelu(data: Arrays, mode: str) -> Call:
    def total(x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False).sum()

    return waiting(jax.jit(jax.value_and_grad(total)), jnp.asarray(data["x"]))


def build_softmax(data: Arrays, mode: str) -> Call:
    slope = jax.jit(lambda x, labels: (jax.grad(cross_entropy)(x, labels),))
    return waiting(slope, jnp.asarray(data["x"]), jnp.asarray(data["labels"]))


def logits(p: Any, x: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = p
    return jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def cross_entropy(x: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1)
    return -chosen.mean()


def parameters(data: Arrays) -> list[Any]:
    return [jnp.asarray(data[name]) for name in ("w1", "b1", "w2", "b2", "w3", "b3")]


def waiting(function: Callable[..., Any], *arguments: Any) -> Call:
    return lambda: tuple(jax.block_until_ready(function(*arguments)))


def to_numpy(results: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """The results of a call as arrays of their own."""
    return [np.array(result) for result in results]


BUILD = {
    "call": build_call,
    "affine": build_affine,
    "forward": build_forward,
    "step": build_step,
    "gelu": build_gelu,
    "softmax": build_softmax,
}
