"""Values with other derivatives: samples for the laws; what is made of them is tested with autodiff."""

from __future__ import annotations

import numpy as np

from nnkit.core.errors import DTypeError
from nnkit.core.ops import StopGradient, StraightThrough

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f64, i32

SAMPLES = [
    *(
        Sample(StopGradient(), (x,), numpy=lambda x: x, smooth=False)
        for x in (f64(), f64(2, 3), f64(0))
    ),
    *(Sample(StopGradient(), (x,), numpy=lambda x: x) for x in (i32(3), boolean(3))),
    *(
        Sample(StraightThrough(), (x, x), numpy=lambda value, _: value, smooth=False)
        for x in (f64(), f64(2, 3), f64(0))
    ),
]
ERRORS = [
    ErrorSample(
        StraightThrough(),
        (f64(3), f64()),
        "cannot differentiate f64[3] as f64[]: the shapes differ",
    ),
    ErrorSample(
        StraightThrough(), (i32(), i32()), "straightThrough takes float elements", DTypeError
    ),
]


def test_nothing_flows() -> None:
    program = Tangents(Sample(StopGradient(), (f64(3),)))
    assert program.forward() is None
    assert program.reverse() == [None]


def test_the_derivative_is_that_of_the_second() -> None:
    program = Tangents(Sample(StraightThrough(), (f64(3), f64(3))))
    value, x = program.xs
    dy = program.forward()
    assert dy is program.dxs[x]
    by_value, by_x = program.reverse()
    assert by_value is None and by_x is program.ct
    found, expected = program.values([program.y, value], [program.y, value])
    np.testing.assert_array_equal(found, expected)
