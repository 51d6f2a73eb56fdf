"""The functions of floats: how far they may be from the truth, where to look for the worst, and what the truth is.

`FUNCTIONS` is the one table: `test_math` holds compiled code to it, `core/ops/test_transcendental` the evaluator, and
`docs/generate_accuracy.py` measures at all floats, or millions of samples, what `docs/vector-math.md` prints.

Errors are in units in the last place of the exact result.  Near a root that is no float, where one unit in the last
place of x moves the result by many, they are in units of ulp(1) · |x · f′(x)|, if that is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Real = Callable[..., mpmath.mpf]

SPECIAL = np.array(
    [
        0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, -3.5, 3, -3,
        10, -10, 20.5, 100, -100, 88.7, 89, -87.4, -103.9, 709.7, 710, -708.5, -745.1, -746, 1e6, 1e15,
        1e22, 1e-40, -1e-40, 1e-45, -1e-45, 1e-310, -1e-310, 5e-324, 3.4e38, -3.4e38, 1.7e308, -1.7e308,
        2.0**23, 2.0**52, 2.0**53, 0.49999997, 0.49999999999999994, np.pi, np.pi / 2, 1 - 2.0**-24,
    ]
)  # fmt: skip

NEAR_A_ROOT = 0.5
"""Where |f| is less, functions with `slope` are measured against x · f′ too."""

_INF, _NAN = mpmath.inf, mpmath.nan
with mpmath.workprec(200):
    _HALF_PI, _MINUS_HALF_PI = mpmath.pi / 2, -mpmath.pi / 2


@dataclass(frozen=True)
class Row:
    """A function: the bounds promised in ulp of f32 and f64, its truth, and where to look besides everywhere.

    `ends` are the values at −∞, −0, +0 and +∞, `pole` that at negative integers for functions of the gamma family.
    """

    single: float
    double: float
    truth: Real
    ends: tuple[mpmath.mpf | float, ...]
    ranges: tuple[tuple[float, float], ...] = ((-1, 1), (-10, 10))
    points: tuple[float, ...] = ()
    """Roots, poles, ends of domains, overflow, and where the code goes over from one formula to another."""
    slope: Real | None = None
    pole: float = _NAN
    operands: int = 1

    def bound(self, type: type[np.floating[Any]]) -> float:
        return self.single if type is np.float32 else self.double


def _logistic(x: mpmath.mpf) -> mpmath.mpf:
    small = mpmath.exp(-abs(x))
    return (small if x < 0 else 1) / (1 + small)


def _log_gamma(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


def _digamma(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.psi(0, x)


def _trigamma(x: mpmath.mpf) -> mpmath.mpf:
    if x > 1e30:
        return 1 / x  # mpmath divides by what it rounded to 0
    if x < 0:
        return (mpmath.pi / mpmath.sinpi(x)) ** 2 - mpmath.psi(1, 1 - x)  # it raises x step by step
    return mpmath.psi(1, x)


_OF_GAMMA = (_log_gamma, _digamma, _trigamma)


def _erfc(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(x) if abs(x) < 1e3 else mpmath.mpf(0 if x > 0 else 2)


def _power(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    size = y * mpmath.log(abs(x))
    if abs(size) < 2000:
        return mpmath.power(x, y)
    # out of range in any case; mpmath would take its time
    odd = mpmath.isint(y) and y % 2 == 1
    if x < 0 and not mpmath.isint(y):
        return _NAN
    result = mpmath.exp(2000 if size > 0 else -2000)
    return -result if x < 0 and odd else result


def _roots_and_quarters(*far: float) -> tuple[float, ...]:
    """Multiples of π/4, and of π/2 far out."""
    near = [np.pi / 4 * k for k in range(-9, 10) if k]
    return (*near, *(np.pi / 2 * k for k in far))


_TURNS = _roots_and_quarters(1000, 2.0**20, 2.0**29, 2.0**30 - 1, 2.0**31, 2.0**60)
_GAMMA_ROOTS = (
    1.0, 2.0, -2.4570247382208006, -2.7476826467274127, -3.1435808883499798, -3.9552942848585979,
    -4.0393618397403050, -1.0, -2.0, -3.0, -10.0, -35.0, 6.0, -6.0, -0.5, -1.5, -2.75,
)  # fmt: skip
_DIGAMMA_ROOTS = (
    1.4616321449683623, -0.50408300826445541, -1.5734984731623904, -2.6107208684441447,
    -3.6352933664369011, -9.7026725406, -1.0, -2.0, -3.0, -10.0, -35.0, 6.0, -5.0,
)  # fmt: skip
_ANGLES = ((-1, 1), (-10, 10), (-1e6, 1e6), (-2e9, 2e9))
_EXPONENTS = ((-1, 1), (-20, 20), (-110, 95), (-750, 712))
_OVERFLOWS = (88.722839, 89.415986, -87.336545, -103.97208, 709.782712893384, 710.4758600739439,
              -708.3964185322641, -745.1332191019411)  # fmt: skip
_GAMMAS = ((0.5, 3), (-10, 10), (-170, 0), (0, 100))

FUNCTIONS: dict[str, Row] = {
    "sqrt": Row(0.5, 0.5, mpmath.sqrt, (_NAN, -0.0, 0, _INF)),
    "rsqrt": Row(1.5, 1.5, lambda x: 1 / mpmath.sqrt(x), (_NAN, -_INF, _INF, 0)),
    "exp": Row(1.1, 1.1, mpmath.exp, (0, 1, 1, _INF), _EXPONENTS, (*_OVERFLOWS, 0.34657359)),
    "expm1": Row(
        1.6, 2, mpmath.expm1, (-1, -0.0, 0, _INF), _EXPONENTS,
        (*_OVERFLOWS, -20.0, -40.0, 0.34657359, -0.34657359, 1.0397208),
    ),
    "log": Row(1, 1, mpmath.log, (_NAN, -_INF, -_INF, _INF), ((0, 2), (0.6, 1.5), (0, 1000)),
               (1.0, 0.5**0.5, 2**0.5)),
    "log1p": Row(
        1.6, 1.5, mpmath.log1p, (_NAN, -0.0, 0, _INF), ((-1, 1), (-0.999, -0.5), (0, 1000)),
        (-1.0, 2**0.5 - 1, 0.5**0.5 - 1),
    ),
    "power": Row(0.51, 1.2, _power, (_NAN,) * 4, operands=2),
    "sin": Row(0.51, 0.85, mpmath.sin, (_NAN, -0.0, 0, _NAN), _ANGLES, _TURNS),
    "cos": Row(0.51, 0.85, mpmath.cos, (_NAN, 1, 1, _NAN), _ANGLES, _TURNS),
    "tan": Row(0.51, 1, mpmath.tan, (_NAN, -0.0, 0, _NAN), _ANGLES, _TURNS),
    "asin": Row(0.51, 0.7, mpmath.asin, (_NAN, -0.0, 0, _NAN), ((-1, 1),), (1.0, 0.5)),
    "acos": Row(0.51, 0.7, mpmath.acos, (_NAN, _HALF_PI, _HALF_PI, _NAN), ((-1, 1),), (1.0, 0.5)),
    "atan": Row(0.51, 2, mpmath.atan, (_MINUS_HALF_PI, -0.0, 0, _HALF_PI), ((-1, 1), (-10, 10)),
                (2**0.5 - 1, 2**0.5 + 1)),
    "sinh": Row(1.7, 1.7, mpmath.sinh, (-_INF, -0.0, 0, _INF), _EXPONENTS, (*_OVERFLOWS, 1.0)),
    "cosh": Row(1.5, 1.5, mpmath.cosh, (_INF, 1, 1, _INF), _EXPONENTS, _OVERFLOWS),
    "tanh": Row(1.9, 1.9, mpmath.tanh, (-1, -0.0, 0, 1), ((-1, 1), (-10, 10), (-25, 25)), (0.55,)),
    "asinh": Row(0.51, 1.8, mpmath.asinh, (-_INF, -0.0, 0, _INF), ((-1, 1), (-100, 100)), (2.0**54,)),
    "acosh": Row(0.51, 1.85, mpmath.acosh, (_NAN, _NAN, _NAN, _INF), ((1, 2), (1, 1.01), (1, 1e10)),
                 (1.0, 2.0**54)),
    "atanh": Row(0.51, 1.5, mpmath.atanh, (_NAN, -0.0, 0, _NAN), ((-1, 1), (-0.2, 0.2)), (1.0, 0.17)),
    "logistic": Row(1.6, 1.5, _logistic, (0, 0.5, 0.5, 1), ((-2, 2), (-40, 40), (-750, 0)), _OVERFLOWS),
    "erf": Row(1.4, 1.5, mpmath.erf, (-1, -0.0, 0, 1), ((-1, 1), (-6, 6)), (0.9, 3.95, 5.95)),
    "erfc": Row(2, 2, _erfc, (2, 1, 1, 0), ((-1.5, 1.5), (-6, 6), (0, 28)),
                (0.8, 0.89, 1.54156, 7.6978, 10.054, 9.19, 26.54, 27.226)),
    "lgamma": Row(0.51, 1.2, _log_gamma, (_INF, _INF, _INF, _INF), _GAMMAS, _GAMMA_ROOTS, _digamma, _INF),
    "digamma": Row(1.1, 1.9, _digamma, (_NAN, _INF, -_INF, _INF), _GAMMAS, _DIGAMMA_ROOTS, _trigamma),
    "trigamma": Row(0.51, 1.6, _trigamma, (_NAN, _INF, _INF, 0), _GAMMAS, _DIGAMMA_ROOTS, None, _INF),
}  # fmt: skip
"""By the names that the functions have in the IR."""


def sample(
    type: type[np.generic], count: int, *ranges: tuple[float, float], seed: int = 11
) -> Array:
    """Special values, `count` random bit patterns, and `count` uniform values of each range."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 256, count * np.dtype(type).itemsize, np.uint8).view(type)
    with np.errstate(over="ignore"):
        rest = [random.uniform(low, high, count).astype(type) for low, high in ranges]
        return np.concatenate([SPECIAL.astype(type), patterns, *rest])


