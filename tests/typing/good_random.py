"""Programs with random numbers that checkers accept."""

from typing import assert_type

import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor0D, Tensor1D, Tensor2D, Tensor3D, boolean, f32, f64, i32, i64


class Batch(Dim): ...


class Class(Dim): ...


key = nk.random.key(0)
assert_type(nk.random.gumbel(key, (1, 1)), Tensor2D[f32])
assert_type(nk.random.laplace(key, (1,), dtype=f64), Tensor1D[f64])
assert_type(nk.random.bernoulli(key, 0.5, (1, 1)), Tensor2D[boolean])
assert_type(nk.random.bernoulli(key), Tensor0D[boolean])
assert_type(nk.random.bernoulli(key, shape=(1,)), Tensor1D[boolean])
assert_type(nk.random.randint(key, (1, 1), 0, 10), Tensor2D[i64])
assert_type(nk.random.randint(key, (), 0, 10, dtype=i32), Tensor0D[i32])
assert_type(nk.random.truncated_normal(key, -2.0, 2.0, (1,)), Tensor1D[f32])
assert_type(nk.random.truncated_normal(key, -2.0, 2.0, (1,), dtype=f64), Tensor1D[f64])
assert_type(nk.random.permutation(key, 4), Tensor1D[i64])
assert_type(nk.random.choice(key, 5), Tensor0D[i64])
assert_type(nk.random.choice(key, 5, (1, 1), replace=False), Tensor2D[i64])


@nk.staged
def sample(
    k: Rep[Scalar[i64]],
    logits: Rep[Tensor2D[f32, Batch, Class]],
    p: Rep[Tensor1D[f64, Class]],
) -> Rep[Tensor1D[i64, Batch]]:
    assert_type(nk.random.bernoulli(k, p), Rep[Tensor1D[boolean, Class]])
    assert_type(nk.random.bernoulli(k, p, (1, 1)), Rep[Tensor2D[boolean]])
    assert_type(nk.random.truncated_normal(k, p, 3.0), Rep[Tensor1D[f64, Class]])
    assert_type(nk.random.truncated_normal(k, -1.0, p, (1, 1)), Rep[Tensor2D[f64]])
    assert_type(nk.random.categorical(k, logits, 0), Rep[Tensor1D[i64, Class]])
    assert_type(nk.random.categorical(k, logits, shape=(1, 1)), Rep[Tensor2D[i64]])
    assert_type(nk.random.cauchy(k, (1, 1, 1)), Rep[Tensor3D[f32]])
    assert_type(nk.dropout(logits, 0.5, k), Rep[Tensor2D[f32, Batch, Class]])
    assert_type(nk.random.permutation(k, logits), Rep[Tensor2D[f32, Batch, Class]])
    assert_type(nk.random.choice(k, logits, (1,)), Rep[Tensor2D[f32]])
    assert_type(nk.random.choice(k, p), Rep[Tensor0D[f64]])
    assert_type(nk.random.choice(k, 1, (1,), p=p), Rep[Tensor1D[i64]])
    assert_type(nk.random.randint(k, logits.shape, 0, 3), Rep[Tensor2D[i64]])
    assert_type(nk.random.gumbel(k, logits.shape), Rep[Tensor2D[f32]])
    return nk.random.categorical(k, logits)
