"""Accepted: rules of derivatives."""

from collections.abc import Callable
from typing import TypeAlias

from nnkit import (
    Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, check_gradients, cos, differentiate_as, f64, fixed_point, i32, sin, staged, zeros_like,
)
from typing_extensions import assert_type

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]
Matrix: TypeAlias = Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


@staged
def wave(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Vector]:
    return sin(x) * n.cast(f64)


@wave.defjvp
def wave_jvp(x: Rep[Vector], n: Rep[Scalar[i32]], dx: Rep[Vector], dn: Rep[Scalar[i32]]) -> Rep[Vector]:
    return cos(x) * dx * n.cast(f64)


@wave.defvjp
def wave_vjp(x: Rep[Vector], n: Rep[Scalar[i32]], seed: Rep[Vector]) -> tuple[Rep[Vector], Rep[Scalar[i32]]]:
    return cos(x) * seed * n.cast(f64), zeros_like(n)


assert_type(wave_jvp, Rep[Callable[[Vector, Scalar[i32], Vector, Scalar[i32]], Vector]])
assert_type(wave_vjp, Rep[Callable[[Vector, Scalar[i32], Vector], tuple[Vector, Scalar[i32]]]])


@staged
def parts(p: Rep[Params]) -> tuple[Rep[Vector], Rep[Matrix]]:
    return p[Params.b], p[Params.w]


@parts.defjvp
def parts_jvp(p: Rep[Params], dp: Rep[Params]) -> tuple[Rep[Vector], Rep[Matrix]]:
    return dp[Params.b], dp[Params.w]


@staged
def square(x: Rep[Number]) -> Rep[Number]:
    return x * x


def square_fwd(x: Rep[Number]) -> tuple[Rep[Number], Rep[Number]]:
    return square(x), x


def square_bwd(x: Rep[Number], seed: Rep[Number]) -> tuple[Rep[Number]]:
    return (2 * x * seed,)


assert_type(square.defvjp(square_fwd, square_bwd), Rep[Callable[[Number], tuple[Number, Number]]])


@staged
def scaled(x: Rep[Vector], s: Rep[Number]) -> Rep[Vector]:
    return x * s


def scaled_fwd(x: Rep[Vector], s: Rep[Number]) -> tuple[Rep[Vector], tuple[Rep[Vector], Rep[Number]]]:
    return scaled(x, s), (x, s)


def scaled_bwd(saved: Rep[tuple[Vector, Number]], seed: Rep[Vector]) -> tuple[Rep[Vector], Rep[Number]]:
    x, s = saved.unpack()
    return seed * s, (x * seed).sum()


scaled.defvjp(scaled_fwd, scaled_bwd)


@differentiate_as(square)
@staged
def like_square(x: Rep[Number]) -> Rep[Number]:
    return x


assert_type(like_square, Rep[Callable[[Number], Number]])


def newton(x: Rep[Number], a: Rep[Number]) -> Rep[Number]:
    return (x + a / x) * 0.5


def turn(x: tuple[Rep[Number], Rep[Vector]], a: Rep[Number]) -> tuple[Rep[Number], Rep[Vector]]:
    u, v = x
    return cos(v).sum() * a, sin(v) * u


@staged
def roots(a: Rep[Number], v: Rep[Vector]) -> Rep[Number]:
    x = fixed_point(newton, a, a)
    assert_type(x, Rep[Number])
    y, z = fixed_point(turn, (a, v), a, tolerance=1e-9, max_iterations=50)
    assert_type(z, Rep[Vector])
    return x + y + fixed_point(lambda x: cos(x), a)


check_gradients(roots, f64(0.5), Tensor1D([0.5], f64), order=1, modes=("forward",))
