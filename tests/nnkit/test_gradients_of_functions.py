"""Gradients of every function and operator of the language against central differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import bf16, f16, f32, f64, i32, staged

from .test_functions import UNARY, agree, numbers, random

pytestmark = pytest.mark.usefixtures("unoptimized_code")


def difference(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    """The gradient of the sum of `function` by central differences."""
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        above, below = x.copy(), x.copy()
        above[index] += step
        below[index] -= step
        change = np.asarray(function(above)).sum() - np.asarray(function(below)).sum()
        result[index] = change / (2 * step)
    return result


def test_gradients_of_functions_of_one_argument() -> None:
    names = list(UNARY)
    x = np.stack([random.uniform(low + 0.05, high - 0.05, 5) for _, (low, high) in UNARY.values()])
    x = np.where(np.abs(x - np.round(x * 2) / 2) < 1e-3, x + 0.01, x)  # away from jumps

    @staged
    def all_of_them(x: Any) -> Any:
        return nk.stack([getattr(nk, name)(x[k]) for k, name in enumerate(names)])

    got = np.asarray(nk.gradient(of=all_of_them, wrt=0)(x))
    above, below = (np.asarray(all_of_them(x + step)) for step in (1e-6, -1e-6))
    for k, name in enumerate(names):
        want = (above[k] - below[k]) / 2e-6
        np.testing.assert_allclose(got[k], want, 2e-6, 1e-7, err_msg=name)


SMOOTH: Mapping[str, Callable[[Any], Any]] = {
    "x + y": lambda x: x[0] + x[1],
    "x - y": lambda x: x[0] - x[1] * 3.0,
    "x * y": lambda x: x[0] * x[1],
    "x / y": lambda x: x[0] / x[1],
    "x ** y": lambda x: x[0] ** x[1],
    "number ** x": lambda x: 2.0**x,
    "x ** number": lambda x: x**-1.5,
    "maximum": lambda x: nk.maximum(x[0], x[1]) * x[2],
    "minimum": lambda x: nk.minimum(x[0], 1.0) * x[2],
    "modulo": lambda x: nk.modulo(x[0] * 7.1, x[1]),
    "select": lambda x: nk.select(x[0] > x[1], x[0] * x[2], x[1] * 2.0),
    "broadcast": lambda x: x * x[0] + x[:, :1],
    "sum": lambda x: x.sum(0) * x[0],
    "sum kept": lambda x: x.sum(1, keepdims=True) * x,
    "prod": lambda x: x.prod(axis=1) * 2.0,
    "max": lambda x: x.max(1) * x[:, 0],
    "min": lambda x: x.min() * x,
    "mean": lambda x: x.mean(0) * x[1],
    "var": lambda x: x.var(1) * x[:, 1],
    "norm": lambda x: nk.norm(x, axis=0) * x[0],
    "logsumexp": lambda x: nk.logsumexp(x, axis=1) * x[:, 0],
    "softmax": lambda x: nk.softmax(x) * x,
    "log_softmax": lambda x: nk.log_softmax(x, axis=0) * x,
    "cumsum": lambda x: nk.cumsum(x, 1) * x,
    "layer_norm": lambda x: nk.layer_norm(x, x[0], x[1]) * x,
    "cross_entropy": lambda x: nk.cross_entropy(x, nk.softmax(x * 2.0)),
    "labels": lambda x: nk.cross_entropy(x, nk.const(np.array([1, 0, 3]))) * x[0, 0],
    "vector @ vector": lambda x: x[0] @ x[1],
    "matrix @ vector": lambda x: x @ x[0],
    "matrix @ matrix": lambda x: x @ (x.T * 2.0) * x[0, 1],
    "batches": lambda x: x.reshape(3, 2, 2) @ x.reshape(3, 2, 2) @ x[:2, :2],
    "transpose": lambda x: x.T * x.reshape(4, 3),
    "concat": lambda x: nk.concat([x, x * x], axis=1) * 2.0,
    "stack": lambda x: nk.stack([x, x * x], axis=1) * x[0],
    "flip": lambda x: nk.flip(x, 1) * x,
    "pad": lambda x: nk.square(nk.pad(x, [(1, 0), (2, 1)], constant_values=2)),
    "take": lambda x: nk.square(nk.take(x, nk.const(np.array([0, 0, 2, -1])), axis=1)),
    "subscript": lambda x: nk.square(x[::-2, 1:]) * x[0, 0],
    "staged subscript": lambda x: nk.square(x[nk.const(np.array(1))]),
    "expand": lambda x: x.expand_dims(1) * x[0],
    "squeeze": lambda x: nk.square(x[:1].squeeze(0)),
    "broadcast_to": lambda x: nk.square(nk.broadcast_to(x[0], (5, 4))),
    "xor": lambda x: nk.select((x[0] > 1.0) ^ (x[1] > 1.0), x[0] * x[1], x[2]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    x = np.array([[0.9, 1.7, 2.4, 0.6], [1.3, 0.55, 1.9, 2.1], [2.2, 1.05, 0.75, 1.45]])
    function = staged(SMOOTH[name])
    got = np.asarray(nk.gradient(of=function, wrt=0)(x))
    np.testing.assert_allclose(got, difference(function, x), 1e-6, 1e-7)


@pytest.mark.parametrize("dtype", [f16, bf16, f32], ids=lambda d: d.__name__)
def test_gradients_have_the_element_type_of_the_parameter(dtype: Any) -> None:
    x, values = numbers((3, 4), 0.5, 2, dtype)
    function = staged(lambda x: (nk.tanh(x) * x + nk.exp(-x)).sum(0))
    got = nk.gradient(of=function, wrt=0)(x)
    v = values.astype(np.float64)
    want = np.tanh(v) + v / np.cosh(v) ** 2 - np.exp(-v)
    agree("gradient", got, want, dtype, slack=8)


def test_stop_gradient_and_casts() -> None:
    x = np.array([1.0, 2.0, 3.0])
    stopped = staged(lambda x: x * nk.stop_gradient(x * 5.0))
    np.testing.assert_allclose(np.asarray(nk.gradient(of=stopped, wrt=0)(x)), 5 * x)
    through = staged(lambda x: nk.square(x.cast(f32)).cast(f64))
    np.testing.assert_allclose(np.asarray(nk.gradient(of=through, wrt=0)(x)), 2 * x)
    integers = staged(lambda x: x * x.cast(i32).cast(f64))
    np.testing.assert_allclose(np.asarray(nk.gradient(of=integers, wrt=0)(x)), x)
