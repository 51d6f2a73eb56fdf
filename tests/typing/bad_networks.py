"""Rejected (marks as in bad.py): activations, losses and normalisations."""
from __future__ import annotations
import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor4D, f32, f64, i64
def activations(m: Rep[Tensor2D[f32]], n: Rep[Tensor2D[i64]]) -> None:
    nk.silu(n)    # E
    nk.mish(2.0)    # E
    nk.elu(m, "1")    # E
    nk.leaky_relu(m, m)    # E
    nk.hard_tanh(m, 1.0)    # E
def losses(m: Rep[Tensor2D[f32]], v: Rep[Tensor1D[f32]], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i64]], s: Rep[Scalar[f32]]) -> None:
    nk.mse(m, v)    # E
    nk.mse(m, d)    # E
    nk.mse(n, n)    # E
    nk.mse(m, m, reduction="average")    # E
    nk.huber(m, m, 2.0)    # E
    nk.huber(m, m, beta=2.0)    # E
    nk.smooth_l1(m, n)    # E
    nk.binary_cross_entropy(n, m)    # E
    nk.binary_cross_entropy(v, n)    # E
    nk.binary_cross_entropy(m, m, pos_weight="a")    # E
    nk.cross_entropy(m, m, weight=2.0)    # E
    nk.cross_entropy(m, m, ignore_index=1)    # E
    nk.kl_divergence(s, s)    # E
    nk.kl_divergence(m, v)    # E
    nk.cosine_similarity(m, v)    # E
    a0: Rep[Scalar[f32]] = nk.mse(m, m, reduction="none")    # E
    a1: Rep[Tensor2D[f32]] = nk.kl_divergence(m, m, reduction="none")    # E
    a2: Rep[Tensor2D[f32]] = nk.huber(m, m)    # E
    del a0, a1, a2
def normalisations(m: Rep[Tensor2D[f32]], v: Rep[Tensor1D[f32]], q: Rep[Tensor4D[f32]], n: Rep[Tensor2D[i64]]) -> None:
    nk.batch_norm(m, v)    # E
    nk.batch_norm(m, v, v, mean=v)    # E
    nk.batch_norm(v, v, v)    # E
    nk.batch_norm(n)    # E
    nk.group_norm(q, v, v)    # E
    nk.group_norm(q)    # E
    nk.instance_norm(m, v, v)    # E
    nk.rms_norm(m, m)    # E
    nk.rms_norm(m, v, v)    # E
    nk.normalize(m, axis=2)    # E
