"""Accepted: layers of networks, with named dimensions and element types, and structs that are generic."""
from __future__ import annotations
from typing import Any, Generic, Literal
from typing_extensions import TypeVar, assert_type
import nnkit as nk
from nnkit import Dim, Field, Float, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, f64, i64, nn
class Batch(Dim): ...
class Time(Dim): ...
class Pixel(Dim): ...
class Hidden(Dim): ...
class Digit(Dim): ...
class Network(Struct):
    first: Field[nn.Linear[f32, Pixel, Hidden]]
    last: Field[nn.Linear[f32, Hidden, Digit]]
class Several(Struct):
    network: Field[Network]
    any: Field[nn.Linear]
    doubles: Field[nn.MLP[f64]]
    many: Field[list[nn.Linear[f32, Hidden, Hidden]]]
    images: Field[nn.Conv2d[f32, Literal[1], Literal[16], Literal[3]]]
def perceptron(p: Rep[Network], x: Rep[Tensor2D[f32, Batch, Pixel]]) -> Rep[Tensor2D[f32, Batch, Digit]]:
    hidden = nk.relu(nn.linear(p[Network.first], x))
    assert_type(hidden, Rep[Tensor2D[f32, Batch, Hidden]])
    return nn.linear(p[Network.last], hidden)
def of_any_rank(p: Rep[nn.Linear[f64, Pixel, Hidden]], v: Rep[Tensor1D[f64, Pixel]], t: Rep[Tensor3D[f64, Batch, Time, Pixel]]) -> None:
    assert_type(nn.linear(p, v), Rep[Tensor1D[f64, Hidden]])
    assert_type(nn.linear(p, t), Rep[Tensor3D[f64, Batch, Time, Hidden]])
def parts(p: Rep[Several], x: Rep[Tensor2D[f64]], q: Rep[Tensor4D[f32]]) -> None:
    assert_type(nn.mlp(p[Several.doubles], x, activation=nk.tanh), Rep[Tensor2D[f64]])
    assert_type(p[Several.network][Network.first], Rep[nn.Linear[f32, Pixel, Hidden]])
    for layer in p[Several.many]:
        assert_type(layer, Rep[nn.Linear[f32, Hidden, Hidden]])
def images(p: Rep[nn.Conv2d], q: Rep[Tensor4D[f32]], s: Rep[nn.Conv1d[f64]], t: Rep[Tensor3D[f64]]) -> None:
    assert_type(nn.conv2d(p, q, stride=2, padding="same"), Rep[Tensor4D[f32]])
    assert_type(nn.conv1d(s, t, padding=1, dilation=2), Rep[Tensor3D[f64]])
def normalized(p: Rep[nn.LayerNorm[f32, Hidden]], r: Rep[nn.RMSNorm], x: Rep[Tensor2D[f32, Batch, Hidden]]) -> None:
    assert_type(nn.layer_norm(p, x), Rep[Tensor2D[f32, Batch, Hidden]])
    assert_type(nn.rms_norm(r, x, epsilon=1e-6), Rep[Tensor2D[f32, Batch, Hidden]])
def symbols(p: Rep[nn.Embedding[f32, Any, Hidden]], i: Rep[Tensor2D[i64, Batch, Time]], j: Rep[Scalar[i64]]) -> None:
    assert_type(nn.embedding(p, i), Rep[Tensor3D[f32, Batch, Time, Hidden]])
    assert_type(nn.embedding(p, j), Rep[Tensor1D[f32, Hidden]])
def recurrent(p: Rep[nn.LSTM[f32, Pixel, Hidden]], q: Rep[nn.GRU[f32, Pixel, Hidden]], x: Rep[Tensor3D[f32, Time, Batch, Pixel]], s: Rep[Tensor2D[f32, Batch, Hidden]], r: Rep[Tensor2D[f32, Batch, Pixel]]) -> None:
    outputs, (hidden, cell) = nn.lstm(p, x)
    assert_type(outputs, Rep[Tensor3D[f32, Time, Batch, Hidden]])
    assert_type(hidden + cell, Rep[Tensor2D[f32, Batch, Hidden]])
    assert_type(nn.lstm(p, x, (s, s))[0], Rep[Tensor3D[f32, Time, Batch, Hidden]])
    assert_type(nn.lstm_cell(p, r, (s, s))[1], Rep[Tensor2D[f32, Batch, Hidden]])
    assert_type(nn.gru(q, x, s)[1], Rep[Tensor2D[f32, Batch, Hidden]])
    assert_type(nn.gru_cell(q, r, s), Rep[Tensor2D[f32, Batch, Hidden]])
def attentive(p: Rep[nn.MultiHeadAttention[f32, Hidden]], x: Rep[Tensor3D[f32, Batch, Time, Hidden]]) -> None:
    assert_type(nn.attention(p, x, heads=1, causal=True), Rep[Tensor3D[f32, Batch, Time, Hidden]])
    assert_type(nn.attention(p, x, x), Rep[Tensor3D[f32, Batch, Time, Hidden]])
def started(key: Scalar[i64]) -> None:
    assert_type(nn.Linear.init(key, 2, 3), nn.Linear[f32])
    assert_type(nn.Linear.init(key, 2, 3, dtype=f64), nn.Linear[f64])
    assert_type(nn.MLP.init(key, (2, 3)).layers[0].weight, Tensor2D[f32])
    assert_type(nn.init(Network, key, Pixel=2, Hidden=3, Digit=4).first.weight, Tensor2D[f32, Pixel, Hidden])
    assert_type(nn.init(nn.Linear[f64, Pixel, Hidden], key, Pixel=2, Hidden=3), nn.Linear[f64, Pixel, Hidden])
D = TypeVar("D", bound=Float, default=f32)
class Scale(Struct, Generic[D]):
    factor: Field[Scalar[D]]
class Scaled(Struct):
    one: Field[Scale]
    two: Field[Scale[f64]]
def scaled(p: Scaled) -> None:
    assert_type(p.one.factor, Scalar[f32])
    assert_type(p.two.factor, Scalar[f64])
def training(key: Scalar[i64], x: Tensor2D[f32], v: Tensor1D[f64]) -> None:
    adam = nk.optim.adam(1e-3)
    p = nn.Linear.init(key, 2, 1)
    step, state = nk.optim.training_step(with_outputs, optimizer=adam), adam.init(p)
    new, _, (value, outputs) = step(p, state, x)
    assert_type(new, nn.Linear[f32])
    assert_type(value, Scalar[f32])
    assert_type(outputs, Tensor2D[f32])
    assert_type(nk.optim.gauss_newton(misses)(v, f64(0.1), v)[1], Tensor1D[f64])
@nk.staged
def with_outputs(p: Rep[nn.Linear], x: Rep[Tensor2D[f32]]) -> tuple[Rep[Scalar[f32]], Rep[Tensor2D[f32]]]:
    outputs = nn.linear(p, x)
    return nk.square(outputs).mean(), outputs
@nk.staged
def misses(p: Rep[Tensor1D[f64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    return p - x
