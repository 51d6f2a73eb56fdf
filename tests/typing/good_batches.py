"""Accepted: vmap and vmap2, of gradients and in them, axes by name, and what is not followed."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, TypeAlias
from typing_extensions import assert_type
from nnkit import (
    Dim, Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, axis_max, axis_mean, axis_min, axis_sum, f64, fn, gradient, i32,
    jacobian, staged, vmap, vmap2,
)

class In(Dim): ...
class Out(Dim): ...
Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64, In]
Matrix: TypeAlias = Tensor2D[f64, In, Out]

@staged
def loss(x: Rep[Vector], w: Rep[Matrix]) -> Rep[Number]:
    return (x @ w).sum()

@staged
def both(x: Rep[Vector], n: Rep[Scalar[i32]]) -> tuple[Rep[Vector], Rep[Number]]:
    return x * 2.0, x.sum()

@staged
def of_three(x: Rep[Vector], w: Rep[Matrix], n: Rep[Scalar[i32]]) -> Rep[Number]:
    return loss(x, w) * n.cast(f64)

@staged
def centered(x: Rep[Vector]) -> Rep[Vector]:
    return (x - axis_mean(x, "rows")) / (axis_max(x, "rows") - axis_min(x, "rows")) + axis_sum(x, "rows")

def concrete(xs: Tensor2D[f64, Any, In], w: Matrix, n: Scalar[i32]) -> None:
    assert_type(vmap(loss)(xs, w), Tensor1D[f64])
    assert_type(vmap(gradient(of=loss, wrt=0))(xs, w), Tensor2D[f64, Any, In])
    assert_type(vmap(gradient(of=loss, wrt=1))(xs, w), Tensor3D[f64, Any, In, Out])
    assert_type(vmap(gradient(of=loss, wrt=(0, 1)))(xs, w), tuple[Tensor2D[f64, Any, In], Tensor3D[f64, Any, In, Out]])
    assert_type(vmap(both)(xs, n), tuple[Tensor2D[f64, Any, In], Tensor1D[f64]])
    assert_type(vmap(centered, axis_name="rows")(xs), Tensor2D[f64, Any, In])
    assert_type(vmap(loss, in_axes=(0, None))(xs, w), Tensor1D[f64])
    assert_type(vmap(loss, in_axes=(None, 2)), Rep[Callable[[Vector, Tensor3D[f64]], Tensor1D[f64]]])
    assert_type(vmap(loss, in_axes=1), Rep[Callable[[Tensor2D[f64], Tensor3D[f64]], Tensor1D[f64]]])
    assert_type(vmap(centered, in_axes=-1, out_axes=1, axis_name="rows"), Rep[Callable[[Tensor2D[f64]], Tensor2D[f64, Any, In]]])
    assert_type(vmap(loss, in_axes=1, out_axes=None, axis_name="rows"), Rep[Callable[..., Any]])
    assert_type(vmap(both, in_axes=(0, None)), Rep[Callable[..., Any]])
    assert_type(vmap(of_three, in_axes=(0, None, 0)), Rep[Callable[..., Any]])

product = fn(Tensor1D[f64], Tensor1D[f64])(lambda a, b: a * b)
outer = vmap2(product)
assert_type(outer, Rep[Callable[[Tensor2D[f64], Tensor2D[f64]], Tensor2D[f64]]])
sums = fn(Tensor1D[f64])(lambda v: v.sum())
twice = vmap(vmap(sums))
assert_type(twice, Rep[Callable[[Tensor3D[f64]], Tensor2D[f64]]])

def total(xs: Rep[Tensor2D[f64]], w: Rep[Tensor2D[f64]]) -> Rep[Number]:
    return vmap(loss)(xs, w).sum()
square = fn(Number)(lambda x: x * x)
def slopes(xs: Tensor2D[f64], w: Tensor2D[f64]) -> None:
    assert_type(gradient(of=staged(total), wrt=1)(xs, w), Tensor2D[f64])
    assert_type(jacobian(vmap(square))(Tensor1D([1.0], f64)), Tensor2D[f64])
