"""Products as kernels, with what follows them."""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Rep, Tensor2D, f64

M = Tensor2D[f64]


@nk.staged
def moved(x: Rep[M], y: Rep[M], z: Rep[M]) -> tuple[Rep[M], Rep[M], Rep[M]]:
    return nk.flip(x @ y, 1), nk.flip(y @ z, 0) + x, nk.roll(x @ z, 3, axis=1)


def test_what_reads_a_product_elsewhere_than_at_its_point_is_no_epilogue() -> None:
    rng = np.random.default_rng(0)
    x, y, z = rng.integers(-3, 4, (3, 32, 32)).astype(np.float64)
    wanted = (x @ y)[:, ::-1], (y @ z)[::-1] + x, np.roll(x @ z, 3, axis=1)
    for found, want in zip(moved(x, y, z), wanted, strict=True):
        assert np.array_equal(found.numpy(), want)
