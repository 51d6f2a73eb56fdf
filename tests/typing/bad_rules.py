"""Rejected: rules of derivatives that take or return something else."""

from typing import TypeAlias

from nnkit import Rep, Scalar, Tensor1D, check_gradients, cos, differentiate_as, f32, f64, fixed_point, staged

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]


@staged
def total(x: Rep[Vector]) -> Rep[Number]:
    return (x * x).sum()


def right(x: Rep[Vector], dx: Rep[Vector]) -> Rep[Number]:
    return (x * dx).sum() * 2


def without_tangent(x: Rep[Vector]) -> Rep[Number]:
    return x.sum()


def of_another_tangent(x: Rep[Vector], dx: Rep[Number]) -> Rep[Number]:
    return x.sum() * dx


def to_another_result(x: Rep[Vector], dx: Rep[Vector]) -> Rep[Vector]:
    return x * dx


def of_another_dtype(x: Rep[Vector], dx: Rep[Tensor1D[f32]]) -> Rep[Number]:
    return (x * dx.cast(f64)).sum()


def back(x: Rep[Vector], seed: Rep[Number]) -> tuple[Rep[Vector]]:
    return (x * seed,)


def back_without_tuple(x: Rep[Vector], seed: Rep[Number]) -> Rep[Vector]:
    return x * seed


def fwd(x: Rep[Vector]) -> tuple[Rep[Number], Rep[Vector]]:
    return total(x), x


def bwd_of_another(x: Rep[Number], seed: Rep[Number]) -> tuple[Rep[Vector]]:
    raise NotImplementedError


@staged
def norm(x: Rep[Vector]) -> Rep[Vector]:
    return x


total.defjvp(right)
total.defjvp(without_tangent)    # E
total.defjvp(of_another_tangent)    # E
total.defjvp(to_another_result)    # E
total.defjvp(of_another_dtype)    # E
total.defvjp(back)
total.defvjp(back_without_tuple)    # E
total.defvjp(right)    # E
total.defvjp(fwd, bwd_of_another)    # E
total.defvjp(fwd, right)    # E
differentiate_as(norm)(total)    # E
differentiate_as(right)    # E
check_gradients(right)    # E
check_gradients(total, Tensor1D([1.0], f64), modes=("backward",))    # E


@staged
def points(x: Rep[Number], v: Rep[Vector]) -> Rep[Number]:
    fixed_point(lambda x: v, x)    # E
    fixed_point(lambda x, a: cos(x), x)    # E
    fixed_point(right, v, v)    # E
    return x
