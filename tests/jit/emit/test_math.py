"""The elementary functions: bounds on their errors, special values, the same bits on any number of lanes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from nnkit.core.ops import ALL
from nnkit.core.ops.transcendental import FloatFunction, FlushedExp
from nnkit.jit.emit.math import FUNCTIONS
from nnkit.jit.emit.writer import FunctionWriter, Register, ScalarName, llvm_type
from nnkit.jit.llvm import Engine, host_machine
from tests.accuracy import FUNCTIONS as ROWS
from tests.accuracy import error_of_singles, every_float, sample, samples, truth, ulps
from tests.rows import each

from .compiled import NUMPY, Array, elementwise

LANES = [1, 4, 8, 16]
FLOATS: list[ScalarName] = ["float", "double"]
INTEGERS: list[ScalarName] = ["i8", "i32", "i64"]
SCALARS: dict[type[np.floating[Any]], ScalarName] = {np.float32: "float", np.float64: "double"}

COUNT = settings().max_examples
"""Samples of each kind, of which there are five or more: a hundred, and thousands under the profile `fuzz`."""

with_and_without_fma = pytest.mark.parametrize("fma", [True, False], ids=["fma", "baseline"])


def wrapped(value: int, bits: int) -> int:
    """The two's complement number of so many bits."""
    half: int = 2 ** (bits - 1)
    return (value + half) % (2 * half) - half


def integers(scalar: ScalarName) -> Array:
    half: int = 2 ** (llvm_type(scalar).bits - 1)
    return np.array([-half, half - 1, 0, 1, -1, 5, -7], NUMPY[scalar])


def test_every_function_of_floats_has_a_row() -> None:
    functions = {op.name for op in ALL if issubclass(op, FloatFunction)}
    assert set(ROWS) == functions | {"logistic"}


@pytest.mark.parametrize("name", ROWS)
def test_bounds_are_those_of_the_language(name: str) -> None:
    assert ROWS[name].single <= 2
    assert ROWS[name].double <= 2


@pytest.mark.parametrize("type", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROWS)
def test_errors_of_functions(name: str, type: type[np.floating[Any]]) -> None:
    """Everywhere: of all exponents, near roots, poles and ends, and where one formula takes over from another."""
    row = ROWS[name]
    operands = samples(name, type, COUNT)
    exact = truth(name, type, *operands)
    for fma in (True, False):
        function = elementwise(
            FUNCTIONS[name], SCALARS[type], 8, operands=row.operands, fma=fma, scalef=fma
        )
        error = ulps(function(*operands), exact)
        worst = error.argmax()
        place = [operand[worst] for operand in operands]
        assert error[worst] <= row.bound(type), f"{name} of {place}, fma {fma}"


IN_DOUBLE: dict[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name) for name in ROWS if hasattr(np, name)},
    **{
        f"a{name}": getattr(np, f"arc{name}")
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))),
}
"""What is good to a few units of a double."""
STEP = 4099
"""A prime: all exponents, and mantissas of all kinds."""


@pytest.mark.parametrize("name", [name for name in ROWS if name != "power"])
def test_errors_of_functions_of_f32_at_a_million_floats(name: str) -> None:
    """By NumPy in double, or by the compiled function of doubles, whose errors have a test of their own."""
    x = every_float(STEP)
    in_double = IN_DOUBLE.get(name, elementwise(FUNCTIONS[name], "double", 8))
    with np.errstate(all="ignore"):
        exact = in_double(x.astype(np.float64))
    for fma in (True, False):
        result = elementwise(FUNCTIONS[name], "float", 16, fma=fma, scalef=fma)(x)
        error, worst = error_of_singles(result, exact)
        assert error <= ROWS[name].single, f"{name} of {x[worst]!r}, fma {fma}"


@with_and_without_fma
@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize(
    "name", [*(name for name in ROWS if name != "power"), "flushedExp", "sign", "round", "rint"]
)
def test_same_bits_on_any_number_of_lanes(name: str, scalar: ScalarName, fma: bool) -> None:
    x = sample(NUMPY[scalar], 500, (-2, 2), (-20, 20))
    first, *others = (
        elementwise(FUNCTIONS[name], scalar, lanes, scalef=scalef, fma=fma)(x)
        for lanes in LANES
        for scalef in ((True, False) if lanes > 4 else (True,))
    )
    for other in others:
        np.testing.assert_array_equal(other, first)
        np.testing.assert_array_equal(np.signbit(other[other == 0]), np.signbit(first[first == 0]))


