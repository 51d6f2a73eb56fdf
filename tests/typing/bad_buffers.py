"""Rejected: arrays that results do not fit, and types that nothing is accumulated in."""

from nnkit import Rep, Tensor1D, Tensor2D, donate, f32, f64, i32, matmul, staged


@staged
def f(x: Rep[Tensor2D[f32]], y: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    x.sum(accumulate=i32)    # E
    x.max(accumulate=f64)    # E
    x.sum(accumulate="f64")    # E
    matmul(x, y, accumulate=1)    # E
    matmul(x, y, f64)    # E
    return x + y


def out(x: Tensor2D[f32], y: Tensor2D[f32], v: Tensor1D[f32], d: Tensor2D[f64]) -> None:
    f(x, y, out=v)    # E
    f(x, y, out=d)    # E
    f(x, y, out=(x,))    # E
    f(x, out=x)    # E
    f(x, v, out=x)    # E
    f(x, y, x)    # E
    f(x, y, into=x)    # E


def staged_out(x: Rep[Tensor2D[f32]], y: Tensor2D[f32]) -> None:
    f(x, x, out=y)    # E
    f(x, x, out=x)    # E


def donated(x: Tensor2D[f32], v: Tensor1D[f32]) -> None:
    donate(f, "x")    # E
    donate(lambda x: x, 0)    # E
    donate(f, 0)(x, v)    # E
