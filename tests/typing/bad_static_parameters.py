"""What static arguments do not change: the data of a call is checked as before."""

import numpy as np

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32

M = Tensor2D[f32]
V = Tensor1D[f32]


@nk.staged
def layer(x: Rep[M], w: Rep[M], training: bool = False) -> Rep[M]:
    return x @ w if training else x


@nk.staged
def calls(x: Rep[M], v: Rep[V]) -> Rep[M]:
    made: Rep[V] = layer(x, x, training=True)  # E
    layer(x, v, training=True)  # E
    layer(x, training=True)  # E
    return layer(x, x, "yes")  # E


@nk.staged
def powered(x: Rep[M], n: int, name: str = "") -> Rep[M]:
    return x ** float(n) if name else x


@nk.staged
def keyword(x: Rep[M], *, n: int) -> tuple[Rep[M], Rep[V]]:
    return x * float(n), x[0]


@nk.staged
def unmarked(x: Rep[M], w: M) -> Rep[M]:
    return x @ nk.const(w)


m, v = Tensor2D(np.ones((2, 3), np.float32)), Tensor1D(np.ones(3, np.float32))
layer(m, v, training=True)  # E
layer(m, m, m, training=True)  # E
layer(m, m, training=m)  # E
layer(m, m, out=v)  # E
layer(m, m, out=v, training=True)  # E
wrong: V = layer(m, m, training=True)  # E
bound: V = layer.partial(training=True)(m, m)  # E
nk.gradient(of=layer, wrt=0)(m, v, training=True)  # E
layer(m, m, traning=True)  # E
layer(m, m, training="yes")  # E
layer(m, m, True, training=True)  # E
layer(m, m, True, 2)  # E
powered(m)  # E
powered(m, name="a")  # E
powered(m, "a")  # E
powered(m, 2, n=2)  # E
powered(m, 2, "a", 3)  # E
powered(v, 2)  # E
keyword(m)  # E:pyright
keyword(m, n="a")  # E:pyright
keyword(m, m=1)  # E:pyright
keyword(v, n=1)  # E
unmarked(m, m)  # E
