"""Sorts, quantiles, segments, diagonals, and integer tensors as subscripts."""

from typing import Any, assert_type

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, boolean, f32, i32, i64


class Batch(Dim): ...


class In(Dim): ...


Number = Scalar[f32]
Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]
Named = Tensor2D[f32, Batch, In]
Indices = Tensor1D[i64]


def sorts(m: Rep[Matrix], n: Rep[Named], v: Rep[Vector]) -> None:
    assert_type(nk.sort(n), Rep[Named])
    assert_type(nk.sort(n, 0, descending=True), Rep[Named])
    assert_type(nk.sort(m, None), Rep[Vector])
    assert_type(nk.argsort(n, axis=-2), Rep[Tensor2D[i64, Batch, In]])
    values, indices = nk.top_k(n, 3)
    assert_type(values, Rep[Tensor2D[f32, Batch]])
    assert_type(indices, Rep[Tensor2D[i64, Batch]])
    assert_type(nk.searchsorted(v, m, side="right"), Rep[Tensor2D[i64]])
    assert_type(nk.searchsorted(v, 0.5), Rep[Scalar[i64]])


def quantiles(m: Rep[Matrix], n: Rep[Named], v: Rep[Vector]) -> None:
    assert_type(nk.median(m), Rep[Number])
    assert_type(nk.median(n, 0), Rep[Tensor1D[f32, In]])
    assert_type(nk.quantile(m, 0.5), Rep[Number])
    assert_type(nk.quantile(m, [0.1, 0.9], 1), Rep[Matrix])
    assert_type(nk.quantile(m, v, (0, 1), method="nearest"), Rep[Vector])
    assert_type(nk.percentile(m, 90, -1, keepdims=True), Rep[Matrix])


def segments(m: Rep[Matrix], n: Rep[Named], at: Rep[Indices]) -> None:
    assert_type(nk.segment_sum(m, at, 3), Rep[Matrix])
    assert_type(nk.segment_mean(n, at.cast(i32), 3), Rep[Tensor2D[f32, Any, In]])
    assert_type(nk.bincount(at, length=4), Rep[Indices])
    assert_type(nk.bincount(at, m[0], length=4) > 0.0, Rep[Tensor1D[boolean]])
    assert_type(nk.take_along_axis(m, nk.argsort(m), 0), Rep[Matrix])
    assert_type(nk.take_along_axis(n, nk.argsort(n)), Rep[Named])
    assert_type(nk.take_along_axis(n, nk.argmax(n, 0, keepdims=True), 0), Rep[Tensor2D[f32, Any, In]])
    assert_type(nk.put_along_axis(m, nk.argsort(m), 1.0), Rep[Matrix])
    assert_type(nk.scatter(m, nk.argsort(m), m, 0, reduce="add", mode="drop"), Rep[Matrix])
    assert_type(m.scatter([[0, 1]], 1.0), Rep[Matrix])
    assert_type(nk.scatter(m > 0, nk.argsort(m), m > 1), Rep[Tensor2D[boolean]])


def diagonals(m: Rep[Matrix], n: Rep[Named], v: Rep[Vector], t: Rep[Tensor3D[f32]]) -> None:
    assert_type(nk.tril(n, -1), Rep[Named])
    assert_type(nk.diag(v, 1), Rep[Matrix])
    assert_type(nk.diag(m), Rep[Vector])
    assert_type(nk.trace(m), Rep[Number])
    assert_type(nk.diagonal(t, 0, 1, 2), Rep[Matrix])
    assert_type(nk.trace(t, axis1=-2, axis2=-1), Rep[Vector])
    assert_type(nk.tri(3, k=1), Rep[Matrix])
    assert_type(nk.diag_indices(3), tuple[Rep[Indices], Rep[Indices]])


def subscripts(m: Rep[Matrix], n: Rep[Named], v: Rep[Vector], at: Rep[Indices]) -> None:
    assert_type(v[at], Rep[Vector])
    assert_type(n[at], Rep[Tensor2D[f32, Any, In]])
    assert_type(m[at, at], Rep[Vector])
    assert_type(m[0, at], Rep[Vector])
    assert_type(m[:, at], Rep[Matrix])
    assert_type(m[[0, 2]], Rep[Matrix])
    assert_type(m[nk.argsort(m)], Rep[Tensor3D[f32]])
    assert_type(m.at[m > 0.0].set(1.0), Rep[Matrix])
