"""Accepted: structs with sequences, their operators, trees; operators of concrete tensors."""
from __future__ import annotations
from typing import Any
import numpy as np
from typing_extensions import assert_type
from nnkit import (
    Dim, Field, Rep, Scalar, Struct, Tensor0D, Tensor1D, Tensor2D, asdict, boolean, build, f32, f64,
    fields, fori, gradient, i32, optim, staged, tree, value_and_gradient,
)

class In(Dim): ...
class Out(Dim): ...
class Layer(Struct):
    w: Field[Tensor2D[f32, In, Out]]
    b: Field[Tensor1D[f32, Out]]
class Net(Struct):
    layers: Field[list[Layer]]
    more: Field[tuple[Tensor1D[f32], ...]]
    pair: Field[tuple[Layer, Tensor1D[f32]]]
    same: Field[tuple[Layer, Layer]]
    scale: Field[Scalar[f32]]

def staged_sequences(p: Rep[Net], x: Rep[Tensor2D[f32]]) -> None:
    layers = p[Net.layers]
    assert_type(layers, Rep[tuple[Layer, ...]])
    assert_type(layers[0], Rep[Layer])
    assert_type(layers[0][Layer.w], Rep[Tensor2D[f32, In, Out]])
    for layer in layers:
        x = x @ layer[Layer.w] + layer[Layer.b]
    assert_type(layers[1:], Rep[tuple[Layer, ...]])
    assert_type(p[Net.pair][0], Rep[Layer])
    for one in p[Net.same]:
        x = x @ one[Layer.w]
    layer, bias = p[Net.pair]
    assert_type(bias, Rep[Any])
    x = x @ layer[Layer.w] + bias
    count: int = len(layers)
    q = p.set(Net.layers, [layer * 2.0 for layer in layers])
    assert_type(q, Rep[Net])
    assert_type(build(Layer, Layer.w << layers[0][Layer.w], Layer.b << layers[0][Layer.b]), Rep[Layer])

def staged_operators(p: Rep[Net], g: Rep[Net], rate: Rep[Scalar[f32]]) -> None:
    assert_type(p - 0.1 * g, Rep[Net])
    assert_type(p + g, Rep[Net])
    assert_type(-p * g / 2.0, Rep[Net])
    assert_type(p ** 2.0, Rep[Net])
    assert_type(p - rate * g, Rep[Net])
    assert_type(tree.map(lambda x: x * 2.0, p), Rep[Net])
    assert_type(tree.map(lambda x, y: x + y, p, g), Rep[Net])
    for leaf in tree.leaves(p):
        leaf + 1.0

@staged
def loss(p: Rep[Net], x: Rep[Tensor2D[f32]]) -> Rep[Scalar[f32]]:
    for layer in p[Net.layers]:
        x = x @ layer[Layer.w] + layer[Layer.b]
    return x.sum() * p[Net.scale]

@staged
def trained(p: Rep[Net], x: Rep[Tensor2D[f32]]) -> Rep[Net]:
    return fori(0, 3, lambda i, p: p - 0.1 * gradient(of=loss, wrt=0)(p, x), p)

def derivatives(p: Net, x: Tensor2D[f32]) -> None:
    assert_type(gradient(of=loss, wrt=0)(p, x), Net)
    assert_type(gradient(of=loss, wrt=Net.layers)(p, x), tuple[Layer, ...])
    assert_type(value_and_gradient(of=loss, wrt=0)(p, x), tuple[Scalar[f32], Net])
    assert_type(trained(p, x), Net)

def concrete_structs(p: Net, q: Net, s: Scalar[f32]) -> None:
    assert_type(p.layers, tuple[Layer, ...])
    assert_type(p.layers[0].w, Tensor2D[f32, In, Out])
    assert_type(p.pair[1], Tensor1D[f32])
    assert_type(p - 0.1 * q, Net)
    assert_type(s * p, Net)
    assert_type(-p, Net)
    assert_type(tree.map(lambda x: x * 2.0, p), Net)
    assert_type(tree.reduce(lambda total, x: total + int(x.size), p, 0), int)
    assert_type(asdict(p), dict[str, Any])
    names: list[str] = [lens.name for lens in fields(Net)]
    same: bool = p == q

def concrete_tensors(m: Tensor2D[f32, In, Out], v: Tensor1D[f32, Out], s: Scalar[f32], n: Tensor1D[i32]) -> None:
    assert_type(m + m, Tensor2D[f32, In, Out])
    assert_type(m + v, Tensor2D[f32, In, Out])
    assert_type(v + m, Tensor2D[f32, In, Out])
    assert_type(2.0 * m / s - 1, Tensor2D[f32, In, Out])
    assert_type(-m, Tensor2D[f32, In, Out])
    assert_type(n // 2 % 3, Tensor1D[i32])
    assert_type(m < 0.5, Tensor2D[boolean, In, Out])
    assert_type(m == m, Tensor2D[boolean, In, Out])
    assert_type(m @ v, Tensor1D[f32])
    assert_type(v @ v, Tensor0D[f32])
    assert_type(m[0], Tensor1D[f32, Out])
    assert_type(v[0], Tensor0D[f32])
    assert_type(len(m), int)
    assert_type(m.cast(f64), Tensor2D[f64, In, Out])
    for row in m:
        assert_type(row, Tensor1D[f32, Out])
    assert_type(v.tolist(), list[Any])
    text: str = f"{s:.3f}"
    assert_type(Tensor2D(np.zeros((1, 1), np.float32), copy=False), Tensor2D[f32])

def training(p: Net, x: Tensor2D[f32], key: Scalar[f32]) -> None:
    adam = optim.adam(1e-3)
    state = adam.init(p)
    assert_type(state, tuple[Tensor0D[i32], Net, Net])
    step = optim.training_step(loss, optimizer=adam, clip_norm=1.0, donated=False)
    p, state, value = step(p, state, x)
    assert_type(value, Scalar[f32])
    assert_type(p, Net)
    plain = optim.training_step(loss, optimizer=optim.sgd(lambda t: 0.1 / (1.0 + t.cast(f32))), donated=False)
    again = plain(p, optim.sgd(0.1).init(p), x)
    assert_type(again[0], Net)
    moving = optim.training_step(loss, optimizer=optim.momentum(0.1, nesterov=True), donated=False)
    assert_type(moving(p, optim.momentum(0.1).init(p), x)[1], tuple[Tensor0D[i32], Net])
    mean = optim.training_step(loss, optimizer=optim.rmsprop(1e-3, decay=0.9), donated=False)
    assert_type(mean(p, optim.adagrad().init(p), x)[1], tuple[Tensor0D[i32], Net])

def clipped(g: Rep[Net]) -> None:
    assert_type(optim.clip_by_global_norm(g, 1.0), Rep[Net])

def numpy_reads_element_types() -> None:
    assert_type(Tensor1D(np.zeros(3, dtype=f32)), Tensor1D[f32])
    assert_type(Tensor2D(np.ones((3, 4)).astype(i32), i32), Tensor2D[i32])
    assert_type(Tensor1D(np.full(3, True, dtype=boolean)), Tensor1D[boolean])
