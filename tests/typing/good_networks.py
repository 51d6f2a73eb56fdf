"""Accepted: activations, losses and normalisations."""
from __future__ import annotations
from typing import TypeVar
from typing_extensions import assert_type
import nnkit as nk
from nnkit import AnyTensor, Dim, Float, Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, Tensor4D, boolean, f16, f32, f64, i64
class Batch(Dim): ...
class In(Dim): ...
Rows = Tensor2D[f32, Batch, In]
FT = TypeVar("FT", bound=AnyTensor[Float])
def activations(m: Rep[Rows], t: Rep[Tensor3D[f16]], s: Rep[Scalar[f64]]) -> None:
    assert_type(nk.silu(m), Rep[Rows])
    assert_type(nk.swish(t), Rep[Tensor3D[f16]])
    assert_type(nk.leaky_relu(m, 0.2), Rep[Rows])
    assert_type(nk.elu(nk.mish(m), alpha=0.5), Rep[Rows])
    assert_type(nk.celu(s) + nk.selu(s) + nk.log_sigmoid(s), Rep[Scalar[f64]])
    assert_type(nk.hard_tanh(nk.hard_sigmoid(nk.hard_swish(nk.relu6(m)))), Rep[Rows])
def gated(x: Rep[FT]) -> Rep[FT]:
    return nk.silu(nk.leaky_relu(x))
def losses(m: Rep[Rows], v: Rep[Tensor1D[f64]], p: Rep[Tensor2D[boolean, Batch, In]], n: Rep[Tensor1D[i64]], q: Rep[Tensor4D[f32]]) -> None:
    assert_type(nk.mse(m, m), Rep[Scalar[f32]])
    assert_type(nk.mse(m, 0.5), Rep[Scalar[f32]])
    assert_type(nk.mse(q, q, reduction="none"), Rep[Tensor4D[f32]])
    assert_type(nk.huber(v, v, delta=2.0, reduction="sum"), Rep[Scalar[f64]])
    assert_type(nk.smooth_l1(m, m, reduction="none"), Rep[Rows])
    assert_type(nk.binary_cross_entropy(m, m), Rep[Scalar[f32]])
    assert_type(nk.binary_cross_entropy(m, p), Rep[Scalar[f32]])
    assert_type(nk.binary_cross_entropy(v, n, reduction="none"), Rep[Tensor1D[f64]])
    assert_type(nk.binary_cross_entropy(v, 1.0), Rep[Scalar[f64]])
    assert_type(nk.binary_cross_entropy(m, p, pos_weight=2.0, weight=m), Rep[Scalar[f32]])
    assert_type(nk.cross_entropy(m, m, label_smoothing=0.1), Rep[Scalar[f32]])
    assert_type(nk.cross_entropy(m, m, reduction="none"), Rep[Tensor1D[f32, Batch]])
    assert_type(nk.cross_entropy(v, v, weight=v, reduction="sum"), Rep[Scalar[f64]])
    assert_type(nk.kl_divergence(nk.log_softmax(m), nk.softmax(m)), Rep[Scalar[f32]])
    assert_type(nk.kl_divergence(m, m, reduction="none"), Rep[Tensor1D[f32, Batch]])
    assert_type(nk.cosine_similarity(m, m), Rep[Tensor1D[f32, Batch]])
    assert_type(nk.cosine_similarity(m, m, axis=0), Rep[Tensor1D[f32, In]])
    assert_type(nk.cosine_similarity(v, v), Rep[Scalar[f64]])
def normalisations(m: Rep[Rows], w: Rep[Tensor1D[f32, In]], q: Rep[Tensor4D[f32]], c: Rep[Tensor1D[f32]]) -> None:
    assert_type(nk.batch_norm(m), Rep[Rows])
    assert_type(nk.batch_norm(m, w, w), Rep[Rows])
    assert_type(nk.batch_norm(q, c, c, mean=c, var=c, epsilon=1e-3), Rep[Tensor4D[f32]])
    assert_type(nk.batch_norm(q, mean=c, var=c), Rep[Tensor4D[f32]])
    assert_type(nk.group_norm(q, 2), Rep[Tensor4D[f32]])
    assert_type(nk.group_norm(q, 2, c, c), Rep[Tensor4D[f32]])
    assert_type(nk.instance_norm(q, c, c), Rep[Tensor4D[f32]])
    assert_type(nk.rms_norm(m), Rep[Rows])
    assert_type(nk.rms_norm(m, w, epsilon=1e-6), Rep[Rows])
    assert_type(nk.normalize(m), Rep[Rows])
    assert_type(nk.normalize(q, axis=1), Rep[Tensor4D[f32]])
