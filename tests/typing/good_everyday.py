"""NumPy's everyday functions: accepted, with the types that they have."""

from typing import Any, assert_type

import nnkit as nk
from nnkit import (
    Dim,
    Rep,
    Scalar,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    boolean,
    f32,
    i32,
    i64,
)


class In(Dim): ...


class Out(Dim): ...


Named = Tensor2D[f32, In, Out]


def numbers(
    x: Rep[Scalar[f32]], v: Rep[Tensor1D[f32]], m: Rep[Tensor2D[f32]], n: Rep[Tensor1D[i32]]
) -> None:
    assert_type(nk.hypot(m, v), Rep[Tensor2D[f32]])
    assert_type(nk.atan2(m, 1.0), Rep[Tensor2D[f32]])
    assert_type(nk.sinc(nk.cbrt(v)), Rep[Tensor1D[f32]])
    assert_type(nk.remainder(n, 3), Rep[Tensor1D[i32]])
    assert_type(nk.fmod(v, 3.0), Rep[Tensor1D[f32]])
    assert_type(n**2, Rep[Tensor1D[i32]])
    assert_type(2**n, Rep[Tensor1D[i32]])
    assert_type((n & 1) | (n << 2) ^ ~n, Rep[Tensor1D[i32]])
    assert_type(3 & n, Rep[Tensor1D[i32]])
    assert_type((v > 0) & ~(v < 1), Rep[Tensor1D[boolean]])
    assert_type(nk.bitwise_and(n, 1), Rep[Tensor1D[i32]])
    assert_type(nk.bitwise_or(v > 0, v < 1), Rep[Tensor1D[boolean]])
    assert_type(nk.left_shift(n, n), Rep[Tensor1D[i32]])
    assert_type(nk.isnan(m), Rep[Tensor2D[boolean]])
    assert_type(nk.logical_not(m > 0), Rep[Tensor2D[boolean]])
    assert_type(nk.logical_and(m > 0, v > 0), Rep[Tensor2D[boolean]])
    assert_type(nk.isclose(m, 0.0), Rep[Tensor2D[boolean]])
    assert_type(nk.allclose(m, m, rtol=1e-3), Rep[Scalar[boolean]])
    assert_type(nk.where(m > 0, m, 0.0), Rep[Tensor2D[f32]])
    assert_type(nk.where(v > 0, m, m), Rep[Tensor2D[f32]])
    assert_type(nk.where(m > 0, v, m), Rep[Tensor2D[f32]])
    assert_type(nk.nansum(m, 0), Rep[Tensor1D[f32]])
    assert_type(nk.nanmax(n), Rep[Scalar[i32]])
    assert_type(nk.nanstd(m, axis=1, ddof=1, keepdims=True), Rep[Tensor2D[f32]])
    assert_type(nk.where(m > 0, m), Rep[Tensor2D[f32]])
    assert_type(nk.where(v > 0, m), Rep[Tensor2D[f32]])
    assert_type(nk.where(m > 0, v), Rep[Tensor2D[f32]])
    assert_type(nk.where(v > 0, n), Rep[Tensor1D[i32]])
    assert_type(nk.where(v > 0, v > 1), Rep[Tensor1D[boolean]])
    assert_type(nk.where(m.shape[0] > 1, m), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, -1.0, 1.0), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, min=v), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, max=v), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, None, x), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, v, v), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, m, 1.0), Rep[Tensor2D[f32]])
    assert_type(nk.clip(m, -1.0, m), Rep[Tensor2D[f32]])
    assert_type(nk.clip(n, n, 3), Rep[Tensor1D[i32]])
    assert_type(nk.clip(n, max=3), Rep[Tensor1D[i32]])
    assert_type(nk.nan_to_num(m, nan=1.0), Rep[Tensor2D[f32]])


def reductions(m: Rep[Named], b: Rep[Tensor2D[boolean]], n: Rep[Tensor2D[i32]]) -> None:
    assert_type(nk.sum(m), Rep[Scalar[f32]])
    assert_type(nk.sum(m, axis=0), Rep[Tensor1D[f32, Out]])
    assert_type(nk.max(n, axis=-1, keepdims=True), Rep[Tensor2D[i32]])
    assert_type(nk.any(b, axis=1), Rep[Tensor1D[boolean]])
    assert_type(nk.count_nonzero(m, axis=1), Rep[Tensor1D[i64, In]])
    assert_type(nk.std(m, axis=1, ddof=1), Rep[Tensor1D[f32, In]])
    assert_type(m.std(0, ddof=1), Rep[Tensor1D[f32, Out]])
    assert_type(nk.argmax(m, axis=1, keepdims=True), Rep[Tensor2D[i64, In]])
    assert_type(m.argmin(axis=0, keepdims=True).sum(), Rep[Scalar[i64]])
    assert_type(nk.cumprod(m, axis=1), Rep[Named])
    assert_type(nk.cummax(m), Rep[Tensor1D[f32]])


