"""Scans: samples for the laws, then zeros, ties and NaN."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import Combinator, Pad, Scan

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f64, i32

ADD, MULTIPLY, MIN, MAX = Combinator.ADD, Combinator.MULTIPLY, Combinator.MIN, Combinator.MAX
WAYS = list(itertools.product((False, True), (False, True)))

SAMPLES = [
    *(
        Sample(Scan(by, 0, reverse, exclusive), (f64(7),))
        for by in (ADD, MULTIPLY, MIN, MAX)
        for reverse, exclusive in WAYS
    ),
    *(Sample(Scan(by, 1, *way), (f64(2, 5, 3),)) for by in (ADD, MULTIPLY, MAX) for way in WAYS),
    Sample(Scan(ADD, 1), (f64(2, 5),), numpy=lambda x: np.cumsum(x, 1)),
    Sample(Scan(MULTIPLY, 0), (f64(4, 2),), numpy=lambda x: np.cumprod(x, 0)),
    Sample(Scan(MAX, 0), (f64(4, 2),), numpy=np.maximum.accumulate),
    Sample(Scan(ADD, 0), (i32(5),), numpy=lambda x: np.cumsum(x, dtype=np.int32)),
    *(Sample(Scan(by, 0), (f64(1),)) for by in (ADD, MULTIPLY, MIN)),
    *(Sample(Scan(by, 0, exclusive=True), (f64(1, 2),)) for by in (ADD, MULTIPLY, MIN)),
    *(Sample(Scan(by, 0), (f64(0, 2),)) for by in (ADD, MULTIPLY, MIN)),
    *(Sample(Scan(by, 0, *way), (boolean(6),)) for by in (Combinator.AND, Combinator.OR) for way in WAYS),
    *(Sample(Scan(MULTIPLY, 0, *way), (f64(6),), ([2.0, 0.0, 3.0, 0.0, -1.0, 4.0],)) for way in WAYS),
]  # fmt: skip
ERRORS = [
    ErrorSample(Scan(ADD, 1), (f64(3),), "axis 1 is out of range for f64[3]", RankError),
    ErrorSample(
        Scan(ADD, 0), (boolean(3),), "running sum takes float or integer elements", DTypeError
    ),
    ErrorSample(
        Scan(Combinator.OR, 0), (f64(3),), "running any takes boolean elements", DTypeError
    ),
]


def test_exclusive_and_reverse() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert Scan(ADD, 0, exclusive=True).evaluate(x).tolist() == [0, 1, 3]
    assert Scan(ADD, 0, reverse=True).evaluate(x).tolist() == [6, 5, 3]
    assert Scan(ADD, 0, reverse=True, exclusive=True).evaluate(x).tolist() == [5, 3, 0]
    assert Scan(MAX, 0, exclusive=True).evaluate(x).tolist() == [-np.inf, 1, 2]


def test_ties_split_evenly() -> None:
    program = Tangents(Sample(Scan(MAX, 0), (f64(5),), ([1.0, 3.0, 3.0, 2.0, 3.0],)))
    program.given[program.ct] = np.array([0.0, 0.0, 0.0, 0.0, 6.0])
    [ct] = program.values(program.reverse(), program.active)
    np.testing.assert_allclose(ct, [0, 2, 2, 0, 2])
    [dy] = program.values([program.forward()], [program.y])
    dx = program.given[program.dxs[program.active[0]]]
    np.testing.assert_allclose(dy[4], (dx[1] + dx[2] + dx[4]) / 3)


@pytest.mark.parametrize("extent", [2, 64, 1000])
def test_the_derivative_of_a_running_product_takes_a_logarithm_of_steps(extent: int) -> None:
    program = Tangents(Sample(Scan(MULTIPLY, 0), (f64(extent),)))
    program.reverse()
    pads = sum(isinstance(i.op, Pad) for i in program.b.block.instructions)
    assert pads <= 2 * np.ceil(np.log2(extent)) + 1
