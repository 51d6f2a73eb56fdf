"""Programs of linear algebra that checkers refuse."""

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f16, f32, f64, i64


@nk.staged
def wrong(
    a: Rep[Tensor2D[f64]],
    b: Rep[Tensor1D[f64]],
    n: Rep[Tensor2D[i64]],
    h: Rep[Tensor2D[f16]],
    c: Rep[Tensor2D[f32]],
) -> Rep[Scalar[f64]]:
    nk.linalg.inv(b)  # E
    nk.linalg.inv(n)  # E
    nk.linalg.cholesky(h)  # E
    nk.linalg.solve(a, c)  # E
    nk.linalg.qr(a, "raw")  # E
    nk.linalg.lstsq(a, b) @ b  # E
    nk.linalg.cond(a, "max")  # E
    nk.linalg.cholesky_solve(a, b)  # E
    nk.linalg.matrix_power(a, 0.5)  # E
    nk.linalg.norm(a, "max")  # E
    x: Rep[Tensor1D[f64]] = nk.linalg.inv(a)  # E
    return nk.linalg.det(a)
