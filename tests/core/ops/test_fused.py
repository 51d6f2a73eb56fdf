"""Fused multiplication and addition is rounded once: against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from nnkit.core.ops.fused import fused_multiply_add


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_rounding(dtype: type[np.floating]) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(2000).astype(dtype) for _ in range(2))
    z = (-x * y * (1 + random.standard_normal(2000) * 2.0 ** random.integers(-60, 3, 2000))).astype(
        dtype
    )
    found = fused_multiply_add(x, y, z)
    for u, v, w, made in zip(x, y, z, found, strict=True):
        exact = Fraction(float(u)) * Fraction(float(v)) + Fraction(float(w))
        around = [np.nextafter(made, dtype(side)) for side in (-np.inf, np.inf)]
        distance = abs(Fraction(float(made)) - exact)
        assert all(distance <= abs(Fraction(float(other)) - exact) for other in around)


def test_what_is_not_finite() -> None:
    inf, nan = np.inf, np.nan
    x, y, z = np.array(
        [[inf, 2.0, nan, 1e300, 0.0], [1.0, inf, 1.0, 1e300, inf], [1.0, -inf, 1.0, 1.0, 1.0]]
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(fused_multiply_add(x, y, z), x * y + z)
