"""The problems in NNKit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i64

from .problems import RATE, Arrays

Call = Callable[[], tuple[Any, ...]]


class Params(Struct):
    w1: Field[Tensor2D[f32]]
    b1: Field[Tensor1D[f32]]
    w2: Field[Tensor2D[f32]]
    b2: Field[Tensor1D[f32]]
    w3: Field[Tensor2D[f32]]
    b3: Field[Tensor1D[f32]]


def build_call(data: Arrays, mode: str) -> Call:
    @nk.staged
    def increment(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        return x + 1.0

    x = Tensor1D(data["x"], f32)
    return lambda: (increment(x),)


def build_affine(data: Arrays, mode: str) -> Call:
    @nk.staged
    def affine(
        x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]], b: Rep[Tensor2D[f32]]
    ) -> Rep[Tensor2D[f32]]:
        return nk.tanh(x @ w + b)

    x, w, b = (Tensor2D(data[name], f32) for name in "xwb")
    return lambda: (affine(x, w, b),)


def build_forward(data: Arrays, mode: str) -> Call:
    logits, _ = model()
    x, params = Tensor2D(data["x"], f32), parameters(data)
    return lambda: (logits(params, x),)


def build_step(data: Arrays, mode: str) -> Call:
    _, loss = model()

    @nk.staged
    def step(
        p: Rep[Params], x: Rep[Tensor2D[f32]], labels: Rep[Tensor1D[i64]]
    ) -> tuple[Rep[Params], Rep[Scalar[f32]]]:
        value, slope = nk.value_and_gradient(of=loss, wrt=0)(p, x, labels).unpack()
        for field in nk.fields(Params):
            p = p.set(field, p[field] - RATE * slope[field])
        return p, value

    params = parameters(data)
    x, labels = Tensor2D(data["x"], f32), Tensor1D(data["labels"], i64)

    def call() -> tuple[Any, ...]:
        nonlocal params
        params, value = step(params, x, labels)
        return (value, params.w1, params.b1, params.w2, params.b2, params.w3, params.b3)

    return call


def build_gelu(data: Arrays, mode: str) -> Call:
    @nk.staged
    def total(x: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
        return nk.gelu(x).sum()

    x = Tensor1D(data["x"], f32)
    both = nk.value_and_gradient(of=total, wrt=0)
    return lambda: both(x)


def build_softmax(data: Arrays, mode: str) -> Call:
    @nk.staged
    def loss(x: Rep[Tensor2D[f32]], labels: Rep[Tensor1D[i64]]) -> Rep[Scalar[f32]]:
        return nk.cross_entropy(x, labels)

    x, labels = Tensor2D(data["x"], f32), Tensor1D(data["labels"], i64)
    slope = nk.gradient(of=loss, wrt=0)
    return lambda: (slope(x, labels),)


def model() -> tuple[Any, Any]:
    """Logits and loss of the MLP, made anew, so that nothing is compiled yet."""

    @nk.staged
    def logits(p: Rep[Params], x: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
        x = nk.relu(x @ p[Params.w1] + p[Params.b1])
        x = nk.relu(x @ p[Params.w2] + p[Params.b2])
        return x @ p[Params.w3] + p[Params.b3]

    @nk.staged
    def loss(p: Rep[Params], x: Rep[Tensor2D[f32]], labels: Rep[Tensor1D[i64]]) -> Rep[Scalar[f32]]:
        return nk.cross_entropy(logits(p, x), labels)

    return logits, loss


def parameters(data: Arrays) -> Params:
    w1, w2, w3 = (Tensor2D(data[name], f32) for name in ("w1", "w2", "w3"))
    b1, b2, b3 = (Tensor1D(data[name], f32) for name in ("b1", "b2", "b3"))
    return Params(w1, b1, w2, b2, w3, b3)


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
