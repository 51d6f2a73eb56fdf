"""The pseudoinverse: samples for the laws of functions of matrices, and its value by numpy."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import RankError
from nnkit.core.ops import PseudoInverse
from nnkit.core.types import Array

from .samples import ErrorSample, Sample, f64
from .test_linear_systems import regular

ANY = [(2, 3), (3, 2), (3, 3), (2, 1, 3), (0, 2)]


def inverse(a: Array, cutoff: Array) -> Array:
    return np.linalg.pinv(a, rcond=float(cutoff))


SAMPLES = [
    *(
        Sample(
            PseudoInverse(), (f64(*a), f64()), (regular(*a), 1e-12),
            numpy=inverse,
        )
        for a in ANY
    ),
    Sample(PseudoInverse(), (f64(2, 2), f64()), (np.eye(2), 0.1), numpy=inverse),
    Sample(PseudoInverse(), (f64(2, 1, 3), f64(2)), (regular(2, 1, 3), [0.1, 0.2])),
]  # fmt: skip
ERRORS = [
    ErrorSample(PseudoInverse(), (f64(3), f64()), "takes matrices, not f64[3]", RankError),
    ErrorSample(PseudoInverse(), (f64(3, 3), f64(2)), "a cutoff f64[2] does not fit f64[3, 3]"),
]


def test_small_singular_values_count_as_zero() -> None:
    found = PseudoInverse().evaluate(np.diag([2.0, 1e-4, 1.0]), np.array(1e-3))
    np.testing.assert_allclose(found, np.diag([0.5, 0, 1]), atol=1e-15)