@pytest.mark.parametrize("scalar", FLOATS)
def test_flushed_exponentials_are_exponentials_or_zero(scalar: ScalarName) -> None:
    """Also beside numbers from which none is formed, and of −∞ and the least floats."""
    type: Any = NUMPY[scalar]
    least = type(-80 if scalar == "float" else -700)
    ends = [least, np.nextafter(least, type(0)), np.nextafter(least, type(-np.inf))]
    x: Any = np.concatenate([sample(type, 500, (-2, 2), (-800, 720)), np.array(ends, type)])
    for scalef in (True, False):
        plain, flushed = (
            elementwise(FUNCTIONS[name], scalar, 8, scalef=scalef)(x)
            for name in ("exp", "flushedExp")
        )
        expected = np.where(x < least, type(0), plain)
        np.testing.assert_array_equal(flushed, expected)
        assert not np.signbit(flushed[flushed == 0]).any()
    with np.errstate(all="ignore"):
        exact = np.where(x < least, 0, np.exp(x.astype(np.float64))).astype(type)
    np.testing.assert_array_equal(FlushedExp().evaluate(x), exact)


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_integer_power(scalar: ScalarName, lanes: int) -> None:
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
def test_integer_division(name: str, lanes: int, scalar: ScalarName) -> None:
    bits = llvm_type(scalar).bits
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
@each("scalar", FLOATS)
@each("lanes", LANES)
@each("name", FLOAT_DIVISIONS)
def test_float_division(name: str, lanes: int, scalar: ScalarName, fma: bool) -> None:
    u, v = (
        grid.ravel() for grid in np.meshgrid(sample(NUMPY[scalar], 0), sample(NUMPY[scalar], 0))
    )
    near = sample(NUMPY[scalar], 2000, (-100, 100), (0, 1e7))
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


@each("scalar", FLOATS)
@each("lanes", LANES)
@each("name", ROUNDINGS)
def test_rounding(name: str, lanes: int, scalar: ScalarName) -> None:
    x = sample(NUMPY[scalar], 5000, (-4, 4), (-1e7, 1e7))
    x = np.concatenate([x, np.arange(-20, 20).astype(x.dtype) / 4])
    with np.errstate(all="ignore"):
        expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(elementwise(FUNCTIONS[name], scalar, lanes)(x), expected)


@pytest.mark.parametrize("scalar", INTEGERS)
@pytest.mark.parametrize("name", ["sign", "abs", "negate", "square"])
def test_integer_functions(name: str, scalar: ScalarName) -> None:
    x = integers(scalar)
    expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(elementwise(FUNCTIONS[name], scalar, 4)(x), expected)


@pytest.mark.parametrize("scalar", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_binary(name: str, scalar: ScalarName) -> None:
    if scalar in FLOATS:
        values = sample(NUMPY[scalar], 0)
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


@pytest.mark.skipif(not host_machine().triple.startswith("x86_64"), reason="CPUs of x86-64")
@pytest.mark.parametrize(("cpu", "fma"), [("haswell", True), ("x86-64", False)])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "erf", "erfc", "atan", "digamma"])
def test_older_cpus_give_the_same_bits(name: str, cpu: str, fma: bool) -> None:
    """Without AVX-512; and without fma, with the code that bounds are tested for on this machine."""
    features = "-avx512f" if fma else ""
    engine = Engine(replace(host_machine(), cpu=cpu, features=features, scalef=False, fma=fma))
    for scalar in FLOATS:
        x = sample(NUMPY[scalar], 300, (-2, 2), (-20, 20))
        expected = elementwise(FUNCTIONS[name], scalar, 4, fma=fma)(x)
        result = elementwise(FUNCTIONS[name], scalar, 4, scalef=False, fma=fma, engine=engine)(x)
        np.testing.assert_array_equal(result, expected)
