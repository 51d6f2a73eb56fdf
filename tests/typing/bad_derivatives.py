"""Rejected: derivatives of and by what has none, and arguments that do not fit."""

from typing import TypeAlias

from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64, hessian, hvp, i32, jacobian, jvp, staged, taylor, vjp

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


@staged
def scale(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Vector]:
    return x * n.cast(f64)


@staged
def total(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Number]:
    return (x * n.cast(f64)).sum()


jvp(scale)    # E
jvp(scale, wrt=1)    # E
jvp(scale, wrt=(0, 1))    # E
jvp(scale, wrt=2)    # E
taylor(scale, order=2)    # E
taylor(scale, wrt=0)    # E
taylor(scale, order="2", wrt=0)    # E
taylor(scale, order=2, wrt=1)    # E
vjp(scale)    # E
vjp(scale, wrt=1)    # E
hvp(scale)    # E
hvp(total, wrt=1)    # E
hessian(scale)    # E
hessian(total, wrt=1)    # E
jacobian(scale, wrt=1)    # E
jacobian(scale, mode="fast")    # E


def arguments(x: Vector, n: Scalar[i32], m: Matrix, v: Tensor1D[f32], s: Number) -> None:
    jvp(scale, wrt=0)(x, n)    # E
    jvp(scale, wrt=0)(x, n, m)    # E
    jvp(scale, wrt=0)(x, n, v)    # E
    taylor(scale, order=2, wrt=0)(x, n)    # E
    taylor(scale, order=2, wrt=0)(x, n, m)    # E
    vjp(scale, wrt=0)(x, n, s)    # E
    hvp(total)(x, n, v)    # E
    jacobian(scale)(x)    # E
    wrong: Vector = hessian(total)(x, n)    # E
    del wrong
