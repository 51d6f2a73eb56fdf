"""Special functions: samples for the laws, then values at poles; `test_transcendental` has their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core.autodiff.rules import jvp_of
from nnkit.core.errors import DifferentiationError, DTypeError
from nnkit.core.ops import Digamma, Erf, Erfc, Lgamma, Trigamma

from .running import Tangents
from .samples import SPECIAL, ErrorSample, Sample, f64, i32

SHAPES = (f64(), f64(3, 4), f64(0))
SAMPLES = [
    *(Sample(op, (x,)) for op in (Erf(), Erfc()) for x in SHAPES),
    *(Sample(op, (x,), low=0.5, high=12) for op in (Lgamma(), Trigamma()) for x in SHAPES),
    *(Sample(Digamma(), (x,), low=0.5, high=12, twice=False) for x in SHAPES),
    *(Sample(op, (f64(7),), (SPECIAL,), smooth=False) for op in (Erf(), Erfc(), Lgamma(), Digamma(), Trigamma())),
]  # fmt: skip
ERRORS = [ErrorSample(Erf(), (i32(2),), "erf takes float elements, not i32", DTypeError)]


def test_values_at_poles() -> None:
    poles = np.array([0.0, -1.0, -2.0, -1e300])
    assert np.isposinf(Lgamma().evaluate(poles)).all()
    assert np.isposinf(Trigamma().evaluate(poles)).all()
    assert np.isnan(Digamma().evaluate(poles[1:])).all()
    assert Digamma().evaluate(np.array([0.0, -0.0])).tolist() == [-math.inf, math.inf]


def test_the_last_of_the_family_says_why_it_has_no_derivative() -> None:
    program = Tangents(Sample(Trigamma(), (f64(2),), low=1, high=2))
    with pytest.raises(DifferentiationError, match="trigamma cannot be differentiated: the higher"):
        jvp_of(program.b, Trigamma(), [program.y], program.xs, list(program.dxs.values()))
