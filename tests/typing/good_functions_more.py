"""Accepted: axes, makers, and what concrete tensors are made of."""
from __future__ import annotations
from typing import Any, TypeAlias, TypeVar
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type
import nnkit as nk
from nnkit import AnyTensor, Batched, Dim, DType, Float, Number, Rep, Scalar, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, bf16, boolean, f16, f32, f64, i8, i32, i64, random
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Batch(Dim): ...
class In(Dim): ...
def axes(v: Rep[Float1D], m: Rep[Tensor2D[f32, Batch, In]], t: Rep[Tensor3D[f16]], n: Rep[Tensor2D[i32]], p: Rep[Tensor1D[boolean]], q: Rep[Tensor4D[f64]]) -> None:
    assert_type(nk.softmax(v, axis=0), Rep[Float1D])
    assert_type(nk.softmax(m, axis=-2), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.softmax(m, 1), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.log_softmax(t, axis=2), Rep[Tensor3D[f16]])
    assert_type(nk.cumsum(n, axis=1), Rep[Tensor2D[i32]])
    assert_type(nk.cumsum(q, axis=-1), Rep[Tensor4D[f64]])
    assert_type(nk.flip(p, axis=0), Rep[Tensor1D[boolean]])
    assert_type(nk.flip(nk.exp(m), axis=1), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.softmax(nk.exp(m), axis=1), Rep[Tensor2D[f32, Batch, In]])
    assert_type(nk.softmax(m @ m.T / 8.0), Rep[Tensor2D[f32, Batch, Batch]])
FT = TypeVar("FT", bound=AnyTensor[Float])
BT = TypeVar("BT", bound=Batched[Float, Any, Any, Any])
def sharpen(x: Rep[FT]) -> Rep[FT]:
    return nk.softmax(x * 2.0)
def sharpen_rows(x: Rep[BT]) -> Rep[BT]:
    return nk.log_softmax(nk.exp(x))
def makers(v: Rep[Float1D], m: Rep[Float2D], n: Rep[Tensor1D[i32]], dtype: type[DType], number: type[Number], floating: type[Float]) -> None:
    assert_type(nk.full((2, 3), 1, f32), Rep[Float2D])
    assert_type(nk.full((), True, boolean), Rep[Scalar[boolean]])
    assert_type(nk.full((2,), -1, i8), Rep[Tensor1D[i8]])
    assert_type(nk.full((2,), float("inf"), bf16), Rep[Tensor1D[bf16]])
    assert_type(nk.full((2,), 0.5, floating), Rep[Tensor1D[Float]])
    assert_type(nk.pad(n, ((0, 1),), constant_values=-1), Rep[Tensor1D[i32]])
    assert_type(nk.pad(m, ((0, 1), (1, 0)), constant_values=1), Rep[Float2D])
    assert_type(nk.pad(nk.exp(m), ((0, 1), (1, 0)), constant_values=0.5), Rep[Float2D])
    assert_type(nk.zeros((2, 3), dtype), Rep[Tensor2D[DType]])
    assert_type(nk.arange(3, number), Rep[Tensor1D[Number]])
    shape = (2, 3)
    assert_type(nk.zeros(shape, f32), Rep[Float2D])
    rows = 4
    assert_type(nk.ones((rows, rows + 1), f32), Rep[Float2D])
    assert_type(nk.ones((2, 3), dtype=f32), Rep[Float2D])
    assert_type(nk.full((2, 3), fill_value=0.5, dtype=f32), Rep[Float2D])
    assert_type(random.normal(random.key(1), (rows, 2)), Float2D)
    assert_type(nk.iota((2, 3), f32, axis=-1), Rep[Float2D])
    assert_type(nk.zeros_like(v).expand_dims(0), Rep[Float2D])
def values(a: npt.NDArray[np.float32], b: npt.NDArray[Any], c: list[list[float]], d: tuple[int, ...], dtype: type[DType]) -> None:
    assert_type(Tensor1D([1, 2], f32), Float1D)
    assert_type(Tensor1D([1, 2], i8), Tensor1D[i8])
    assert_type(Tensor1D([True, False], boolean), Tensor1D[boolean])
    assert_type(Tensor2D(c, f64), Tensor2D[f64])
    assert_type(Tensor1D(d, i64), Tensor1D[i64])
    assert_type(Tensor1D((1.0, 2.0), bf16), Tensor1D[bf16])
    assert_type(Tensor0D(1.5, f64), Scalar[f64])
    assert_type(Tensor2D(a, f32), Float2D)
    assert_type(Tensor2D(a[:10], f32), Float2D)
    assert_type(Tensor2D(a / 255, f32), Float2D)
    assert_type(Tensor1D(np.array([1, 2]), i64), Tensor1D[i64])
    assert_type(Tensor1D(np.arange(3), i64), Tensor1D[i64])
    assert_type(Tensor3D(b, f16), Tensor3D[f16])
    assert_type(Tensor1D(np.random.default_rng(0).standard_normal(3, np.float32)), Float1D)
    assert_type(Tensor1D(np.array([0.5], dtype=np.float32)), Float1D)
    assert_type(Tensor2D(np.ones((2, 3), dtype=bool), boolean), Tensor2D[boolean])
    assert_type(Tensor1D(np.linspace(0, 1, 5)), Tensor1D[f64])
    assert_type(Tensor1D(np.asarray(c, dtype=np.float32).ravel()), Float1D)
    Tensor1D(b, dtype)
