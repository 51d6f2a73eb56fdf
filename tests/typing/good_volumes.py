"""Accepted: tensors of rank 5, as batches of volumes are."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any
import numpy as np
from typing_extensions import assert_type
import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D, boolean, f32, f64, i64, nn
class Batch(Dim): ...
class Channel(Dim): ...
class Depth(Dim): ...
class Height(Dim): ...
class Width(Dim): ...
Volumes = Tensor5D[f32, Batch, Channel, Depth, Height, Width]
Volume = Tensor4D[f32, Channel, Depth, Height, Width]
class Params(Struct):
    kernel: Field[Tensor5D[f32]]
    bias: Field[Tensor1D[f32]]
def elementwise(x: Rep[Volumes], v: Rep[Volume], w: Rep[Tensor1D[f32, Width]], s: Rep[Scalar[f32]]) -> None:
    assert_type(x + x * 2.0 - x / s, Rep[Volumes])
    assert_type(x * v + w, Rep[Volumes])
    assert_type(w + x, Rep[Volumes])
    assert_type(x + nk.tanh(w), Rep[Volumes])
    assert_type(nk.relu(-x), Rep[Volumes])
    assert_type(nk.maximum(x, v), Rep[Volumes])
    assert_type(nk.maximum(w, x), Rep[Volumes])
    assert_type(nk.maximum(x, 0.0), Rep[Volumes])
    assert_type(nk.clip(x, 0.0, 1.0), Rep[Volumes])
    assert_type(x > 0.0, Rep[Tensor5D[boolean, Batch, Channel, Depth, Height, Width]])
    assert_type(nk.where(x > 0.0, x, 0.0), Rep[Volumes])
    assert_type(nk.where(x > 0.0, x, w), Rep[Volumes])
    assert_type(nk.where(v > 0.0, x, x), Rep[Volumes])
    assert_type(x.cast(f64), Rep[Tensor5D[f64, Batch, Channel, Depth, Height, Width]])
def reductions(x: Rep[Volumes]) -> None:
    assert_type(x.sum(), Rep[Scalar[f32]])
    assert_type(x.mean(0), Rep[Tensor4D[f32]])
    assert_type(x.max((0, 2)), Rep[Tensor3D[f32]])
    assert_type(x.var((2, 3, 4), keepdims=True), Rep[Tensor5D[f32]])
    assert_type(nk.sum(x, (0, 2, 3, 4)), Rep[Tensor1D[f32]])
    assert_type(nk.mean(x, -1, keepdims=True), Rep[Tensor5D[f32]])
    assert_type(x.argmax(1), Rep[Tensor4D[i64]])
    assert_type(nk.softmax(x, axis=1), Rep[Volumes])
    assert_type(nk.cumsum(x, 2), Rep[Volumes])
def movements(x: Rep[Volumes], v: Rep[Volume], m: Rep[Tensor2D[f32]]) -> None:
    assert_type(v.expand_dims(0), Rep[Tensor5D[f32, Any, Channel, Depth, Height, Width]])
    assert_type(v[None], Rep[Tensor5D[f32, Any, Channel, Depth, Height, Width]])
    assert_type(x[0], Rep[Volume])
    assert_type(x[:, 0], Rep[Tensor4D[f32, Any, Depth, Height, Width]])
    assert_type(x[:, :, 1:3], Rep[Tensor5D[f32, Any, Any, Any, Height, Width]])
    assert_type(x[0, 1, 2, 3, 4], Rep[Scalar[f32]])
    assert_type(x.transpose(0, 2, 3, 4, 1), Rep[Tensor5D[f32]])
    assert_type(x.transpose(), Rep[Tensor5D[f32, Width, Height, Depth, Channel, Batch]])
    assert_type(nk.moveaxis(x, 1, -1), Rep[Tensor5D[f32]])
    assert_type(x.reshape(2, -1), Rep[Tensor2D[f32]])
    assert_type(m.reshape(1, 2, 3, 4, -1), Rep[Tensor5D[f32]])
    assert_type(m.reshape((1, 2, 3, 4, -1)), Rep[Tensor5D[f32]])
    assert_type(nk.concat([x, x], axis=1), Rep[Tensor5D[f32]])
    assert_type(nk.stack([v, v]), Rep[Tensor5D[f32, Any, Channel, Depth, Height, Width]])
    assert_type(nk.zeros((1, 2, 3, 4, 5), f32), Rep[Tensor5D[f32]])
    assert_type(nk.broadcast_to(v, (2, 1, 2, 3, 4)), Rep[Tensor5D[f32]])
    assert_type(nk.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1))), Rep[Tensor5D[f32]])
    assert_type(nk.flip(x, 2), Rep[Volumes])
    assert_type(x @ m, Rep[Tensor5D[f32, Batch, Channel, Depth, Height]])
    assert_type(nk.take(x, [0, 1], 1), Rep[Tensor5D[f32]])
    extents: tuple[int, int, int, int, int] = x.shape
    del extents
def layers(x: Rep[Volumes], c: Rep[nn.Conv3d[f32]], l: Rep[nn.Linear[f32]]) -> None:
    assert_type(nn.linear(l, x), Rep[Tensor5D[f32, Batch, Channel, Depth, Any, Any]])
    y: Rep[Tensor5D[f32]] = nn.conv3d(c, x, stride=2, padding="same")
    assert_type(nk.layer_norm(x), Rep[Volumes])
    del y
@nk.staged
def loss(p: Rep[Params], x: Rep[Tensor5D[f32]]) -> Rep[Scalar[f32]]:
    return nk.square(nk.max_pool3d(nk.conv3d(x, p[Params.kernel], p[Params.bias], padding=1), 2)).mean()
@nk.staged
def normalized(v: Rep[Tensor4D[f32]]) -> Rep[Tensor4D[f32]]:
    return v - v.mean()
slopes: Rep[Callable[[Params, Tensor5D[f32]], Params]] = nk.gradient(of=loss, wrt=0)
by_kernel: Rep[Callable[[Params, Tensor5D[f32]], Tensor5D[f32]]] = nk.gradient(of=loss, wrt=Params.kernel)
by_x: Rep[Callable[[Params, Tensor5D[f32]], Tensor5D[f32]]] = nk.gradient(of=loss, wrt=1)
of_all: Rep[Callable[[Tensor5D[f32]], Tensor5D[f32]]] = nk.vmap(normalized)
volumes = Tensor5D(np.zeros((1, 2, 3, 4, 5), np.float32))
assert_type(volumes[0], Tensor4D[f32])
assert_type(volumes * 2.0 + volumes[0], Tensor5D[f32])
assert_type(of_all(volumes), Tensor5D[f32])
