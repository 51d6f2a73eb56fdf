"""Reductions and broadcast: samples for the laws, then ties, zeros, NaN and empty axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import ArgMax, ArgMin, Broadcast, Combinator, Reduce

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f64, i32, i64

ADD, MULTIPLY, MIN, MAX = Combinator.ADD, Combinator.MULTIPLY, Combinator.MIN, Combinator.MAX
AND, OR = Combinator.AND, Combinator.OR
FLOAT: list[tuple[Combinator, Any]] = [
    (ADD, np.sum),
    (MULTIPLY, np.prod),
    (MIN, np.min),
    (MAX, np.max),
]

SAMPLES = [
    *(Sample(Reduce(by), (f64(),), numpy=lambda x: x) for by, _ in FLOAT),
    *(Sample(Reduce(by), (f64(2, 3),), numpy=lambda x: x) for by, _ in FLOAT),
    *(Sample(Reduce(by, (0,)), (f64(4),), numpy=f) for by, f in FLOAT),
    *(Sample(Reduce(by, (0,)), (f64(3, 4),), numpy=lambda x, f=f: f(x, axis=0)) for by, f in FLOAT),
    *(Sample(Reduce(by, (2, 0)), (f64(2, 3, 4),), numpy=lambda x, f=f: f(x, axis=(0, 2))) for by, f in FLOAT),
    *(Sample(Reduce(by, (0, 1)), (f64(2, 3),), numpy=f) for by, f in FLOAT),
    *(Sample(Reduce(by, (1,)), (i32(2, 3),), numpy=lambda x, f=f: f(x, axis=1).astype("i4")) for by, f in FLOAT),
    *(Sample(Reduce(by, (1,)), (f64(2, 1),)) for by, _ in FLOAT),
    *(Sample(Reduce(by, (1,)), (f64(2, 0),)) for by, _ in FLOAT),
    *(Sample(Reduce(by, (0,)), (f64(2, 0),)) for by, _ in FLOAT),
    *(Sample(Reduce(by, (0,)), (i64(0, 2),)) for by, _ in FLOAT),
    Sample(Reduce(AND, (1,)), (boolean(4, 3),), numpy=lambda x: x.all(1)),
    Sample(Reduce(OR, (0, 1)), (boolean(4, 3),), numpy=np.any),
    *(Sample(Reduce(by, (0,)), (boolean(0, 2),)) for by in (AND, OR)),
    *(Sample(Reduce(MULTIPLY, (0,)), (f64(4),), (x,)) for x in ([0.0, 2.0, 3.0, 4.0], [0.0, 2.0, 0.0, 4.0], [0.0] * 4)),
    Sample(Reduce(MAX, (0,)), (f64(3),), ([1.0, math.nan, 2.0],), numpy=np.max, smooth=False),
    *(Sample(op, (x,), numpy=f) for op, f, x in (
        (ArgMax(0), np.argmax, f64(5)), (ArgMin(0), np.argmin, f64(5)),
        (ArgMax(1), lambda x: x.argmax(1), f64(3, 4)), (ArgMin(0), lambda x: x.argmin(0), i32(3, 4)),
        (ArgMax(0), lambda x: x.argmax(0), f64(1, 2)), (ArgMin(1), lambda x: x.argmin(1), f64(0, 2)),
    )),
    *(
        Sample(op, (f64(2, 4),), ([[3.0, 1.0, 3.0, 1.0], [0.0, math.nan, 9.0, math.nan]],))
        for op in (ArgMax(1), ArgMin(1))
    ),
    Sample(ArgMax(0), (i64(3),), ([-(2**63), -(2**63), -(2**63)],)),
    *(Sample(Broadcast(shape), (x,), numpy=lambda x, s=shape: np.broadcast_to(x, s)) for x, shape in (
        (f64(), ()), (f64(), (2, 3)), (f64(3), (2, 3)), (f64(2, 1), (4, 2, 3)), (f64(2, 3), (2, 3)),
        (f64(1, 1), (1, 5)), (f64(1), (0,)), (f64(0), (2, 0)), (boolean(1), (2,)),
    )),
]  # fmt: skip
ERRORS = [
    ErrorSample(Reduce(ADD, (2,)), (f64(2, 3),), "axis 2 is out of range for f64[2, 3]", RankError),
    ErrorSample(Reduce(ADD, (1, 1)), (f64(2, 3),), "an axis is named twice in [1, 1]"),
    ErrorSample(Reduce(ADD, (0,)), (boolean(2),), "sum takes float or integer elements, not bool[2]", DTypeError),
    ErrorSample(Reduce(AND, (0,)), (f64(2),), "all takes boolean elements, not f64[2]", DTypeError),
    ErrorSample(ArgMax(0), (f64(0, 2),), "argMax: axis 0 of f64[0, 2] is empty"),
    ErrorSample(ArgMin(1), (f64(2),), "axis 1 is out of range for f64[2]", RankError),
    ErrorSample(ArgMin(0), (boolean(2),), "argMin takes float or integer elements, not bool", DTypeError),
    ErrorSample(Broadcast((3,)), (f64(2),), "cannot broadcast f64[2] to [3]"),
    ErrorSample(Broadcast((3,)), (f64(2, 3),), "cannot broadcast f64[2, 3] to [3]: rank is lost", RankError),
    ErrorSample(Broadcast((1,)), (f64(3),), "cannot broadcast f64[3] to [1]"),
]  # fmt: skip


def gradient(by: Combinator, x: list[float]) -> list[float]:
    """The gradient of a reduction of a vector."""
    program = Tangents(Sample(Reduce(by, (0,)), (f64(len(x)),), (x,)))
    program.given[program.ct] = np.asarray(1.0)
    [ct] = program.values(program.reverse(), program.active)
    return [float(element) for element in ct]


def test_gradients_at_ties_and_zeros() -> None:
    assert gradient(MULTIPLY, [0.0, 2.0, 3.0]) == [6.0, 0.0, 0.0]
    assert gradient(MULTIPLY, [0.0, 2.0, 0.0]) == [0.0, 0.0, 0.0]
    assert gradient(MAX, [1.0, 4.0, 4.0, 0.0]) == [0.0, 0.5, 0.5, 0.0]
    assert gradient(MIN, [3.0, 3.0, 3.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert gradient(MAX, [-math.inf, math.inf]) == [0.0, 1.0]


def test_an_empty_axis_gives_the_identity() -> None:
    empty = np.zeros((0,))
    found = [Reduce(by, (0,)).evaluate(empty).item() for by in (ADD, MULTIPLY, MIN, MAX)]
    assert found == [0.0, 1.0, math.inf, -math.inf]


def test_the_first_nan_wins() -> None:
    x = np.array([3.0, math.nan, 9.0, math.nan])
    assert ArgMax(0).evaluate(x) == ArgMin(0).evaluate(x) == 1
