"""Numbers made of random bits: exact, and never their upper end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit import Rep, Tensor1D, f32, f64, i64, staged
from nnkit.core.types import F32, F64
from nnkit.random_bits import unit_of


@pytest.mark.parametrize(("dtype", "core"), [(f32, F32), (f64, F64)])
def test_the_ends_of_the_unit_interval(dtype: Any, core: Any) -> None:
    @staged
    def unit(bits: Rep[Tensor1D[i64]]) -> Any:
        return unit_of(bits, core)

    ends = np.array([-(2**63), -1, 0, 2**63 - 1])
    step = 2.0**-core.digits
    found = np.asarray(unit(Tensor1D(ends))).astype(np.float64)
    np.testing.assert_array_equal(found, [0, 0.5 - step, 0.5, 1 - step])
