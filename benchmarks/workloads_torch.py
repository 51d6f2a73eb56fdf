"""The problems in PyTorch, eager and compiled.

Eager follows its users' habits: `no_grad` where nothing is differentiated, parameters updated in place.
Compiled is the whole computation, gradient and update included, in one `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .gradbench.inputs import entries_of_triangle
from .problems import BLOCK, HEADS, RATE, STEP, STEPS, Arrays, names_of_layers

Call = Callable[[], tuple[Any, ...]]


def build_call(data: Arrays, mode: str) -> Call:
    return without_gradient(mode, lambda x: (x + 1.0,), tensor(data["x"]))


def build_affine(data: Arrays, mode: str) -> Call:
    x, w, b = (tensor(data[name]) for name in "xwb")
    return without_gradient(mode, lambda x, w, b: (torch.tanh(x @ w + b),), x, w, b)


def build_forward(data: Arrays, mode: str) -> Call:
    return without_gradient(mode, lambda p, x: (logits(p, x),), parameters(data), tensor(data["x"]))


def build_step(data: Arrays, mode: str) -> Call:
    x, labels, params = tensor(data["x"]), tensor(data["labels"]), parameters(data)
    return eager_step(params, x, labels) if is_eager(mode) else compiled_step(params, x, labels)


def eager_step(params: list[torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> Call:
    for parameter in params:
        parameter.requires_grad_()
    optimizer = torch.optim.SGD(params, lr=RATE)

    def call() -> tuple[Any, ...]:
        optimizer.zero_grad()
        value = functional.cross_entropy(logits(params, x), labels)
        value.backward()
        optimizer.step()
        return (value, *params)

    return call


def compiled_step(params: list[torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> Call:
    def loss(p: list[torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits(p, x), labels)

    def step(p: list[torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> Any:
        slope, value = torch.func.grad_and_value(loss)(p, x, labels)
        return value, [old - RATE * change for old, change in zip(p, slope, strict=True)]

    compiled = torch.compile(step)

    def call() -> tuple[Any, ...]:
        nonlocal params
        with torch.no_grad():
            value, params = compiled(params, x, labels)
        return (value, *params)

    return call


def build_gelu(data: Arrays, mode: str) -> Call:
    def total(x: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x, approximate="tanh").sum()

    return value_and_gradient(mode, total, [tensor(data["x"])])


def build_softmax(data: Arrays, mode: str) -> Call:
    x, labels = tensor(data["x"]), tensor(data["labels"])
    return value_and_gradient(mode, lambda x: functional.cross_entropy(x, labels), [x])


def build_attention(data: Arrays, mode: str) -> Call:
    x = tensor(data["x"])
    p = [tensor(data[name]) for name in "qkvo"]
    return gradient(mode, lambda *p: attend(p, x).square().mean(), p)


def build_block(data: Arrays, mode: str) -> Call:
    given = tensor(data["x"])

    def loss(*p: torch.Tensor) -> torch.Tensor:
        q, k, v, o, scale1, offset1, scale2, offset2, w1, b1, w2, b2 = p
        wide = given.shape[-1:]
        x = given + attend((q, k, v, o), functional.layer_norm(given, wide, scale1, offset1))
        h = functional.layer_norm(x, wide, scale2, offset2) @ w1 + b1
        return (x + functional.gelu(h, approximate="tanh") @ w2 + b2).square().mean()

    return gradient(mode, loss, [tensor(data[name]) for name in BLOCK])


def build_layer(data: Arrays, mode: str) -> Call:
    def layer(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor]:
        return (functional.gelu(x @ w + b, approximate="tanh"),)

    return without_gradient(mode, layer, *(tensor(data[name]) for name in "xwb"))


def build_product(data: Arrays, mode: str) -> Call:
    return without_gradient(mode, lambda a, b: (a @ b,), tensor(data["a"]), tensor(data["b"]))


def build_line(data: Arrays, mode: str) -> Call:
    x, y = tensor(data["x"]), tensor(data["y"])
    return without_gradient(mode, lambda x, y: (torch.add(y, x, alpha=1.5),), x, y)


def build_symmetric(data: Arrays, mode: str) -> Call:
    return without_gradient(mode, lambda x: (0.5 * (x + x.T),), tensor(data["x"]))


def build_runge_kutta(data: Arrays, mode: str) -> Call:
    def f(a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            k1 = torch.tanh(a @ y)
            k2 = torch.tanh(a @ (y + STEP / 2 * k1))
            k3 = torch.tanh(a @ (y + STEP / 2 * k2))
            k4 = torch.tanh(a @ (y + STEP * k3))
            y = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y.sum()

    return gradient(mode, f, [tensor(data["a"]), tensor(data["y"])])


def build_mixture(data: Arrays, mode: str) -> Call:
    x = tensor(data["x"])
    (k, d), count = data["mu"].shape, data["x"].shape[1]
    places = tensor(entries_of_triangle(count))
    zeros = torch.zeros(k, 1, dtype=torch.float64)

    def density(*p: torch.Tensor) -> torch.Tensor:
        alpha, mu, q, l = p
        scale = torch.exp(q)
        factors = torch.cat([scale, l, zeros], dim=1)[:, places.reshape(-1)].reshape(k, d, d)
        images = x @ factors.mT - (factors @ mu[:, :, None]).mT
        logits = (alpha + q.sum(dim=1))[:, None] - 0.5 * images.square().sum(dim=2)
        likelihood = torch.logsumexp(logits, dim=0) - torch.logsumexp(alpha, dim=0)
        return likelihood.sum() - 0.5 * (scale.square().sum() + l.square().sum())

    return gradient(mode, density, [tensor(data[name]) for name in ("alpha", "mu", "q", "l")])


def attend(p: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    batch, length, width = x.shape
    q, k, v = ((x @ w).view(batch, length, HEADS, -1).transpose(1, 2) for w in p[:3])
    mixed = functional.scaled_dot_product_attention(q, k, v)
    return mixed.transpose(1, 2).reshape(batch, length, width) @ p[3]


def gradient(
    mode: str, function: Callable[..., torch.Tensor], arguments: list[torch.Tensor]
) -> Call:
    both = value_and_gradient(mode, function, arguments)
    return lambda: both()[1:]


def value_and_gradient(
    mode: str, function: Callable[..., torch.Tensor], arguments: list[torch.Tensor]
) -> Call:
    """Of all arguments."""
    if is_eager(mode):
        for each in arguments:
            each.requires_grad_()

        def call() -> tuple[Any, ...]:
            value = function(*arguments)
            return value.detach(), *torch.autograd.grad(value, arguments)

        return call
    numbers = tuple(range(len(arguments)))

    def both(*arguments: torch.Tensor) -> Any:
        slopes, value = torch.func.grad_and_value(function, argnums=numbers)(*arguments)
        return value, *slopes

    compiled = torch.compile(both)
    return lambda: tuple(compiled(*arguments))


def without_gradient(mode: str, function: Callable[..., Any], *arguments: Any) -> Call:
    called = function if is_eager(mode) else torch.compile(function)

    def call() -> tuple[Any, ...]:
        with torch.no_grad():
            return tuple(called(*arguments))

    return call


def is_eager(mode: str) -> bool:
    return mode == "PyTorch eager"


def logits(p: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    *hidden, w, b = p
    for k in range(0, len(hidden), 2):
        x = torch.relu(x @ hidden[k] + hidden[k + 1])
    return x @ w + b


def parameters(data: Arrays) -> list[torch.Tensor]:
    return [tensor(data[name]) for name in names_of_layers(data)]


def tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(array.copy())


def to_numpy(results: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """The results of a call as arrays of their own."""
    return [result.detach().numpy().copy() for result in results]


BUILD = {
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
