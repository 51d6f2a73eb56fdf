"""The elementary functions: bounds on their errors, special values, the same bits on any number of lanes."""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from nnkit.jit.emit.math import FUNCTIONS
from nnkit.jit.emit.writer import FunctionWriter, Register, Scalar

from .accuracy import SPECIAL, exactly, sample, ulps
from .compiled import NUMPY, Array, elementwise

LANES = [1, 4, 8, 16]
FLOATS: list[Scalar] = ["float", "double"]
INTEGERS: list[Scalar] = ["i8", "i32", "i64"]

precise = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2e-19, reason="longdouble is no more precise than double"
)


@dataclass(frozen=True)
class Row:
    """A function, its reference in longdouble, the bounds in ulp of float and double, where to look."""

    reference: Callable[[Array], Array]
    float: float
    double: float
    ranges: tuple[tuple[float, float], ...] = ((-1, 1), (-20, 20), (-800, 800))


def logistic(x: Array) -> Array:
    exponential = np.exp(-np.abs(x))
    result: Array = np.where(x < 0, exponential, 1) / (1 + exponential)
    return result


ROWS = {
    "sqrt": Row(np.sqrt, 0.5001, 0.5001),
    "rsqrt": Row(lambda x: 1 / np.sqrt(x), 1.01, 1.01),
    "exp": Row(np.exp, 1.0, 1.0),
    "expm1": Row(np.expm1, 1.5, 1.85),
    "log": Row(np.log, 0.86, 0.86, ((0, 2), (0.6, 1.5), (0, 1000))),
    "log1p": Row(np.log1p, 1.5, 1.25, ((-1, 1), (-0.5, 1), (0, 1000))),
    "sinh": Row(np.sinh, 1.6, 1.6),
    "cosh": Row(np.cosh, 1.5, 1.5),
    "tanh": Row(np.tanh, 1.4, 1.4, ((-1, 1), (-10, 10), (-25, 25))),
    "logistic": Row(logistic, 2.3, 2.3),
    "asinh": Row(np.arcsinh, 0.501, 1.8, ((-1, 1), (-100, 100), (-1e10, 1e10))),
    "acosh": Row(np.arccosh, 0.501, 2.1, ((0.9, 2), (1, 1.01), (1, 1e10))),
    "atanh": Row(np.arctanh, 0.501, 1.8, ((-1, 1), (-0.2, 0.2), (0.99, 1.01))),
    "sin": Row(np.sin, 0.51, 0.8, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "cos": Row(np.cos, 0.51, 0.8, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "tan": Row(np.tan, 0.51, 1.9, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "asin": Row(np.arcsin, 0.501, 0.65, ((-1, 1), (0.49, 0.51), (0.9999, 1.0001))),
    "acos": Row(np.arccos, 0.501, 0.65, ((-1, 1), (0.49, 0.51), (0.9999, 1.0001))),
    "atan": Row(np.arctan, 0.501, 1.5, ((-1, 1), (-10, 10), (0.3, 0.5))),
}  # fmt: skip


@precise
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("name", ROWS)
def test_error_in_ulps(name: str, scalar: Scalar) -> None:
    row = ROWS[name]
    x = sample(scalar, 25000, *row.ranges)
    with np.errstate(all="ignore"):
        reference = row.reference(x.astype(np.longdouble))
    error = ulps(elementwise(FUNCTIONS[name], scalar, 16)(x), reference)
    worst = error.argmax()
    assert error[worst] <= getattr(row, scalar), f"{name}({x[worst]!r})"


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("name", [*ROWS, "erf", "erfc", "digamma", "sign", "round", "rint"])
def test_same_bits_on_any_number_of_lanes(name: str, scalar: Scalar) -> None:
    x = sample(scalar, 500, (-2, 2), (-20, 20))
    first, *others = (
        elementwise(FUNCTIONS[name], scalar, lanes, scalef=scalef)(x)
        for lanes in LANES
        for scalef in ((True, False) if lanes > 4 else (True,))
    )
    for other in others:
        np.testing.assert_array_equal(other, first)
        np.testing.assert_array_equal(np.signbit(other[other == 0]), np.signbit(first[first == 0]))


ERROR_FUNCTIONS = {
    "erf": (mpmath.erf, 1.1, 1.1, {np.inf: 1, -np.inf: -1}),
    "erfc": (mpmath.erfc, 0.501, 2.6, {np.inf: 0, -np.inf: 2}),
}


@precise
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("name", ERROR_FUNCTIONS)
def test_error_functions(name: str, scalar: Scalar) -> None:
    function, float_bound, double_bound, limits = ERROR_FUNCTIONS[name]
    x = sample(scalar, 700, (-1, 1), (-6, 6), (0.75, 1.2), (8, 28))
    x = x[~np.isfinite(x) | (np.abs(x) < 40)]
    regular = np.isfinite(x) & (x != 0)
    reference = np.where(x == 0, x if name == "erf" else x + 1, np.nan).astype(np.longdouble)
    reference[regular] = exactly(function)(x[regular])
    for place, limit in limits.items():
        reference[x == place] = limit
    error = ulps(elementwise(FUNCTIONS[name], scalar, 8)(x), reference)
    worst = error.argmax()
    assert error[worst] <= (float_bound if scalar == "float" else double_bound), x[worst]


@precise
@pytest.mark.parametrize("scalar", FLOATS)
def test_digamma(scalar: Scalar) -> None:
    x = sample(scalar, 800, (-5, 20), (-60, 0), (0, 1000), (0, 1e-3))
    x = x[np.isfinite(x) & (np.abs(x) > 1e-300) & (np.abs(x) < 1e12)]
    result = elementwise(FUNCTIONS["digamma"], scalar, 8)(x)
    poles = (x <= 0) & (x == np.rint(x))
    assert np.isnan(result[poles]).all()
    x, result = x[~poles], result[~poles]
    reference = exactly(mpmath.digamma)(x)
    with np.errstate(over="ignore"):
        unit = np.spacing(np.maximum(np.abs(reference), 1).astype(x.dtype))
    fits = np.isfinite(unit)
    error = np.abs(result[fits] - reference[fits]) / unit[fits]
    assert error.max() <= (1 if scalar == "float" else 10), x[fits][error.argmax()]


def test_digamma_at_the_ends() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0, -1e300])
    expected = [np.inf, *[np.nan] * 6]
    np.testing.assert_array_equal(elementwise(FUNCTIONS["digamma"], "double", 8)(x), expected)


@precise
@pytest.mark.parametrize("lanes", LANES)
def test_lgamma(lanes: int) -> None:
    x = sample("double", 300, (-5, 20), (0, 1000))
    x = x[np.isfinite(x) & (np.abs(x) > 1e-300) & (x > -20) & (x < 1e300)]
    x = x[(x > 0) | (x != np.rint(x))]
    reference = exactly(lambda value: mpmath.log(abs(mpmath.gamma(value))))(x[x < 1e6])
    result = elementwise(FUNCTIONS["lgamma"], "double", lanes)(x)[x < 1e6]
    unit = np.spacing(np.maximum(np.abs(reference), 1).astype(np.float64))
    assert (np.abs(result - reference) / unit).max() < 8
    ends = np.array([0.0, -0.0, -3.0, np.inf, -np.inf])
    np.testing.assert_array_equal(elementwise(FUNCTIONS["lgamma"], "double", lanes)(ends), np.inf)


def powers(scalar: Scalar) -> tuple[Array, Array]:
    """Bases and exponents: all pairs of special values, and random ones whose power is in range."""
    random = np.random.default_rng(3)
    type = NUMPY[scalar]
    special = np.array([*SPECIAL[:20], 2.0**53 + 2, -(2.0**53) - 2, 2.0**52 + 1, 7, 1e300, -1e300])
    with np.errstate(over="ignore", invalid="ignore"):
        bases, exponents = (grid.ravel() for grid in np.meshgrid(special, special))
        parts = [
            (bases, exponents),
            (np.abs(sample(scalar, 30000)), random.uniform(-2, 2, 30000 + SPECIAL.size)),
            (random.uniform(0.9, 1.1, 30000), random.uniform(-8000, 8000, 30000)),
            (random.uniform(0, 10, 30000), random.uniform(-3, 3, 30000)),
            (-random.integers(1, 30, 10000), random.integers(-12, 12, 10000)),
        ]
        x, y = (np.concatenate(side).astype(type) for side in zip(*parts, strict=True))
    return x, y


@precise
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_power(scalar: Scalar, lanes: int) -> None:
    x, y = powers(scalar)
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    error = ulps(elementwise(FUNCTIONS["power"], scalar, lanes, operands=2)(x, y), reference)
    worst = error.argmax()
    assert error[worst] <= (0.501 if scalar == "float" else 1.2), (x[worst], y[worst])


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_integer_power(scalar: Scalar, lanes: int) -> None:
    x, y = (grid.ravel().astype(NUMPY[scalar]) for grid in np.meshgrid(range(-5, 6), range(-4, 9)))
    bits = 8 * x.itemsize

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return int(1 / base**-exponent) if base else 0
        return (base**exponent + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    expected = [power(int(base), int(exponent)) for base, exponent in zip(x, y, strict=True)]
    result = elementwise(FUNCTIONS["power"], scalar, lanes, operands=2)(x, y)
    np.testing.assert_array_equal(result, np.array(expected, x.dtype))


def quotient_rounded(u: int, v: int, *, down: bool) -> int:
    if v == 0:
        return 0
    return u // v if down else abs(u) // abs(v) * (1 if (u < 0) == (v < 0) else -1)


INTEGER_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "divide": lambda u, v: quotient_rounded(u, v, down=False),
    "truncateDivide": lambda u, v: quotient_rounded(u, v, down=False),
    "floorDivide": lambda u, v: quotient_rounded(u, v, down=True),
    "modulo": lambda u, v: u % v if v else 0,
}


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", INTEGER_DIVISIONS)
def test_integer_division(name: str, lanes: int, scalar: Scalar) -> None:
    info = np.iinfo(NUMPY[scalar])  # type: ignore[arg-type]
    ends = [
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        0,
        1,
        -1,
        2,
        -2,
        3,
        -3,
        7,
        -7,
        100,
        -100,
    ]
    random = np.random.default_rng(5).integers(info.min, info.max, (2, 400), endpoint=True)
    u, v = (grid.ravel() for grid in np.meshgrid(ends, ends))
    u = np.concatenate([u, random[0], random[0]]).astype(NUMPY[scalar])
    v = np.concatenate([v, random[1], random[1] >> info.bits // 2]).astype(NUMPY[scalar])
    modulus = 2**info.bits
    expected = [
        (INTEGER_DIVISIONS[name](int(a), int(b)) - info.min) % modulus + info.min
        for a, b in zip(u, v, strict=True)
    ]
    result = elementwise(FUNCTIONS[name], scalar, lanes, operands=2)(u, v)
    np.testing.assert_array_equal(result, np.array(expected, u.dtype))


FLOAT_DIVISIONS: dict[str, Callable[[Array, Array], Array]] = {
    "divide": np.divide,
    "truncateDivide": lambda u, v: np.trunc(u / v),
    "floorDivide": lambda u, v: np.floor(u / v),
    "modulo": np.remainder,
}


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", FLOAT_DIVISIONS)
def test_float_division(name: str, lanes: int, scalar: Scalar) -> None:
    u, v = (grid.ravel() for grid in np.meshgrid(sample(scalar, 0), sample(scalar, 0)))
    near = sample(scalar, 2000, (-100, 100), (0, 1e7))
    whole = np.random.default_rng(2).integers(-50, 50, near.size).astype(near.dtype)
    with np.errstate(all="ignore"):
        u = np.concatenate([u, near, near, whole * near, whole])
        v = np.concatenate([v, near[::-1], whole / 8, near, np.roll(whole, 1)])
        expected = FLOAT_DIVISIONS[name](u, v)
    result = elementwise(FUNCTIONS[name], scalar, lanes, operands=2)(u, v)
    np.testing.assert_array_equal(result, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def round_half_away(x: Array) -> Array:
    whole: Array = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)


ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": round_half_away,
    "rint": np.rint,
    "sign": np.sign,
    "abs": np.abs,
    "negate": np.negative,
    "square": np.square,
}


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", ROUNDINGS)
def test_rounding(name: str, lanes: int, scalar: Scalar) -> None:
    x = sample(scalar, 5000, (-4, 4), (-1e7, 1e7))
    x = np.concatenate([x, np.arange(-20, 20).astype(x.dtype) / 4])
    with np.errstate(all="ignore"):
        expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(elementwise(FUNCTIONS[name], scalar, lanes)(x), expected)


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("name", ["sign", "abs", "negate", "square"])
def test_integer_functions(name: str, scalar: Scalar) -> None:
    info = np.iinfo(NUMPY[scalar])  # type: ignore[arg-type]
    x = np.array([info.min, info.max, 0, 1, -1, 5, -7], NUMPY[scalar])
    expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(elementwise(FUNCTIONS[name], scalar, 4)(x), expected)


@pytest.mark.parametrize("scalar", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_binary(name: str, scalar: Scalar) -> None:
    if scalar in FLOATS:
        values = sample(scalar, 0)
    else:
        info = np.iinfo(NUMPY[scalar])  # type: ignore[arg-type]
        values = np.array([info.min, info.max, 0, 1, -1, 5, -7], NUMPY[scalar])
    u, v = (grid.ravel() for grid in np.meshgrid(values, values))
    reference = {"min": np.minimum, "max": np.maximum}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        expected = reference(u, v)
    np.testing.assert_array_equal(
        elementwise(FUNCTIONS[name], scalar, 4, operands=2)(u, v), expected
    )


# Random123 1.14, tests/kat_vectors: threefry2x32, 20 rounds: counter, key, result, in words.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("lanes", LANES)
def test_threefry_known_answers(lanes: int) -> None:
    counters, keys, expected = (
        np.array([high << 32 | low for high, low in column], np.uint64).view(np.int64)
        for column in zip(*KNOWN_ANSWERS, strict=True)
    )
    result = elementwise(FUNCTIONS["threefry"], "i64", lanes, operands=2)(keys, counters)
    np.testing.assert_array_equal(result, expected)


def test_scalars_and_vectors_share_a_function() -> None:
    """Blocks that an emitter writes leave the writer in a block where its caller can go on."""

    def emit(w: FunctionWriter, x: Register) -> Register:
        once = FUNCTIONS["sin"](w, x)
        return FUNCTIONS["modulo"](w, FUNCTIONS["lgamma"](w, once), FUNCTIONS["cos"](w, x))

    x = np.linspace(1, 3, 64)
    with np.errstate(all="ignore"):
        inner = elementwise(FUNCTIONS["lgamma"], "double", 8)(np.sin(x))
    np.testing.assert_allclose(
        elementwise(emit, "double", 8)(x), np.remainder(inner, np.cos(x)), rtol=1e-9
    )
