"""Sizes: what both checkers reject."""

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32, staged


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
