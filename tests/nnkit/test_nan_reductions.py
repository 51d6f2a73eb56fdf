"""Reductions of what is not NaN, against NumPy; their derivatives are those of the elements that are there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk

from .function_laws import Row, check

X: Final = np.array([[[0.9, -1.7, 2.4], [-0.33, 0.55, 3.1]], [[1.2, 0.7, -0.8], [2.2, -1.1, 0.25]]])
MASK: Final = np.array([[[1, 1, 0], [0, 1, 1]], [[1, 0, 1], [1, 1, 0]]], bool)
NONE: Final = MASK & (np.arange(3) != 1)
"""Of a column nothing is there."""
NAMES: Final = ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanmedian", "nanvar", "nanstd")
SPREADS: Final = ("nanvar", "nanstd")
ODD: Final = np.array(
    [[np.nan, np.inf, 1.0], [np.nan, np.nan, np.nan], [-np.inf, np.nan, -0.0], [2.0, 2.0, np.nan]]
)
N: Final = np.array([[3, 0, -2], [0, 5, 1]], np.int32)


def holes(function: Callable[..., Any], library: Any, mask: Any = MASK, **options: Any) -> Any:
    """The function of elements some of which are replaced by NaN."""
    return lambda x: function(library.where(mask, x, math.nan), **options)


def test_laws() -> None:
    rows: dict[str, Row] = {}
    for name, (axis, keep) in itertools.product(NAMES, ((None, False), (1, False), ((0, 2), True))):
        options = {"axis": axis, "keepdims": keep}
        checked = name != "nanprod" and axis == 1
        rows[f"{name} {axis} {keep}"] = Row(
            holes(getattr(nk, name), nk, **options),
            holes(getattr(np, name), np, **options),
            (X,),
            wrt=None if checked else (),
            batched=None if checked else (),
            tolerance=1e-12,
        )
    for name in SPREADS:
        rows[f"{name} by n - 2"] = Row(
            holes(getattr(nk, name), nk, axis=1, ddof=2),
            holes(getattr(np, name), np, axis=1, ddof=2),
            (X,),
            wrt=(),
            batched=(),
        )
    halves = [(name, ODD.astype(np.float16)) for name in ("nanmean", "nanmedian", "nanstd")]
    for name, given in [*((name, ODD) for name in NAMES), *halves]:
        rows[f"{name} of {given.dtype}"] = Row(
            lambda x, n=name: getattr(nk, n)(x, 1),
            lambda x, n=name: getattr(np, n)(x, 1),
            (given,),
            wrt=(),
            batched=(),
            tolerance=None if given.dtype != np.float16 else 2e-3,
        )
    for name in ("nansum", "nanprod", "nanmax", "nanmin"):
        rows[f"{name} of integers"] = Row(
            lambda x, n=name: getattr(nk, n)(x, 0),
            lambda x, n=name: getattr(np, n)(x, 0).astype(np.int32),
            (N,),
        )
    rows["product"] = Row(
        holes(nk.nanprod, nk, axis=1), holes(np.nanprod, np, axis=1), (X,), batched=()
    )
    check(rows)


def test_derivatives_where_nothing_is_there() -> None:
    """0 by each NaN, whatever the mean of none is; equal elements have no slope of their deviation."""
    x = np.where(NONE, X, np.nan)[0]
    x[1] = [np.nan, np.nan, 2.5]
    for name in NAMES:
        total = nk.staged(lambda x, n=name: getattr(nk, n)(x, 0).sum())
        for slopes in (
            nk.gradient(of=total, wrt=0),
            nk.gradient(of=nk.staged(lambda x, f=total: nk.gradient(of=f, wrt=0)(x).sum()), wrt=0),
        ):
            found = np.asarray(slopes(x))
            assert (found[np.isnan(x)] == 0).all(), (name, found)
            assert np.isfinite(found).all(), (name, found)


def test_of_nothing() -> None:
    f = nk.staged(lambda x: tuple(getattr(nk, name)(x) for name in NAMES))
    found = [float(y) for y in f(np.zeros((0, 2)))]
    assert found[:2] == [0, 1] and np.isnan(found[2:]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nk.nansum(x > 0), "nansum takes numbers, not a Tensor1D"),
        (lambda x: nk.nanmean(x.cast(nk.i32)), "nanmean takes floats, not a Tensor1D"),
        (lambda x: nk.nanmax(x, dim=0), "nanmax has no argument 'dim'"),
    ],
)
def test_misuse(call: Any, message: str) -> None:
    with pytest.raises(nk.NNKitError, match=message):
        nk.staged(lambda x: call(x))(np.ones(3))
