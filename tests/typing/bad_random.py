"""Programs with random numbers that checkers refuse."""

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f32, i64


@nk.staged
def wrong(k: Rep[Scalar[i64]], x: Rep[Tensor1D[f32]], n: Rep[Tensor1D[i64]]) -> Rep[Scalar[i64]]:
    nk.random.gumbel(k, (3,), dtype=i64)  # E
    nk.random.randint(k, (3,), 0, 2, dtype=f32)  # E
    nk.random.randint(k, (3,), 0.5, 2)  # E
    nk.dropout(n, 0.5, k)  # E
    nk.random.categorical(k, n)  # E
    nk.random.bernoulli(k, n)  # E
    nk.random.permutation(k, 0.5)  # E
    nk.random.choice(k, x, (2.0,))  # E
    return nk.random.categorical(k, x)
