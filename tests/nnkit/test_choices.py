"""where, clip, questions and bits against NumPy."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk

from .function_laws import Row, check

X: Final = np.array([[0.9, -1.7, 2.4], [-0.33, 0.55, 3.1]])
Y: Final = np.array([0.7, -1.2, 0.35])
ODD: Final = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
N: Final = np.array([7, -7, 3, 0, -5, 100, -128], np.int8)
M: Final = np.array([3, 3, 2, 5, 1, 9, -1], np.int8)
B: Final = np.array([True, False, True, False])
C: Final = np.array([True, True, False, False])


def test_choices() -> None:
    check(
        {
            "where": Row(nk.where, np.where, (X > 0.5, X, Y)),
            "of a row": Row(nk.where, np.where, (Y > 0, X, -X)),
            "of a number": Row(lambda x: nk.where(x > 0.0, x, 0.0), lambda x: np.where(x > 0, x, 0), (X,)),
            "of a number first": Row(lambda x: nk.where(x > 0.0, 1, x), lambda x: np.where(x > 0, 1, x), (X,)),
            "or zero": Row(nk.where, lambda c, x: np.where(c, x, 0), (X > 0.5, X)),
            "or zero, of a row": Row(nk.where, lambda c, x: np.where(c, x, 0), (X > 0.5, Y)),
            "or zero, by a row": Row(nk.where, lambda c, x: np.where(c, x, 0), (Y > 0, X)),
            "or zero, by a column": Row(nk.where, lambda c, x: np.where(c, x, 0), (X[:, :1] > 0, X)),
            "or zero, scalars": Row(nk.where, lambda c, x: np.where(c, x, 0.0), (np.array(True), X[0, 0])),
            "or zero, nothing": Row(nk.where, lambda c, x: np.where(c, x, 0), (X[:0] > 0, X[:0])),
            "or zero, the poles out": Row(
                lambda x: nk.where(x > 0, nk.log(x)), lambda x: np.where(x > 0, np.log(x), 0), (X,)
            ),
            **{
                f"or zero, {dtype}": Row(
                    nk.where, lambda c, x: np.where(c, x, np.zeros_like(x)),
                    (C, np.array([1, 0, 3, 2]).astype(dtype)),
                )
                for dtype in ("float16", "float32", "int8", "int32", "int64", "bool")
            },
            "clip": Row(lambda x: nk.clip(x, -1.0, 1), lambda x: np.clip(x, -1, 1), (X,)),
            "clip below": Row(lambda x: nk.clip(x, min=0.6), lambda x: np.clip(x, 0.6, None), (X,)),
            "clip above": Row(lambda x: nk.clip(x, None, 0.6), lambda x: np.clip(x, None, 0.6), (X,)),
            "clip by none": Row(nk.clip, lambda x: x, (X,)),
            "clip by rows": Row(nk.clip, np.clip, (X, Y, Y + 1.1)),
            "crossed bounds": Row(lambda x: nk.clip(x, 1.0, -1.0), lambda x: np.clip(x, 1, -1), (X,)),
            "clip NaN": Row(lambda x: nk.clip(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1), (ODD,), wrt=()),
            "clip integers": Row(lambda n: nk.clip(n, -5, 5), lambda n: np.clip(n, -5, 5), (N,)),
            "nan_to_num": Row(nk.nan_to_num, np.nan_to_num, (ODD,), wrt=()),
            "chosen": Row(
                lambda x: nk.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
                lambda x: np.nan_to_num(x, nan=1, posinf=2, neginf=3), (ODD,), wrt=(),
            ),
            "f32": Row(nk.nan_to_num, np.nan_to_num, (ODD.astype(np.float32),)),
            "of integers": Row(nk.nan_to_num, np.nan_to_num, (N,)),
        }
    )  # fmt: skip


def test_questions() -> None:
    rows = {
        f"{name} of {of.dtype}": Row(getattr(nk, name), getattr(np, name), (of,))
        for name in ("isnan", "isfinite", "isinf", "signbit")
        for of in (ODD, ODD.astype(np.float16), N)
        if name != "signbit" or of is not N
    }
    for name in ("logical_and", "logical_or", "logical_xor"):
        rows[name] = Row(getattr(nk, name), getattr(np, name), (B, C))
        rows[f"{name} of numbers"] = Row(getattr(nk, name), getattr(np, name), (N, M))
    rows["logical_not"] = Row(nk.logical_not, np.logical_not, (ODD,))
    near = ODD + np.array([1e-9, 1e-3, 1e-6, -1e-6, 0, 0, 0])
    for equal in (False, True):
        rows[f"isclose {equal}"] = Row(
            lambda x, y, e=equal: nk.isclose(x, y, equal_nan=e),
            lambda x, y, e=equal: np.isclose(x, y, equal_nan=e),
            (ODD, near),
        )
    rows["allclose"] = Row(nk.allclose, lambda x, y: np.asarray(np.allclose(x, y)), (X, X + 1e-9))
    check(rows)


def test_bits() -> None:
    rows: dict[str, Row] = {}
    for name, symbol in {
        "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
        "left_shift": operator.lshift, "right_shift": operator.rshift,
    }.items():  # fmt: skip
        for dtype in (np.int8, np.int32, np.int64):
            given = (N.astype(dtype), M.astype(dtype))
            rows[f"{name} {dtype.__name__}"] = Row(getattr(nk, name), getattr(np, name), given)
            rows[f"{name} as operator {dtype.__name__}"] = Row(symbol, symbol, given)
        rows[f"{name} by a number"] = Row(
            lambda x, f=symbol: f(x, 3), lambda x, f=symbol: f(x, 3), (N,)
        )
        rows[f"{name} of a number"] = Row(
            lambda x, f=symbol: f(3, x), lambda x, f=symbol: f(3, x).astype(np.int8), (M,)
        )
        if "bit" in name:
            rows[f"{name} of truth values"] = Row(getattr(nk, name), getattr(np, name), (B, C))
    rows["~"] = Row(operator.invert, operator.invert, (N,))
    rows["bitwise_not"] = Row(nk.bitwise_not, np.bitwise_not, (B,))
    check(rows)


def test_derivatives_of_clip() -> None:
    slope = nk.gradient(of=nk.staged(lambda x: nk.clip(x, -1.0, 1.0).sum()), wrt=0)
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(slope(x)), [0, 1, 1, 1, 0])


def test_where_has_no_derivative_where_it_is_zero() -> None:
    """Neither from a pole nor from NaN; of the second order and forward, too; negative zeros and NaN stay."""
    taken = nk.staged(lambda x: nk.where(x > 0, nk.sqrt(x) + 1.0 / x).sum())
    x = np.array([4.0, 0.0, -1.0, np.nan, -np.inf])
    slopes = np.asarray(nk.gradient(of=taken, wrt=0)(x))
    np.testing.assert_allclose(slopes, [0.25 - 1 / 16, 0, 0, 0, 0])
    second = np.asarray(
        nk.gradient(of=nk.staged(lambda x: nk.gradient(of=taken, wrt=0)(x).sum()), wrt=0)(x)
    )
    np.testing.assert_allclose(second, [-1 / 32 + 2 / 64, 0, 0, 0, 0], atol=1e-16)
    assert float(nk.jvp(taken)(x, np.ones(5))[1]) == 0.25 - 1 / 16
    kept = np.asarray(
        nk.staged(lambda c, x: nk.where(c, x))(
            np.array([True, True, False]), np.array([-0.0, np.nan, np.nan])
        )
    )
    assert np.signbit(kept[0]) and np.isnan(kept[1]) and kept[2] == 0 and not np.signbit(kept[2])


MISUSE: Final = {
    "where of one": (lambda x: nk.where(x > 0), r"say how many, where\(condition, size=n\)"),
    "where of three and a size": (lambda x: nk.where(x > 0, x, x, size=2), "take no size"),
    "where without x": (lambda x: nk.where(x > 0, None, x), r"x is missing(?s:.*)where\(~condition, y\)"),
    "where of a number": (lambda x: nk.where(x > 0, 1.0), r"no element type(?s:.*)condition.cast\(nk.f32\)"),
    "where of two and a size": (lambda x: nk.where(x > 0, x, size=2), "take no size"),
    "where of numbers": (lambda x: nk.where(x > 0, 1.0, 0.0), "one of them must be a tensor"),
    "where by numbers": (lambda x: nk.where(x, x, x), r"the condition of where is boolean(?s:.*)condition comes first"),
    "bits of floats": (lambda x: nk.bitwise_and(x, x), "bitwise_and takes integers or truth values"),
    "shift of floats": (lambda x: x << x, "shiftLeft takes integer elements"),
    "isnan of truth values": (lambda x: nk.isnan(x > 0), "isnan takes numbers"),
    "isclose of integers": (lambda x: nk.isclose(x.cast(nk.i32), 1), "isclose takes floats"),
    "negative power": (lambda x: x.cast(nk.i32) ** -1, "integers have no negative powers"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(name: str) -> None:
    call, message = MISUSE[name]
    with pytest.raises(nk.NNKitError, match=message):
        nk.staged(_of(call))(np.ones(3))


def _of(call: Any) -> Any:
    return lambda x: call(x)
