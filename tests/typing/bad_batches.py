"""Rejected: batches of arguments of another rank or element type, axes that are no ints, names that are no strings."""
from __future__ import annotations
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, axis_mean, axis_sum, f32, f64, i32, staged, vmap, vmap2

@staged
def scale(x: Rep[Tensor1D[f64]], by: Rep[Scalar[f64]]) -> Rep[Tensor1D[f64]]:
    return x * by

def concrete(x: Tensor1D[f64], xs: Tensor2D[f64], single: Tensor2D[f32], by: Scalar[f64], each: Tensor1D[f64]) -> None:
    vmap(scale)(x, by)    # E
    vmap(scale)(xs, each)    # E
    vmap(scale)(single, by)    # E
    vmap(scale)(xs)    # E
    vmap2(scale)(xs, by)    # E
    vmap(scale, in_axes=0)(xs, by)    # E
    vmap(scale, in_axes=(0, None))(xs, each)    # E
    vmap(scale, in_axes=(None, 0))(xs, each)    # E
    vmap(scale, in_axes="rows")    # E
    vmap(scale, in_axes=(0, 1.5))    # E
    vmap(scale, axis_name=0)    # E
    vmap(lambda v: v)    # E

def reps(x: Rep[Tensor1D[f64]], n: Rep[Scalar[i32]], m: Rep[Tensor1D[i32]]) -> None:
    axis_sum(x)    # E
    axis_sum(x, 0)    # E
    axis_mean(m, "rows")    # E
    vmap(scale)(x, n)    # E
