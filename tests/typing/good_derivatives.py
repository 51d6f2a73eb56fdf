"""Accepted: jvp, vjp, hvp, jacobian and hessian, with every form of wrt."""

from collections.abc import Callable
from typing import Any, TypeAlias

from nnkit import (
    Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f64, hessian, hvp, i32, jacobian, jvp,
    staged, tanh, vjp,
)
from typing_extensions import assert_type

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


class In(Dim): ...
class Out(Dim): ...


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


@staged
def layer(w: Rep[Tensor2D[f64, In, Out]], x: Rep[Tensor1D[f64, In]]) -> Rep[Tensor1D[f64, Out]]:
    return tanh(x @ w)


@staged
def loss(p: Rep[Params], x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Number]:
    return tanh(x @ p[Params.w] + p[Params.b]).sum() * n.cast(f64)


@staged
def both(x: Rep[Vector], y: Rep[Number]) -> tuple[Rep[Vector], Rep[Number]]:
    return x * y, x.sum()


def forward(p: Params, x: Vector, n: Scalar[i32]) -> None:
    assert_type(jvp(of=loss, wrt=0)(p, x, n, p), tuple[Number, Number])
    assert_type(jvp(of=loss, wrt=(0, 1))(p, x, n, p, x), tuple[Number, Number])
    assert_type(jvp(of=loss, wrt=1)(p, x, n, x), tuple[Number, Number])
    assert_type(jvp(both)(x, Scalar[f64](0.5, f64), x, Scalar[f64](0.5, f64)), tuple[tuple[Vector, Number], tuple[Vector, Number]])


def reverse(p: Params, x: Vector, n: Scalar[i32], y: Number) -> None:
    assert_type(vjp(of=loss, wrt=0)(p, x, n, y), Params)
    assert_type(vjp(of=loss, wrt=(0, 1))(p, x, n, y), tuple[Params, Vector])
    assert_type(vjp(both)(x, y, (x, y)), tuple[Vector, Number])
    assert_type(vjp(both, wrt=(0,))(x, y, (x, y)), tuple[Vector])


def second(p: Params, x: Vector, n: Scalar[i32], y: Number) -> None:
    assert_type(hvp(of=loss)(p, x, n, p), Params)
    assert_type(hvp(of=loss, wrt=1)(p, x, n, x), Vector)
    assert_type(hvp(of=loss, wrt=(0, 1))(p, x, n, p, x), tuple[Params, Vector])
    assert_type(hvp(of=both, wrt=0, from_=1)(x, y, x), Vector)
    assert_type(hessian(of=loss, wrt=1)(p, x, n), Matrix)


J = jacobian(layer)
assert_type(J, Rep[Callable[[Tensor2D[f64, In, Out], Tensor1D[f64, In]], Tensor3D[f64, Out, In, Out]]])
assert_type(jacobian(of=layer, wrt=1), Rep[Callable[[Tensor2D[f64, In, Out], Tensor1D[f64, In]], Tensor2D[f64, Out, In]]])
assert_type(jacobian(J, wrt=1, mode="forward"), Rep[Callable[[Tensor2D[f64, In, Out], Tensor1D[f64, In]], Tensor4D[f64, Out, In, Out, In]]])


def several(w: Tensor2D[f64, In, Out], x: Tensor1D[f64, In], y: Number) -> None:
    assert_type(jacobian(of=layer, wrt=(0, 1))(w, x), tuple[Any, Any])
    assert_type(jacobian(layer, mode="reverse")(w, x), Tensor3D[f64, Out, In, Out])


def selected(p: Params, x: Vector, n: Scalar[i32], w: Matrix) -> None:
    value, tangent = jvp(of=loss, wrt=Params.w)(p, x, n, w)
    assert_type(vjp(of=loss, wrt=Params.w)(p, x, n, value), Matrix)
    assert_type(vjp(of=loss, wrt=lambda p, x, n: (p.b, x))(p, x, n, value), tuple[Vector, Vector])
    assert_type(tangent, Number)
    hvp(of=loss, wrt=lambda p, x, n: (p.w, x))(p, x, n, w, x)
    hessian(of=loss, wrt=Params.b)(p, x, n)
    del value
