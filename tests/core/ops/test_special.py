"""Special functions: samples for the laws, then values against published ones and identities."""

from __future__ import annotations

import math

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from nnkit.core.autodiff.rules import jvp_of
from nnkit.core.errors import DifferentiationError, DTypeError
from nnkit.core.ops import Digamma, Erf, Erfc, Lgamma, Trigamma

from .running import Tangents
from .samples import SPECIAL, ErrorSample, Sample, f64, i32

SHAPES = (f64(), f64(3, 4), f64(0))
POINTS = [
    1e-300,
    1e-8,
    0.25,
    0.5,
    1.0,
    1.5,
    2.0,
    9.99,
    10.0,
    33.3,
    1e6,
    1e300,
    -0.5,
    -1.25,
    -20.125,
]

SAMPLES = [
    *(Sample(op, (x,)) for op in (Erf(), Erfc()) for x in SHAPES),
    *(Sample(op, (x,), low=0.5, high=12) for op in (Lgamma(), Trigamma()) for x in SHAPES),
    *(Sample(Digamma(), (x,), low=0.5, high=12, twice=False) for x in SHAPES),
    *(Sample(op, (f64(7),), (SPECIAL,), smooth=False) for op in (Erf(), Erfc(), Lgamma(), Digamma(), Trigamma())),
]  # fmt: skip
ERRORS = [ErrorSample(Erf(), (i32(2),), "erf takes float elements, not i32", DTypeError)]


@pytest.mark.parametrize(
    ("op", "oracle"),
    [
        (Erf(), mpmath.erf),
        (Erfc(), lambda x: mpmath.erfc(x) if x < 1e6 else 0),
        (Lgamma(), lambda x: mpmath.log(abs(mpmath.gamma(x)))),
        (Digamma(), mpmath.digamma),
        (Trigamma(), lambda x: mpmath.psi(1, x)),
    ],
    ids=lambda f: f.name if hasattr(f, "name") else "",
)
def test_values_against_mpmath(op: Erf, oracle: object) -> None:
    with mpmath.workdps(40):
        assert callable(oracle)
        expected = np.array([float(oracle(mpmath.mpf(x))) for x in POINTS])
    np.testing.assert_allclose(op.evaluate(np.array(POINTS)), expected, rtol=4e-14)


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
