"""The identity that stops derivatives: samples for the laws; what it stops is tested with autodiff."""

from __future__ import annotations

from nnkit.core.ops import StopGradient

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f64, i32

SAMPLES = [
    *(
        Sample(StopGradient(), (x,), numpy=lambda x: x, smooth=False)
        for x in (f64(), f64(2, 3), f64(0))
    ),
    *(Sample(StopGradient(), (x,), numpy=lambda x: x) for x in (i32(3), boolean(3))),
]
ERRORS: list[ErrorSample] = []


def test_nothing_flows() -> None:
    program = Tangents(Sample(StopGradient(), (f64(3),)))
    assert program.forward() is None
    assert program.reverse() == [None]
