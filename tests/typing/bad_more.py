"""Rejected (marks as in bad.py): new dtypes, several outputs, seeds."""
from __future__ import annotations
from typing import TypeAlias
import numpy as np
from nnkit import Rep, Struct, Tensor1D, Tensor2D, Tensor4D, bf16, boolean, f16, f32, fn, gradient, i8, i32, staged, tanh, value_and_gradient
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
def ops(v: Rep[Float1D], m: Rep[Float2D], h: Rep[Tensor2D[f16]], b: Rep[Tensor2D[bf16]], n: Rep[Tensor2D[i8]], p: Rep[Tensor2D[boolean]],
        pv: Rep[Tensor1D[boolean]], q: Rep[Tensor4D[f32]]) -> None:
    h + b    # E
    h @ m    # E
    n * 0.5    # E
    tanh(n)    # E
    b // 2    # E
    p + p    # E
    pv * p    # E
    p * 2    # E
    ~n    # E
    n & n    # E
    p.mean()    # E
    p @ p    # E:pyright
    m < tanh(h)    # E
    v + tanh(q[0, 0, 0, 0]) + q[0] + h    # E
    y: Rep[Float2D] = m[0, :]    # E
    z: Rep[Float1D] = m[0, 1]    # E
    a: Float2D = Tensor2D(np.zeros((3, 4), np.float16))    # E
    c: Tensor2D[i32] = Tensor2D(np.zeros((3, 4), np.int8))    # E
    bf16("x")    # E
    del y, z, a, c
@staged
def two(x: Rep[Float2D], w: Rep[Float2D], b: Rep[Float1D]) -> tuple[Rep[Float2D], Rep[Float1D]]:
    return x @ w, b
@staged
def ints(x: Rep[Float2D], n: Rep[Tensor1D[i32]]) -> tuple[Rep[Tensor1D[i32]], Rep[Float2D]]:
    return n, x
@staged
def whole(x: Rep[Float2D], n: Rep[Tensor1D[i32]]) -> Rep[Tensor1D[i32]]:
    return n
gradient(of=two, wrt=1, from_=4)    # E
gradient(of=two, wrt=3, from_=1)    # E
gradient(of=whole, wrt=0)    # E
gradient(of=whole, wrt=0, seedable=True)    # E
gradient(of=ints, wrt=1, from_=1)    # E
gradient(of=ints, wrt=0, seedable=True)    # E
value_and_gradient(of=two, wrt=1)    # E
s0 = gradient(of=two, wrt=(1, 2), from_=0, seedable=True)
s1 = gradient(of=two, wrt=(1, 2), from_=1, seedable=True)
g0: Rep[Struct] = gradient(of=two, wrt=1)    # E
def seeds(c: Float2D, k: Float1D, x: Rep[Float2D], v: Rep[Float1D]) -> None:
    s0(c, c, k)    # E
    s1(c, c, k, c)    # E
    s1[x, x, v, x]    # E
_ = fn
