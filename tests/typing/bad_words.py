"""What beginners write: each is flagged by a name that says what to do, the one before the mark."""

import math

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i32


class Params(Struct):
    w: Field[Tensor1D[f32]]
    b: Field[Tensor1D[f32]]


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

Tensor1D(np.zeros(3), f32)  # in mypy: TheElementTypeOfTheArray # E
Tensor1D(np.zeros(3, dtype=nk.f64), f32)  # in pyright: ThatOfTheArrayOrCastTheArrayByAstype # E
Tensor2D(np.ones((3, 2)), f32)  # in mypy: TheElementTypeOfTheArray # E
Tensor1D(np.arange(3), f32)  # in pyright: ThatOfTheArrayOrCastTheArrayByAstype # E


@nk.staged
def asks_for_values(x: Rep[Tensor1D[f32]], p: Rep[Params]) -> Rep[Scalar[f32]]:
    float(x.sum())  # ReturnItFromTheStagedFunction # E
    int(x.sum())  # in pyright: ReturnItFromTheStagedFunction # E
    complex(x.sum())  # in pyright: ReturnItFromTheStagedFunction # E
    math.sqrt(x.sum())  # ReturnItFromTheStagedFunction # E
    round(x.sum())  # in pyright: WriteNkRound # E
    round(x.sum(), 2)  # in pyright: WriteNkRound # E
    if x.sum() > 0:  # ChooseByCondOrSelect # E:pyright
        pass
    while x.sum() > 0:  # ChooseByCondOrSelect # E:pyright
        pass
    _ = x if x.sum() > 0 else -x  # ChooseByCondOrSelect # E:pyright
    not x.sum() > 0  # ChooseByCondOrSelect # E:pyright
    p.w  # in pyright: p[Class.field] # E
    p.b  # in pyright: WriteFieldsOf[Params, # E
    for _ in x:  # LoopByMapFoldOrScan # E
        pass
    list(x)  # in pyright: LoopByMapFoldOrScan # E
    tuple(x)  # in pyright: LoopByMapFoldOrScan # E
    enumerate(x)  # in pyright: LoopByMapFoldOrScan # E
    zip(x, x)  # in pyright: LoopByMapFoldOrScan # E
    sum(x)  # LoopByMapFoldOrScan # E
    dict(x)  # LoopByMapFoldOrScan # E
    max(x)  # in pyright: LoopByMapFoldOrScan # E
    any(x)  # LoopByMapFoldOrScan # E
    map(abs, x)  # LoopByMapFoldOrScan # E
    ", ".join(x)  # LoopByMapFoldOrScan # E
    _ = [*x]  # in pyright: LoopByMapFoldOrScan # E
    np.exp(x)  # in pyright: WriteNkForNp # E
    len(x)
    return x.sum()


nk.full(3, "a")  # in mypy: AShapeThenANumberThenAnElementType # E
nk.full((2,), f32)  # in mypy: AShapeThenANumberThenAnElementType # E
nk.full((2,), "a", f32)  # in mypy: AShapeThenANumberThenAnElementType # E
nk.full((2,), 0.5, i32)  # i32 # E


def reads(p: Params) -> None:
    p[Params.w]  # ReadItAsAnAttribute # E


@nk.staged
def joins_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    return nk.concat([])  # AtLeastOneTensor # E


@nk.staged
def stacks_nothing(x: Rep[Tensor1D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.stack([])  # AtLeastOneTensor # E


def of_data(data: Tensor1D[f32]) -> None:
    nk.tanh(data)  # DecorateTheFunctionWithNkStaged # E
    nk.sum(data, axis=0)  # DecorateTheFunctionWithNkStaged # E
    nk.maximum(data, data)  # DecorateTheFunctionWithNkStaged # E
    nk.softmax(data)  # DecorateTheFunctionWithNkStaged # E
    nk.sort(data)  # DecorateTheFunctionWithNkStaged # E
    nk.stack([data])  # in pyright: DecorateTheFunctionWithNkStaged # E
    nk.einsum("i,i->", data, data)  # DecorateTheFunctionWithNkStaged # E
