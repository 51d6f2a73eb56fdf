"""Sorts, searches and quantiles: the laws of functions, then ties, NaN, what is empty, and misuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import nnkit as nk
from nnkit import DTypeError, RankError, Rep, ShapeError, StagingError, Tensor1D, f32, f64

from .function_laws import Row, check
from .messages import M, N, Table, V, on

X = np.random.default_rng(1).permutation(12).reshape(3, 4) * 0.7 - 3.0
S = np.random.default_rng(2).permutation(7) * 1.3 - 4.0
C = X.reshape(2, 3, 2)
HALF = (X * 2).astype(np.float16)
INTEGERS = np.array([[3, -1, 3], [0, 7, -128]], np.int8)
NANS = np.array([math.nan, 0.0, 1.0, -0.0, -math.inf, -math.nan, math.inf, 0.0])
Q = [0.1, 0.5, 0.9]


def test_laws() -> None:
    check(
        {
            "sort": Row(nk.sort, np.sort, (X,)),
            "first axis": Row(lambda x: nk.sort(x, 0), lambda x: np.sort(x, 0), (C,)),
            "middle axis": Row(lambda x: nk.sort(x, axis=-2), lambda x: np.sort(x, -2), (C,)),
            "all": Row(lambda x: nk.sort(x, None), lambda x: np.sort(x, None), (X,)),
            "down": Row(lambda x: nk.sort(x, descending=True), lambda x: -np.sort(-x), (X,)),
            "argsort": Row(lambda x: nk.argsort(x, 0), lambda x: np.argsort(x, 0), (X,)),
            "halves": Row(nk.sort, np.sort, (HALF,)),
            "integers": Row(nk.sort, np.sort, (INTEGERS,)),
            "masks": Row(lambda x: nk.sort(x > 0), lambda x: np.sort(x > 0), (X,)),
            "top_k": Row(
                lambda x: nk.top_k(x, 2),
                lambda x: (-np.sort(-x)[:, :2], np.argsort(-x)[:, :2]),
                (X,),
            ),
            "top_k of rows": Row(
                lambda x: nk.top_k(x, 3, axis=0)[0], lambda x: -np.sort(-x, 0)[:3], (X,)
            ),
            "searchsorted": Row(nk.searchsorted, np.searchsorted, (np.sort(S), X)),
            "right": Row(
                lambda a, v: nk.searchsorted(a, v, side="right"),
                lambda a, v: np.searchsorted(a, v, side="right"),
                (np.sort(S), np.append(S, [-9.0, 9.0])),
            ),
            "median": Row(nk.median, np.median, (X,)),
            "median of rows": Row(
                lambda x: nk.median(x, 1, keepdims=True),
                lambda x: np.median(x, 1, keepdims=True),
                (X,),
            ),
            "odd median": Row(lambda x: nk.median(x, 0), lambda x: np.median(x, 0), (X,)),
            "quantiles": Row(
                lambda x: nk.quantile(x, Q, 1), lambda x: np.quantile(x, Q, 1), (X,)
            ),
            "staged quantiles": Row(
                lambda x, q: nk.quantile(x, q, 1),
                lambda x, q: np.quantile(x, q, 1),
                (X, np.array([0.13, 0.52, 0.91])),
            ),
            "percentile": Row(
                lambda x: nk.percentile(x, 30, (0, 2), keepdims=True),
                lambda x: np.percentile(x, 30, (0, 2), keepdims=True),
                (C,),
            ),
            **{
                way: Row(
                    lambda x, way=way: nk.quantile(x, [0, 0.25, 0.6, 1], 1, method=way),
                    lambda x, way=way: np.quantile(x, [0, 0.25, 0.6, 1], 1, method=way),
                    (np.append(X, X[:, :1] / 2, 1),),
                )
                for way in ("lower", "higher", "midpoint", "nearest")
            },
        }
    )  # fmt: skip


@nk.staged
def _orders(x: Rep[Tensor1D[f64]]):  # type: ignore[no-untyped-def]  # as many as there are
    down = nk.argsort(x, descending=True)
    return nk.argsort(x), down, nk.sort(x), nk.median(x), nk.searchsorted(nk.sort(x), x)


def test_equal_elements_stay_in_order_and_nans_come_last() -> None:
    up, down, ordered, median, places = map(np.asarray, _orders(NANS))
    assert up.tolist() == [4, 1, 3, 7, 2, 6, 0, 5]
    assert down.tolist() == [0, 5, 6, 2, 1, 3, 7, 4]
    np.testing.assert_array_equal(ordered, np.sort(NANS))
    assert np.isnan(median)
    np.testing.assert_array_equal(places, np.searchsorted(np.sort(NANS), NANS))


def test_infinite_neighbours_are_no_nan() -> None:
    x = np.array([-math.inf, 1.0, math.inf, math.inf])
    f = nk.fn(Tensor1D[f64])(lambda x: nk.quantile(x, [0.0, 1 / 3, 0.5, 2 / 3, 0.9, 1.0]))
    found = np.asarray(f(x))
    assert found.tolist() == [-math.inf, 1.0, math.inf, math.inf, math.inf, math.inf]


def test_the_gradient_among_equals_is_that_of_the_permutation() -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0])
    first = nk.fn(Tensor1D[f64])(lambda x: nk.sort(x)[2] + 10.0 * nk.top_k(x, 1)[0][0])
    assert np.asarray(nk.gradient(of=first, wrt=0)(x)).tolist() == [11, 0, 0, 0]
    middle = nk.fn(Tensor1D[f64])(lambda x: nk.median(x))
    assert np.asarray(nk.gradient(of=middle, wrt=0)(x)).tolist() == [0.5, 0, 0, 0.5]


def test_nothing_and_one() -> None:
    @nk.staged
    def f(x: Rep[Tensor1D[f32]]):  # type: ignore[no-untyped-def]
        return nk.sort(x), nk.argsort(x), nk.searchsorted(x, x), nk.sort(x.expand_dims(0), 0)

    for n in (0, 1):
        x = np.ones(n, np.float32)
        wanted = (x, np.zeros(n, np.int64), np.zeros(n, np.int64), x[None])
        for got, want in zip(f(x), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), want, strict=True)


def test_a_long_sort_polls_and_a_short_one_does_not() -> None:
    f = nk.fn(Tensor1D[f32])(nk.argsort)
    assert "@nnkit.poll(" not in f.llvm(nk.spec((100,), f32))
    assert f.llvm(nk.spec((10**7,), f32)).count("call preserve_mostcc i64 @nnkit.poll(") >= 4


def test_quantiles_of_staged_places_outside_are_nan() -> None:
    f = nk.fn(Tensor1D[f64], Tensor1D[f64])(lambda x, q: nk.quantile(x, q))
    found = np.asarray(f(S, np.array([-0.1, 0.0, 1.0, 1.1, math.nan])))
    assert np.isnan(found).tolist() == [True, False, False, True, True]
    assert found[1:3].tolist() == [S.min(), S.max()]


ROWS = Table()
row = ROWS.row
row("sort of a number", RankError, "sort takes a tensor with an axis", "nk.sort(x[0])")(
    on(lambda x: nk.sort(x[0]), V)
)
row("axis", RankError, "axis 1 does not exist: the tensor has rank 1", "nk.sort(x, 1)")(
    on(lambda x: nk.sort(x, 1), V)
)
row("top_k", ShapeError, "top_k of 3 elements cannot give 4", "nk.top_k(x, 4)")(
    on(lambda x: nk.top_k(x, 4)[0], V)
)
row("side", StagingError, "side is 'left' or 'right', not 'middle'")(
    on(lambda x: nk.searchsorted(x, x, side="middle"), V)
)
row("table", RankError, "searchsorted takes a sorted vector, not a Tensor2D[f32]")(
    on(lambda x: nk.searchsorted(x, x), M)
)
row("element types", DTypeError, "numbers of one element type", "nk.searchsorted(x, n)")(
    on(lambda x, n: nk.searchsorted(x, n), V, N)
)
row("integer median", DTypeError, "median takes float elements", "nk.median(n)", "help: `x.cast(")(
    on(lambda n: nk.median(n), N)
)
row("q", StagingError, "q of quantile is from 0 to 1", "nk.quantile(x, 50)")(
    on(lambda x: nk.quantile(x, 50), V)
)
row("q of percentile", StagingError, "q of percentile is from 0 to 100")(
    on(lambda x: nk.percentile(x, [50, 101]), V)
)
row("q of words", StagingError, "q of quantile is a number or several, not 'half'")(
    on(lambda x: nk.quantile(x, "half"), V)
)
row("q of rank 2", RankError, "q of quantile is a scalar or a vector, not of rank 2")(
    on(lambda x: nk.quantile(x, x), M)
)
row(
    "method",
    StagingError,
    "method is one of 'linear', 'lower'",
    'nk.quantile(x, 0.5, method="cubic")',
)(on(lambda x: nk.quantile(x, 0.5, method="cubic"), V))
row("median of nothing", ShapeError, "a quantile of no elements of f32[0] does not exist")(
    on(lambda x: nk.median(x[:0]), V)
)


@pytest.mark.parametrize("name", ROWS)
def test_messages(name: str) -> None:
    ROWS[name].check("test_sorting.py")
