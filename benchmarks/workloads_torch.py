"""The problems in PyTorch, eager and compiled.

Eager follows its users' habits: `no_grad` where nothing is differentiated, parameters updated in place.
Compiled is the whole computation, gradient and update included, in one `torch.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .problems import RATE, Arrays

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
    return value_and_gradient(mode, lambda x: functional.gelu(x).sum(), tensor(data["x"]))


def build_softmax(data: Arrays, mode: str) -> Call:
    x, labels = tensor(data["x"]), tensor(data["labels"])
    both = value_and_gradient(mode, lambda x: functional.cross_entropy(x, labels), x)
    return lambda: both()[1:]


def value_and_gradient(
    mode: str, function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> Call:
    if is_eager(mode):
        x.requires_grad_()

        def call() -> tuple[Any, ...]:
            value = function(x)
            return value.detach(), *torch.autograd.grad(value, x)

        return call
    compiled = torch.compile(lambda x: torch.func.grad_and_value(function)(x)[::-1])
    return lambda: compiled(x)


def without_gradient(mode: str, function: Callable[..., Any], *arguments: Any) -> Call:
    called = function if is_eager(mode) else torch.compile(function)

    def call() -> tuple[Any, ...]:
        with torch.no_grad():
            return tuple(called(*arguments))

    return call


def is_eager(mode: str) -> bool:
    return mode == "PyTorch eager"


def logits(p: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    w1, b1, w2, b2, w3, b3 = p
    return torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def parameters(data: Arrays) -> list[torch.Tensor]:
    return [tensor(data[name]) for name in ("w1", "b1", "w2", "b2", "w3", "b3")]


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
}
