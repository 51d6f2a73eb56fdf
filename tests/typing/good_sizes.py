"""Sizes: the shape of a Rep is a tuple of ints, as many as the tensor has axes."""

from typing import assert_type

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, f32, i64, staged

Float1D = Tensor1D[f32]
Float2D = Tensor2D[f32]


@staged
def everywhere(x: Rep[Float2D], key: Rep[Scalar[i64]]) -> Rep[Float2D]:
    assert_type(x.shape, tuple[int, int])
    n, m = x.shape
    assert_type(n, int)
    assert_type(x.ndim, int)
    assert_type(x.size, int)
    assert_type(len(x), int)
    made = nk.zeros((n, m), f32) + nk.full((n, m), 2.0, f32) + nk.ones(x.shape, f32)
    noise = nk.random.normal(key, x.shape) + nk.random.uniform(key, (n, m))
    total = nk.fori(0, n // 2 + 1, lambda i, carry: carry + 1.0, x.sum())
    counted = nk.arange(n * m, f32).reshape((n, m)) + nk.iota((n, m), f32)
    rows = nk.concat([x[: n // 2], x[n // 2 :]])
    return (made + noise + counted + rows) / n * (1 / m) + total


@staged
def of_every_rank(a: Rep[Scalar[f32]], b: Rep[Float1D], c: Rep[Tensor3D[f32]]) -> Rep[Float1D]:
    assert_type(a.shape, tuple[()])
    assert_type(b.shape, tuple[int])
    assert_type(c.shape, tuple[int, int, int])
    (n,) = b.shape
    last: Rep[Tensor1D[f32]] = c.reshape(-1)
    flat: Rep[Tensor1D[f32]] = c.reshape((-1,))
    turned: Rep[Tensor3D[f32]] = c.transpose((2, 0, 1))
    return b * n + last.sum() + flat.sum() + turned.sum() + a


def mean(x: Rep[Float1D]) -> Rep[Scalar[f32]]:
    for _ in range(x.shape[0]):
        x = x * 2.0
    return x.sum() / x.shape[0] if x.shape[0] > 3 else x.sum()


assert_type(staged(mean)(Float1D([1.0, 2.0], f32)), Scalar[f32])


@staged(shapes="symbolic")
def halved(x: Rep[Float1D]) -> Rep[Float1D]:
    return x[: x.shape[0] // 2]


assert_type(halved(Float1D([1.0, 2.0], f32)), Float1D)


@staged
def chosen(x: Rep[Float2D], key: Rep[Scalar[i64]]) -> Rep[Float2D]:
    n, m = x.shape
    assert_type(nk.maximum(n, 3), int)
    assert_type(nk.minimum(n, m), int)
    assert_type(nk.maximum(n, 0.5), float)
    assert_type(nk.cond(n > 3, lambda: x, lambda: x * 2.0), Rep[Float2D])
    assert_type(nk.cond(n > m, lambda: (x, x[0]), lambda: (-x, x[1])), tuple[Rep[Float2D], Rep[Float1D]])
    assert_type(nk.select(n > 3, x, x * 2.0), Rep[Float2D])
    assert_type(nk.where(n == m, x, 0.0), Rep[Float2D])
    assert_type(nk.where(n != m, 1.0, x), Rep[Float2D])
    keys = nk.random.split(key, (n,))
    assert_type(keys, Rep[Tensor1D[i64]])
    rows = keys.map(lambda one: nk.random.normal(one, (m,)))
    assert_type(nk.random.split(nk.random.key(0), (2, 3)), Tensor2D[i64])
    return x[: nk.minimum(n, 3)] + rows