def new_axes(v: Rep[Tensor1D[f32, In]], m: Rep[Named], n: int) -> None:
    assert_type(v[:, None], Rep[Tensor2D[f32, In]])
    assert_type(v[None, :], Rep[Tensor2D[f32, Any, In]])
    assert_type(v[1:, None], Rep[Tensor2D[f32]])
    assert_type(m[:, None], Rep[Tensor3D[f32, In, Any, Out]])
    assert_type(m[:, None, :], Rep[Tensor3D[f32, In, Any, Out]])
    assert_type(m[None], Rep[Tensor3D[f32, Any, In, Out]])
    assert_type(m[None, :, :], Rep[Tensor3D[f32, Any, In, Out]])
    assert_type(m[:, :, None], Rep[Tensor3D[f32, In, Out]])
    assert_type(m[:, None] * m[:, None], Rep[Tensor3D[f32, In, Any, Out]])
    assert_type(v[:, None, None], Rep[Tensor3D[f32, In]])
    assert_type(v[None, None], Rep[Tensor3D[f32, Any, Any, In]])
    assert_type(v[None, :, None], Rep[Tensor3D[f32, Any, In]])
    assert_type(v[None, :, None, None], Rep[Tensor4D[f32]])
    assert_type(v.sum()[None, None], Rep[Tensor2D[f32]])
    assert_type(m[:, None, :, None], Rep[Tensor4D[f32]])
    assert_type(m[None, None], Rep[Tensor4D[f32]])
    assert_type(m[:, 1:, None, None], Rep[Tensor4D[f32]])
    assert_type(m[n, None, :, None], Rep[Tensor3D[f32]])
    assert_type(m[n, None, n], Rep[Tensor1D[f32]])
    assert_type(m[:, None][None, :, 0, None], Rep[Tensor4D[f32]])
    assert_type(m[:, None][..., None, :], Rep[Tensor4D[f32, In, Any, Any, Out]])


def ellipses(v: Rep[Tensor1D[f32, In]], m: Rep[Named], n: int) -> None:
    assert_type(m[...], Rep[Named])
    assert_type(v.sum()[...], Rep[Scalar[f32]])
    assert_type(m[..., 0], Rep[Tensor1D[f32, In]])
    assert_type(m[n, ...], Rep[Tensor1D[f32, Out]])
    assert_type(m[..., 1:], Rep[Tensor2D[f32, In]])
    assert_type(m[..., None], Rep[Tensor3D[f32, In, Out]])
    assert_type(m[..., None, :], Rep[Tensor3D[f32, In, Any, Out]])
    assert_type(v[..., None, None], Rep[Tensor3D[f32, In]])
    assert_type(m[None, ...], Rep[Tensor3D[f32, Any, In, Out]])
    assert_type(m[None][..., 0, :], Rep[Tensor2D[f32]])
    assert_type(m[None][0, ..., n], Rep[Tensor1D[f32]])


