"""Reductions and running reductions as functions and as methods, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk

from .function_laws import Row, check

X: Final = np.array([[[0.9, -1.7, 2.4], [-0.33, 0.55, 3.1]], [[1.2, 0.7, -0.8], [2.2, -1.1, 0.25]]])
N: Final = np.array([[3, 0, -2], [0, 5, 0]], np.int32)
NAMES: Final = ("sum", "prod", "max", "min", "mean", "var", "std")
AXES: Final = (None, 1, -1, (0, 2))


def test_as_functions_and_as_methods() -> None:
    rows: dict[str, Row] = {}
    for name, axis, keep in itertools.product(NAMES, AXES, (False, True)):
        ours, theirs = getattr(nk, name), getattr(np, name)
        rows[f"{name} {axis} {keep}"] = Row(
            lambda x, f=ours, a=axis, k=keep: f(x, axis=a, keepdims=k),
            lambda x, f=theirs, a=axis, k=keep: f(x, axis=a, keepdims=k),
            (X,),
            wrt=None if name in ("prod", "std") and axis == 1 else (),
            batched=None if keep and axis == 1 else (),
            tolerance=1e-12,
        )
    for name in ("var", "std"):
        rows[f"{name} by n - 1"] = Row(
            lambda x, n=name: getattr(x, n)(1, ddof=1),
            lambda x, n=name: getattr(x, n)(1, ddof=1),
            (X,),
        )
    for name, axis in itertools.product(("cumsum", "cumprod"), (None, 0, -1)):
        rows[f"{name} {axis}"] = Row(
            lambda x, n=name, a=axis: getattr(nk, n)(x, a),
            lambda x, n=name, a=axis: getattr(np, n)(x, a),
            (X,),
            wrt=None if axis == -1 else (),
        )
    for name, ufunc in {"cummax": np.maximum, "cummin": np.minimum}.items():
        rows[name] = Row(
            lambda x, n=name: getattr(nk, n)(x, axis=1), lambda x, u=ufunc: u.accumulate(x, 1), (X,)
        )
    check(rows)


def test_of_integers_and_truth_values() -> None:
    rows: dict[str, Row] = {}
    for axis, keep in itertools.product((None, 0, -1, (0, 1)), (False, True)):
        for name, of in {"any": N > 0, "all": N > 0, "count_nonzero": N}.items():
            rows[f"{name} {axis} {keep}"] = Row(
                lambda x, n=name, a=axis, k=keep: getattr(nk, n)(x, a, keepdims=k),
                lambda x, n=name, a=axis, k=keep: np.asarray(getattr(np, n)(x, a, keepdims=k)),
                (of,),
            )
        for name in ("argmax", "argmin"):
            if axis != (0, 1):
                rows[f"{name} {axis} {keep}"] = Row(
                    lambda x, n=name, a=axis, k=keep: getattr(nk, n)(x, a, keepdims=k),
                    lambda x, n=name, a=axis, k=keep: getattr(np, n)(x, a, keepdims=k),
                    (N,),
                )
    rows["count of truths"] = Row(
        nk.count_nonzero, lambda x: np.asarray(np.count_nonzero(x)), (N > 0,)
    )
    rows["product"] = Row(
        lambda x: nk.cumprod(x, 1), lambda x: np.cumprod(x, 1, dtype=np.int32), (N,)
    )
    check(rows)


def test_nan_ties_and_nothing() -> None:
    x = np.array([[1.0, np.nan, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0]])
    empty = np.zeros((0, 3))
    check(
        {
            "count": Row(nk.count_nonzero, lambda x: np.asarray(np.count_nonzero(x)), (x,)),
            "cummax": Row(lambda x: nk.cummax(x, 1), lambda x: np.maximum.accumulate(x, 1), (x,), wrt=()),
            "cummin": Row(lambda x: nk.cummin(x, 1), lambda x: np.minimum.accumulate(x, 1), (x,), wrt=()),
            "std": Row(lambda x: nk.std(x, 1), lambda x: np.std(x, 1), (x,), wrt=()),
            "std of none": Row(lambda x: nk.std(x, 0), lambda x: np.std(x, 0), (empty,), wrt=()),
            "var of one": Row(lambda x: nk.var(x[:1], 0, ddof=1), lambda x: np.var(x[:1], 0, ddof=1), (x,), wrt=()),
            "cumprod of none": Row(lambda x: nk.cumprod(x, 0), lambda x: np.cumprod(x, 0), (empty,)),
        }
    )  # fmt: skip


def test_the_standard_deviation_of_equal_elements_has_derivative_zero() -> None:
    slope = nk.gradient(of=nk.staged(lambda x: nk.std(x, axis=1).sum()), wrt=0)
    bend = nk.hvp(nk.staged(lambda x: nk.std(x, axis=1).sum()))
    x = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    row = (x[1] - 2) / (3 * x[1].std())
    np.testing.assert_allclose(np.asarray(slope(x)), [[0, 0, 0], row], 1e-15)
    np.testing.assert_array_equal(np.asarray(bend(x, np.ones_like(x)))[0], [0, 0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nk.sum(x, axis=2), "axis 2 does not exist: the tensor has rank 2"),
        (lambda x: nk.max(x, axis=(0, -2)), "name an axis twice"),
        (lambda x: nk.any(x), "any takes boolean elements"),
        (lambda x: nk.cumprod(x, (0, 1)), "an axis is an int"),
        (lambda x: nk.argmax(x, 5), "axis 5 does not exist"),
        (lambda x: nk.std(x.cast(nk.i32)), "takes float elements"),
    ],
)
def test_misuse(call: Any, message: str) -> None:
    with pytest.raises(nk.NNKitError, match=message.replace("(", r"\(")):
        nk.staged(call)(np.ones((2, 3)))
