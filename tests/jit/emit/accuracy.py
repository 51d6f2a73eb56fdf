"""How far results are from the truth, and where to look."""

from collections.abc import Callable

import mpmath  # type: ignore[import-untyped]
import numpy as np

from nnkit.jit.emit.writer import Scalar

from .compiled import NUMPY, Array

SPECIAL = np.array(
    [
        0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, -3.5, 3, -3,
        10, -10, 20.5, 100, -100, 88.7, 89, -87.4, -103.9, 709.7, 710, -708.5, -745.1, -746, 1e6, 1e15,
        1e22, 1e-40, -1e-40, 1e-45, -1e-45, 1e-310, -1e-310, 5e-324, 3.4e38, -3.4e38, 1.7e308, -1.7e308,
        2.0**23, 2.0**52, 2.0**53, 0.49999997, 0.49999999999999994, np.pi, np.pi / 2, 1 - 2.0**-24,
    ]
)  # fmt: skip


def sample(scalar: Scalar, count: int, *ranges: tuple[float, float]) -> Array:
    """Special values, `count` random bit patterns, and `count` uniform values of each range."""
    random = np.random.default_rng(11)
    type = NUMPY[scalar]
    size = np.dtype(type).itemsize
    patterns = random.integers(0, 256, count * size, np.uint8).view(type)
    with np.errstate(over="ignore"):
        rest = [random.uniform(low, high, count).astype(type) for low, high in ranges]
        return np.concatenate([SPECIAL.astype(type), patterns, *rest])


def ulps(result: Array, reference: Array) -> Array:
    """The distance in units in the last place; infinite where nan, infinity or the sign of 0 is wrong."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(result.dtype)
        finite = np.isfinite(rounded) & np.isfinite(result)
        unit = np.abs(np.spacing(np.where(finite, rounded, 1))).astype(np.longdouble)
        error = np.abs(result.astype(np.longdouble) - reference) / unit
        same = (result == rounded) & (np.signbit(result) == np.signbit(rounded))
        same |= np.isnan(result) & np.isnan(rounded)
        wrong_zero = (reference == 0) & ~same
        return np.where(finite & ~wrong_zero, error, np.where(same, 0, np.inf))


def exactly(function: Callable[[mpmath.mpf], mpmath.mpf]) -> Callable[[Array], Array]:
    """An mpmath function on arrays, as longdouble; finite operands only, nan at poles."""

    def evaluate(x: Array) -> Array:
        out = np.empty(x.shape, np.longdouble)
        with mpmath.workprec(200):
            for index, value in enumerate(x):
                out[index] = _longdouble(function, float(value))
        return out

    return evaluate


def _longdouble(function: Callable[[mpmath.mpf], mpmath.mpf], value: float) -> np.longdouble:
    try:
        exact = function(mpmath.mpf(value))
    except ValueError:
        return np.longdouble("nan")
    if not mpmath.isfinite(exact):
        return np.longdouble(float(exact))
    mantissa, exponent = mpmath.frexp(exact)
    high = float(mantissa)
    total = np.longdouble(high) + np.longdouble(float(mantissa - mpmath.mpf(high)))
    return np.longdouble(np.ldexp(total, int(exponent)))
