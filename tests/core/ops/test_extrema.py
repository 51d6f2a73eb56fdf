"""Minima and maxima of arrays against an order of Python's: every pair, reductions, running and joined ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnkit.core.ops import Combinator, Maximum, Minimum
from nnkit.core.ops.extrema import MAXIMUM, MINIMUM, Extremum
from nnkit.core.types import BF16, DTYPES, Array, DType
from tests.values import numbers, same_bits

NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]
BOTH = [MINIMUM, MAXIMUM]


def elements(dtype: DType) -> Array:
    """Numbers of every sort, NaN and both zeros among them."""
    return dtype.round(np.array(numbers(dtype, tame=False)).astype(dtype.numpy))


def wanted(extremum: Extremum, xs: Sequence[Any]) -> Any:
    """NaN if there is one; else the first or the last in the order of numbers, −0 before +0."""
    nans = [x for x in xs if x != x]
    choose = min if extremum is MINIMUM else max
    return nans[0] if nans else choose(xs, key=lambda x: (x, math.copysign(1, x)))


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("extremum", BOTH, ids=["min", "max"])
def test_every_pair(extremum: Extremum, dtype: DType) -> None:
    x = elements(dtype)
    u, v = np.repeat(x, x.size), np.tile(x, x.size)
    expected = np.array([wanted(extremum, pair) for pair in zip(u, v, strict=True)], dtype.numpy)
    assert same_bits(extremum(u, v), expected)
    op = Minimum() if extremum is MINIMUM else Maximum()
    assert same_bits(op.evaluate(u, v), expected)
    assert same_bits(op.evaluate(u, v[:1]), extremum(u, np.full_like(u, v[0])))


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("by", [Combinator.MIN, Combinator.MAX], ids=str)
def test_reductions_running_and_joined_extremes(by: Combinator, dtype: DType) -> None:
    extremum = MINIMUM if by is Combinator.MIN else MAXIMUM
    rng = np.random.default_rng(3)
    x = rng.choice(elements(dtype), (30, 6))
    x[:15] = rng.choice(np.array([0.0, -0.0], dtype.numpy), (15, 6))
    rows = np.array([wanted(extremum, row.tolist()) for row in x], dtype.numpy)
    assert same_bits(by.reduce(x, (1,)), rows)
    assert same_bits(
        by.reduce(x, (0, 1)), np.asarray(wanted(extremum, x.ravel().tolist()), dtype.numpy)
    )
    running = [[wanted(extremum, row[: k + 1].tolist()) for k in range(6)] for row in x]
    assert same_bits(by.accumulate(x, 1), np.array(running, dtype.numpy))
    assert same_bits(by.accumulate(x[:, ::-1], 1)[:, -1], rows)
    joined = np.full(30, by.identity(dtype), dtype.numpy)
    by.join(joined, (np.repeat(np.arange(30), 6),), x.ravel())
    assert same_bits(joined, rows)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("by", [Combinator.MIN, Combinator.MAX], ids=str)
def test_over_nothing_it_is_the_identity(by: Combinator, dtype: DType) -> None:
    found = by.reduce(np.zeros((2, 0), dtype.numpy), (1,))
    assert same_bits(found, np.full(2, by.identity(dtype), dtype.numpy))


def test_operands_stay_as_they_are() -> None:
    for x in (np.array([-0.0, 0.0, -1.0]), np.array([3, -2]), np.zeros(2, BF16.numpy)):
        before = x.copy()
        MAXIMUM.reduce(x, (0,))
        MINIMUM(x, x)
        assert same_bits(x, before)
