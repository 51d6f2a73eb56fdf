"""Accepted: results in given arrays, donated arguments, and types to accumulate in."""

from typing import TypeAlias, assert_type

from nnkit import (
    Dim,
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    donate,
    f16,
    f32,
    f64,
    gradient,
    matmul,
    staged,
)


class In(Dim): ...
class Out(Dim): ...
class Params(Struct):
    w: Field[Tensor2D[f32, In, Out]]


F: TypeAlias = Tensor2D[f32]


@staged
def f(x: Rep[F], y: Rep[F]) -> Rep[F]:
    return x + y


@staged
def step(p: Rep[Params], x: Rep[F]) -> tuple[Rep[Params], Rep[Scalar[f32]]]:
    return p, x.sum(accumulate=f64)


def out(x: F, y: F, p: Params, s: Scalar[f32]) -> None:
    assert_type(f(x, y, out=x), F)
    assert_type(step(p, x, out=(p, s)), tuple[Params, Scalar[f32]])
    slopes = gradient(of=f, wrt=(0, 1))
    assert_type(slopes(x, y, out=(x, y)), tuple[F, F])


def donated(x: F, y: F, p: Params) -> None:
    in_place = donate(step, 0)
    assert_type(in_place(p, x), tuple[Params, Scalar[f32]])
    assert_type(donate(f, 0, 1)(x, y), F)


@staged
def sums(x: Rep[Tensor2D[f16, In, Out]], y: Rep[Tensor3D[f16]]) -> Rep[Tensor1D[f16, Out]]:
    assert_type(x.sum(accumulate=f32), Rep[Scalar[f16]])
    assert_type(x.mean(axis=1, accumulate=f64), Rep[Tensor1D[f16, In]])
    assert_type(matmul(x.T, x, accumulate=f32), Rep[Tensor2D[f16, Out, Out]])
    assert_type(matmul(y, y), Rep[Tensor3D[f16]])
    return x.sum(axis=0, keepdims=False, accumulate=None)
