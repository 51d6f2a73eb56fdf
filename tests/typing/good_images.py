"""Accepted: convolutions, pooling and resizing."""
from __future__ import annotations
from typing import Any
from typing_extensions import assert_type
import nnkit as nk
from nnkit import Dim, Rep, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D, f16, f32, f64, i64
class Batch(Dim): ...
class Channel(Dim): ...
def convolutions(x: Rep[Tensor4D[f32, Batch]], one: Rep[Tensor3D[f32]], s: Rep[Tensor3D[f64]], k1: Rep[Tensor3D[f64]], k: Rep[Tensor4D[f32]], b: Rep[Tensor1D[f32]], vs: Rep[Tensor5D[f32, Batch]]) -> None:
    assert_type(nk.conv2d(x, k), Rep[Tensor4D[f32]])
    assert_type(nk.conv2d(x, k, b, stride=2, padding="same"), Rep[Tensor4D[f32]])
    assert_type(nk.conv2d(one, k, b, padding=((1, 0), (0, 1)), dilation=(1, 2), groups=4), Rep[Tensor3D[f32]])
    assert_type(nk.conv1d(s, k1, padding=((1, 2),)), Rep[Tensor3D[f64]])
    assert_type(nk.conv3d(x, vs, b, stride=(1, 2, 2), padding="valid"), Rep[Tensor4D[f32]])
    assert_type(nk.conv3d(nk.relu(vs), vs, b, padding=((1, 0), (0, 1), (1, 1)), dilation=2, groups=4), Rep[Tensor5D[f32]])
    assert_type(nk.conv_transpose3d(vs, vs, b, stride=2, output_padding=(1, 0, 1)), Rep[Tensor5D[f32]])
    assert_type(nk.conv_transpose3d(x, vs, padding=1), Rep[Tensor4D[f32]])
    assert_type(nk.conv_transpose2d(x, k, b, stride=2, output_padding=1), Rep[Tensor4D[f32]])
    assert_type(nk.conv_transpose1d(s, k1, padding=1), Rep[Tensor3D[f64]])
def pooling(x: Rep[Tensor4D[f32, Batch, Channel]], m: Rep[Tensor2D[f16]], n: Rep[Tensor1D[i64]], vs: Rep[Tensor5D[f32, Batch, Channel]]) -> None:
    assert_type(nk.max_pool2d(x, 2), Rep[Tensor4D[f32, Batch, Channel]])
    assert_type(nk.max_pool2d(nk.relu(x), (2, 3), 2, padding=1), Rep[Tensor4D[f32, Batch, Channel]])
    assert_type(nk.max_pool2d(m, 2), Rep[Tensor2D[f16]])
    assert_type(nk.max_pool1d(n, 3, stride=1, padding="same"), Rep[Tensor1D[i64]])
    assert_type(nk.avg_pool2d(x, 2, padding=1, count_include_pad=False), Rep[Tensor4D[f32, Batch, Channel]])
    assert_type(nk.avg_pool1d(m, 2), Rep[Tensor2D[f16]])
    assert_type(nk.interpolate(x, (8, 8)), Rep[Tensor4D[f32, Batch, Channel]])
    assert_type(nk.interpolate(x, scale_factor=2, mode="bilinear"), Rep[Tensor4D[f32, Batch, Channel]])
    assert_type(nk.max_pool3d(vs, 2), Rep[Tensor5D[f32, Batch, Channel]])
    assert_type(nk.avg_pool3d(vs, (1, 2, 3), 2, padding=1, ceil_mode=True), Rep[Tensor5D[f32, Batch, Channel]])
    assert_type(nk.max_pool2d(vs, 2), Rep[Tensor5D[f32, Batch, Channel, Any]])
    assert_type(nk.max_pool3d(x, 2), Rep[Tensor4D[f32, Batch]])
    assert_type(nk.interpolate(vs, (4, 8, 8), mode="trilinear", align_corners=True), Rep[Tensor5D[f32, Batch, Channel]])
    assert_type(nk.interpolate(vs, scale_factor=2), Rep[Tensor5D[f32, Batch, Channel]])
    assert_type(nk.batch_norm(vs), Rep[Tensor5D[f32, Batch, Channel]])
