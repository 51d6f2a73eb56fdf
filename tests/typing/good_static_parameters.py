"""Static parameters: by name, for Reps and for data, through derivatives, and bound."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, assert_type

import numpy as np

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, f32


class Batch(Dim): ...


class Unit(Dim): ...


class Kind(Enum):
    FIRST = 1
    LAST = 2


@dataclass(frozen=True)
class Config:
    width: int


M = Tensor2D[f32]
V = Tensor1D[f32]
Named = Tensor2D[f32, Batch, Unit]


@nk.staged
def layer(x: Rep[M], w: Rep[M], training: bool = False, *, scale: int = 1) -> Rep[M]:
    return (x if training else x * float(scale)) @ w


@nk.staged
def powered(x: Rep[Tensor2D[f32]], n: int, name: str = "") -> Rep[M]:
    return x ** float(n) if name else x


@nk.staged
def keyword(x: Rep[M], w: Rep[M], *, n: int, kind: Kind | None = None) -> tuple[Rep[M], Rep[V]]:
    return x * float(n), w[0] if kind is Kind.FIRST else w[1]


@nk.staged
def activated(x: Rep[M], by: Callable[[Rep[M]], Rep[M]], /, sizes: tuple[int, ...] = ()) -> Rep[M]:
    return by(x) * float(len(sizes))


@nk.staged
def numbers(n: int, dtype: type[f32] = f32) -> Rep[V]:
    return nk.ones((n,), dtype)


@nk.staged
def configured(x: Rep[M], config: Config, width: Literal[1, 2] | None = None) -> Rep[M]:
    return x * float(config.width + (width or 0))


@nk.staged
def partly(x: Rep[Tensor2D[f32, Any, Unit]], w: Rep[M], rate: float = 1.0) -> Rep[M]:
    return x @ w * rate


@nk.staged
def named(x: Rep[Named], rate: float = 0.5) -> Rep[Named]:
    return x * rate


@nk.staged
def loss(x: Rep[M], w: Rep[M], *, power: int = 2) -> Rep[Scalar[f32]]:
    made = layer(x, w, training=True)
    assert_type(made, Rep[M])
    assert_type(layer(x, w, True), Rep[M])
    assert_type(powered(made, 2), Rep[M])
    assert_type(keyword(x, w, n=1), Rep[tuple[M, V]])
    assert_type(activated(x, nk.tanh, (1, 2)), Rep[M])
    assert_type(configured(x, Config(3), width=2), Rep[M])
    assert_type(numbers(3), Rep[V])
    return (made ** float(power)).sum()


x, w = Tensor2D(np.ones((2, 3), np.float32)), Tensor2D(np.ones((3, 4), np.float32))
y = layer(x, w)
assert_type(y, M)
assert_type(layer(x, w, training=True), M)
assert_type(layer(x, w, training=True, scale=3), M)
assert_type(layer[x, w], M)
assert_type(layer(x, w, out=y), M)
assert_type(layer.partial(training=True)(x, w), M)
assert_type(named(nk.named(x, Batch, Unit), rate=0.1), Named)
assert_type(nk.gradient(of=loss, wrt=1)(x, w, power=3), M)
assert_type(nk.gradient(of=loss.partial(power=3), wrt=(0, 1))(x, w), tuple[M, M])
assert_type(nk.value_and_gradient(of=loss, wrt=1)(x, w, power=3), tuple[Scalar[f32], M])
assert_type(layer.ir(x, w, training=True, stage="optimized"), str)
assert_type(layer(x, w, True), M)
assert_type(layer(x, w, True, scale=3), M)
assert_type(powered(x, 2), M)
assert_type(powered(x, n=2, name="a"), M)
assert_type(powered(x, 2, "a"), M)
assert_type(powered.partial(n=2)(x), M)
assert_type(keyword(x, w, n=2), tuple[M, V])
assert_type(keyword(x, w, kind=Kind.FIRST, n=2), tuple[M, V])
assert_type(activated(x, nk.tanh), M)
assert_type(activated(x, nk.sigmoid, sizes=(1, 2)), M)
assert_type(configured(x, Config(3), 1), M)
assert_type(nk.gradient(of=powered, wrt=0)(x, n=2), M)
assert_type(nk.vjp(powered.partial(n=2))(x, x), tuple[M])
product: Rep[M] = partly(nk.const(x), nk.const(w), 2.0)
declared: Rep[Callable[[M, M], M]] = layer
halves = nk.split(powered)
kept = halves.forward(x, n=2)
halves.at(x, n=2).forward(x)
assert_type(nk.linearize(powered)(x, n=2)[0], M)
assert_type(nk.linearize(loss, wrt=1)(x, w, power=3)[0], Scalar[f32])
nk.saved(powered, x, n=2).total
nk.check_gradients(powered, x, n=2)
