"""Accepted: the functions, random numbers, and what a staged function can be asked."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, TypeAlias
from typing_extensions import assert_type
import numpy as np
import nnkit as nk
from nnkit import (
    Batched, Dim, DType, Integer, Lens, Logical, Number, Numpy, Ranked, Rep, Scalar, Spec, Struct, Field, Tensor0D, Tensor1D,
    Tensor2D, Tensor3D, Tensor4D, bf16, boolean, f16, f32, f64, fields, i8, i32, i64, random, spec, staged,
)
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]

def elementwise(v: Rep[Float1D], m: Rep[Float2D], h: Rep[Tensor3D[f16]], n: Rep[Tensor1D[i8]]) -> None:
    assert_type(nk.negate(n), Rep[Tensor1D[i8]])
    assert_type(nk.abs(n), Rep[Tensor1D[i8]])
    assert_type(abs(h), Rep[Tensor3D[f16]])
    assert_type(nk.sign(nk.square(m)), Rep[Float2D])
    assert_type(nk.sqrt(nk.rsqrt(m)), Rep[Float2D])
    assert_type(nk.exp(nk.expm1(m)), Rep[Float2D])
    assert_type(nk.log(nk.log1p(m)), Rep[Float2D])
    assert_type(nk.sin(nk.cos(nk.tan(h))), Rep[Tensor3D[f16]])
    assert_type(nk.asin(nk.acos(nk.atan(h))), Rep[Tensor3D[f16]])
    assert_type(nk.sinh(nk.cosh(nk.tanh(h))), Rep[Tensor3D[f16]])
    assert_type(nk.asinh(nk.acosh(nk.atanh(h))), Rep[Tensor3D[f16]])
    assert_type(nk.erf(nk.erfc(nk.lgamma(nk.digamma(v)))), Rep[Float1D])
    assert_type(nk.floor(nk.ceil(nk.round(nk.rint(v)))), Rep[Float1D])
    assert_type(nk.sigmoid(nk.relu(nk.gelu(v))), Rep[Float1D])
    assert_type(nk.softplus(v), Rep[Float1D])
    assert_type(nk.add(m, m), Rep[Float2D])
    assert_type(nk.logaddexp(m, v), Rep[Float2D])
    assert_type(nk.logaddexp(0.0, m), Rep[Float2D])
    assert_type(nk.sub(m, v), Rep[Float2D])
    assert_type(nk.mul(v, m), Rep[Float2D])
    assert_type(nk.div(1.0, m), Rep[Float2D])
    assert_type(nk.power(m, 2.0), Rep[Float2D])
    assert_type(nk.power(2.0, m), Rep[Float2D])
    assert_type(nk.minimum(m, v), Rep[Float2D])
    assert_type(nk.maximum(n, 3), Rep[Tensor1D[i8]])
    assert_type(nk.maximum(nk.tanh(v), m), Rep[Float2D])
    assert_type(nk.maximum(m, nk.tanh(v)), Rep[Float2D])
    assert_type(nk.modulo(m, 1.0), Rep[Float2D])
    assert_type(nk.floor_divide(n, n), Rep[Tensor1D[i8]])
    assert_type(nk.truncate_divide(n, 2), Rep[Tensor1D[i8]])
    assert_type(nk.select(m > 0.0, m, 0.0), Rep[Float2D])
    assert_type(nk.select(n > 0, 0, n), Rep[Tensor1D[i8]])
    assert_type(nk.select(m > 0.0, nk.tanh(m), nk.exp(m)), Rep[Float2D])

def reductions(m: Rep[Tensor2D[f32, Batch, In]], t: Rep[Tensor3D[f64]], n: Rep[Tensor2D[i32]], p: Rep[Tensor2D[boolean]]) -> None:
    assert_type(m.var(), Rep[Scalar[f32]])
    assert_type(m.var(axis=0, keepdims=True), Rep[Tensor2D[f32, Any, In]])
    assert_type(m.sum(axis=1, keepdims=True), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.mean(m), Rep[Scalar[f32]])
    assert_type(nk.mean(m, axis=0), Rep[Tensor1D[f32, In]])
    assert_type(nk.var(m, 1), Rep[Tensor1D[f32, Batch]])
    assert_type(nk.logsumexp(m, axis=-1, keepdims=True), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.norm(t, axis=(0, 2)), Rep[Tensor1D[f64]])
    assert_type(t.sum((0, 1), keepdims=True), Rep[Tensor3D[f64]])
    assert_type(t.sum(keepdims=True), Rep[Tensor3D[f64]])
    assert_type(nk.norm(nk.exp(t), axis=0), Rep[Tensor2D[f64]])
    assert_type(n.prod(axis=0), Rep[Tensor1D[i32]])
    assert_type(n.min(), Rep[Scalar[i32]])
    assert_type(n.argmin(), Rep[Scalar[i64]])
    assert_type(m.argmin(axis=1), Rep[Tensor1D[i64, Batch]])
    assert_type(p.all(), Rep[Scalar[boolean]])
    assert_type((m > 0.0).any(axis=1), Rep[Tensor1D[boolean, Batch]])
    assert_type(nk.cumsum(n, axis=0), Rep[Tensor2D[i32]])

def shapes(s: Rep[Scalar[f32]], v: Rep[Tensor1D[f32, In]], m: Rep[Tensor2D[f32, Batch, In]], t: Rep[Tensor3D[f32]]) -> None:
    assert_type(t.transpose(), Rep[Tensor3D[f32]])
    assert_type(m.transpose(), Rep[Tensor2D[f32, In, Batch]])
    assert_type(m.expand_dims(-1), Rep[Tensor3D[f32, Batch, In]])
    assert_type(m.expand_dims(axis=-2).squeeze(axis=1), Rep[Tensor2D[f32, Batch, In]])
    assert_type(m.squeeze(0), Rep[Tensor1D[f32, In]])
    assert_type(nk.stack([v, v], axis=1), Rep[Tensor2D[f32, In]])
    assert_type(nk.concat((m, m)), Rep[Tensor2D[f32]])
    assert_type(nk.flip(m, axis=0), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.pad(m, ((0, 1), (2, 3))), Rep[Tensor2D[f32]])
    assert_type(nk.pad(v, ((0, 1),), constant_values=1.0), Rep[Float1D])
    assert_type(nk.broadcast_to(v, (3, 4)), Rep[Float2D])
    assert_type(nk.broadcast_to(s, ()), Rep[Scalar[f32]])
    assert_type(v[::2], Rep[Float1D])
    assert_type(m[::-1, 1:10:3], Rep[Float2D])
    assert_type(t[:, ::-1], Rep[Tensor3D[f32]])
    assert_type(nk.zeros((2, 3), f32), Rep[Float2D])
    assert_type(nk.ones((), i32), Rep[Scalar[i32]])
    assert_type(nk.full((2,), 0.5, bf16), Rep[Tensor1D[bf16]])
    assert_type(nk.full((2,), True, boolean), Rep[Tensor1D[boolean]])
    assert_type(nk.zeros_like(m), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.ones_like(s), Rep[Scalar[f32]])
    assert_type(nk.arange(10, i32), Rep[Tensor1D[i32]])
    assert_type(nk.iota((2, 3, 4), f32, axis=1), Rep[Tensor3D[f32]])
    assert_type(nk.stop_gradient(m), Rep[Tensor2D[f32, Batch, In]])

def lookups(table: Rep[Tensor2D[f32, In, Out]], i: Rep[Scalar[i32]], rows: Rep[Tensor1D[i64, Batch]], grid: Rep[Tensor2D[i32]]) -> None:
    assert_type(nk.take(table, rows), Rep[Tensor2D[f32, Batch, Out]])
    assert_type(nk.take(table, rows, axis=1), Rep[Tensor2D[f32, In, Batch]])
    assert_type(nk.take(table, i, axis=-1), Rep[Tensor1D[f32, In]])
    assert_type(nk.take(table, grid, mode="clip"), Rep[Tensor3D[f32, Any, Any, Out]])
    assert_type(nk.one_hot(rows, 10, f32), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.one_hot(i, 10, boolean), Rep[Tensor1D[boolean]])
    assert_type(table[i], Rep[Tensor1D[f32, Out]])

def losses(x: Rep[Tensor2D[f32, Batch, Out]], y: Rep[Tensor1D[i64, Batch]], one: Rep[Scalar[i32]], v: Rep[Tensor1D[f32, Out]]) -> None:
    assert_type(nk.softmax(x, axis=1), Rep[Tensor2D[f32, Batch, Out]])
    assert_type(nk.log_softmax(x), Rep[Tensor2D[f32, Batch, Out]])
    assert_type(nk.cross_entropy(x, y), Rep[Scalar[f32]])
    assert_type(nk.cross_entropy(x, nk.softmax(x)), Rep[Scalar[f32]])
    assert_type(nk.cross_entropy(v, one), Rep[Scalar[f32]])
    assert_type(nk.layer_norm(x), Rep[Tensor2D[f32, Batch, Out]])
    assert_type(nk.layer_norm(x, v, v, epsilon=1e-6), Rep[Tensor2D[f32, Batch, Out]])
    assert_type(nk.layer_norm(nk.relu(x), v, nk.relu(v)), Rep[Tensor2D[f32, Batch, Out]])

def numbers(key: Rep[Scalar[i64]]) -> None:
    assert_type(random.key(0), Scalar[i64])
    assert_type(random.normal(random.key(0), (2, 3)), Float2D)
    assert_type(random.uniform(random.key(0), (2,), minval=-1.0, dtype=f64), Tensor1D[f64])
    assert_type(nk.random.normal(key, (2, 3, 4, 5)), Rep[Tensor4D[f32]])
    assert_type(random.uniform(key, (), dtype=bf16), Rep[Scalar[bf16]])
    a, b = random.split(key)
    assert_type(a, Rep[Scalar[i64]])
    assert_type(random.split(random.key(1), num=5), tuple[Scalar[i64], ...])
    del b

@staged
def dense(p: Rep[Params], x: Rep[Tensor2D[f32, Batch, In]]) -> Rep[Tensor2D[f32, Batch, Out]]:
    return x @ p[Params.w] + p[Params.b]
def inspect(p: Params, x: Tensor2D[f32, Batch, In]) -> None:
    assert_type(spec((1, 784), f32), Spec)
    assert_type(spec((1, 784), f32).shape, tuple[int, ...])
    assert_type(dense.ir(p, spec((1, 784), f32), stage="optimized"), str)
    assert_type(dense.llvm(p, x), str)
    assert_type(dense.asm(p, x), str)
    dense.compile(p, x)
    assert_type(p.replace(b=p.b), Params)
    for lens in fields(Params):
        assert_type(lens, Lens[Params, Any])

def values(t: Tensor2D[f32, Batch, In], dtype: type[DType]) -> None:
    assert_type(t.shape, tuple[Batch, In])
    assert_type(t.ndim, int)
    assert_type(t.size, int)
    assert_type(t.dtype, type[f32])
    assert_type(int(i32(3)), int)
    assert_type(bool(boolean(True)), bool)
    assert_type(Tensor0D(np.array(1.0, np.float64)), Scalar[f64])
    nk.zeros((2,), dtype)

# the families and the ranked bases may be used in a user's own annotations
Kernel: TypeAlias = Callable[[Rep[Float2D]], Rep[Float2D]]
def families(a: type[Number], b: type[Integer], c: type[Logical], d: type[Numpy[np.float32]], e: Batched[f32, int, int, int], f: Ranked[f32, int, int]) -> None: ...
def failing() -> None:
    try:
        spec((2,), f32)
    except (nk.RankError, nk.DTypeError, nk.StagingError, nk.DifferentiationError, nk.ParseError, nk.VerifyError, nk.UnsupportedError):
        raise
    except nk.ShapeError as error:
        raise ValueError(str(error)) from nk.InternalError()
    except nk.NNKitError:
        assert_type(nk.__version__, str)
