"""Accepted: loops with schedules of checkpoints."""

from typing import TypeAlias

from nnkit import LoopSchedule, Rep, Scalar, Tensor1D, binomial, every_sqrt, f64, fori, i64, sin, staged, while_loop

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]


@staged
def loops(x: Rep[Vector], n: Rep[Scalar[i64]]) -> Rep[Vector]:
    a, b = fori(0, n, lambda i, c: (sin(c[0]), c[1] * x), (x, x), checkpoint=binomial(3))
    c = while_loop(lambda c: c.sum() > 1.0, lambda c: c * 0.5, a + b, checkpoint=every_sqrt())
    total, rows = x.scan(c, lambda c, e: (c * e, c), checkpoint=every_sqrt())
    return x.fold(total, lambda c, e: c + e, checkpoint=None) + rows.tensor().sum(axis=0)


def schedules() -> None:
    some: LoopSchedule = binomial(10)
    del some
