"""Rejected (marks as in bad.py): more of the functions, axes, makers and random numbers."""
from __future__ import annotations
from typing import TypeAlias
import numpy as np
import numpy.typing as npt
import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, bf16, boolean, f16, f32, f64, i8, i32, i64, random
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
def elementwise(v: Rep[Float1D], m: Rep[Float2D], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]], c: Float2D, a: npt.NDArray[np.float32], s: Rep[Scalar[f32]]) -> None:
    nk.sigmoid(n)    # E
    nk.log(p)    # E
    nk.softplus(n)    # E
    nk.logaddexp(m, d)    # E
    nk.logaddexp(n, n)    # E
    nk.exp(2.0)    # E
    nk.relu(c)    # E
    nk.cos(a)    # E
    nk.sqrt()    # E
    nk.sqrt(m, m)    # E
    nk.sign(p)    # E
    nk.square(p)    # E
    nk.negate(p)    # E
    nk.rint(n)    # E
    nk.add(m, d)    # E
    nk.add(m, c)    # E
    nk.add(1.0, 2.0)    # E
    nk.add(m)    # E
    nk.sub(n, 0.5)    # E
    nk.mul(p, 2)    # E
    nk.div(n, 2)    # E
    nk.div(m, n)    # E
    nk.power(m, d)    # E
    nk.maximum(m, p)    # E
    nk.minimum(m, "0")    # E
    nk.modulo(n, m)    # E
    nk.floor_divide(n, 2.0)    # E
    nk.truncate_divide(n, m)    # E
    a0: Rep[Float1D] = nk.add(m, v)    # E
    a1: Rep[Tensor2D[f64]] = nk.exp(m)    # E
    a2: Rep[Scalar[f32]] = nk.abs(v)    # E
    a3: Float2D = nk.exp(m)    # E
    a4: Rep[Float2D] = nk.maximum(n, 1)    # E
    del a0, a1, a2, a3, a4

def axes(s: Rep[Scalar[f32]], v: Rep[Float1D], m: Rep[Tensor2D[f32, Batch, In]], t: Rep[Tensor3D[f32]], n: Rep[Tensor2D[i32]], p: Rep[Tensor1D[boolean]], i: int) -> None:
    nk.softmax(v, axis=1)    # E
    nk.softmax(m, axis=2)    # E
    nk.softmax(m, axis=-3)    # E
    nk.softmax(m, axis=(0, 1))    # E
    nk.softmax(n)    # E
    nk.log_softmax(m, axis=2)    # E
    nk.log_softmax(n, axis=1)    # E
    nk.cumsum(v, axis=1)    # E
    nk.cumsum(p, axis=0)    # E
    nk.cumsum(s, axis=0)    # E
    nk.flip(m, axis=2)    # E
    nk.flip(t, axis=3)    # E
    nk.mean(s, axis=0)    # E
    nk.mean(v, axis=1)    # E
    nk.var(m, axis=(1, 2))    # E
    nk.norm(n)    # E
    nk.norm(m, axis=2)    # E
    nk.logsumexp(m, axis=2)    # E
    nk.logsumexp(n, axis=0)    # E
    nk.mean(m, 0, True)    # E
    m.sum(axis=i)    # E
    a0: Rep[Tensor1D[f32, Batch]] = nk.logsumexp(m, axis=0)    # E
    a1: Rep[Scalar[f32]] = nk.norm(m, axis=0)    # E
    a2: Rep[Tensor1D[f32, In]] = nk.var(m, axis=0, keepdims=True)    # E
    a3: Rep[Tensor1D[f32, Batch]] = nk.softmax(m, axis=0)    # E
    a4: Rep[Tensor2D[f32, In, Batch]] = nk.softmax(m, axis=0)    # E
    del a0, a1, a2, a3, a4

def makers(v: Rep[Float1D], m: Rep[Float2D], q: Rep[Tensor4D[f32]], n: Rep[Tensor1D[i32]], p: Rep[Tensor2D[boolean]]) -> None:
    nk.zeros([2, 3], f32)    # E
    nk.zeros((2, 3), float)    # E
    nk.zeros((2.0, 3), f32)    # E
    nk.full((2,), 0.5, i32)    # E
    nk.full((2,), 1, boolean)    # E
    nk.full((2,), 0.5, boolean)    # E
    nk.full((2,), f32)    # E
    nk.full((2,), "a", f32)    # E
    nk.arange(3.0, f32)    # E
    nk.arange(0, 3, i32)    # E
    nk.iota((), i32)    # E
    nk.iota((2, 3), boolean)    # E
    nk.iota((2, 3), f32, axis=-3)    # E
    nk.pad(v, ((0, 1), (0, 1)))    # E
    nk.pad(n, ((0, 1),), constant_values=0.5)    # E
    nk.pad(p, ((0, 1), (0, 1)))    # E
    nk.pad(m, ((0, 1), (0, 1)), constant_values="0")    # E
    nk.broadcast_to(m, (2,))    # E
    nk.broadcast_to(q, (2, 3))    # E
    nk.zeros_like(3.0)    # E
    nk.zeros_like()    # E
    a0: Rep[Float2D] = nk.zeros((2,), f32)    # E
    a1: Rep[Tensor1D[f64]] = nk.full((2,), 1.0, f32)    # E
    a2: Rep[Float1D] = nk.arange(3, i32)    # E
    a3: Rep[Float1D] = nk.zeros_like(m)    # E
    a4: Rep[Float1D] = nk.broadcast_to(v, (2, 3))    # E
    a5: Float1D = nk.zeros((2,), f32)    # E
    a6: Rep[Float1D] = nk.pad(m, ((0, 1), (0, 1)))    # E
    del a0, a1, a2, a3, a4, a5, a6

