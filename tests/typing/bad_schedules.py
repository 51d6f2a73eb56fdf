"""Rejected: schedules of checkpoints that there are not."""

from nnkit import Rep, Scalar, Tensor1D, binomial, every_sqrt, f64, fori, i64, sin, staged, while_loop


@staged
def loops(x: Rep[Tensor1D[f64]], n: Rep[Scalar[i64]]) -> Rep[Tensor1D[f64]]:
    a = fori(0, n, lambda i, c: sin(c), x, checkpoint=3)    # E
    b = while_loop(lambda c: c.sum() > 1.0, lambda c: c * 0.5, x, checkpoint=every_sqrt)    # E
    return x.fold(x, lambda c, e: c + e, checkpoint="sqrt")    # E


binomial("3")    # E
binomial()    # E
every_sqrt(3)    # E
