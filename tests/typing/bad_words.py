"""What beginners write: each is flagged by a name that says what to do, the one before the mark."""

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32


class Params(Struct):
    w: Field[Tensor1D[f32]]


def unstaged(x: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
    return x.sum()


nk.gradient(of=unstaged, wrt=0)  # DecorateItWithNkStaged # E
nk.value_and_gradient(of=unstaged, wrt=0)  # DecorateItWithNkStaged # E
nk.jvp(unstaged)  # DecorateItWithNkStaged # E
nk.vjp(unstaged)  # DecorateItWithNkStaged # E
nk.hvp(unstaged)  # DecorateItWithNkStaged # E
nk.hessian(unstaged)  # DecorateItWithNkStaged # E
nk.jacobian(unstaged)  # DecorateItWithNkStaged # E
nk.taylor(unstaged, order=2)  # DecorateItWithNkStaged # E
nk.vmap(unstaged)  # DecorateItWithNkStaged # E

Tensor1D(np.zeros(3), f32)  # mypy: TheElementTypeOfTheArray # E
Tensor1D(np.zeros(3, dtype=nk.f64), f32)  # pyright: ThatOfTheArrayOrCastTheArrayByAstype # E
Tensor2D(np.ones((3, 2)), f32)  # mypy: TheElementTypeOfTheArray # E
Tensor1D(np.arange(3), f32)  # pyright: ThatOfTheArrayOrCastTheArrayByAstype # E


@nk.staged
def asks_for_values(x: Rep[Tensor1D[f32]], p: Rep[Params]) -> Rep[Scalar[f32]]:
    float(x.sum())  # pyright: ReturnItFromTheStagedFunction # E
    int(x.sum())  # pyright: ReturnItFromTheStagedFunction # E
    p.w  # pyright: p[Params.w] # E
    for _ in x:  # LoopByMapFoldOrScan # E
        pass
    return x.sum()


@nk.staged
def joins_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return nk.concat([])  # AtLeastOneTensor # E


@nk.staged
def stacks_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.stack([])  # AtLeastOneTensor # E
