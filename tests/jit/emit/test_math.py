"""The elementary functions: bounds on their errors, special values, the same bits on any number of lanes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from nnkit.jit.emit.math import FUNCTIONS
from nnkit.jit.emit.writer import FunctionWriter, Register, Scalar, ltype
from nnkit.jit.llvm import Engine, host_target

from .accuracy import SPECIAL, exactly, sample, ulps
from .compiled import NUMPY, Array, elementwise

LANES = [1, 4, 8, 16]
FLOATS: list[Scalar] = ["float", "double"]
INTEGERS: list[Scalar] = ["i8", "i32", "i64"]

precise = pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > 2e-19), reason="longdouble is no more precise than double"
)

with_and_without_fma = pytest.mark.parametrize("fma", [True, False], ids=["fma", "baseline"])


@dataclass(frozen=True)
class Row:
    """A function, its reference in longdouble, the bounds in ulp of float and double, where to look.

    `baseline` are the bounds without fma, where they are larger.
    """

    reference: Callable[[Array], Array]
    single: float
    double: float
    ranges: tuple[tuple[float, float], ...] = ((-1, 1), (-20, 20), (-800, 800))
    baseline: tuple[float, float] | None = None

    def bound(self, scalar: Scalar, *, fma: bool) -> float:
        with_fma = self.single, self.double
        single, double = with_fma if fma or self.baseline is None else self.baseline
        return single if scalar == "float" else double


def wrapped(value: int, bits: int) -> int:
    """The two's complement number of so many bits."""
    half: int = 2 ** (bits - 1)
    return (value + half) % (2 * half) - half


def integers(scalar: Scalar) -> Array:
    half: int = 2 ** (ltype(scalar).bits - 1)
    return np.array([-half, half - 1, 0, 1, -1, 5, -7], NUMPY[scalar])


def logistic(x: Array) -> Array:
    exponential = np.exp(-np.abs(x))
    result: Array = np.where(x < 0, exponential, 1) / (1 + exponential)
    return result


