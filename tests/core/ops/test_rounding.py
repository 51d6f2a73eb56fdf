"""Rounding: samples for the laws, then halves."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import DTypeError
from nnkit.core.ops import Ceil, Floor, Rint, Round

from .samples import SPECIAL, ErrorSample, Sample, f64, i32

OPS = [(Floor(), np.floor), (Ceil(), np.ceil), (Rint(), np.rint), (Round(), None)]
HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 2.0**52 + 1]

SAMPLES = [
    *(Sample(op, (x,), numpy=f) for op, f in OPS for x in (f64(), f64(3, 4), f64(0))),
    *(Sample(op, (f64(7),), (SPECIAL,), numpy=f, smooth=False) for op, f in OPS),
    *(Sample(op, (f64(8),), (HALVES,), numpy=f, smooth=False) for op, f in OPS),
]
ERRORS = [ErrorSample(Floor(), (i32(2),), "floor takes float elements, not i32", DTypeError)]


def test_round_takes_halves_away_from_zero_and_rint_to_even() -> None:
    halves = np.array(HALVES)
    assert Round().evaluate(halves).tolist() == [-3, -2, -1, 1, 2, 3, 0, 2.0**52 + 1]
    assert Rint().evaluate(halves).tolist() == [-2, -2, 0, 0, 2, 2, 0, 2.0**52 + 1]
