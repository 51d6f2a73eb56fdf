"""Arguments that do not exist, and types that do not fit them."""

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, i64, random

Float1D = Tensor1D[f32]
Float2D = Tensor2D[f32]


def misused(v: Rep[Float1D], m: Rep[Float2D], i: Rep[Tensor1D[i64]], key: Rep[Scalar[i64]]) -> None:
    nk.sum(m, dim=0)    # E
    m.mean(dim=0)    # E
    nk.softmax(m, dim=-1)    # E
    nk.sum(m, axis=0, keepdim=True)    # E
    nk.sum(m, 0, True)    # E
    nk.zeros(3.0)    # E
    nk.zeros("3")    # E
    nk.zeros((3,), f32, "C")    # E
    nk.arange(3, f32, 1)    # E
    nk.arange(v)    # E
    nk.full((3,))    # E
    nk.eye(3, f32)    # E
    nk.roll(m, shifts=1)    # E
    nk.flip(m, axis=2)    # E
    nk.pad(v, 1, "reflect")    # E
    nk.pad(v, 1.0)    # E
    nk.take(m, [0.5])    # E
    nk.clip(m, a_min="0")    # E
    nk.bincount(i)    # E
    nk.exp(m, out=m)    # E
    nk.searchsorted(v, v, sorter=i)    # E
    random.normal(key, size=(3,))    # E
    random.uniform(key, (3,), low=0.0)    # E
    random.normal(key, (3,), i64)    # E
    a: Rep[Tensor1D[f32]] = nk.arange(3)    # E
    b: Rep[Tensor1D[i64]] = nk.zeros(3)    # E
    c: Rep[Tensor1D[f32]] = nk.zeros((2, 3))    # E
    d: Rep[Float2D] = nk.take(m, 0)    # E
    e: Rep[Tensor2D[i64]] = nk.one_hot(i, 3)    # E
