"""Parts of tensors with other values, and mutable arrays."""

from typing import assert_type

import numpy as np

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor2D, boolean, f32, i32, i64


class Batch(Dim): ...


class In(Dim): ...


Number = Scalar[f32]
Index = Scalar[i32]
Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]
Named = Tensor2D[f32, Batch, In]
Indices = Tensor1D[i64]


def parts(m: Rep[Matrix], n: Rep[Named], v: Rep[Vector], i: Rep[Index], at: Rep[Indices]) -> None:
    assert_type(m.at[i].set(v), Rep[Matrix])
    assert_type(m.at[0, i].add(1.0), Rep[Matrix])
    assert_type(m.at[1:3, ...].multiply(v), Rep[Matrix])
    assert_type(n.at[at].max(0.0), Rep[Named])
    assert_type(m.at[[0, 0, 2]].min(v), Rep[Matrix])
    assert_type(m.at[at, [1, 2]].set(Tensor1D(np.zeros(2, np.float32))), Rep[Matrix])
    assert_type(m.at[..., ::-2].add(m[:, ::-2]).sum(), Rep[Number])


def other_elements(b: Rep[Tensor1D[boolean]], c: Rep[Tensor1D[i32]]) -> None:
    assert_type(b.at[0].set(True), Rep[Tensor1D[boolean]])
    assert_type(c.at[c].add(1), Rep[Tensor1D[i32]])


@nk.staged
def mutable(m: Rep[Matrix], v: Rep[Vector], n: Rep[Index]) -> Rep[Matrix]:
    r = nk.ref(m)
    assert_type(r, nk.Ref[Matrix])
    assert_type(r[...], Rep[Matrix])
    assert_type(r.value, Rep[Matrix])
    assert_type(r[n], Rep[Vector])
    assert_type(r[n, 0], Rep[Number])
    assert_type(r[:, 0], Rep[Vector])
    r[n] = v
    r[n, 0] += v[0]
    r[...] *= 2.0
    r[1:2] = 0.0

    def body(i: Rep[Index], c: Rep[Number]) -> Rep[Number]:
        r[i] += c
        return c + r[i].sum()

    def alone(i: Rep[Index]) -> None:
        r[i] *= 0.5

    assert_type(nk.fori(0, n, alone), None)
    nk.while_loop(lambda: r[0, 0] < 1.0, lambda: alone(n))
    assert_type(nk.cond(n > 2, lambda: alone(n), lambda: None), None)
    total = nk.fori(0, n, body, v[0])
    r[0, 0] = total
    assert_type(nk.ref(Tensor1D(np.zeros(2, np.float32))), nk.Ref[Tensor1D[f32]])
    return r.value
