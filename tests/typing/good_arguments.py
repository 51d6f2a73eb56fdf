"""Arguments under NumPy's, JAX's and PyTorch's names, by keyword or by position, and their defaults."""

from typing import Literal

from typing_extensions import assert_type

import nnkit as nk
from nnkit import (
    Dim,
    Rep,
    Scalar,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    boolean,
    f32,
    f64,
    i32,
    i64,
    random,
)


class Batch(Dim): ...


Float1D = Tensor1D[f32]
Float2D = Tensor2D[f32]


def makers(s: Rep[Scalar[f64]], x: Rep[Tensor2D[f32, Batch]]) -> None:
    assert_type(nk.zeros(3), Rep[Tensor1D[f32]])
    assert_type(nk.zeros((2, 3)), Rep[Tensor2D[f32]])
    assert_type(nk.zeros(shape=(2, 3), dtype=i32), Rep[Tensor2D[i32]])
    assert_type(nk.zeros(x.shape[0], f64), Rep[Tensor1D[f64]])
    assert_type(nk.ones(()), Rep[Scalar[f32]])
    assert_type(nk.full((2, 3), 7.0), Rep[Tensor2D[f32]])
    assert_type(nk.full(3, 7), Rep[Tensor1D[i64]])
    assert_type(nk.full((3,), fill_value=True), Rep[Tensor1D[boolean]])
    assert_type(nk.full((3,), s), Rep[Tensor1D[f64]])
    assert_type(nk.full((3,), 1, dtype=f32), Rep[Tensor1D[f32]])
    assert_type(nk.arange(3), Rep[Tensor1D[i64]])
    assert_type(nk.arange(3, f32), Rep[Tensor1D[f32]])
    assert_type(nk.arange(1, 7, 2), Rep[Tensor1D[i64]])
    assert_type(nk.arange(0.0, 1.0, 0.25), Rep[Tensor1D[f32]])
    assert_type(nk.arange(start=1, stop=x.shape[0], dtype=i32), Rep[Tensor1D[i32]])
    assert_type(nk.iota(3, i32), Rep[Tensor1D[i32]])
    assert_type(nk.eye(3), Rep[Tensor2D[f32]])
    assert_type(nk.eye(N=3, M=4, k=1, dtype=f64), Rep[Tensor2D[f64]])
    assert_type(nk.tri(3, 4), Rep[Tensor2D[f32]])
    assert_type(nk.linspace(0.0, 1.0), Rep[Tensor1D[f32]])
    assert_type(nk.linspace(start=s, stop=1.0, num=3), Rep[Tensor1D[f64]])
    assert_type(nk.zeros_like(a=x), Rep[Tensor2D[f32, Batch]])
    assert_type(nk.zeros_like(x, i32), Rep[Tensor2D[i32, Batch]])
    assert_type(nk.ones_like(x, shape=(3,)), Rep[Tensor1D[f32]])
    assert_type(nk.ones_like(x, dtype=i32, shape=(3, 4, 5)), Rep[Tensor3D[i32]])


def rearranged(v: Rep[Float1D], m: Rep[Float2D], i: Rep[Tensor1D[i64]]) -> None:
    assert_type(nk.roll(m, shift=1), Rep[Float2D])
    assert_type(nk.roll(a=m, shift=(1, 2), axis=(0, 1)), Rep[Float2D])
    assert_type(nk.tile(v, reps=2), Rep[Float1D])
    assert_type(nk.tile(A=v, reps=(2, 1)), Rep[Float2D])
    assert_type(nk.repeat(v, repeats=2), Rep[Float1D])
    assert_type(nk.repeat(m, repeats=2, axis=1), Rep[Float2D])
    assert_type(nk.split(v, indices_or_sections=2), tuple[Rep[Float1D], ...])
    assert_type(nk.array_split(ary=m, indices_or_sections=2, axis=1), tuple[Rep[Float2D], ...])
    assert_type(nk.flip(m), Rep[Float2D])
    assert_type(nk.flip(m, axis=(0, 1)), Rep[Float2D])
    assert_type(nk.pad(v, 1), Rep[Float1D])
    assert_type(nk.pad(array=v, pad_width=(0, 1)), Rep[Float1D])
    assert_type(nk.pad(m, ((0, 1), (1, 0)), "constant", constant_values=1.0), Rep[Float2D])
    assert_type(nk.broadcast_to(v, 3), Rep[Float1D])
    assert_type(nk.broadcast_to(array=v, shape=(2, 3)), Rep[Float2D])
    assert_type(nk.stack(arrays=[v, v], axis=1), Rep[Float2D])
    assert_type(nk.expand_dims(a=v, axis=0), Rep[Float2D])
    assert_type(nk.swapaxes(a=m, axis1=0, axis2=1), Rep[Float2D])
    assert_type(nk.moveaxis(a=m, source=0, destination=1), Rep[Float2D])
    assert_type(nk.diff(a=m, n=1, axis=0, prepend=0.0, append=m), Rep[Float2D])
    assert_type(nk.take(m, 0), Rep[Float1D])
    assert_type(nk.take(m, [0, 1]), Rep[Float2D])
    assert_type(nk.take(a=m, indices=i, axis=1), Rep[Float2D])
    assert_type(m.take([0, 1], axis=1), Rep[Float2D])
    assert_type(m.take(indices=i, axis=1), Rep[Float2D])
    assert_type(m.repeat(repeats=2, axis=0), Rep[Float2D])
    assert_type(m.astype(dtype=f64), Rep[Tensor2D[f64]])