def rearrangements(
    x: Rep[Scalar[f32]], v: Rep[Tensor1D[f32]], m: Rep[Tensor2D[f32]], t: Rep[Tensor3D[f32]]
) -> None:
    assert_type(v[None], Rep[Tensor2D[f32]])
    assert_type(v[:, None], Rep[Tensor2D[f32]])
    assert_type(m[..., None], Rep[Tensor3D[f32]])
    assert_type(m[:, None, :], Rep[Tensor3D[f32]])
    assert_type(m[None, 0], Rep[Tensor2D[f32]])
    assert_type(nk.expand_dims(m, 1), Rep[Tensor3D[f32]])
    assert_type(nk.squeeze(m, 0), Rep[Tensor1D[f32]])
    assert_type(nk.ravel(t), Rep[Tensor1D[f32]])
    assert_type(t.ravel(), Rep[Tensor1D[f32]])
    assert_type(nk.swapaxes(t, 0, -1), Rep[Tensor3D[f32]])
    assert_type(nk.moveaxis(t, (0, 1), (1, 0)), Rep[Tensor3D[f32]])
    assert_type(nk.repeat(m, 2), Rep[Tensor1D[f32]])
    assert_type(nk.repeat(m, [1, 2], axis=0), Rep[Tensor2D[f32]])
    assert_type(nk.tile(v, (2, 2)), Rep[Tensor2D[f32]])
    assert_type(nk.roll(m, 1, axis=0), Rep[Tensor2D[f32]])
    first, second = nk.split(m, 2, axis=1)
    assert_type(first, Rep[Tensor2D[f32]])
    assert_type(nk.array_split(v, [1, 3])[1], Rep[Tensor1D[f32]])
    assert_type(nk.eye(3, dtype=f32), Rep[Tensor2D[f32]])
    assert_type(nk.linspace(0.0, 1.0, 5, dtype=f32), Rep[Tensor1D[f32]])
    assert_type(nk.linspace(x, 1.0), Rep[Tensor1D[f32]])
    assert_type(nk.meshgrid(v, v, indexing="ij"), tuple[Rep[Tensor2D[f32]], Rep[Tensor2D[f32]]])
    assert_type(nk.diff(m, axis=0), Rep[Tensor2D[f32]])
    assert_type(nk.trapezoid(m, v), Rep[Tensor1D[f32]])
    assert_type(nk.interp(m, v, v, left=0.0), Rep[Tensor2D[f32]])
    assert_type(nk.polyval([1.0, 2.0], m), Rep[Tensor2D[f32]])
    assert_type(nk.polyval(v, x), Rep[Scalar[f32]])
    print(second)


def where_nonzero(m: Rep[Named], b: Rep[Tensor1D[boolean]], k: Rep[Scalar[i32]]) -> None:
    assert_type(nk.nonzero(m, size=3), tuple[Rep[Tensor1D[i64]], Rep[Tensor1D[i64]]])
    assert_type(nk.where(b, size=3, fill_value=-1), tuple[Rep[Tensor1D[i64]]])
    assert_type(nk.flatnonzero(m > 0, size=m.size, fill_value=k), Rep[Tensor1D[i64]])
    assert_type(nk.argwhere(m, size=3), Rep[Tensor2D[i64]])
    assert_type(b.nonzero(size=2), tuple[Rep[Tensor1D[i64]]])


def methods(m: Rep[Named], p: Rep[Tensor2D[f32]], v: Rep[Tensor1D[f32]], n: Rep[Tensor1D[i32]]) -> None:
    assert_type(m.clip(0.0, 1.0), Rep[Named])
    assert_type(n.clip(max=3), Rep[Tensor1D[i32]])
    assert_type(p.clip(v, v + 1.0), Rep[Tensor2D[f32]])
    assert_type(m.sort(), Rep[Named])
    assert_type(m.argsort(0), Rep[Tensor2D[i64, In, Out]])
    assert_type(v.searchsorted(p), Rep[Tensor2D[i64]])
    assert_type(m.cumsum(1), Rep[Named])
    assert_type(p.cumprod(), Rep[Tensor1D[f32]])
    assert_type(p.take(n), Rep[Tensor2D[f32]])
    assert_type(p.repeat(2, axis=1), Rep[Tensor2D[f32]])
    assert_type(p.repeat(n, 0, total_repeat_length=5), Rep[Tensor2D[f32]])
    assert_type(p.diagonal(), Rep[Tensor1D[f32]])
    assert_type(p.trace(), Rep[Scalar[f32]])
    assert_type(p.swapaxes(0, 1), Rep[Tensor2D[f32]])
    assert_type(m.flatten(), Rep[Tensor1D[f32]])
    assert_type(m.mT, Rep[Tensor2D[f32, Out, In]])
    assert_type(m.astype(i32), Rep[Tensor2D[i32, In, Out]])


def modes(v: Rep[Tensor1D[f32]], m: Rep[Named], n: Rep[Tensor1D[i32]], k: Rep[Scalar[i32]]) -> None:
    assert_type(nk.take(v, n, mode="fill", fill_value=0.0), Rep[Tensor1D[f32]])
    assert_type(nk.segment_sum(v, n, 3, mode="drop"), Rep[Tensor1D[f32]])
    assert_type(nk.bincount(n, length=3, mode="clip"), Rep[Tensor1D[i64]])
    assert_type(v.at[n].add(1.0, mode="wrap"), Rep[Tensor1D[f32]])
    assert_type(nk.roll(m, k), Rep[Named])
    assert_type(nk.roll(m, (k, 1), axis=(0, 1)), Rep[Named])
    assert_type(nk.interp(v, v, v, period=1.0), Rep[Tensor1D[f32]])
