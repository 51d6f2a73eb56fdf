"""Sizes: what both checkers reject."""

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, i64, staged


@staged
def of_rank_two(x: Rep[Tensor2D[f32]]) -> Rep[Tensor1D[f32]]:
    a, b, c = x.shape  # E
    (d,) = x.shape  # E
    x.shape[2]  # E
    nk.zeros((x.shape[0] / 2, 3), f32)  # E
    wrong: Rep[Tensor2D[f32]] = nk.zeros((x.size,), f32)  # E
    also: Rep[Tensor1D[f32]] = x.reshape((2, 3))  # E
    x.shape = (2, 3)  # E:pyright
    return x.transpose((1, 0))  # E


@staged
def choices(x: Rep[Tensor2D[f32]], key: Rep[Scalar[i64]]) -> Rep[Tensor2D[f32]]:
    n, m = x.shape
    nk.maximum(n, "3")  # E
    nk.cond(n > 3, lambda: x, lambda: x[0])  # E
    nk.cond("yes", lambda: x, lambda: x)  # E
    nk.select(n > 3, x, x[0])  # E
    nk.where(n > m, 1.0, "2")  # E
    nk.random.split(key, 0.5)  # E
    wrong: Rep[Tensor2D[f32]] = nk.random.split(key, (n, m))  # E
    return nk.maximum(n, m)  # E
