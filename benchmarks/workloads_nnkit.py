"""The problems in NNKit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32, i64, nn

from .gradbench import gmm, lstm
from .problems import HEADS, RATE, STEPS, Arrays
from .runge_kutta import looped

Call = Callable[[], tuple[Any, ...]]
Matrix = Tensor2D[f32]
Vector = Tensor1D[f32]
Batches = Tensor3D[f32]
Number = Scalar[f32]


class Attention(Struct):
    q: Field[Matrix]
    k: Field[Matrix]
    v: Field[Matrix]
    o: Field[Matrix]


class Block(Struct):
    """A block of a transformer: attention and a perceptron, each after a normalization."""

    attention: Field[Attention]
    scale1: Field[Vector]
    offset1: Field[Vector]
    scale2: Field[Vector]
    offset2: Field[Vector]
    w1: Field[Matrix]
    b1: Field[Vector]
    w2: Field[Matrix]
    b2: Field[Vector]


def build_call(data: Arrays, mode: str) -> Call:
    @nk.staged
    def increment(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        return x + 1.0

    x = Tensor1D(data["x"], f32)
    return lambda: (increment(x),)


def build_affine(data: Arrays, mode: str) -> Call:
    @nk.staged
    def affine(
        x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]], b: Rep[Tensor2D[f32]]
    ) -> Rep[Tensor2D[f32]]:
        return nk.tanh(x @ w + b)

    x, w, b = (Tensor2D(data[name], f32) for name in "xwb")
    return lambda: (affine(x, w, b),)


def build_forward(data: Arrays, mode: str) -> Call:
    logits, _ = model()
    x, params = Tensor2D(data["x"], f32), parameters(data)
    return lambda: (logits(params, x),)


def build_step(data: Arrays, mode: str) -> Call:
    _, loss = model()

    @nk.staged
    def step(
        p: Rep[nn.MLP[f32]], x: Rep[Matrix], labels: Rep[Tensor1D[i64]]
    ) -> tuple[Rep[nn.MLP[f32]], Rep[Number]]:
        value, slope = nk.value_and_gradient(of=loss, wrt=0)(p, x, labels).unpack()
        return p - RATE * slope, value

    donating = nk.donate(step, 0)
    params = parameters(data)
    x, labels = Tensor2D(data["x"], f32), Tensor1D(data["labels"], i64)

    def call() -> tuple[Any, ...]:
        nonlocal params
        params, value = donating(params, x, labels)
        return (value, *nk.tree.leaves(params))

    return call


def build_gelu(data: Arrays, mode: str) -> Call:
    @nk.staged
    def total(x: Rep[Vector]) -> Rep[Number]:
        total: Rep[Number] = gelu(x).sum()
        return total

    x = Tensor1D(data["x"], f32)
    both = nk.value_and_gradient(of=total, wrt=0)
    return lambda: both(x)


def build_softmax(data: Arrays, mode: str) -> Call:
    @nk.staged
    def loss(x: Rep[Matrix], labels: Rep[Tensor1D[i64]]) -> Rep[Number]:
        return nk.cross_entropy(x, labels)

    x, labels = Tensor2D(data["x"], f32), Tensor1D(data["labels"], i64)
    both = nk.value_and_gradient(of=loss, wrt=0)
    return lambda: both(x, labels)


def build_attention(data: Arrays, mode: str) -> Call:
    @nk.staged
    def loss(p: Rep[Attention], x: Rep[Batches]) -> Rep[Number]:
        return nk.square(attend(p, x)).mean()

    p, x = projections(data), Tensor3D(data["x"], f32)
    slope = nk.gradient(of=loss, wrt=0)

    def call() -> tuple[Any, ...]:
        found = slope(p, x)
        return found.q, found.k, found.v, found.o

    return call


def build_block(data: Arrays, mode: str) -> Call:
    @nk.staged
    def loss(p: Rep[Block], x: Rep[Batches]) -> Rep[Number]:
        one = nk.layer_norm(x, p[Block.scale1], p[Block.offset1])
        x = x + attend(p[Block.attention], one)
        two = nk.layer_norm(x, p[Block.scale2], p[Block.offset2])
        x = x + gelu(two @ p[Block.w1] + p[Block.b1]) @ p[Block.w2] + p[Block.b2]
        return nk.square(x).mean()

    vectors = {
        name: Tensor1D(data[name], f32)
        for name in ("scale1", "offset1", "scale2", "offset2", "b1", "b2")
    }
    w1, w2 = (Tensor2D(data[name], f32) for name in ("w1", "w2"))
    p = Block(attention=projections(data), w1=w1, w2=w2, **vectors)
    x = Tensor3D(data["x"], f32)
    slope = nk.gradient(of=loss, wrt=0)
    return lambda: tuple(nk.tree.leaves(slope(p, x)))


def build_layer(data: Arrays, mode: str) -> Call:
    @nk.staged
    def layer(x: Rep[Batches], w: Rep[Matrix], b: Rep[Tensor1D[f32]]) -> Rep[Batches]:
        made: Rep[Batches] = gelu(x @ w + b)
        return made

    x, w, b = Tensor3D(data["x"], f32), Tensor2D(data["w"], f32), Tensor1D(data["b"], f32)
    return lambda: (layer(x, w, b),)


def build_product(data: Arrays, mode: str) -> Call:
    @nk.staged
    def product(a: Rep[Matrix], b: Rep[Matrix]) -> Rep[Matrix]:
        return a @ b

    a, b = Tensor2D(data["a"], f32), Tensor2D(data["b"], f32)
    return lambda: (product(a, b),)


def build_line(data: Arrays, mode: str) -> Call:
    @nk.staged
    def line(x: Rep[Tensor1D[f32]], y: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        return 1.5 * x + y

    x, y = Tensor1D(data["x"], f32), Tensor1D(data["y"], f32)
    return lambda: (line(x, y),)


def build_symmetric(data: Arrays, mode: str) -> Call:
    @nk.staged
    def symmetric(x: Rep[Matrix]) -> Rep[Matrix]:
        return 0.5 * (x + x.T)

    x = Tensor2D(data["x"], f32)
    return lambda: (symmetric(x),)


def build_runge_kutta(data: Arrays, mode: str) -> Call:
    slope = nk.gradient(of=looped(STEPS), wrt=(0, 1))
    a, y = Tensor2D(data["a"]), Tensor1D(data["y"])
    return lambda: slope(a, y)


def build_mixture(data: Arrays, mode: str) -> Call:
    (n, d), k = data["x"].shape, len(data["alpha"])
    given = gmm.prepare({"n": n, "d": d, "k": k, "gamma": 1.0, "m": 0, **data})
    slope = nk.gradient(of=gmm.log_density, wrt=0)

    def call() -> tuple[Any, ...]:
        found = slope(*given)
        return found.alpha, found.mu, found.q, found.l

    return call


def build_lstm(data: Arrays, mode: str) -> Call:
    given = lstm.prepare({**data})
    return lambda: lstm.jacobian(*given)


def model() -> tuple[Any, Any]:
    """Logits and loss of an MLP, made anew, so that nothing is compiled yet."""

    @nk.staged
    def logits(p: Rep[nn.MLP[f32]], x: Rep[Matrix]) -> Rep[Matrix]:
        return nn.mlp(p, x)

    @nk.staged
    def loss(p: Rep[nn.MLP[f32]], x: Rep[Matrix], labels: Rep[Tensor1D[i64]]) -> Rep[Number]:
        return nk.cross_entropy(logits(p, x), labels)

    return logits, loss


def parameters(data: Arrays) -> nn.MLP[f32]:
    count = sum(name.startswith("w") for name in data)
    layers = [
        nn.Linear(Tensor2D(data[f"w{k}"], f32), Tensor1D(data[f"b{k}"], f32))
        for k in range(1, count + 1)
    ]
    return nn.MLP(layers)


def projections(data: Arrays) -> Attention:
    return Attention(*(Tensor2D(data[name], f32) for name in "qkvo"))


def gelu(x: Rep[Any]) -> Any:
    """The form by tanh, √(2/π) = 0.797…; `nk.gelu` is that of the normal distribution."""
    return 0.5 * x * (1 + nk.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def attend(p: Rep[Attention], x: Rep[Batches]) -> Any:
    batch, length, width = x.shape

    def split(y: Rep[Batches]) -> Any:
        return y.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    q, k, v = (split(x @ p[name]) for name in (Attention.q, Attention.k, Attention.v))
    scores = q @ k.transpose(0, 1, 3, 2) * (width // HEADS) ** -0.5
    mixed = (nk.softmax(scores) @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(batch, length, width) @ p[Attention.o]


def to_numpy(results: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """The results of a call as arrays of their own."""
    return [np.array(result) for result in results]


BUILD = {
    "call": build_call,
    "affine": build_affine,
    "forward": build_forward,
    "step": build_step,
    "gelu": build_gelu,
    "softmax": build_softmax,
    "attention": build_attention,
    "block": build_block,
    "layer": build_layer,
    "product": build_product,
    "line": build_line,
    "symmetric": build_symmetric,
    "runge-kutta": build_runge_kutta,
    "mixture": build_mixture,
    "lstm": build_lstm,
}
