"""Rejected (marks as in bad.py): convolutions, pooling and resizing."""
from __future__ import annotations
import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D, f32, f64, i64
def convolutions(x: Rep[Tensor4D[f32]], k: Rep[Tensor4D[f32]], k3: Rep[Tensor3D[f32]], d: Rep[Tensor4D[f64]], n: Rep[Tensor4D[i64]], m: Rep[Tensor2D[f32]], b: Rep[Tensor1D[f32]], vs: Rep[Tensor5D[f32]]) -> None:
    nk.conv2d(x, k3)    # E
    nk.conv2d(x, d)    # E
    nk.conv2d(n, n)    # E
    nk.conv2d(m, k)    # E
    nk.conv2d(x, k, m)    # E
    nk.conv2d(x, k, 1)    # E
    nk.conv2d(x, k, padding="half")    # E
    nk.conv2d(x, k, stride=(1, 1, 1))    # E
    nk.conv2d(x, k, strides=2)    # E
    nk.conv1d(x, k3)    # E
    nk.conv1d(k3, k3, padding=(1, 2))    # E
    nk.conv3d(x, k)    # E
    nk.conv3d(k3, vs)    # E
    nk.conv3d(vs, vs, stride=(1, 2))    # E
    nk.conv_transpose3d(vs, k)    # E
    nk.conv_transpose2d(x, k3)    # E
    a0: Rep[Tensor3D[f32]] = nk.conv2d(x, k)    # E
    del a0
def pooling(x: Rep[Tensor4D[f32]], v: Rep[Tensor1D[f32]], m: Rep[Tensor2D[f32]], n: Rep[Tensor2D[i64]], vs: Rep[Tensor5D[f32]]) -> None:
    nk.max_pool2d(v, 2)    # E
    nk.max_pool2d(x)    # E
    nk.max_pool2d(x, (2, 2, 2))    # E
    nk.max_pool1d(v, 2, padding="half")    # E
    nk.avg_pool2d(n, 2)    # E
    nk.interpolate(m, 4)    # E
    nk.interpolate(x)    # E
    nk.interpolate(x, 4, mode="cubic")    # E
    a1: Rep[Tensor2D[f32]] = nk.max_pool2d(x, 2)    # E
    del a1
    nk.max_pool3d(m, 2)    # E
    nk.avg_pool3d(vs, (2, 2))    # E
    nk.interpolate(vs, 4, mode="bicubic")    # E
    nk.interpolate(x, 4, mode="trilinear")    # E
