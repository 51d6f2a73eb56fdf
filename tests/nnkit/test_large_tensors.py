"""Tensors of more than 2³¹ elements: positions are of 64 bits everywhere.

    NNKIT_TEST_LARGE=1 pytest tests/nnkit/test_large_tensors.py

It takes some 10 GiB of memory and three minutes, so it runs when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import IndexOutOfRangeError, Tensor1D, Tensor2D, i8, i64

pytestmark = pytest.mark.skipif(
    "NNKIT_TEST_LARGE" not in os.environ, reason="takes 10 GiB of memory: NNKIT_TEST_LARGE=1"
)

COUNT = 2**31 + 5
ENDS = np.array([0, 2**31 - 1, 2**31, COUNT - 1])


@pytest.fixture(scope="module")
def x() -> Tensor1D[i8]:
    """Zeros, but for 1 at the start, 5 at 2³¹ and 7 at the end."""
    array = np.zeros(COUNT, np.int8)
    array[[0, 2**31, -1]] = 1, 5, 7
    return Tensor1D(array)


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "elementwise": (lambda x: (x + i8(1))[-5:], [6, 1, 1, 1, 8]),
    "sum": (lambda x: nk.sum(x.cast(i64)), 13),
    "largest": (lambda x: (nk.max(x), nk.argmax(x)), (7, COUNT - 1)),
    "slices": (lambda x: (x[2**31 - 2 :], x[:: 2**30], x[2**31]), ([0, 0, 5, 0, 0, 0, 7], [1, 0, 5], 5)),
    "running sum": (lambda x: nk.cumsum(x)[-5:], [6, 6, 6, 6, 13]),
    "update": (lambda x: x.at[2**31 + 1].set(i8(9))[-5:], [5, 9, 0, 0, 7]),
    "made": (lambda x: nk.sum(nk.full((COUNT,), x[0]).cast(i64)), COUNT),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_beyond(name: str, x: Tensor1D[i8]) -> None:
    program, wanted = PROGRAMS[name]
    found: Any = nk.staged(program)(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert np.asarray(one).tolist() == other


def test_indices_that_are_read(x: Tensor1D[i8]) -> None:
    take = nk.staged(nk.take)
    assert np.asarray(take(x, ENDS)).tolist() == [1, 0, 5, 7]
    for bad in (COUNT, -COUNT - 1):
        with pytest.raises(
            IndexOutOfRangeError, match=f"index {bad} is out of range for an axis of extent {COUNT}"
        ):
            take(x, np.array([bad]))


def test_rows(x: Tensor1D[i8]) -> None:
    matrix = Tensor2D(np.asarray(x)[: 2**31].reshape(2**16, 2**15))
    program = nk.staged(lambda y: (y[0, :2], y.T[:2, 0], nk.concat([y[-1:], y[:1]], axis=0)[:, :2]))
    assert [np.asarray(one).tolist() for one in program(matrix)] == [
        [1, 0],
        [1, 0],
        [[0, 0], [1, 0]],
    ]