def combined(v: Rep[Float1D], m: Rep[Float2D], i: Rep[Tensor1D[i64]]) -> None:
    assert_type(nk.sum(a=m, axis=0), Rep[Float1D])
    assert_type(nk.mean(a=m, axis=(0, 1), keepdims=True), Rep[Float2D])
    assert_type(nk.argmax(a=m, axis=1), Rep[Tensor1D[i64]])
    assert_type(nk.cumsum(a=m, axis=1), Rep[Float2D])
    assert_type(nk.clip(m, 0.0), Rep[Float2D])
    assert_type(nk.clip(m, a_min=0.0), Rep[Float2D])
    assert_type(nk.clip(m, min=0.0, max=1.0), Rep[Float2D])
    assert_type(nk.clip(a=m, a_min=v, a_max=v), Rep[Float2D])
    assert_type(nk.clip(m, max=v), Rep[Float2D])
    assert_type(nk.clip(m, 0.0, max=1.0), Rep[Float2D])
    assert_type(nk.clip(m, v, max=v), Rep[Float2D])
    assert_type(nk.clip(m, m, max=1.0), Rep[Float2D])
    assert_type(m.clip(min=0.0), Rep[Float2D])
    assert_type(nk.round(m, 2), Rep[Float2D])
    assert_type(m.round(decimals=1), Rep[Float2D])
    assert_type(nk.nan_to_num(m, nan=1.0), Rep[Float2D])
    assert_type(nk.top_k(v, k=1), tuple[Rep[Float1D], Rep[Tensor1D[i64]]])
    assert_type(nk.bincount(i, minlength=3), Rep[Tensor1D[i64]])
    assert_type(nk.bincount(i, v, 3), Rep[Float1D])
    assert_type(nk.bincount(x=i, length=3), Rep[Tensor1D[i64]])
    assert_type(nk.searchsorted(a=v, v=m, side="right"), Rep[Tensor2D[i64]])
    assert_type(v.searchsorted(v=m), Rep[Tensor2D[i64]])
    assert_type(nk.quantile(a=m, q=0.5, axis=0), Rep[Float1D])
    assert_type(nk.interp(x=v, xp=v, fp=v, left=0.0), Rep[Float1D])
    assert_type(nk.tensordot(a=m, b=m, axes=1), Rep[Float2D])
    assert_type(nk.cross(a=m, b=m, axisa=0, axisb=0, axisc=0), Rep[Float2D])
    assert_type(nk.outer(a=v, b=v), Rep[Float2D])
    assert_type(nk.convolve(a=v, v=v, mode="same"), Rep[Float1D])
    assert_type(nk.isclose(a=v, b=v, rtol=1e-3), Rep[Tensor1D[boolean]])
    assert_type(nk.linalg.solve(a=m, b=v), Rep[Float1D])
    assert_type(nk.linalg.norm(x=v, ord=1), Rep[Scalar[f32]])
    assert_type(nk.linalg.eigh(a=m, UPLO="U").eigenvalues, Rep[Float1D])
    assert_type(nk.linalg.eigh(a=m, UPLO="U").eigenvectors, Rep[Float2D])


def networks(m: Rep[Float2D], i: Rep[Tensor1D[i64]], c: Rep[Tensor3D[f32]]) -> None:
    assert_type(nk.softmax(x=m, axis=-1), Rep[Float2D])
    assert_type(nk.logsumexp(a=m, axis=0), Rep[Float1D])
    assert_type(nk.relu(x=m), Rep[Float2D])
    assert_type(nk.gelu(m, approximate=True), Rep[Float2D])
    assert_type(nk.leaky_relu(x=m, negative_slope=0.1), Rep[Float2D])
    assert_type(nk.one_hot(i, num_classes=3), Rep[Tensor2D[f32]])
    assert_type(nk.one_hot(x=i, num_classes=3, dtype=f64), Rep[Tensor2D[f64]])
    assert_type(nk.one_hot(i, 3, axis=0), Rep[Tensor2D[f32]])
    assert_type(nk.conv1d(input=c, weight=c, stride=2), Rep[Tensor3D[f32]])
    assert_type(nk.max_pool1d(input=c, kernel_size=2), Rep[Tensor3D[f32]])
    assert_type(nk.cross_entropy(logits=m, labels=i), Rep[Scalar[f32]])


def numbers(key: Rep[Scalar[i64]], bound: Literal[2]) -> None:
    assert_type(random.normal(key), Rep[Scalar[f32]])
    assert_type(random.normal(key, 3), Rep[Tensor1D[f32]])
    assert_type(random.normal(key, (3,), f64), Rep[Tensor1D[f64]])
    assert_type(random.normal(key=key, shape=(2, 3), dtype=f64), Rep[Tensor2D[f64]])
    assert_type(random.uniform(key, shape=(2, 3), minval=-1.0, maxval=1.0), Rep[Tensor2D[f32]])
    assert_type(random.uniform(key, (3,), f64, -1.0, 1.0), Rep[Tensor1D[f64]])
    assert_type(random.randint(key, shape=(3,), minval=0, maxval=bound), Rep[Tensor1D[i64]])
    assert_type(random.randint(key, (3,), 0, 9, i32), Rep[Tensor1D[i32]])
    assert_type(random.split(key, num=3), tuple[Rep[Scalar[i64]], ...])
    assert_type(random.choice(key, 9, shape=(2,), replace=False), Rep[Tensor1D[i64]])
    assert_type(random.gumbel(key, 3, f64), Rep[Tensor1D[f64]])
    assert_type(random.bernoulli(key, p=0.5, shape=(3,)), Rep[Tensor1D[boolean]])
