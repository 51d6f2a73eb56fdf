"""Arithmetic: samples for the laws, then integers at their ends and derivatives at kinks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nnkit.core.errors import DTypeError
from nnkit.core.ir import Op
from nnkit.core.ops import (
    Abs,
    Add,
    Divide,
    FloorDivide,
    Maximum,
    Minimum,
    Modulo,
    Multiply,
    Negate,
    Relu,
    Sign,
    Square,
    StrongMultiply,
    Subtract,
    TruncateDivide,
)
from nnkit.core.types import DTYPES, Array

from .running import gradient, result_of
from .samples import SPECIAL, ErrorSample, References, Sample, boolean, each, f32, f64, i32, i64

UNARY: References = [
    (Negate(), np.negative),
    (Abs(), np.abs),
    (Sign(), np.sign),
    (Square(), np.square),
    (Relu(), lambda x: np.where(x <= 0, 0, x)),
]
QUOTIENTS: References = [
    (Divide(), np.divide),
    (FloorDivide(), lambda u, v: np.floor(u / v)),
    (TruncateDivide(), lambda u, v: np.trunc(u / v)),
    (Modulo(), np.mod),
]
BINARY: References = [
    (Add(), np.add),
    (Subtract(), np.subtract),
    (Multiply(), np.multiply),
    (Minimum(), np.minimum),
    (Maximum(), np.maximum),
]
SHAPES = [
    (f64(), f64()),
    (f64(3, 4), f64(3, 4)),
    (f64(2, 3, 4), f64(4)),
    (f64(3, 1), f64(1, 4)),
    (f64(2, 0), f64(2, 0)),
    (f64(1), f64(1)),
]
INTEGER_QUOTIENTS: References = [
    (Divide(), np.divide),
    (FloorDivide(), lambda u, v: np.floor(u / v)),
    (TruncateDivide(), lambda u, v: np.trunc(u / v)),
    (Modulo(), np.mod),
]


def _strong_product(u: Array, v: Array) -> Array:
    return np.where((u == 0) | (v == 0), 0, u * v)


SAMPLES = [
    *(Sample(op, (x,), numpy=f) for op, f in UNARY for x in (f64(), f64(3, 4), i32(5))),
    *(Sample(op, types, numpy=f) for op, f in BINARY for types in SHAPES),
    *(Sample(op, types, low=0.4, numpy=f) for op, f in QUOTIENTS for types in SHAPES),
    *(Sample(op, (i64(4, 3), i64(3)), numpy=f) for op, f in BINARY),
    *each([op for op, _ in BINARY + QUOTIENTS], i32(30), i32(30)),
    *(
        Sample(
            op, (f64(7, 1), f64(7)), (np.reshape(SPECIAL, (7, 1)), SPECIAL), numpy=f, smooth=False
        )
        for op, f in BINARY + QUOTIENTS
    ),
    *(Sample(op, (f64(7),), (SPECIAL,), numpy=f, smooth=False) for op, f in UNARY),
    *(Sample(StrongMultiply(), types, numpy=_strong_product) for types in SHAPES),
    Sample(
        StrongMultiply(),
        (f64(7, 1), f64(7)),
        (np.reshape(SPECIAL, (7, 1)), SPECIAL),
        numpy=_strong_product,
        smooth=False,
    ),
]
ERRORS = [
    ErrorSample(
        Add(), (f64(2, 3), f64(2)), "cannot add f64[2, 3] and f64[2]: extents 3 and 2 differ"
    ),
    ErrorSample(Multiply(), (f64(2), f32(2)), "element types f64 and f32 differ", DTypeError),
    ErrorSample(
        StrongMultiply(), (i32(), i32()), "strongMultiply takes float elements", DTypeError
    ),
    ErrorSample(Negate(), (boolean(2),), "negate takes float or integer elements", DTypeError),
]


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("op", [Divide(), TruncateDivide(), FloorDivide(), Modulo()], ids=str)
def test_integer_division_never_fails(op: Op, name: str) -> None:
    dtype = DTYPES[name].numpy
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, -7, -1, 0, 1, 7, info.max], dtype)
    u, v = (grid.ravel() for grid in np.meshgrid(ends, ends))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = op.evaluate(u, v)
    for x, y, found in zip(u.tolist(), v.tolist(), result.tolist(), strict=True):
        quotient = x // y if y else 0
        if not isinstance(op, FloorDivide | Modulo) and y:
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        expected = (x % y if y else 0) if isinstance(op, Modulo) else quotient
        assert found == np.asarray(expected).astype(dtype).item(), (x, y)


def test_integers_wrap_around() -> None:
    least, one = np.array([-(2**31)], np.int32), np.array([1], np.int32)
    assert Subtract().evaluate(least, one).tolist() == [2**31 - 1]
    assert Negate().evaluate(least).tolist() == [-(2**31)]
    assert Abs().evaluate(least).tolist() == [-(2**31)]
    assert result_of(Multiply(), [i32(1), i32(1)], [least, 2 * one]).tolist() == [0]


def test_derivatives_at_kinks() -> None:
    assert gradient(Abs(), 0.0) == [0.0]
    assert gradient(Sign(), 0.0) == gradient(Relu(), 0.0) == [0.0]
    assert gradient(Maximum(), 2.0, 2.0) == gradient(Minimum(), 2.0, 2.0) == [0.5, 0.5]
    assert gradient(Maximum(), 2.0, 1.0) == gradient(Minimum(), 1.0, 2.0) == [1.0, 0.0]
