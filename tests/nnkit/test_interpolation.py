"""Differences, trapezoids, interpolation and polynomials against NumPy."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import nnkit as nk

from .function_laws import Row, check

RANDOM: Final = np.random.default_rng(6)
T: Final = RANDOM.normal(size=(2, 4, 3))
V: Final = RANDOM.normal(size=4)
KNOTS: Final = np.array([-1.0, 0.2, 0.5, 2.0])
AT: Final = np.array([[-1.5, -0.9, 0.3], [0.45, 1.7, 2.5]])


def test_laws() -> None:
    check(
        {
            "diff": Row(nk.diff, np.diff, (T,)),
            "diff 2": Row(lambda x: nk.diff(x, 2, axis=1), lambda x: np.diff(x, 2, axis=1), (T,)),
            "diff 0": Row(lambda x: nk.diff(x, n=0), lambda x: np.diff(x, n=0), (T,)),
            "diff far": Row(lambda x: nk.diff(x, 5, 0), lambda x: np.diff(x, 5, 0), (T,)),
            "diff of truths": Row(nk.diff, np.diff, (V > 0,)),
            "diff of integers": Row(nk.diff, np.diff, (np.array([3, 1, 4, 1, 5], np.int8),)),
            "trapezoid": Row(nk.trapezoid, np.trapezoid, (T,)),
            "by dx": Row(lambda y: nk.trapezoid(y, dx=0.1), lambda y: np.trapezoid(y, dx=0.1), (V,)),
            "by x": Row(lambda y, x: nk.trapezoid(y, x, axis=1), lambda y, x: np.trapezoid(y, x, axis=1), (T, V)),
            "by its like": Row(
                lambda y, x: nk.trapezoid(y, x, axis=0), lambda y, x: np.trapezoid(y, x, axis=0), (T, T + 1)
            ),
            "interp": Row(nk.interp, np.interp, (AT, KNOTS, V)),
            "with ends": Row(
                lambda x, xp, fp: nk.interp(x, xp, fp, left=-7.0, right=9.0),
                lambda x, xp, fp: np.interp(x, xp, fp, left=-7, right=9), (AT, KNOTS, V),
            ),
            "periodic": Row(
                lambda x, xp, fp: nk.interp(3.17 * x, xp, fp, left=9.0, period=-1.75),
                lambda x, xp, fp: np.interp(3.17 * x, xp, fp, period=-1.75), (AT, KNOTS[[2, 0, 3, 1]], V),
            ),
            "at knots": Row(nk.interp, np.interp, (KNOTS, KNOTS, V), wrt=(2,), batched=()),
            "of one": Row(nk.interp, np.interp, (AT, KNOTS[:1], V[:1])),
            "interp odd": Row(nk.interp, np.interp, (np.array([np.nan, np.inf, -np.inf]), KNOTS, V), wrt=()),
            "polyval": Row(nk.polyval, np.polyval, (V, AT)),
            "of numbers": Row(
                lambda x: nk.polyval([2.0, -1, 0.5], x), lambda x: np.polyval([2, -1, 0.5], x), (AT,)
            ),
            "of no numbers": Row(lambda p, x: nk.polyval(p[:0], x), lambda p, x: x * 0, (V, AT)),
        }
    )  # fmt: skip


MISUSE: Final = {
    "times": (lambda x: nk.diff(x, -1), "at least 0"),
    "axis": (lambda x: nk.diff(x, axis=3), "axis 3 does not exist"),
    "points": (lambda x: nk.trapezoid(x, x[0]), "a vector or like y"),
    "matrix of points": (lambda x: nk.interp(x, x, x), "xp as a vector"),
    "integers": (lambda x: nk.interp(x.cast(nk.i32), x[0, 0], x[0, 0]), "f64"),
    "period": (lambda x: nk.interp(x, x[0, 0], x[0, 0], period=0.0), "a number and not 0"),
    "coefficients": (lambda x: nk.polyval(x, x), "a vector of coefficients"),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name: str) -> None:
    call, message = MISUSE[name]
    with pytest.raises(nk.NNKitError, match=message):
        nk.staged(lambda x: call(x))(T)
