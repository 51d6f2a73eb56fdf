"""Where elements are not 0, against NumPy: fewer, as many and more than there are places for; then misuse."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit.core.types import Array

from .function_laws import Row, check

M: Final = np.array([[0.0, 2.0, 0.0, -0.0], [3.0, 0.0, np.nan, 1e-300], [0.0, np.inf, 0.0, -1.0]])
C: Final = np.array([[[1, 0], [0, -3]], [[0, 0], [7, 7]]], np.int8)
V: Final = np.array([True, False, True, True])


def first(size: int, filler: int = 0) -> Any:
    """The first of NumPy's indices, and then fillers."""

    def found(x: Array) -> list[Array]:
        return [np.concatenate([k, np.full(size, filler)])[:size] for k in np.nonzero(x)]

    return found


def test_indices_of_what_is_not_zero() -> None:
    check(
        {
            "as many": Row(lambda x: nk.nonzero(x, size=6), np.nonzero, (M,), wrt=()),
            "fewer places": Row(lambda x: nk.nonzero(x, size=3), first(3), (M,), wrt=()),
            "more places": Row(lambda x: nk.nonzero(x, size=9), first(9), (M,), wrt=()),
            "no places": Row(lambda x: nk.nonzero(x, size=0), first(0), (M,), wrt=()),
            "a filler": Row(lambda x: nk.nonzero(x, size=9, fill_value=-1), first(9, -1), (M,), wrt=()),
            "an extent": Row(
                lambda x: nk.nonzero(x, size=x.size, fill_value=x.shape[1]), first(8, 2), (C,), batched=()
            ),
            "a staged filler": Row(
                lambda x, n: nk.nonzero(x, size=8, fill_value=n), lambda x, n: first(8, n)(x), (C, np.int8(5))
            ),
            "of nothing": Row(lambda x: nk.nonzero(x, size=2, fill_value=4), first(2, 4), (M[:0],), wrt=()),
            "of one": Row(lambda x: nk.nonzero(x, size=1), np.nonzero, (M[:1, 1],), wrt=()),
            "of truth": Row(lambda x: nk.nonzero(x, size=4, fill_value=9), first(4, 9), (V,)),
            "method": Row(lambda x: x.nonzero(size=4), first(4), (V,)),
            "where": Row(lambda x: nk.where(x > 0, size=5), lambda x: first(5)(x > 0), (M,), wrt=()),
            "flat": Row(
                lambda x: nk.flatnonzero(x, size=4, fill_value=-1),
                lambda x: np.append(np.flatnonzero(x), -1), (C[:, 1:],), batched=(),
            ),
            "in rows": Row(lambda x: nk.argwhere(x, size=4), lambda x: np.argwhere(x)[:4], (C,)),
        }
    )  # fmt: skip


def test_one_trace_serves_all_shapes() -> None:
    find = nk.staged(lambda x: nk.argwhere(x, size=x.shape[0], fill_value=-1))
    for n in (1, 5):
        x = np.eye(n)[::-1]
        np.testing.assert_array_equal(np.asarray(find(x)), np.argwhere(x))
    assert np.asarray(find(np.zeros((2, 3)))).tolist() == [[-1, -1], [-1, -1]]


MISUSE: Final = {
    "no size": (lambda x: nk.nonzero(x), r"say how many, nonzero\(x, size=n\)"),
    "no size of rows": (lambda x: nk.argwhere(x), "an extent cannot"),
    "a negative size": (lambda x: nk.flatnonzero(x, size=-1), "at least 0, not -1"),
    "a staged size": (lambda x: nk.nonzero(x, size=x[0]), "nonzero takes Python ints"),
    "a scalar": (lambda x: nk.nonzero(x[0], size=1), "nonzero takes a tensor with an axis"),
    "several fillers": (lambda x: nk.nonzero(x, size=1, fill_value=x), "fill_value of nonzero is an integer"),
    "a part": (lambda x: nk.nonzero(x, size=1, fill_value=0.5), "0.5"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name: str) -> None:
    call, message = MISUSE[name]
    with pytest.raises(nk.NNKitError, match=message):
        nk.staged(lambda x: call(x))(np.ones(3))
