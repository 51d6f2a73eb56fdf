"""Writing into parts of tensors: samples for the laws, then duplicates, ties and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, IndexOutOfRangeError, RankError
from nnkit.core.ops import Bounds, Scatter, Update
from nnkit.core.types import Array

from .samples import ErrorSample, Sample, boolean, f64, i32, i64

SET, ADD, MULTIPLY, MIN, MAX = Update
ONE_TO_FIVE, SIX_TO_EIGHT = [1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0]
OUTSIDE = [-7, 2, 0, 2, 9]
FIVE = (f64(5), f64(3), i64(5))


def _written(updates: Array, x: Array, *indices: Array) -> Array:
    result = x.copy()
    result[indices] = updates
    return result


def _added(updates: Array, x: Array, *indices: Array) -> Array:
    result = x.copy()
    np.add.at(result, indices, updates)
    return result


def _multiplied(updates: Array, x: Array, *indices: Array) -> Array:
    result = x.copy()
    np.multiply.at(result, indices, updates)
    return result


def _in_the_middle(updates: Array, x: Array) -> Array:
    return np.concatenate([x[:1], updates, x[3:]])


# derivatives of products at indices that may repeat are loops: tests/nnkit/test_scattering.py has their laws
SAMPLES = [
    Sample(Scatter(), (f64(), f64(4), i64()), low=0, high=3, numpy=_written),
    Sample(Scatter(), (f64(3), f64(4, 3), i64()), low=0, high=3, numpy=_written),
    Sample(Scatter(), (f64(), f64(4, 4), i64(), i64()), low=0, high=3, numpy=_written),
    Sample(Scatter(), (f64(5, 2), f64(4, 4, 2), i32(5), i32(5)), low=0, high=3, numpy=_written),
    Sample(Scatter(1), (f64(2, 6), f64(2, 4), i64(6)), low=0, high=3),
    Sample(Scatter(1, SET, (1, 0, 0), (1, 1, 2)), (f64(2, 3, 2), f64(4, 4, 3), i64(3)), low=0, high=3),
    Sample(Scatter(0, SET, (1,), bounds=Bounds.INSIDE), (f64(2), f64(4)), numpy=_in_the_middle),
    Sample(Scatter(0, ADD, (1, 0), (2, 1), Bounds.INSIDE), (f64(2, 3), f64(4, 3))),
    Sample(Scatter(0, ADD, bounds=Bounds.INSIDE), (f64(4, 3), f64(4, 3)), numpy=lambda u, x: u + x),
    Sample(Scatter(bounds=Bounds.INSIDE), (f64(4, 3), f64(4, 3)), numpy=lambda u, x: u),
    Sample(Scatter(bounds=Bounds.INSIDE), (f64(), f64()), numpy=lambda u, x: u),
    Sample(Scatter(0, ADD, bounds=Bounds.INSIDE), (f64(), f64()), numpy=lambda u, x: u + x),
    Sample(Scatter(0, MAX, bounds=Bounds.INSIDE), (f64(), f64())),
    Sample(Scatter(bounds=Bounds.INSIDE), (i64(), i64()), numpy=lambda u, x: u),
    Sample(Scatter(0, MAX, (2,), bounds=Bounds.INSIDE), (f64(1), f64(4))),
    Sample(Scatter(0, ADD), (f64(6), f64(4), i64(6)), low=0, high=3, numpy=_added),
    Sample(Scatter(0, ADD), (f64(30, 2), f64(4, 2), i64(30)), low=0, high=3, numpy=_added),
    Sample(Scatter(1, ADD), (f64(2, 2, 2, 3), f64(2, 4, 3), i32(2, 2)), low=0, high=3),
    Sample(Scatter(0, MULTIPLY, (1,), bounds=Bounds.INSIDE), (f64(2), f64(4))),
    Sample(Scatter(0, MULTIPLY), (f64(2), f64(4, 2), i64()), low=0, high=3, numpy=_multiplied),
    Sample(Scatter(0, MULTIPLY), (i32(6), i32(4), i64(6)), low=0, high=3, numpy=_multiplied),
    Sample(Scatter(0, MIN), FIVE, ([1.5, -1.0, 2.5, 4.0, -2.0], [1.0, 2.0, 3.0], [0, 0, 1, 2, 2])),
    Sample(Scatter(0, MAX), (f64(5, 2), f64(4, 2), i64(5)), low=0, high=3),
    Sample(Scatter(0, MAX), (f64(2), f64(4, 2), i64()), low=0, high=3),
    Sample(Scatter(), (i64(6), i64(4), i64(6)), low=0, high=3, numpy=_written),
    Sample(Scatter(), (boolean(2), boolean(4), i64(2)), low=0, high=3, numpy=_written),
    Sample(Scatter(0, MIN), (i32(6), i32(4), i64(6)), low=0, high=3),
    Sample(Scatter(), (f64(0, 2), f64(4, 2), i64(0))),
    Sample(Scatter(), (f64(0, 2), f64(0, 2), i64(0))),
    Sample(Scatter(1), (f64(0), f64(0, 2), i64()), low=0, high=1),
    Sample(Scatter(0, ADD, bounds=Bounds.CLIP), FIVE, (ONE_TO_FIVE, SIX_TO_EIGHT, OUTSIDE)),
    Sample(Scatter(bounds=Bounds.CLIP), FIVE, (ONE_TO_FIVE, SIX_TO_EIGHT, OUTSIDE)),
    Sample(Scatter(bounds=Bounds.ZERO), FIVE, (ONE_TO_FIVE, SIX_TO_EIGHT, OUTSIDE)),
    Sample(Scatter(0, MAX, bounds=Bounds.ZERO), FIVE, ([1.0, 2.0, 3.0, 9.0, 5.0], SIX_TO_EIGHT, OUTSIDE)),
    Sample(Scatter(bounds=Bounds.ZERO), (f64(2), f64(0), i64(2)), ([1.0, 2.0], [], [0, -1])),
]  # fmt: skip
ERRORS = [
    ErrorSample(Scatter(), (f64(2), f64(4), f64(2)), "indices must be i32 or i64, not f64[2]", DTypeError),
    ErrorSample(Scatter(), (i64(2), f64(4), i64(2)), "i64", DTypeError),
    ErrorSample(Scatter(0, ADD), (boolean(2), boolean(4), i64(2)), "float or integer elements", DTypeError),
    ErrorSample(Scatter(1), (f64(2), f64(4), i64(2)), "axis 1 is out of range for f64[4]", RankError),
    ErrorSample(Scatter(2), (f64(4), f64(4)), "axis 2 is out of range for f64[4]", RankError),
    ErrorSample(Scatter(), (f64(2), f64(0), i64(2)), "the axis of f64[0] is empty"),
    ErrorSample(Scatter(), (f64(3), f64(4), i64(2)), "an update for each of the indices, [2], not f64[3]"),
    ErrorSample(Scatter(), (f64(2, 2), f64(4), i64(2)), "updates of rank 1, not f64[2, 2]"),
    ErrorSample(Scatter(), (f64(2), f64(4, 4), i64(2), i64(3)), "indices differ in shape: i64[2], i64[3]"),
    ErrorSample(Scatter(0, SET, (3,)), (f64(2), f64(4)), "2 elements from 3 in steps of 1 are out of range"),
    ErrorSample(Scatter(0, SET, (0,), (0,)), (f64(2), f64(4)), "in steps of 0 are out of range"),
    ErrorSample(Scatter(0, SET, (0, 0)), (f64(2), f64(4)), "one entry per axis of f64[4]", RankError),
    ErrorSample(Scatter(0, SET, (1,)), (f64(2), f64(4), i64(2)), "axis 0 has indices, and starts at 1"),
]  # fmt: skip


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_is_an_error(index: int) -> None:
    with pytest.raises(
        IndexOutOfRangeError, match=f"index {index} is out of range for an axis of extent 3"
    ):
        Scatter().evaluate(np.ones(2), np.zeros(3), np.array([0, index]))


def test_updates_come_in_order() -> None:
    updates, at = np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2])
    assert Scatter().evaluate(updates, np.zeros(3), at).tolist() == [2.0, 0.0, 4.0]
    assert Scatter(0, ADD).evaluate(updates, np.ones(3), at).tolist() == [4.0, 1.0, 5.0]
    assert Scatter(0, MAX).evaluate(updates, np.full(3, 1.5), at).tolist() == [2.0, 1.5, 4.0]
    assert Scatter(0, MIN).evaluate(updates, np.full(3, 1.5), at).tolist() == [1.0, 1.5, 1.5]
