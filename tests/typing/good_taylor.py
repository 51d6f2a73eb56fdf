"""Accepted: taylor, with every form of wrt, outside and inside of staged functions."""

from typing import TypeAlias

from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f64, gradient, i32, staged, tanh, taylor
from typing_extensions import assert_type

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


@staged
def loss(p: Rep[Params], x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Number]:
    return tanh(x @ p[Params.w] + p[Params.b]).sum() * n.cast(f64)


@staged
def both(x: Rep[Vector], y: Rep[Number]) -> tuple[Rep[Vector], Rep[Number]]:
    return x * y, x.sum()


@staged
def acceleration(x: Rep[Vector], y: Rep[Number], v: Rep[Vector]) -> Rep[Vector]:
    value, slope, half = taylor(of=scaled, order=2, wrt=0)(x, y, v).unpack()
    assert_type(value, Rep[Vector])
    assert_type(slope, Rep[Vector])
    third = taylor(scaled, order=3, wrt=0)(x, y, v).unpack()[3]
    assert_type(third, Rep[Vector])
    return half * 2.0 + third


@staged
def scaled(x: Rep[Vector], y: Rep[Number]) -> Rep[Vector]:
    return tanh(x * y)


def series(p: Params, x: Vector, n: Scalar[i32], y: Number, w: Matrix) -> None:
    assert_type(taylor(of=loss, order=4, wrt=0)(p, x, n, p), tuple[Number, ...])
    assert_type(taylor(of=loss, order=4, wrt=(0, 1))(p, x, n, p, x), tuple[Number, ...])
    assert_type(taylor(of=loss, order=4, wrt=1)(p, x, n, x), tuple[Number, ...])
    assert_type(taylor(scaled, order=4)(x, y, x, y), tuple[Vector, ...])
    assert_type(taylor(of=both, order=2, wrt=1)(x, y, y), tuple[tuple[Vector, Number], ...])
    value, slope, half = taylor(of=loss, order=2, wrt=Params.w)(p, x, n, w)
    assert_type(half, Number)
    assert_type(gradient(of=acceleration, wrt=0)(x, y, x), Vector)
