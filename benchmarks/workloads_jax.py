"""The problems in JAX, compiled by `jit`; every call waits for its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .gradbench.mixture_jax import mixture
from .problems import BLOCK, HEADS, RATE, STEP, STEPS, Arrays, names_of_layers

Call = Callable[[], tuple[Any, ...]]
Build = Callable[[Arrays, str], Call]


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
        return jax.nn.gelu(x, approximate=True).sum()

    return waiting(jax.jit(jax.value_and_grad(total)), jnp.asarray(data["x"]))


def build_softmax(data: Arrays, mode: str) -> Call:
    both = jax.jit(jax.value_and_grad(cross_entropy))
    return waiting(both, jnp.asarray(data["x"]), jnp.asarray(data["labels"]))


def build_attention(data: Arrays, mode: str) -> Call:
    def loss(p: Any, x: Any) -> Any:
        return (attend(p, x) ** 2).mean()

    p = [jnp.asarray(data[name]) for name in "qkvo"]
    return waiting(jax.jit(jax.grad(loss)), p, jnp.asarray(data["x"]))


def build_block(data: Arrays, mode: str) -> Call:
    def loss(p: Any, x: Any) -> Any:
        q, k, v, o, scale1, offset1, scale2, offset2, w1, b1, w2, b2 = p
        x = x + attend((q, k, v, o), layer_norm(x, scale1, offset1))
        wide = jax.nn.gelu(layer_norm(x, scale2, offset2) @ w1 + b1, approximate=True)
        return ((x + wide @ w2 + b2) ** 2).mean()

    p = [jnp.asarray(data[name]) for name in BLOCK]
    return waiting(jax.jit(jax.grad(loss)), p, jnp.asarray(data["x"]))


def build_layer(data: Arrays, mode: str) -> Call:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return (jax.nn.gelu(x @ w + b, approximate=True),)

    return waiting(jax.jit(layer), *(jnp.asarray(data[name]) for name in "xwb"))


def build_product(data: Arrays, mode: str) -> Call:
    a, b = jnp.asarray(data["a"]), jnp.asarray(data["b"])
    return waiting(jax.jit(lambda a, b: (a @ b,)), a, b)


def build_line(data: Arrays, mode: str) -> Call:
    x, y = jnp.asarray(data["x"]), jnp.asarray(data["y"])
    return waiting(jax.jit(lambda x, y: (1.5 * x + y,)), x, y)


def build_symmetric(data: Arrays, mode: str) -> Call:
    return waiting(jax.jit(lambda x: (0.5 * (x + x.T),)), jnp.asarray(data["x"]))


def build_runge_kutta(data: Arrays, mode: str) -> Call:
    def one(_: Any, pair: Any) -> Any:
        a, y = pair
        k1 = jnp.tanh(a @ y)
        k2 = jnp.tanh(a @ (y + STEP / 2 * k1))
        k3 = jnp.tanh(a @ (y + STEP / 2 * k2))
        k4 = jnp.tanh(a @ (y + STEP * k3))
        return a, y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def f(a: Any, y: Any) -> Any:
        return jax.lax.fori_loop(0, STEPS, one, (a, y))[1].sum()

    return waiting(jax.jit(jax.grad(f, (0, 1))), jnp.asarray(data["a"]), jnp.asarray(data["y"]))


def build_mixture(data: Arrays, mode: str) -> Call:
    given = {"d": data["x"].shape[1], "k": len(data["alpha"]), "gamma": 1.0, "m": 0, **data}
    slope, *arguments = mixture("jacobian", given)
    return waiting(jax.jit(slope), *(jnp.asarray(each) for each in arguments))


def in_precision(build: Build) -> Build:
    """In f64 where there is data of f64; else as JAX is unless told, with indices of 32 bits."""

    def build_after(data: Arrays, mode: str) -> Call:
        doubles = any(array.dtype == np.float64 for array in data.values())
        jax.config.update("jax_enable_x64", doubles)
        return build(data, mode)

    return build_after


def attend(p: Any, x: Any) -> Any:
    batch, length, width = x.shape
    q, k, v = (
        (x @ w).reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3) for w in p[:3]
    )
    scores = q @ k.transpose(0, 1, 3, 2) * (width // HEADS) ** -0.5
    mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(batch, length, width) @ p[3]


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + offset


def logits(p: Any, x: Any) -> Any:
    *hidden, w, b = p
    for k in range(0, len(hidden), 2):
        x = jax.nn.relu(x @ hidden[k] + hidden[k + 1])
    return x @ w + b


def cross_entropy(x: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1)
    return -chosen.mean()


def parameters(data: Arrays) -> list[Any]:
    return [jnp.asarray(data[name]) for name in names_of_layers(data)]


def waiting(function: Callable[..., Any], *arguments: Any) -> Call:
    return lambda: tuple(jax.block_until_ready(function(*arguments)))


def to_numpy(results: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """The results of a call as arrays of their own."""
    return [np.array(result) for result in results]


BUILDERS = {
    "call": build_call,
    "affine": build_affine,
    "forward": build_forward,
    "step": build_step,
    "gelu": build_gelu,
    "softmax": build_softmax,
    "attention": build_attention,
    "block": build_block,
    "layer": build_layer,
    "product": build_product,
    "line": build_line,
    "symmetric": build_symmetric,
    "runge-kutta": build_runge_kutta,
    "mixture": build_mixture,
}
BUILD = {kind: in_precision(build) for kind, build in BUILDERS.items()}
