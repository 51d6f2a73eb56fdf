"""Programs of linear algebra that checkers accept."""

from typing import Any, assert_type

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor0D, Tensor1D, Tensor2D, Tensor3D, f32, f64, i64


class Row(Dim): ...


class Column(Dim): ...


class Batch(Dim): ...


@nk.staged
def systems(
    a: Rep[Tensor2D[f64, Row, Row]], b: Rep[Tensor1D[f64, Row]], c: Rep[Tensor2D[f64, Row, Column]]
) -> Rep[Scalar[f64]]:
    assert_type(nk.linalg.solve(a, b), Rep[Tensor1D[f64, Row]])
    assert_type(nk.linalg.solve(a, c), Rep[Tensor2D[f64, Row, Column]])
    assert_type(nk.linalg.solve_triangular(a, c, lower=True), Rep[Tensor2D[f64, Row, Column]])
    assert_type(nk.linalg.inv(a), Rep[Tensor2D[f64, Row, Row]])
    assert_type(nk.linalg.matrix_power(a, 3), Rep[Tensor2D[f64, Row, Row]])
    assert_type(nk.linalg.expm(a), Rep[Tensor2D[f64, Row, Row]])
    assert_type(nk.linalg.matrix_rank(a), Rep[Tensor0D[i64]])
    assert_type(nk.linalg.slogdet(a)[0], Rep[Tensor0D[f64]])
    assert_type(nk.linalg.slogdet(a).logabsdet, Rep[Tensor0D[f64]])
    _pair: tuple[Rep[Tensor0D[f64]], Rep[Tensor0D[f64]]] = nk.linalg.slogdet(a)
    assert_type(nk.linalg.svd(a).S, Rep[Tensor1D[f64]])
    assert_type(nk.linalg.qr(a).R, Rep[Tensor2D[f64, Any, Row]])
    assert_type(nk.linalg.cond(a, "fro"), Rep[Tensor0D[f64]])
    assert_type(nk.linalg.cholesky_solve(b, nk.linalg.cholesky(a)), Rep[Tensor1D[f64, Row]])
    assert_type(nk.linalg.cholesky_solve(c, a, upper=True), Rep[Tensor2D[f64, Row, Column]])
    x, residuals, rank, values = nk.linalg.lstsq(a, c)
    assert_type(x, Rep[Tensor2D[f64, Row, Column]])
    assert_type(residuals, Rep[Tensor1D[f64, Column]])
    assert_type(rank, Rep[Tensor0D[i64]])
    assert_type(values, Rep[Tensor1D[f64]])
    w, v = nk.linalg.eigh(a)
    assert_type(w, Rep[Tensor1D[f64, Row]])
    assert_type(v, Rep[Tensor2D[f64, Row, Row]])
    return nk.linalg.det(a)


@nk.staged
def batches(a: Rep[Tensor3D[f32, Batch, Row, Column]]) -> Rep[Tensor1D[f32, Batch]]:
    q, r = nk.linalg.qr(a)
    assert_type(q, Rep[Tensor3D[f32, Batch, Row]])
    whole, upper = nk.linalg.qr(a, "complete")
    assert_type(whole, Rep[Tensor3D[f32, Batch, Row, Row]])
    assert_type(upper, Rep[Tensor3D[f32, Batch, Row, Column]])
    left, _, right = nk.linalg.svd(a)
    assert_type(left, Rep[Tensor3D[f32, Batch, Row, Row]])
    assert_type(right, Rep[Tensor3D[f32, Batch, Column, Column]])
    assert_type(nk.linalg.svd(a, compute_uv=False), Rep[Tensor2D[f32, Batch]])
    u, s, vh = nk.linalg.svd(a, full_matrices=False)
    assert_type(u, Rep[Tensor3D[f32, Batch, Row]])
    assert_type(s, Rep[Tensor2D[f32, Batch]])
    assert_type(nk.linalg.svdvals(a), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.linalg.pinv(a), Rep[Tensor3D[f32, Batch, Column, Row]])
    assert_type(nk.linalg.norm(a), Rep[Scalar[f32]])
    assert_type(nk.linalg.norm(a, 2, (1, 2)), Rep[Tensor1D[f32]])
    assert_type(nk.linalg.norm(a, 1, 0), Rep[Tensor2D[f32, Row, Column]])
    assert_type(nk.linalg.norm(a, axis=0), Rep[Tensor2D[f32, Row, Column]])
    return nk.linalg.det(nk.linalg.pinv(a) @ a)
