"""Ranges have every number that is computed, and what follows of a zero or a bound does follow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.float_ranges import FloatRanges
from nnkit.core.ops import (
    Abs,
    Add,
    Cos,
    Erf,
    Exp,
    Multiply,
    Negate,
    Sin,
    Square,
    StrongMultiply,
    Subtract,
    Tanh,
    constant,
)
from nnkit.core.types import F32, F64, Array, DType, scalar

NUMBERS = [
    0.0,
    -0.0,
    1e-45,
    -3e-38,
    1e-20,
    -0.3,
    1.0,
    -7.0,
    1e15,
    -2e30,
    3.4e38,
    np.inf,
    -np.inf,
    np.nan,
]
UNARY = (Abs, Cos, Erf, Exp, Negate, Sin, Square, Tanh)
BINARY = (Add, Multiply, StrongMultiply, Subtract)


def bodies(dtype: DType, count: int) -> Iterator[list[tuple[Value, Array]]]:
    """Bodies of two arguments, with all that is computed of pairs of numbers."""
    random = np.random.default_rng(1)
    numbers = np.array(NUMBERS, dtype.numpy)
    given = [np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))]
    for _ in range(count):
        b = Builder()
        body = [(b.argument(scalar(dtype)), array) for array in given]
        for n in (0.5, -3.0, 1.0):
            body.append((constant(b, scalar(dtype), n), np.full_like(given[0], n)))
        for _ in range(8):
            arity = int(random.integers(1, 3))
            op = (UNARY if arity == 1 else BINARY)[random.integers(8 if arity == 1 else 4)]()
            chosen = [body[i] for i in random.integers(len(body), size=arity)]
            with np.errstate(all="ignore"):
                array = op.evaluate(*(x for _, x in chosen))
            body.append((b.emit(op, *(value for value, _ in chosen)), array))
        yield body


def test_ranges_have_what_is_computed_where_a_value_is_as_small_as_said() -> None:
    """Of 14² pairs of numbers those are kept where one of the values is zero, or finite."""
    asked = narrow = 0
    for dtype in (F32, F64):
        for body in bodies(dtype, 15):
            for value, array in body[5:]:
                for bound in (0.0, dtype.normal_range[1]):
                    kept = np.abs(array) <= bound
                    ranges = FloatRanges({value: bound})
                    for other, numbers in body:
                        found, seen = ranges.of(other), numbers[kept]
                        asked += 1
                        narrow += found.is_finite and other.op is None
                        assert found.nan or not np.isnan(seen).any()
                        seen = seen[~np.isnan(seen)].astype(np.float64)
                        assert ((found.low <= seen) & (seen <= found.high)).all()
    assert asked > 2_000 and narrow > 100


def test_what_is_known() -> None:
    b = Builder()
    x, g = b.argument(scalar(F32)), b.argument(scalar(F32))
    twice = b.emit(Multiply(), constant(b, scalar(F32), 2.0), x)
    bounded = b.emit(Subtract(), constant(b, scalar(F32), 1.0), b.emit(Square(), b.emit(Tanh(), x)))
    product = b.emit(Multiply(), x, g)
    assert not FloatRanges({}).of(bounded).is_finite  # NaN of NaN
    assert FloatRanges({twice: 0.0}).of(x).magnitude < 1e-44
    assert FloatRanges({product: 0.0}).of(g).is_finite
    assert not FloatRanges({product: 1.0}).of(b.emit(Multiply(), g, g)).is_finite
    slope = FloatRanges({x: F32.normal_range[1]}).of(bounded)
    assert slope.is_finite and -1e-5 < slope.low and slope.high < 1 + 1e-5


def test_long_chains_are_given_up() -> None:
    b = Builder()
    x = b.argument(scalar(F32))
    value = x
    for _ in range(2000):
        value = b.emit(Negate(), value)
    assert not FloatRanges({x: 1.0}).of(value).is_finite
    assert not FloatRanges({value: 0.0}).of(x).is_finite
