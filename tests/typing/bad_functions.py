"""Rejected (marks as in bad.py): the functions, random numbers, inspection."""
from __future__ import annotations
from typing import TypeAlias
import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor5D, bf16, boolean, f16, f32, f64, i32, i64, random, spec, staged
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Float2D]
@staged
def f(p: Rep[Params], x: Rep[Float2D]) -> Rep[Float2D]:
    return x @ p[Params.w]

def elementwise(v: Rep[Float1D], m: Rep[Float2D], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]], t: Rep[Tensor3D[f32]]) -> None:
    nk.sqrt(n)    # E
    nk.gelu(n)    # E
    nk.erf(p)    # E
    nk.abs(p)    # E
    abs(p)    # E:pyright
    nk.floor(n)    # E
    nk.maximum(m, d)    # E
    nk.maximum(n, 0.5)    # E
    nk.minimum(m, n)    # E
    nk.power(2.0, 2.0)    # E
    nk.floor_divide(m, m)    # E
    nk.truncate_divide(m, 2)    # E
    nk.div(n, n)    # E
    nk.add(p, p)    # E
    nk.select(m > 0.0, m, n)    # E
    nk.select(p, 1.0, 0.0)    # E
    nk.select(p, n, 0.5)    # E
    y: Rep[Float1D] = nk.maximum(v, m)    # E
    for row in m: del row    # E
    list(m)    # E
    del y

def reductions(v: Rep[Float1D], m: Rep[Tensor2D[f32, Batch, In]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]]) -> None:
    n.var()    # E
    p.sum()    # E
    m.all()    # E
    nk.mean(n)    # E
    nk.mean(m, axis=2)    # E
    nk.norm(v, axis=(0, 1))    # E
    nk.logsumexp(p)    # E
    m.argmin(axis=-3)    # E
    a: Rep[Scalar[f32]] = nk.mean(m, axis=0)    # E
    b: Rep[Tensor1D[f32, Batch]] = nk.mean(m, axis=0)    # E
    c: Rep[Float1D] = m.sum(axis=0, keepdims=True)    # E
    e: Rep[Tensor1D[i32]] = m.argmax(axis=0)    # E
    del a, b, c, e

def shapes(v: Rep[Float1D], m: Rep[Tensor2D[f32, Batch, In]], q: Rep[Tensor5D[f32]]) -> None:
    m.squeeze(2)    # E
    q.expand_dims(0)    # E
    m.expand_dims(3)    # E
    nk.stack([m, v])    # E
    nk.stack([q, q])    # E
    nk.pad(m, ((0, 1),))    # E
    nk.broadcast_to(m, (3,))    # E
    nk.zeros((2, 3), 0.0)    # E
    nk.zeros((1, 2, 3, 4, 5, 6), f32)    # E
    a: Rep[Float1D] = nk.zeros((2, 3), f32)    # E
    b: Rep[Float2D] = nk.ones((2, 3), f64)    # E
    nk.arange(3, boolean)    # E
    nk.iota((2, 3), i32, axis=2)    # E
    v[0:1, 0:1]    # E
    m["w"]    # E
    del a, b

def lookups(table: Rep[Tensor2D[f32, In, Out]], rows: Rep[Tensor1D[i64, Batch]], grid: Rep[Tensor2D[i32]], q: Rep[Tensor5D[f32]], h: Rep[Float1D]) -> None:
    nk.take(table, h)    # E
    nk.take(q, grid)    # E
    nk.take(table, rows, axis=2)    # E
    nk.take(table, rows, mode="drop")    # E
    a: Rep[Tensor2D[f32, In, Out]] = nk.take(table, rows)    # E
    nk.one_hot(h, 10, f32)    # E
    del a

def losses(x: Rep[Tensor2D[f32, Batch, Out]], y: Rep[Tensor1D[i64, Batch]], z: Rep[Tensor1D[i64, In]], v: Rep[Tensor1D[f32, In]], n: Rep[Tensor2D[i32]]) -> None:
    nk.cross_entropy(x, z)    # E
    nk.cross_entropy(y, x)    # E
    nk.cross_entropy(n, y)    # E
    nk.softmax(n)    # E
    nk.layer_norm(x, v, v)    # E
    nk.layer_norm(n)    # E

def numbers(key: Rep[Scalar[i64]], small: Rep[Scalar[i32]]) -> None:
    random.key("0")    # E
    random.normal(0, (2, 3))    # E
    random.normal(small, (2, 3))    # E
    random.normal(key, (2, 3), dtype=i32)    # E
    a: Rep[Float1D] = random.normal(key, (2, 3))    # E
    b: Rep[Tensor2D[f16]] = random.normal(key, (2, 3), dtype=bf16)    # E
    c, d, e = random.split(key)    # E
    del a, b, c, d, e

def inspect(p: Params, x: Rep[Float2D]) -> None:
    f.ir(p, spec((1, 2), f32), stage="middle")    # E
    f.ir(p, (1, 2))    # E
    x.ir(p)    # E
    x.compile()    # E
    spec((1, 2))    # E
    Params(p)    # E