ROWS = {
    "sqrt": Row(np.sqrt, 0.5001, 0.5001),
    "rsqrt": Row(lambda x: 1 / np.sqrt(x), 1.5, 1.5),
    "exp": Row(np.exp, 1.05, 1.0),
    "expm1": Row(np.expm1, 1.5, 1.85, baseline=(1.5, 1.95)),
    "log": Row(np.log, 0.87, 0.9, ((0, 2), (0.6, 1.5), (0, 1000)), baseline=(0.95, 0.92)),
    "log1p": Row(np.log1p, 1.5, 1.4, ((-1, 1), (-0.5, 1), (0, 1000)), baseline=(1.55, 1.4)),
    "sinh": Row(np.sinh, 1.65, 1.65),
    "cosh": Row(np.cosh, 1.5, 1.5),
    "tanh": Row(np.tanh, 1.4, 1.4, ((-1, 1), (-10, 10), (-25, 25))),
    "logistic": Row(logistic, 2.4, 2.4),
    "asinh": Row(np.arcsinh, 0.501, 1.8, ((-1, 1), (-100, 100), (-1e10, 1e10))),
    "acosh": Row(np.arccosh, 0.501, 1.85, ((0.9, 2), (1, 1.01), (1, 1e10))),
    "atanh": Row(np.arctanh, 0.501, 1.4, ((-1, 1), (-0.2, 0.2), (0.99, 1.01))),
    "sin": Row(np.sin, 0.51, 0.8, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "cos": Row(np.cos, 0.51, 0.8, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "tan": Row(np.tan, 0.51, 0.95, ((-1, 1), (-10, 10), (-2e9, 2e9))),
    "asin": Row(np.arcsin, 0.501, 0.65, ((-1, 1), (0.49, 0.51), (0.9999, 1.0001))),
    "acos": Row(np.arccos, 0.501, 0.65, ((-1, 1), (0.49, 0.51), (0.9999, 1.0001))),
    "atan": Row(np.arctan, 0.501, 1.9, ((-1, 1), (-10, 10), (0.3, 0.5))),
}  # fmt: skip


@precise
@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("name", ROWS)
def test_error_in_ulps(name: str, scalar: Scalar, fma: bool) -> None:
    row = ROWS[name]
    x = sample(scalar, 25000, *row.ranges)
    with np.errstate(all="ignore"):
        reference = row.reference(x.astype(np.longdouble))
    error = ulps(elementwise(FUNCTIONS[name], scalar, 16, fma=fma)(x), reference)
    worst = error.argmax()
    assert error[worst] <= row.bound(scalar, fma=fma), f"{name}({x[worst]!r})"


@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize(
    "name", [*ROWS, "erf", "erfc", "digamma", "trigamma", "sign", "round", "rint"]
)
def test_same_bits_on_any_number_of_lanes(name: str, scalar: Scalar, fma: bool) -> None:
    x = sample(scalar, 500, (-2, 2), (-20, 20))
    first, *others = (
        elementwise(FUNCTIONS[name], scalar, lanes, scalef=scalef, fma=fma)(x)
        for lanes in LANES
        for scalef in ((True, False) if lanes > 4 else (True,))
    )
    for other in others:
        np.testing.assert_array_equal(other, first)
        np.testing.assert_array_equal(np.signbit(other[other == 0]), np.signbit(first[first == 0]))


ERROR_FUNCTIONS = {
    "erf": (mpmath.erf, (1.1, 1.1), (1.3, 1.4), {np.inf: 1, -np.inf: -1}),
    "erfc": (mpmath.erfc, (0.501, 2.6), (0.501, 2.6), {np.inf: 0, -np.inf: 2}),
}
"""The reference, the bounds of float and double with fma and without, and the limits."""


@precise
@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("name", ERROR_FUNCTIONS)
def test_error_functions(name: str, scalar: Scalar, fma: bool) -> None:
    function, with_fma, baseline, limits = ERROR_FUNCTIONS[name]
    x = sample(scalar, 700, (-1, 1), (-6, 6), (0.75, 1.2), (8, 28))
    x = x[~np.isfinite(x) | (np.abs(x) < 40)]
    regular = np.isfinite(x) & (x != 0)
    at_zero = x if name == "erf" else np.ones_like(x)
    with np.errstate(invalid="ignore"):
        reference = np.where(x == 0, at_zero, np.nan).astype(np.longdouble)
    reference[regular] = exactly(function)(x[regular])
    for place, limit in limits.items():
        reference[x == place] = limit
    error = ulps(elementwise(FUNCTIONS[name], scalar, 8, fma=fma)(x), reference)
    worst = error.argmax()
    float_bound, double_bound = with_fma if fma else baseline
    assert error[worst] <= (float_bound if scalar == "float" else double_bound), x[worst]


@precise
@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize(("name", "order", "bound"), [("digamma", 0, 12), ("trigamma", 1, 9)])
def test_polygamma(name: str, order: int, bound: float, scalar: Scalar, fma: bool) -> None:
    x = sample(scalar, 800, (-5, 20), (-60, 0), (0, 1000), (0, 1e-3))
    x = x[np.isfinite(x) & (np.abs(x) > 1e-150) & (np.abs(x) < 1e4)]
    x = x[(x > 0) | (x != np.rint(x))]
    reference = exactly(lambda value: mpmath.polygamma(order, value))(x)
    with np.errstate(over="ignore"):
        unit = np.spacing(np.maximum(np.abs(reference), 1).astype(x.dtype))
        fits = np.isfinite(unit)
        result = elementwise(FUNCTIONS[name], scalar, 8, fma=fma)(x)
        error = np.abs(result[fits] - reference[fits]) / unit[fits]
    assert error.max() <= (0.51 if scalar == "float" else bound), x[fits][error.argmax()]


@pytest.mark.parametrize("scalar", FLOATS)
def test_polygamma_at_the_ends(scalar: Scalar) -> None:
    x = np.array([0.0, -0.0, -1.0, -7.0, np.inf, -np.inf, np.nan], NUMPY[scalar])
    inf, nan = np.inf, np.nan
    digamma = elementwise(FUNCTIONS["digamma"], scalar, 8)(x)
    np.testing.assert_array_equal(digamma, [-inf, inf, nan, nan, inf, nan, nan])
    trigamma = elementwise(FUNCTIONS["trigamma"], scalar, 8)(x)
    np.testing.assert_array_equal(trigamma, [inf, inf, inf, inf, 0, nan, nan])


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
@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_power(scalar: Scalar, lanes: int, fma: bool) -> None:
    x, y = powers(scalar)
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    result = elementwise(FUNCTIONS["power"], scalar, lanes, operands=2, fma=fma)(x, y)
    error = ulps(result, reference)
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
        return wrapped(base**exponent, bits)

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
    bits = ltype(scalar).bits
    greatest: int = 2 ** (bits - 1) - 1
    least = -greatest - 1
    ends = [least, least + 1, greatest, greatest - 1, 0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100]
    random = np.random.default_rng(5).integers(least, greatest, (2, 400), endpoint=True)
    u, v = (grid.ravel() for grid in np.meshgrid(ends, ends))
    u = np.concatenate([u, random[0], random[0]]).astype(NUMPY[scalar])
    v = np.concatenate([v, random[1], random[1] >> bits // 2]).astype(NUMPY[scalar])
    expected = [
        wrapped(INTEGER_DIVISIONS[name](int(a), int(b)), bits) for a, b in zip(u, v, strict=True)
    ]
    result = elementwise(FUNCTIONS[name], scalar, lanes, operands=2)(u, v)
    np.testing.assert_array_equal(result, np.array(expected, u.dtype))


FLOAT_DIVISIONS: dict[str, Callable[[Array, Array], Array]] = {
    "divide": np.divide,
    "truncateDivide": lambda u, v: np.trunc(u / v),
    "floorDivide": lambda u, v: np.floor(u / v),
    "modulo": np.remainder,
}


@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", FLOAT_DIVISIONS)
def test_float_division(name: str, lanes: int, scalar: Scalar, fma: bool) -> None:
    u, v = (grid.ravel() for grid in np.meshgrid(sample(scalar, 0), sample(scalar, 0)))
    near = sample(scalar, 2000, (-100, 100), (0, 1e7))
    whole = np.random.default_rng(2).integers(-50, 50, near.size).astype(near.dtype)
    with np.errstate(all="ignore"):
        u = np.concatenate([u, near, near, whole * near, whole])
        v = np.concatenate([v, near[::-1], whole / 8, near, np.roll(whole, 1)])
        expected = FLOAT_DIVISIONS[name](u, v)
    result = elementwise(FUNCTIONS[name], scalar, lanes, operands=2, fma=fma)(u, v)
    np.testing.assert_array_equal(result, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


def round_half_away(x: Array) -> Array:
    whole: Array = np.trunc(x)
    away: Array = np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)
    return np.asarray(whole + away)


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
    x = integers(scalar)
    expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(elementwise(FUNCTIONS[name], scalar, 4)(x), expected)


@pytest.mark.parametrize("scalar", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_binary(name: str, scalar: Scalar) -> None:
    if scalar in FLOATS:
        values = sample(scalar, 0)
    else:
        values = integers(scalar)
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


@precise
@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="CPUs of x86-64")
@pytest.mark.parametrize(("cpu", "fma"), [("haswell", True), ("x86-64", False)])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "erf", "atan", "digamma"])
def test_older_cpus_give_the_same_bits(name: str, cpu: str, fma: bool) -> None:
    """Without AVX-512; and without fma, with the code that bounds are tested for on this machine."""
    features = "-avx512f" if fma else ""
    engine = Engine(replace(host_target(), cpu=cpu, features=features, scalef=False, fma=fma))
    for scalar in FLOATS:
        x = sample(scalar, 300, (-2, 2), (-20, 20))
        expected = elementwise(FUNCTIONS[name], scalar, 4, fma=fma)(x)
        result = elementwise(FUNCTIONS[name], scalar, 4, scalef=False, fma=fma, engine=engine)(x)
        np.testing.assert_array_equal(result, expected)
