"""Sorts, segments and subscripts that do not fit."""

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32, i32

Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]
Counts = Tensor1D[i32]


def orders(m: Rep[Matrix], v: Rep[Vector], c: Rep[Counts]) -> None:
    nk.sort(v, 1)  # E
    nk.top_k(v)  # E
    nk.searchsorted(m, v)  # E
    nk.searchsorted(v, c)  # E
    nk.median(c)  # E
    nk.quantile(v, 0.5, 1)  # E
    nk.quantile(v, 0.5, method="cubic")  # E


def places(m: Rep[Matrix], v: Rep[Vector], c: Rep[Counts]) -> None:
    nk.segment_sum(m, v, 3)  # E
    nk.segment_mean(c, c, 3)  # E
    nk.bincount(v, length=3)  # E
    nk.take_along_axis(m, c)  # E
    nk.put_along_axis(v, c, "a")  # E
    nk.scatter(v, c, v, reduce="sum")  # E
    nk.scatter(v, 0, c, v)  # E
    nk.scatter(v > 0, c, v > 0, reduce="add")  # E
    v.scatter(c, v > 0)  # E
    v.scatter(c, v, 1)  # E
    nk.tril(v)  # E
    nk.trace(v)  # E
    m[v]  # E
    m[m > 0.0]  # E
    v[c, c]  # E
