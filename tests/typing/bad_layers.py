"""Rejected: layers on what they do not take."""
from __future__ import annotations
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, f64, i64, nn
class Batch(Dim): ...
class Pixel(Dim): ...
class Hidden(Dim): ...
class Digit(Dim): ...
class Network(Struct):
    first: Field[nn.Linear[f32, Pixel, Hidden]]
    last: Field[nn.Linear[f32, Hidden, Digit]]
Images = Tensor2D[f32, Batch, Pixel]
def mistakes(p: Rep[Network], x: Rep[Images], d: Rep[Tensor2D[f64]], n: Rep[Tensor2D[i64]], q: Rep[Tensor4D[f32]]) -> None:
    nn.linear(p[Network.last], x)  # E
    nn.linear(p[Network.first], d)  # E
    nn.linear(p, x)  # E
    nn.linear(x, p[Network.first])  # E
def layers(c: Rep[nn.Conv2d], e: Rep[nn.Embedding], a: Rep[nn.MultiHeadAttention], m: Rep[nn.MLP[f64]], r: Rep[nn.LSTM], x: Rep[Images], t: Rep[Tensor3D[f32]], n: Rep[Tensor2D[i64]]) -> None:
    nn.conv2d(c, t)  # E
    nn.conv2d(c, t, pad=1)  # E
    nn.embedding(e, x)  # E
    nn.attention(a, x)  # E
    nn.attention(a, t, heads="two")  # E
    nn.mlp(m, x)  # E
    nn.lstm(r, x)  # E
    nn.lstm(r, t, t)  # E
def started(key: Scalar[i64], first: nn.Linear[f64], last: nn.Linear) -> None:
    nn.Linear.init(key, 2)  # E
    nn.Linear.init(2, 3)  # E
    nn.Linear.init(key, 2, 3, dtype=i64)  # E
    nn.init(Network, key, Pixel="two")  # E
    nn.init(nn.linear, key)  # E
    Network(first, last)  # E
def result(p: Rep[Network], x: Rep[Images]) -> Rep[Tensor1D[f32]]:
    return nn.linear(p[Network.first], x)  # E
