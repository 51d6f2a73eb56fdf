"""The inverse of the error function against the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnkit import Rep, Tensor1D, f32, f64, staged
from nnkit.inverse_error_function import erf_inverse


def test_it_undoes_the_error_function() -> None:
    @staged
    def inverse(y: Rep[Tensor1D[f64]]) -> Any:
        return erf_inverse(y), erf_inverse(y.cast(f32))

    y = np.concatenate([np.linspace(-0.999, 0.999, 41), [-1 + 1e-7, 1e-300, 1 - 2.0**-24]])
    wide, short = inverse(Tensor1D(y))
    back = [math.erf(float(x)) for x in np.asarray(wide)]
    np.testing.assert_allclose(back, y, rtol=0, atol=3e-16)
    inside = np.abs(y) < 0.9999
    np.testing.assert_allclose(
        np.asarray(short)[inside], np.asarray(wide)[inside], rtol=2e-5, atol=1e-40
    )