def samples(
    name: str, type: type[np.floating[Any]], count: int, *, seed: int = 11
) -> tuple[Array, ...]:
    """Operands of the function: `sample` of its ranges, of moderate size, and around its points; not NaN but one."""
    row = FUNCTIONS[name]
    if row.operands == 2:
        return _pairs(type, count, seed)
    random = np.random.default_rng(seed + 1)
    wide = random.choice([-1, 1], count) * np.exp2(random.uniform(-30, 10, count))
    around = [_around(type, point, count // len(row.points) + 8, random) for point in row.points]
    x = np.concatenate([sample(type, count, *row.ranges, seed=seed), wide.astype(type), *around])
    return (np.concatenate([x[~np.isnan(x)], [type(np.nan)]]),)


def _around(
    type: type[np.floating[Any]], point: float, count: int, random: np.random.Generator
) -> Array:
    """A point and its negative, and floats at 1, 2, …, and random powers of two units from each."""
    integer = np.int32 if type is np.float32 else np.int64
    bits = np.array([point, -point], type).view(integer)
    reach = 20 if type is np.float32 else 45
    sizes = np.exp2(random.uniform(0, reach, count)).astype(integer)
    steps = np.concatenate([[0, 1, 2, 3], sizes])
    found: Array = np.add.outer(bits, np.concatenate([steps, -steps])).view(type).ravel()
    return found


def _pairs(type: type[np.floating[Any]], count: int, seed: int) -> tuple[Array, Array]:
    """Bases and exponents: pairs of special values, random ones, and those whose power is in range."""
    random = np.random.default_rng(seed)
    special = np.array(
        [*SPECIAL[:20], 2.0**53 + 2, -(2.0**53) - 2, 2.0**52 + 1, 7, 1.7e308, -1.7e308]
    )
    bases, exponents = (grid.ravel() for grid in np.meshgrid(special, special))
    chosen = random.choice(bases.size, min(bases.size, 4 * count), replace=False)
    size = 104 if type is np.float32 else 746
    with np.errstate(all="ignore"):  # casts of signaling NaNs warn, too
        patterns = sample(type, count, seed=seed).astype(np.float64)
        positive = np.abs(patterns[np.isfinite(patterns) & (patterns != 0)]).astype(np.float64)
        fitting = random.uniform(-size, size, positive.size) / np.log(positive)
        parts = [
            (bases[chosen], exponents[chosen]),
            (positive, fitting),
            (patterns, sample(type, count, seed=seed + 1).astype(np.float64)),
            (random.uniform(0.9, 1.1, count), random.uniform(-8000, 8000, count)),
            (random.uniform(0, 10, count), random.uniform(-3, 3, count)),
            (-random.integers(1, 30, count), random.integers(-12, 12, count)),
        ]
        x, y = (np.concatenate(side).astype(type) for side in zip(*parts, strict=True))
    return x, y


@dataclass(frozen=True)
class Truth:
    """Exact results, and what their errors may be measured against besides a unit in the last place."""

    exact: Sequence[mpmath.mpf]
    slack: Sequence[mpmath.mpf]


def truth(name: str, type: type[np.floating[Any]], *operands: Array) -> Truth:
    """The function by mpmath, 200 bits."""
    row = FUNCTIONS[name]
    unit = mpmath.mpf(float(np.finfo(type).eps))
    with mpmath.workprec(200):
        exact = [_value(row, *map(float, point)) for point in zip(*operands, strict=True)]
        slack = [mpmath.mpf(0)] * len(exact)
        for index, value in enumerate(exact):
            if row.slope is not None and abs(value) < NEAR_A_ROOT:
                x = mpmath.mpf(float(operands[0][index]))
                slack[index] = unit * abs(x * row.slope(x))
    return Truth(exact, slack)


def _value(row: Row, *operands: float) -> mpmath.mpf | float:
    x = operands[0]
    if row.operands == 2 and (x == 0 or not np.isfinite(operands).all()):
        with np.errstate(all="ignore"):
            # of two elements, as NumPy has shortcuts for one exponent
            bases, exponents = ([operand, operand] for operand in operands)
            return float(np.power(bases, exponents)[0])
    if np.isnan(x):
        return _NAN
    if x == 0 or np.isinf(x):
        before = np.signbit(x)
        return row.ends[(1 if before else 2) if x == 0 else 0 if before else 3]
    if row.truth in _OF_GAMMA and x < 0 and x == np.floor(x):
        return row.pole
    exact = row.truth(*map(mpmath.mpf, operands))
    return exact if isinstance(exact, mpmath.mpf) else _NAN


def ulps(result: Array, truth: Truth) -> Array:
    """The errors; infinite where NaN, or the sign of a zero that is one exactly, is wrong.

    An infinity counts as the power of two at which the floats end.
    """
    info = np.finfo(result.dtype)
    end = mpmath.ldexp(1, int(info.maxexp))
    least = mpmath.mpf(float(info.smallest_subnormal))
    out = np.empty(result.size)
    with mpmath.workprec(200):
        for index, (found, exact, slack) in enumerate(
            zip(result.tolist(), truth.exact, truth.slack, strict=True)
        ):
            if mpmath.isnan(exact) or np.isnan(found):
                out[index] = 0 if mpmath.isnan(exact) and np.isnan(found) else np.inf
                continue
            if isinstance(exact, float | int) and exact == 0 and found == 0:
                out[index] = 0 if np.signbit(exact) == np.signbit(found) else np.inf
                continue
            if found == 0 and 0 < abs(exact) < least and np.signbit(found) != (exact < 0):
                out[index] = np.inf
                continue
            exact = max(-end, min(end, mpmath.mpf(exact)))
            _, exponent = mpmath.frexp(exact)
            unit = max(least, mpmath.ldexp(1, min(exponent, int(info.maxexp)) - info.nmant - 1))
            error = abs(max(-end, min(end, mpmath.mpf(found))) - exact)
            out[index] = float(error / max(unit, slack))
    return out


def error_of_singles(result: Array, exact: Array, slack: Array | None = None) -> tuple[float, int]:
    """The greatest of `ulps` of f32, or units of slack, and its index, by exact results in double: as near as that."""
    end, least = 2.0**128, 2.0**-149
    with np.errstate(invalid="ignore"):  # casts of signaling NaNs warn
        found, wanted = result.astype(np.float64), np.clip(exact, -end, end)
    # the exponent's field, within that of f32, less the 23 bits behind it
    exponent = np.clip(wanted.view(np.int64) >> 52 & 2047, 1023 - 126, 1023 + 127) - 23
    unit = (exponent << 52).view(np.float64)
    unit = unit if slack is None else np.fmax(unit, slack)
    error = np.abs(np.clip(found, -end, end) - wanted) / unit
    broken = np.isnan(exact) != np.isnan(found)
    opposite = np.flatnonzero(np.signbit(exact) != np.signbit(found))
    zeros = (exact[opposite] == 0) | ((found[opposite] == 0) & (np.abs(exact[opposite]) < least))
    broken[opposite[zeros]] = True
    error = np.where(broken, np.inf, np.where(np.isnan(error), 0, error))
    worst = int(error.argmax())
    return float(error[worst]), worst


def errors_by_extended(result: Array, exact: Array, slack: Array | None = None) -> Array:
    """`ulps`, or units of slack, of finite results, where the exact one is known in more digits than `result` has."""
    info = np.finfo(result.dtype)
    _, exponent = np.frexp(exact)
    exponent = np.clip(exponent, info.minexp + 1, info.maxexp)
    unit = np.ldexp(exact.dtype.type(1), exponent - info.nmant - 1)
    unit = unit if slack is None else np.maximum(unit, slack)
    return np.asarray(np.abs(result.astype(exact.dtype) - exact) / unit)


def every_float(step: int) -> Array:
    """Every `step`th of all 2³² floats of 32 bits, and those of `SPECIAL`."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    with np.errstate(over="ignore"):
        return np.concatenate([SPECIAL.astype(np.float32), bits.view(np.float32)])
