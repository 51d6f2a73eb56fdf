"""Windows: samples for the laws, then a naive loop as the judge, ties, and DLVM's table of extents."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import DTypeError, RankError
from nnkit.core.ops import Combinator, PaddingMode, Reduce, ReduceWindow
from nnkit.core.ops.window import Padding
from nnkit.core.types import Array
from tests.rows import each

from .running import Tangents
from .samples import ErrorSample, Sample, boolean, f64, i32, i64

ADD, MULTIPLY, MIN, MAX = Combinator.ADD, Combinator.MULTIPLY, Combinator.MIN, Combinator.MAX
NUMERIC = (ADD, MULTIPLY, MIN, MAX)


def naive(op: ReduceWindow, x: Array) -> Array:
    """The elements that each window covers, reduced one window at a time."""
    pairs = op.padding
    if isinstance(pairs, PaddingMode):
        pairs = tuple(pairs.pair(n) for n in op.window)
    strides = op.strides or (1,) * x.ndim
    rooms = [sum(p) + n - w for p, n, w in zip(pairs, x.shape, op.window, strict=True)]
    places = [room // s + 1 if room >= 0 else 0 for room, s in zip(rooms, strides, strict=True)]
    reduce = Reduce(op.combinator, (0,))
    result = np.zeros(places, x.dtype)
    for place in np.ndindex(*places):
        starts = [k * s - low for k, s, (low, _) in zip(place, strides, pairs, strict=True)]
        rows = [range(a, a + w) for a, w in zip(starts, op.window, strict=True)]
        covered = [
            x[where]
            for where in itertools.product(*rows)
            if all(0 <= i < n for i, n in zip(where, x.shape, strict=True))
        ]
        result[place] = reduce.evaluate(np.array(covered, x.dtype))
    return result


def sample(op: ReduceWindow, *shape: int, **options: Any) -> Sample:
    return Sample(op, (f64(*shape),), numpy=lambda x: naive(op, x), **options)


SAMPLES = [
    *(sample(ReduceWindow(by, (2,)), 5) for by in NUMERIC),
    *(sample(ReduceWindow(by, (3,), (2,), PaddingMode.HALF), 6) for by in NUMERIC),
    *(sample(ReduceWindow(by, (3,), (), PaddingMode.FULL), 4) for by in NUMERIC),
    *(sample(ReduceWindow(by, (1, 2), (1, 2)), 2, 4) for by in NUMERIC),
    *(sample(ReduceWindow(by, (2, 3), (2, 1), ((0, 1), (1, 1))), 3, 5) for by in NUMERIC),
    *(sample(ReduceWindow(by, (2,), (), ((-1, 2),)), 4) for by in NUMERIC),
    *(sample(ReduceWindow(by, (2,), (), ((-5, 4),)), 4) for by in NUMERIC),
    *(sample(ReduceWindow(by, (1, 2, 2), (1, 1, 2), PaddingMode.HALF), 2, 3, 3) for by in NUMERIC),
    *(sample(ReduceWindow(by, (5,)), 3) for by in NUMERIC),
    *(sample(ReduceWindow(by, (2,), (1,), PaddingMode.FULL), 0) for by in NUMERIC),
    *(sample(ReduceWindow(by, (1,), (3,)), 7) for by in NUMERIC),
    *(sample(ReduceWindow(by, ()),) for by in NUMERIC),
    *(Sample(ReduceWindow(by, (2,), (2,), PaddingMode.HALF), (i32(5),)) for by in NUMERIC),
    Sample(ReduceWindow(MAX, (2,), (), PaddingMode.FULL), (i64(3),), ([-(2**63), 5, -(2**63)],)),
    Sample(ReduceWindow(MULTIPLY, (2,)), (f64(4),), ([0.0, 2.0, 0.0, 0.0],)),
    *(Sample(ReduceWindow(by, (2,), (), PaddingMode.FULL), (boolean(4),)) for by in (Combinator.AND, Combinator.OR)),
]  # fmt: skip
ERRORS = [
    ErrorSample(ReduceWindow(ADD, (2,)), (f64(2, 3),), "dims has 1 entries for the 2 axes of f64[2, 3]", RankError),
    ErrorSample(ReduceWindow(ADD, (2, 2), (1,)), (f64(2, 3),), "strides has 1 entries for the 2 axes", RankError),
    ErrorSample(ReduceWindow(ADD, (2,), (), ((0, 0), (0, 0))), (f64(2),), "padding has 2 entries", RankError),
    ErrorSample(ReduceWindow(ADD, (0,)), (f64(2),), "the window of an axis is 0, not at least 1"),
    ErrorSample(ReduceWindow(ADD, (1,), (0,)), (f64(2),), "the stride of an axis is 0, not at least 1"),
    ErrorSample(ReduceWindow(ADD, (1,)), (boolean(2),), "windowed sum takes float or integer", DTypeError),
    ErrorSample(ReduceWindow(Combinator.OR, (1,)), (f64(2),), "windowed any takes boolean", DTypeError),
    ErrorSample(ReduceWindow(ADD, (1 << 60,)), (f64(2),), "leaves the address space"),
]  # fmt: skip


@st.composite
def windows(draw: Any) -> Sample:
    """Any attributes on up to three axes."""
    rank = draw(st.integers(0, 3))

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    padding: Padding = draw(st.sampled_from(list(PaddingMode)))
    if draw(st.booleans()):
        padding = tuple(zip(numbers(-2, 2), numbers(-2, 2), strict=True))
    strides = numbers(1, 3) if draw(st.booleans()) else ()
    op = ReduceWindow(draw(st.sampled_from(NUMERIC)), numbers(1, 3), strides, padding)
    return sample(op, *numbers(0, 4))


@given(windows())
def test_any_window_is_the_naive_one_and_its_derivatives_are_adjoint(drawn: Sample) -> None:
    program = Tangents(drawn)
    assert isinstance(drawn.op, ReduceWindow)
    (y, dy) = program.values([program.y, program.forward()], [program.y, program.y])
    np.testing.assert_allclose(y, naive(drawn.op, *drawn.operands()), rtol=1e-12, atol=1e-12)
    (ct,) = program.values(program.reverse(), program.active)
    (dx,) = (program.given[program.dxs[x]] for x in program.active)
    finite = np.where(np.isfinite(dy), dy, 0.0)
    pulled = float(np.vdot(ct, dx))
    assert float(np.vdot(program.given[program.ct], finite)) == pytest.approx(pulled, abs=1e-9)


@each("extent", range(7))
@each("window", range(1, 5))
@each("stride", range(1, 4))
def test_extents_are_those_of_the_table(extent: int, window: int, stride: int) -> None:
    def places(border: PaddingMode) -> int:
        return ReduceWindow(ADD, (window,), (stride,), border).infer(f64(extent)).shape[0]

    assert places(PaddingMode.NONE) == max((extent - window) // stride + 1, 0)
    if extent:
        assert places(PaddingMode.HALF) == (extent - 1) // stride + 1
        assert places(PaddingMode.FULL) == (extent + window - 2) // stride + 1


def gradient(op: ReduceWindow, x: list[float]) -> list[float]:
    """The gradient of the sum of all windows of a vector."""
    program = Tangents(Sample(op, (f64(len(x)),), (x,)))
    program.given[program.ct] = np.ones(program.y.tensor.shape)
    [ct] = program.values(program.reverse(), program.active)
    return [float(element) for element in ct]


def test_ties_split_evenly_within_a_window() -> None:
    assert gradient(ReduceWindow(MAX, (2,)), [1.0, 1.0, 3.0]) == [0.5, 0.5, 1.0]
    assert gradient(ReduceWindow(MIN, (3,)), [2.0, 2.0, 2.0]) == pytest.approx([1 / 3] * 3)
    found = gradient(ReduceWindow(MAX, (2,), (2,)), [math.nan, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found, [math.nan, math.nan, 0, 1])


def test_a_product_with_zeros_has_its_gradient() -> None:
    assert gradient(ReduceWindow(MULTIPLY, (3,)), [0.0, 2.0, 3.0]) == [6.0, 0.0, 0.0]
    assert gradient(ReduceWindow(MULTIPLY, (3,)), [0.0, 2.0, 0.0]) == [0.0, 0.0, 0.0]


def test_the_gradient_of_sums_is_a_sum_over_windows() -> None:
    program = Tangents(sample(ReduceWindow(ADD, (3, 2), (2, 1), PaddingMode.HALF), 5, 4))
    program.reverse()
    made = {i.op.name for i in program.b.block.instructions}
    assert made <= {"reduceWindow", "pad", "literal"}


def test_a_window_over_nothing_is_the_identity() -> None:
    op = ReduceWindow(MAX, (2,), (), ((2, 0),))
    assert op.evaluate(np.array([1.0])).tolist() == [-math.inf, 1.0]
