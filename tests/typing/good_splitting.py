"""Accepted: the halves of gradients, what they keep, and linear maps."""

from collections.abc import Callable
from typing import TypeAlias

from nnkit import (
    Field, Halves, LinearMap, Rep, Residuals, Saved, Scalar, Split, Struct, Tensor1D, Tensor2D, f64, gradient, i32, linearize,
    saved, spec, split, staged, tanh, value_and_gradient, vjp,
)
from typing_extensions import assert_type

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


@staged
def layer(w: Rep[Matrix], x: Rep[Vector]) -> Rep[Vector]:
    return tanh(x @ w)


@staged
def loss(p: Rep[Params], x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Number]:
    return tanh(x @ p[Params.w] + p[Params.b]).sum() * n.cast(f64)


def apart(w: Matrix, x: Vector) -> None:
    halves = split(layer)
    assert_type(halves, Split[Callable[[Matrix, Vector], tuple[Vector, Residuals]], Callable[[Residuals, Vector], tuple[Matrix, Vector]]])
    value, residuals = halves.forward(w, x)
    assert_type(value, Vector)
    assert_type(residuals, Residuals)
    back = residuals.with_arrays(residuals.numpy())
    assert_type(halves.backward(back, value), tuple[Matrix, Vector])
    small = split(layer, wrt=0, save="none")
    assert_type(small.backward(small.at(w, x).forward(w, x)[1], value), Matrix)


def described(w: Matrix, x: Vector) -> None:
    assert_type(saved(layer, w, x, wrt=0), Saved)
    halves = split(layer, wrt=(0,), save=1 << 20).at(spec((1, 1), f64), spec((1,), f64))
    assert_type(halves, Halves[Callable[[Matrix, Vector], tuple[Vector, Residuals]], Callable[[Residuals, Vector], tuple[Matrix]]])
    total: int = halves.saved.total + sum(one.bytes for one in halves.backward_signature.expects)
    lines: list[str | None] = [one.location for one in halves.residuals]
    del total, lines


def selected(p: Params, x: Vector, n: Scalar[i32]) -> None:
    by_struct = split(loss, wrt=(0, 1))
    value, residuals = by_struct.forward(p, x, n)
    assert_type(by_struct.backward(residuals, value), tuple[Params, Vector])
    by_field = split(loss, wrt=Params.w)
    value, residuals = by_field.forward(p, x, n)
    assert_type(by_field.backward(residuals, value), Matrix)


def linear(w: Matrix, x: Vector, p: Params, n: Scalar[i32]) -> None:
    value, derivative = linearize(layer)(w, x)
    assert_type(value, Vector)
    assert_type(derivative, LinearMap[[Matrix, Vector], Vector, tuple[Matrix, Vector]])
    assert_type(derivative(w, x), Vector)
    assert_type(derivative.transpose(value), tuple[Matrix, Vector])
    assert_type(linearize(loss, wrt=0)(p, x, n)[1](p), Number)


@staged
def along(w: Rep[Matrix], x: Rep[Vector]) -> Rep[Vector]:
    value, derivative = linearize(layer)(w, x)
    return value + derivative(w, x)


def policies(p: Params, x: Vector, n: Scalar[i32], y: Number) -> None:
    assert_type(gradient(of=loss, wrt=0, save="all")(p, x, n), Params)
    assert_type(gradient(of=loss, wrt=(0, 1), seedable=True, save="none")(p, x, n, y), tuple[Params, Vector])
    assert_type(gradient(of=loss, wrt=Params.b, save=4096)(p, x, n), Vector)
    assert_type(value_and_gradient(of=loss, wrt=1, save="auto")(p, x, n), tuple[Number, Vector])
    assert_type(vjp(loss, wrt=1, save="none")(p, x, n, y), Vector)
