"""Rejected: halves of and by what has no derivative, arguments that do not fit, policies that there are not."""

from typing import TypeAlias

from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f64, gradient, i32, linearize, saved, split, staged, vjp

Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


@staged
def scale(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Vector]:
    return x * n.cast(f64)


split(scale)    # E
split(scale, wrt=1)    # E
split(scale, wrt=(0, 1))    # E
split(lambda x: x)    # E
split(scale, wrt=0, save="some")    # E
linearize(scale)    # E
linearize(scale, wrt=1)    # E
saved(lambda x: x)    # E
gradient(of=scale, wrt=0, save="some")    # E
vjp(scale, wrt=0, save=0.5)    # E


def arguments(x: Vector, n: Scalar[i32], m: Matrix) -> None:
    halves = split(scale, wrt=0)
    halves.forward(x)    # E
    halves.forward(m, n)    # E
    value, residuals = halves.forward(x, n)
    halves.backward(residuals, m)    # E
    halves.backward(value, value)    # E
    halves.backward(residuals)    # E
    taken: Matrix = halves.backward(residuals, value)    # E
    _, derivative = linearize(scale, wrt=0)(x, n)
    derivative(m)    # E
    derivative(x, n)    # E
    derivative.transpose(m)    # E
    del taken
