"""Rejected: of structs with sequences, and of concrete tensors."""
from __future__ import annotations
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, build, f32, f64, i32, optim, staged

class Layer(Struct):
    w: Field[Tensor2D[f32]]
class Other(Struct):
    w: Field[Tensor2D[f32]]
class Net(Struct):
    layers: Field[list[Layer]]
    scale: Field[Scalar[f32]]

def staged_structs(p: Rep[Net], q: Rep[Other], v: Rep[Tensor1D[f32]]) -> None:
    p + q  # E
    p + v  # E
    p[Net.layers][Layer.w]  # E
    p.w  # E
    p.set(Net.layers, [q])  # E
    build(Net, Net.layers << [v], Net.scale << v.sum())  # E

def concrete_structs(p: Net, q: Other, s: Scalar[f32]) -> None:
    p + q  # E
    p.layers.append(p.layers[0])  # E
    Net(p.layers[0], s)  # E
    p.other  # E

def concrete_tensors(m: Tensor2D[f32], v: Tensor1D[f64], n: Tensor1D[i32]) -> None:
    m + v  # E
    n + v  # E
    m & m  # E
    m @ v.tolist()  # E
    v[0][0]  # E
    range(m)  # E

@staged
def loss(p: Rep[Net], x: Rep[Tensor2D[f32]]) -> Rep[Scalar[f32]]:
    return x.sum() * p[Net.scale]

@staged
def vector(p: Rep[Net], x: Rep[Tensor2D[f32]]) -> Rep[Tensor1D[f32]]:
    return x.sum(axis=0) * p[Net.scale]

def training(p: Net, x: Tensor2D[f32]) -> None:
    optim.training_step(vector, optimizer=optim.adam())  # E
    optim.training_step(loss, optimizer=0.1)  # E
    step = optim.training_step(loss, optimizer=optim.adam())
    step(p, optim.sgd(0.1).init(p), x)  # E
    optim.adam(beta3=0.5)  # E
