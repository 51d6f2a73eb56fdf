"""Rejected (marks as in bad.py): tensors of rank 5."""
from __future__ import annotations
import nnkit as nk
from nnkit import Dim, Rep, Scalar, Tensor1D, Tensor4D, Tensor5D, f32, f64
class Batch(Dim): ...
class Width(Dim): ...
class Other(Dim): ...
def volumes(x: Rep[Tensor5D[f32, Batch]], y: Rep[Tensor5D[f32, Other]], d: Rep[Tensor5D[f64]], v: Rep[Tensor4D[f32]], s: Rep[Scalar[f32]], r: Rep[Tensor1D[f64]]) -> None:
    x + y    # E
    x + d    # E
    x * r    # E
    nk.maximum(x, r)    # E
    nk.where(x > 0.0, x, r)    # E
    x.sum(5)    # E
    x.transpose(0, 1, 2)    # E
    x[0, 0, 0, 0, 0, 0]    # E
    x.expand_dims(0)    # E
    x[None]    # E
    nk.concat([x, v])    # E
    a0: Rep[Tensor5D[f32]] = x.mean(0)    # E
    a1: Rep[Tensor4D[f32]] = x.mean(0, keepdims=True)    # E
    a2: Rep[Tensor4D[f32]] = nk.relu(x)    # E
    nk.zeros((1, 1, 1, 1, 1, 1), f32)    # E
    del s, a0, a1, a2
Tensor5D([[[[1.0]]]], f32)    # E
