"""Static parameters: by name, for Reps and for data, through derivatives, and bound."""

from typing import assert_type

import numpy as np

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor2D, f32


class Batch(Dim): ...


class Unit(Dim): ...


M = Tensor2D[f32]
Named = Tensor2D[f32, Batch, Unit]


@nk.staged
def layer(x: Rep[M], w: Rep[M], training: bool = False, *, scale: int = 1) -> Rep[M]:
    return (x if training else x * float(scale)) @ w


@nk.staged
def named(x: Rep[Named], rate: float = 0.5) -> Rep[Named]:
    return x * rate


@nk.staged
def loss(x: Rep[M], w: Rep[M], *, power: int = 2) -> Rep[Scalar[f32]]:
    made = layer(x, w, training=True)
    assert_type(made, Rep[M])
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
