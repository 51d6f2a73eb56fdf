"""Accepted: contractions."""
from __future__ import annotations
from typing import Any
from typing_extensions import assert_type
import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, f64, i64
class Batch(Dim): ...
class In(Dim): ...
class Out(Dim): ...
def einsum(m: Rep[Tensor2D[f32, Batch, In]], w: Rep[Tensor2D[f32, In, Out]], v: Rep[Tensor1D[f64]], t: Rep[Tensor3D[f32]], q: Rep[Tensor4D[f32]], text: str) -> None:
    assert_type(nk.einsum("ij,jk->ik", m, w), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("ij->ji", m), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("ij->", m), Rep[Scalar[f32]])
    assert_type(nk.einsum("i,i", v, v), Rep[Scalar[f64]])
    assert_type(nk.einsum("bhqd,bhkd->bhqk", q, q), Rep[Tensor4D[f32]])
    assert_type(nk.einsum("abc,abc->ca", t, t, rank=2), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("abc,abc->ca", t, t), Rep[Any])
    assert_type(nk.einsum(text, m, w, rank=0), Rep[Scalar[f32]])
    assert_type(nk.einsum("ij,ik->jk", m, w), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("nd,nk->dk", m, w), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("bij,bjk->bik", t, t), Rep[Tensor3D[f32]])
    assert_type(nk.einsum("bqhd,bkhd->bhqk", q, q), Rep[Tensor4D[f32]])
    assert_type(nk.einsum("bhts,bhsd->bhtd", q, q), Rep[Tensor4D[f32]])
    assert_type(nk.einsum("btd,dhk->bthk", t, t), Rep[Tensor4D[f32]])
    assert_type(nk.einsum("i,ij,j->", v, v[:, None] * v, v), Rep[Scalar[f64]])
    assert_type(nk.einsum("bi,oij,bj->bo", m, t, m), Rep[Tensor2D[f32]])
    assert_type(nk.einsum("bii->b", t), Rep[Tensor1D[f32]])
    assert_type(nk.einsum("i,j,k->ijk", v, v, v), Rep[Tensor3D[f64]])
    assert_type(nk.einsum("nchw,c->nchw", q, v.astype(f32)), Rep[Tensor4D[f32]])
def products(m: Rep[Tensor2D[f32, Batch, In]], v: Rep[Tensor1D[f32, In]], u: Rep[Tensor1D[f32, Out]], t: Rep[Tensor3D[f32]], n: Rep[Tensor1D[i64]]) -> None:
    assert_type(nk.tensordot(t, t), Rep[Tensor2D[f32]])
    assert_type(nk.tensordot(t, m, axes=1), Rep[Tensor3D[f32]])
    assert_type(nk.tensordot(m, m, axes=0), Rep[Tensor4D[f32]])
    assert_type(nk.tensordot(t, m, axes=((0, 1), (1, 0))), Rep[Tensor1D[f32]])
    assert_type(nk.tensordot(m, m, axes=(0, 1)), Rep[Tensor2D[f32]])
    assert_type(nk.inner(m, v), Rep[Tensor1D[f32, Batch]])
    assert_type(nk.inner(n, n), Rep[Scalar[i64]])
    assert_type(nk.outer(v, u), Rep[Tensor2D[f32, In, Out]])
    assert_type(nk.outer(t, m), Rep[Tensor2D[f32]])
    assert_type(nk.vdot(m, m), Rep[Scalar[f32]])
    assert_type(nk.kron(m, m), Rep[Tensor2D[f32]])
    assert_type(nk.kron(n, n), Rep[Tensor1D[i64]])
    assert_type(nk.convolve(v, u, "same"), Rep[Tensor1D[f32]])
    assert_type(nk.correlate(n, n), Rep[Tensor1D[i64]])
