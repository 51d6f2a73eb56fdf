"""What beginners write: each is flagged by a name that says what to do."""

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32


class Params(Struct):
    w: Field[Tensor1D[f32]]


def unstaged(x: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
    return x.sum()


nk.gradient(of=unstaged, wrt=0)  # E
nk.value_and_gradient(of=unstaged, wrt=0)  # E
nk.jvp(unstaged)  # E
nk.vjp(unstaged)  # E
nk.hvp(unstaged)  # E
nk.hessian(unstaged)  # E
nk.jacobian(unstaged)  # E
nk.taylor(unstaged, order=2)  # E
nk.vmap(unstaged)  # E

Tensor1D(np.zeros(3), f32)  # E
Tensor2D(np.ones((3, 2)), f32)  # E
Tensor1D(np.arange(3), f32)  # E


@nk.staged
def asks_for_values(x: Rep[Tensor1D[f32]], p: Rep[Params]) -> Rep[Scalar[f32]]:
    float(x.sum())  # E
    int(x.sum())  # E
    p.w  # E
    for _ in x:  # E
        pass
    return x.sum()


@nk.staged
def joins_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return nk.concat([])  # E


@nk.staged
def stacks_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.stack([])  # E
