"""Rejected (marks as in bad.py): contractions."""
from __future__ import annotations
import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, boolean, f32, f64
def einsum(m: Rep[Tensor2D[f32]], p: Rep[Tensor2D[boolean]], c: Tensor2D[f32]) -> None:
    nk.einsum(m, m)    # E
    nk.einsum("ij->j", p)    # E
    nk.einsum("ij->j", c)    # E
    nk.einsum("ij->ij", m, rank=6)    # E
    a0: Rep[Tensor1D[f32]] = nk.einsum("ij,jk->ik", m, m)    # E
    a1: Rep[Scalar[f32]] = nk.einsum("ab,cb->ac", m, m, rank=2)    # E
    a2: Rep[Scalar[f32]] = nk.einsum("nd,nk->dk", m, m)    # E
    a3: Rep[Tensor2D[f32]] = nk.einsum("ni,ij,nj->n", m, m, m)    # E
    del a0, a1, a2, a3
def products(m: Rep[Tensor2D[f32]], v: Rep[Tensor1D[f32]], d: Rep[Tensor1D[f64]], t: Rep[Tensor3D[f32]], p: Rep[Tensor1D[boolean]], s: Rep[Scalar[f32]]) -> None:
    nk.tensordot(v, v)    # E
    nk.tensordot(m, m, axes=3)    # E
    nk.tensordot(t, t, axes=0)    # E
    nk.tensordot(m, m, axes="all")    # E
    nk.inner(m, d)    # E
    nk.inner(p, p)    # E
    nk.outer(p, p)    # E
    nk.vdot(2.0, v)    # E
    nk.kron(m, d)    # E
    nk.convolve(m, v)    # E
    nk.convolve(v, d)    # E
    nk.convolve(v, v, "all")    # E
    nk.correlate(v)    # E
    b0: Rep[Tensor1D[f32]] = nk.outer(v, v)    # E
    b1: Rep[Tensor1D[f32]] = nk.tensordot(t, t)    # E
    del b0, b1
