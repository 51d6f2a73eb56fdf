"""Rejected.  `# E` marks a line that BOTH checkers must flag; `# E:mypy` / `# E:pyright` only that one (a hole of the other).
Unmarked lines must not be flagged by either."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, TypeAlias
import numpy as np
from nnkit import (
    Dim, Field, Rep, Scalar, Struct, Tensor0D, Tensor1D, Tensor2D, Tensor3D, boolean, build, concat, cond,
    f32, f64, fn, fori, gradient, hessian, i32, jvp, select, staged, tanh, value_and_gradient, vjp, while_loop,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]

def ops(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Float2D], t: Rep[Tensor3D[f32]], d: Rep[Tensor2D[f64]],
        n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]], s64: Rep[Scalar[f64]]) -> None:
    s @ m    # E
    v @ t    # E
    m @ d    # E
    m @ 2.0    # E
    m * n    # E
    s64 * m    # E
    n / n    # E
    m // 2    # E
    m & m    # E
    m < d    # E
    tanh(n)    # E
    select(m, m, m)    # E
    select(v < 0.0, m, m)    # E
    v.sum(axis=1)    # E
    m.sum(axis=2)    # E
    n.mean()    # E
    m.transpose(0, 2)    # E
    concat([m, v])    # E
    concat([v, v], axis=1)    # E
    v[0, 0]    # E
    x1: Rep[Float1D] = m.reshape(2, 3)    # E
    x2: Rep[Float2D] = m.sum(axis=0)    # E
    x3: Rep[Float2D] = m.cast(f64)    # E
    m[0] + t                                # fine: rank broadcast
    del x1, x2, x3

def dims(x: Rep[Tensor2D[f32, Batch, In]], w: Rep[Tensor2D[f32, In, Out]], b: Rep[Tensor1D[f32, Out]], a: Rep[Float2D]) -> None:
    x @ x    # E
    x + w    # E
    x + b    # E
    y1: Rep[Tensor2D[f32, Out, Batch]] = x @ w    # E
    y2: Rep[Tensor1D[f32, In]] = (x @ w).sum(axis=0)    # E
    y3: Rep[Tensor2D[f32, Batch, Out]] = x @ a
    a + x + w                               # hole: an unnamed left operand hides the names
    del y1, y2, y3

@staged
def f(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Float2D]:
    return x @ w + b
@staged
def loss(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float2D]) -> Rep[Scalar[f32]]:
    return f(x, w, b).sum()
@staged
def wrong_result(x: Rep[Float2D]) -> Rep[Float1D]:
    return x    # E
@staged    # E
def not_staged(x: int) -> int:
    return x
h1: Rep[Callable[[Float2D, Float1D], Float2D]] = staged(lambda a, b: b @ a)    # E
h2: Rep[Callable[[Float2D, Float2D, Tensor2D[f64]], Float2D]] = staged(lambda x, w, b: x @ w + b)    # E
h3 = fn(Float2D, Float1D)(lambda a, b: a @ b @ a @ b @ b)    # E
h4 = fn(Float2D)(lambda a, b: a)    # E

def app(x: Rep[Float2D], v: Rep[Float1D], c: Float2D, k: Float1D, d: Tensor2D[f64]) -> None:
    f(x, x)    # E
    f[x, x]    # E
    f(x, v, x)    # E
    f[x, v, x]    # E
    f(c, k, c)    # E
    f(c, d, c)    # E
    f(x, c, x)    # E
    r1: Float2D = f(x, x, x)    # E
    r2: Rep[Float2D] = f(c, c, c)    # E
    r3: Float1D = f(c, c, c)    # E
    x(c)    # E
    if x < 0.0: pass    # E:pyright
    del r1, r2, r3

def structs(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]], w: Tensor2D[f32, In, Out], b: Tensor1D[f32, Out]) -> None:
    Params(w)    # E
    x @ p[Params.b] + p[Params.w]    # E
    p.set(Params.w, p[Params.b])    # E
    build(Params, Params.w << p[Params.b])    # E
    class Other(Struct):
        z: Field[Float2D]
    p[Other.z]    # E

g0 = gradient(of=loss, wrt=3)    # E
g1 = gradient(of=loss, wrt=(1, 3))    # E
g2 = gradient(of=loss, wrt=(2, 1))    # E
g3 = gradient(of=f, wrt=(1, 2))                         # accepted: the seed is a tensor of ones
g4 = gradient(of=loss, wrt=(1, 2), keeping=(1,))    # E
g5 = gradient(of=loss, wrt=lambda x, w: w)    # E
g6 = gradient(of=fn(Float2D, Tensor2D[i32])(lambda a, i: a.sum()), wrt=1)    # E
g7 = value_and_gradient(of=f, wrt=1)    # E
G = gradient(of=f, wrt=(1, 2), seedable=True)
Gk = gradient(of=f, wrt=(1, 2), seedable=True, keeping=(0,))
def app_grad(x: Rep[Float2D], c: Float2D, k: Float1D) -> None:
    G(c, c, c)    # E
    G[c, c, c]    # E
    dw, db = Gk(c, c, c, c)    # E
    r: tuple[Float2D, Float2D] = Gk(c, c, c, c)    # E
    jvp(f)(c, c, c)    # E
    vjp(f)(c, c, c, k)    # E
    del dw, db, r
hs = hessian(fn(Float1D)(lambda v: v * v))    # E

def control(x: Rep[Float2D], v: Rep[Float1D], s: Rep[Scalar[f32]], n: Rep[Scalar[i32]]) -> None:
    cond(s, lambda: x, lambda: x)    # E
    cond(x < 0.0, lambda: x, lambda: x)    # E
    cond(s < 0.0, lambda: x, lambda: v)    # E
    while_loop(lambda a: a < 0.0, lambda a: a, x)    # E
    while_loop(lambda a: a.sum() < 0.0, lambda a: a.sum(axis=0), x)    # E
    fori(0, 3, lambda i, a: a[0], x)    # E
    x.fold(v, lambda a, row: a @ row)    # E
    def step(h: Rep[Float1D], row: Rep[Float2D]) -> tuple[Rep[Float1D], Rep[Float1D]]:
        return h, h
    x.scan(v, step)     # E

def concrete(a1: np.ndarray[tuple[int], np.dtype[np.float32]], a2: np.ndarray[tuple[int, int], np.dtype[np.float32]],
             d2: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    f(Tensor2D(a2), Tensor2D(a2), Tensor2D(a2))
    Tensor2D(a1)    # E
    f(Tensor2D(a2), Tensor1D(a1), Tensor2D(a2))    # E
    f(Tensor2D(a2), Tensor2D(d2), Tensor2D(a2))    # E
    q: Float2D = Tensor2D(np.zeros(3, np.float32))    # E
    w: Float2D = Tensor2D(np.zeros((3, 4)))    # E
    del q, w
_unused: Any = (Tensor0D, tanh)
