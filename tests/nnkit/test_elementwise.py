"""The elementwise functions that are composed of others: laws, and what they are at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit.core.types import Array
from tests.accuracy import error_of_singles, errors_by_extended, every_float
from tests.accuracy_of_composed import COMPOSED

from .function_laws import Row, check

X: Final = np.array([[0.9, -1.7, 2.4], [-0.33, 0.55, 3.1]])
Y: Final = np.array([0.7, -1.2, 0.35])
POSITIVE: Final = np.abs(X)
N: Final = np.array([7, -7, 3, 0, -5], np.int32)
M: Final = np.array([3, 3, -2, 5, 0], np.int32)


def test_laws() -> None:
    check(
        {
            "hypot": Row(nk.hypot, np.hypot, (X, Y)),
            "hypot of one": Row(lambda x: nk.hypot(x, 1.5), lambda x: np.hypot(x, 1.5), (X,)),
            "atan2": Row(nk.atan2, np.arctan2, (X, Y)),
            "cbrt": Row(nk.cbrt, np.cbrt, (X,)),
            "exp2": Row(nk.exp2, np.exp2, (X,)),
            "log2": Row(nk.log2, np.log2, (POSITIVE,)),
            "log10": Row(nk.log10, np.log10, (POSITIVE,)),
            "sinc": Row(nk.sinc, np.sinc, (X,)),
            "reciprocal": Row(nk.reciprocal, np.reciprocal, (X,)),
            "degrees": Row(nk.degrees, np.degrees, (X,)),
            "radians": Row(nk.radians, np.radians, (X,)),
            "trunc": Row(nk.trunc, np.trunc, (X,)),
            "fmod": Row(nk.fmod, np.fmod, (X, Y)),
            "remainder": Row(nk.remainder, np.remainder, (X, Y)),
            "mod": Row(nk.mod, np.mod, (N, M)),
            "fmod of integers": Row(nk.fmod, np.fmod, (N, M)),
            "copysign": Row(nk.copysign, np.copysign, (X, Y)),
            "heaviside": Row(nk.heaviside, np.heaviside, (X, Y)),
            "power": Row(nk.power, np.power, (N, np.abs(M))),
            "** 3": Row(lambda x: x**3, lambda x: x**3, (N,)),
            "** 2": Row(lambda x: x**2, lambda x: x**2, (X,)),
            "** -3": Row(lambda x: x**-3, lambda x: x**-3.0, (X,)),
            "scalars": Row(nk.hypot, np.hypot, (X[0, 0], Y[0])),
            "a scalar and rank 4": Row(nk.atan2, np.arctan2, (Y[1], X.reshape(1, 2, 1, 3))),
            "none": Row(nk.atan2, np.arctan2, (X[:0], Y)),
            "powers of i64": Row(
                nk.power, np.power, (N.astype(np.int64) * 12345, np.abs(M.astype(np.int64)) * 9)
            ),
            "2 **": Row(lambda n: 2**n, lambda n: 2**n, (np.abs(N),)),
        }
    )


@pytest.mark.parametrize("name", [name for name, row in COMPOSED.items() if row.operands == 1])
def test_errors_at_half_a_million_floats(name: str) -> None:
    """All floats, less some: `docs/vector-math.md` says what is promised."""
    x = every_float(8209)
    row = COMPOSED[name]
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        exact = row.exact(wide)
        slack = None if row.slack is None else row.slack(wide, 2.0**-23)
    error, worst = error_of_singles(np.asarray(nk.staged(getattr(nk, name))(x)), exact, slack)
    assert error <= row.single, f"{name} of {x[worst]!r}"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no digits beyond those of double")
@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_errors_by_extended_precision(type: type[np.floating[Any]]) -> None:
    """In the range where functions are not trivial, around zero, and of all sizes if of two operands."""
    random = np.random.default_rng(3)
    for name, row in COMPOSED.items():
        if name == "gelu":
            continue
        low, high = row.domain
        ranges = [(low, high), (max(low, -1.5), 1.5), (max(low, -20), 20)]
        drawn = [random.uniform(*each, (row.operands, 2000)) for each in ranges]
        if row.operands == 2:
            drawn.append(np.exp2(random.uniform(-100, 100, (2, 2000))))
        operands = np.concatenate(drawn, axis=1).astype(type)
        wide = operands.astype(np.longdouble)
        slack = None if row.slack is None else row.slack(*wide, float(np.finfo(type).eps))
        found = np.asarray(nk.staged(getattr(nk, name))(*operands))
        with np.errstate(all="ignore"):
            exact = row.exact(*wide)
            errors = errors_by_extended(found, exact, slack)
        errors = np.where(np.isfinite(found) & np.isfinite(exact), errors, 0)
        worst = errors.argmax()
        assert errors[worst] <= row.bound(type), f"{name} of {operands[:, worst]}"


ENDS: Final = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e-320, -1e300, 1e300])
PAIRS: Final = tuple(np.ravel(each).copy() for each in np.meshgrid(ENDS, ENDS))


def test_values_at_the_edges_are_those_of_numpy() -> None:
    rows: dict[str, tuple[Callable[..., Any], Any]] = {
        "hypot": (nk.hypot, np.hypot), "atan2": (nk.atan2, np.arctan2), "copysign": (nk.copysign, np.copysign),
        "fmod": (nk.fmod, np.fmod), "heaviside": (nk.heaviside, np.heaviside),
        "cbrt": (lambda x, y: nk.cbrt(x), lambda x, y: np.cbrt(x)),
        "trunc": (lambda x, y: nk.trunc(x), lambda x, y: np.trunc(x)),
        "log2": (lambda x, y: nk.log2(x), lambda x, y: np.log2(x)),
        "log10": (lambda x, y: nk.log10(x), lambda x, y: np.log10(x)),
    }  # fmt: skip
    found = nk.staged(lambda x, y: tuple(ours(x, y) for ours, _ in rows.values()))(*PAIRS)
    for name, got in zip(rows, found, strict=True):
        with np.errstate(all="ignore"):
            want = rows[name][1](*PAIRS)
        np.testing.assert_allclose(np.asarray(got), want, 4e-16, 0, err_msg=name)
        if name != "fmod":  # whose zeros at a NaN are none
            np.testing.assert_array_equal(
                np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)], err_msg=name
            )


def test_logarithms_of_powers_are_whole() -> None:
    twos, tens = np.exp2(np.arange(-1070.0, 1024)), 10.0 ** np.arange(23)
    found = nk.staged(lambda x, y: (nk.log2(x), nk.log10(y), nk.exp2(nk.log2(x))))(twos, tens)
    np.testing.assert_array_equal(np.asarray(found[0]), np.arange(-1070.0, 1024))
    np.testing.assert_array_equal(np.asarray(found[1]), np.arange(23.0))
    np.testing.assert_array_equal(np.asarray(found[2]), twos)
    cubes = np.arange(-50.0, 51) ** 3
    np.testing.assert_array_equal(np.asarray(nk.staged(nk.cbrt)(cubes)), np.arange(-50.0, 51))


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda d: d.__name__)
def test_narrow_floats_are_rounded_from_wider_ones(dtype: Any) -> None:
    x, y = (np.random.default_rng(3).uniform(0.1, 9, 200).astype(dtype) for _ in range(2))
    rows: dict[str, tuple[Callable[..., Any], Any]] = {
        "hypot": (nk.hypot, np.hypot), "atan2": (nk.atan2, np.arctan2),
        "cbrt": (lambda x, y: nk.cbrt(x), lambda x, y: np.cbrt(x)),
        "log2": (lambda x, y: nk.log2(x), lambda x, y: np.log2(x)),
        "log10": (lambda x, y: nk.log10(x), lambda x, y: np.log10(x)),
        "sinc": (lambda x, y: nk.sinc(x), lambda x, y: np.sinc(x)),
    }  # fmt: skip
    found = nk.staged(lambda x, y: tuple(ours(x, y) for ours, _ in rows.values()))(x, y)
    for name, got in zip(rows, found, strict=True):
        assert np.asarray(got).dtype == dtype
        want = rows[name][1](x.astype(np.float64), y.astype(np.float64))
        error = np.abs(np.asarray(got).astype(np.float64) - want)
        unit = np.spacing(np.maximum(np.abs(want), 0.25).astype(dtype)).astype(np.float64)
        assert np.max(error / unit) < 4, name


def twice(function: Callable[[Any], Any], x: Any) -> tuple[Array, Array]:
    """First and second derivatives, elementwise."""
    slope = nk.gradient(of=nk.staged(lambda x: function(x).sum()), wrt=0)
    bend = nk.gradient(of=nk.staged(lambda x: slope(x).sum()), wrt=0)
    return np.asarray(slope(x)), np.asarray(bend(x))


def test_derivatives_at_the_edges() -> None:
    slope, bend = twice(nk.sinc, np.array([0.0, 1e-9, 0.5, 2.0]))
    np.testing.assert_allclose(slope, [0, -(np.pi**2) / 3 * 1e-9, -4 / np.pi, 0.5], 1e-12, 1e-15)
    second = [-(np.pi**2) / 3, -(np.pi**2) / 3, 16 / np.pi - 2 * np.pi, -0.5]
    np.testing.assert_allclose(bend, second, 1e-12)
    slope, bend = twice(lambda x: nk.hypot(x, 0.0), np.array([0.0, 3.0, -2.0, np.inf]))
    np.testing.assert_array_equal(slope, [0, 1, -1, 1])
    np.testing.assert_array_equal(bend, [0, 0, 0, 0])
    across = twice(lambda y: nk.hypot(y * 0.0 + 4.0, y), np.array([0.0, 3.0, 4.0]))
    np.testing.assert_allclose(across[0], [0, 0.6, np.sqrt(0.5)], 1e-15)
    np.testing.assert_allclose(across[1], [0.25, 16 / 125, np.sqrt(0.5) / 8], 1e-15)
    slope, bend = twice(lambda y: nk.atan2(y, y * 0.0), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(slope, [0, 0])
    slope, bend = twice(lambda y: nk.atan2(y, y * 0.0 - 2.0), np.array([0.0, -0.0, 2.0]))
    np.testing.assert_allclose(slope, [-0.5, -0.5, -0.25], 1e-15)
    slope, _ = twice(nk.cbrt, np.array([0.0, -8.0, 27.0]))
    np.testing.assert_allclose(slope, [np.inf, 1 / 12, 1 / 27], 1e-15)
    slope, bend = twice(lambda x: x**2, np.array([0.0, -3.0]))
    np.testing.assert_array_equal((slope, bend), ([0, -6], [2, 2]))
    slope, bend = twice(lambda x: x**3, np.array([0.0, -2.0]))
    np.testing.assert_array_equal((slope, bend), ([0, 12], [0, -12]))