def lookups(table: Rep[Tensor2D[f32, In, Out]], rows: Rep[Tensor1D[i64, Batch]], grid: Rep[Tensor2D[i32]], t: Rep[Tensor3D[f32]], v: Rep[Float1D], p: Rep[Tensor1D[boolean]]) -> None:
    nk.take(table, p)    # E
    nk.take(v, rows, axis=1)    # E
    nk.take(table, rows, 0, "clip")    # E
    nk.take(t, t)    # E
    nk.take(table)    # E
    nk.take(rows, v)    # E
    nk.one_hot(p, 3, f32)    # E
    nk.one_hot(rows, 3.0, f32)    # E
    nk.one_hot(rows, f32)    # E
    nk.one_hot(rows, 3, float)    # E
    a0: Rep[Tensor2D[f32, Batch, In]] = nk.take(table, rows)    # E
    a1: Rep[Tensor1D[f32, Out]] = nk.take(table, rows)    # E
    a2: Rep[Tensor2D[i64]] = nk.one_hot(rows, 3, f32)    # E
    a3: Rep[Tensor1D[f32]] = nk.one_hot(rows, 3, f32)    # E
    a4: Rep[Tensor2D[f32]] = nk.take(table, grid)    # E
    del a0, a1, a2, a3, a4

def losses(x: Rep[Tensor2D[f32, Batch, Out]], y: Rep[Tensor1D[i64, Batch]], h: Rep[Tensor2D[f64, Batch, Out]], v: Rep[Tensor1D[f32, Out]], t: Rep[Tensor3D[f32]], f: Rep[Tensor1D[f32, Batch]], c: Rep[Tensor2D[i64, Batch, Out]]) -> None:
    nk.cross_entropy(x, f)    # E
    nk.cross_entropy(x, h)    # E
    nk.cross_entropy(x)    # E
    nk.cross_entropy(t, y)    # E
    nk.cross_entropy(x, c)    # E
    nk.cross_entropy(x, y, 1)    # E
    nk.cross_entropy(v, y)    # E
    nk.cross_entropy(x, [0, 1])    # E
    nk.layer_norm(x, v)    # E
    nk.layer_norm(x, f, f)    # E
    nk.layer_norm(h, v, v)    # E
    nk.layer_norm(x, 1.0, 0.0)    # E
    nk.layer_norm(x, v, v, 1e-6)    # E
    nk.layer_norm(x, x, x)    # E
    nk.layer_norm(c)    # E
    a0: Rep[Tensor1D[f32, Batch]] = nk.cross_entropy(x, y)    # E
    a1: Rep[Scalar[f64]] = nk.cross_entropy(x, y)    # E
    a2: Rep[Tensor1D[f32, Batch]] = nk.layer_norm(x)    # E
    a3: float = nk.cross_entropy(x, y)    # E
    del a0, a1, a2, a3

def numbers(key: Rep[Scalar[i64]], concrete: Scalar[i64], v: Rep[Tensor1D[i64]]) -> None:
    random.key(0.5)    # E
    random.key(f32(1.0))    # E
    random.key()    # E
    random.normal((2, 3), key)    # E
    random.normal(v, (2, 3))    # E
    random.normal(key, [2, 3])    # E
    random.normal(key, (2, 3), dtype=boolean)    # E
    random.normal(key, (1, 2, 3, 4, 5, 6))    # E
    random.normal(key, (2, 3), low=0.0)    # E
    random.uniform(key, (2,), 0.0, 1.0)    # E
    random.uniform(key, (2,), minval="0")    # E
    random.uniform(0.5, (2,))    # E
    random.split(0)    # E
    random.split(v)    # E
    random.split(key, num=2.0)    # E
    random.permutation(key, 3.0)    # E
    a0: Float2D = random.normal(key, (2, 3))    # E
    a1: Rep[Float2D] = random.normal(concrete, (2, 3))    # E
    a2: Float1D = random.normal(concrete, (2, 3))    # E
    a3: Tensor2D[f64] = random.normal(concrete, (2, 3))    # E
    a4: Rep[Scalar[i64]] = random.split(concrete, 3)[0]    # E
    random.normal(random.split(key), (2,))    # E
    del a0, a1, a2, a3, a4

def values() -> None:
    Tensor1D([0.5], i32)    # E
    Tensor1D([1], boolean)    # E
    Tensor2D([[0.5]], i64)    # E
    Tensor0D(0.5, i8)    # E
    Tensor0D("1", f32)    # E
    Tensor1D([True, 2], boolean)    # E
    Tensor1D(["1"], f32)    # E
    boolean(1)    # E
    f16(None)    # E
    bf16([1.0])    # E
    nk.nothing    # E
    Tensor4D([[[1.0]]], f32)    # E
