"""First and second derivatives against mpmath, over all binades of their domains, in every mode.

A bound is one of backward stability: the derivative found is the true one, to a few units in the last place,
at a number that is within a few units of x.  So the error allowed is K · ε · (|g| + |x · g′|) for g = f′ or f″,
and K of the least subnormal numbers where products underflow.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import settings

import nnkit as nk
from nnkit.core.types import Array

from .modes import FIRST, SECOND, derivatives
from .oracles import SMOOTH, Oracle, exact

POINTS = settings().max_examples // 5
"""Of each kind and function: a few, or many under the profile `fuzz`."""

BOUND = 4.0
"""K, of functions of at most two ulps."""
LOOSER = {"lgamma": 8.0}
"""Near the root of ψ its error is that of its terms."""
SUBNORMALS = {1: 256, 2: 2048}
"""How many of the least subnormal numbers an error may be, by order: in gelu″ = (2 − x²) φ(x) underflows φ, near 39."""
ABSOLUTE = {"tanh": (1, 2), "sigmoid": (2,)}
"""By name, the orders of which only the absolute error is small: 1 − y² has no digits of what y has lost."""

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def points(oracle: Oracle, dtype: Any, seed: int) -> Array:
    """Of every size, near the ends of domains at ±1, and of ordinary sizes, within the domain."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    exponents = rng.uniform(info.minexp - info.nmant, info.maxexp, POINTS)
    near = np.exp2(-rng.uniform(1, info.nmant, POINTS))
    x = np.concatenate(
        [
            np.ldexp(1 + rng.random(POINTS), np.floor(exponents).astype(int)),
            1 + near,
            1 - near,
            rng.uniform(0, 3, POINTS),
            rng.uniform(0, 100, POINTS),
        ]
    )
    with np.errstate(all="ignore"):
        found: Array = np.concatenate([x, -x]).astype(dtype)
    return found[(found > oracle.low) & (found < oracle.high) & np.isfinite(found)]


def check(name: str, x: Array, got: dict[str, Array], order: int) -> None:
    oracle, info = SMOOTH[name], np.finfo(x.dtype)
    wanted, slopes = (exact(oracle.orders[k], x) for k in (order - 1, order))
    bound = LOOSER.get(name, BOUND)
    epsilon, least = mpmath.mpf(float(info.eps)), mpmath.mpf(float(info.smallest_subnormal))
    largest = mpmath.mpf(float(info.max))
    for mode, found in got.items():
        assert found.dtype == x.dtype and found.shape == x.shape
        for at, value, want, slope in zip(x, found, wanted, slopes, strict=True):
            where = f"{name}, {mode}, at {at!r}: {value!r}, not {mpmath.nstr(want, 17)}"
            if abs(want) > largest * (1 - 4 * epsilon):
                assert abs(value) >= largest * (1 - 4 * epsilon), where
                continue
            assert np.isfinite(value), where
            scale = abs(want) + abs(mpmath.mpf(float(at)) * slope)
            if order in ABSOLUTE.get(name, ()):
                scale = mpmath.mpf(1)
            allowed = bound * epsilon * scale + SUBNORMALS[order] * least
            assert abs(mpmath.mpf(float(value)) - want) <= allowed, where


@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE], ids=str)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_backward_stable(name: str, dtype: np.dtype[Any]) -> None:
    oracle = SMOOTH[name]
    x = points(oracle, dtype, POINTS)
    got = derivatives(oracle.function, x, modes=(*FIRST, *(SECOND if oracle.known > 1 else ())))
    check(name, x, {m: v for m, v in got.items() if len(m.split()[-1]) == 1}, 1)
    if oracle.known > 1:
        check(name, x, {m: v for m, v in got.items() if len(m.split()[-1]) == 2}, 2)


def test_small_formats_keep_what_their_squares_would_lose() -> None:
    x = np.array([300.0, 1000.0, 60000.0], np.float16)
    for function in (nk.asinh, nk.acosh):
        for found in derivatives(function, x, modes=FIRST).values():
            np.testing.assert_allclose(found.astype(float), 1 / x.astype(float), 2e-3, 6e-8)
    for mode, found in derivatives(nk.atan, x, modes=FIRST).items():
        np.testing.assert_allclose(
            found.astype(float), x.astype(float) ** -2, 1e-2, 1.2e-7, err_msg=mode
        )


@pytest.mark.parametrize("name", ["asin", "acos", "atanh", "asinh", "atan", "erf"])
def test_second_derivatives_near_zero_are_lines(name: str) -> None:
    x = np.array([1e-300, -1e-200, 1e-20, 3e-9])
    (factor,) = exact(lambda t: SMOOTH[name].orders[2](t), np.zeros(1))
    for mode, found in derivatives(SMOOTH[name].function, x, modes=SECOND).items():
        np.testing.assert_allclose(found, float(factor) * x, 1e-15, err_msg=mode)


def test_gelu_has_its_digits_where_the_distribution_vanishes() -> None:
    x = np.linspace(-37, -3, 35)
    found = np.asarray(nk.staged(nk.gelu)(x))
    wanted = exact(lambda t: t * mpmath.ncdf(t), x).astype(float)
    assert np.all(np.abs(found / wanted - 1) <= 2.0**-52 * (8 + 2 * x * x))
