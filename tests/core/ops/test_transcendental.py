"""Transcendental functions: samples for the laws, then powers at their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from nnkit.core.errors import DTypeError
from nnkit.core.ops import ALL
from nnkit.core.ops.transcendental import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Exp,
    Expm1,
    FloatFunction,
    FlushedExp,
    Log,
    Log1p,
    Power,
    Rsqrt,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)
from nnkit.core.types import DTYPES
from tests.accuracy import FUNCTIONS as ROWS
from tests.accuracy import samples, truth, ulps

from .running import gradient
from .samples import SPECIAL, ErrorSample, References, Sample, boolean, f64, i32, i64

ANYWHERE: References = [
    (Exp(), np.exp), (Expm1(), np.expm1), (Sin(), np.sin), (Cos(), np.cos), (Atan(), np.arctan),
    (Sinh(), np.sinh), (Cosh(), np.cosh), (Tanh(), np.tanh), (Asinh(), np.arcsinh),
    (FlushedExp(), np.exp),
]  # fmt: skip
POSITIVE: References = [
    (Sqrt(), np.sqrt),
    (Rsqrt(), lambda x: 1 / np.sqrt(x)),
    (Log(), np.log),
    (Log1p(), np.log1p),
]
INSIDE: References = [
    (Asin(), np.arcsin),
    (Acos(), np.arccos),
    (Atanh(), np.arctanh),
    (Tan(), np.tan),
]
EVERY: References = [*ANYWHERE, *POSITIVE, *INSIDE, (Acosh(), np.arccosh)]
SHAPES = (f64(), f64(3, 4), f64(0), f64(1))

SAMPLES = [
    *(Sample(op, (x,), numpy=f) for op, f in ANYWHERE for x in SHAPES),
    *(Sample(op, (x,), low=0.5, high=3, numpy=f) for op, f in POSITIVE for x in SHAPES),
    *(Sample(op, (x,), low=-0.9, high=0.9, numpy=f) for op, f in INSIDE for x in SHAPES),
    *(Sample(Acosh(), (x,), low=1.2, high=4, numpy=np.arccosh) for x in SHAPES),
    *(
        Sample(Power(), types, low=0.3, high=3, numpy=np.power)
        for types in (
            (f64(), f64()), (f64(3, 4), f64(3, 4)), (f64(3, 4), f64()), (f64(2, 1), f64(3)),
        )
    ),
    Sample(Power(), (f64(7, 1), f64(7)), (np.reshape(SPECIAL, (7, 1)), SPECIAL), numpy=np.power, smooth=False),
    Sample(Power(), (i32(), i32()), (-3, 5), numpy=np.power),
    Sample(Power(), (i64(30), i64(30)), low=0, high=9, numpy=np.power),
    Sample(Power(), (i32(11, 1), i32(11))),
    *(
        Sample(op, (f64(7),), (SPECIAL,), numpy=f, smooth=False)
        for op, f in EVERY
    ),
]  # fmt: skip
FUNCTIONS_OF_FLOATS = [op() for op in ALL if issubclass(op, FloatFunction)]
COUNT = settings().max_examples // 5
"""Samples of each kind; some functions take 100 µs for one."""

ERRORS = [
    ErrorSample(Exp(), (i32(2),), "exp takes float elements, not i32", DTypeError),
    ErrorSample(
        Power(),
        (boolean(2), boolean(2)),
        "power takes float or integer elements, not bool",
        DTypeError,
    ),
    ErrorSample(Power(), (f64(2), i32(2)), "element types f64 and i32 differ", DTypeError),
]


@pytest.mark.parametrize("type", [np.float32, np.float64])
@pytest.mark.parametrize("op", FUNCTIONS_OF_FLOATS, ids=lambda op: op.name)
def test_errors_of_the_evaluator(op: FloatFunction, type: type[np.floating[Any]]) -> None:
    """Within the bounds of compiled code for f32; NumPy's f64 depends on the machine, within those of the language."""
    operands = samples(op.name, type, COUNT)
    errors = ulps(op.evaluate(*operands), truth(op.name, type, *operands))
    worst = errors.argmax()
    bound = ROWS[op.name].single if type is np.float32 else 3
    assert errors[worst] <= bound, [operand[worst] for operand in operands]


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64"])
def test_powers_of_integers(name: str) -> None:
    """Python's own powers wrapped around; negative ones are reciprocals rounded toward zero."""
    dtype = DTYPES[name].numpy
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 7, info.max], dtype)
    exponents = np.array([info.min, -8, -1, 0, 1, 2, 7, 8, 127, info.max], dtype)
    u, v = (grid.ravel() for grid in np.meshgrid(ends, exponents))
    result = Power().evaluate(u, v)
    assert result.dtype == dtype
    for x, y, found in zip(u.tolist(), v.tolist(), result.tolist(), strict=True):
        negative = 0 if abs(x) != 1 else x if y % 2 else 1
        wrapped = pow(x, y, 1 << info.bits) if y >= 0 else negative
        assert (found - wrapped) % (1 << info.bits) == 0, (x, y)


def test_derivatives_of_powers_at_zero() -> None:
    assert gradient(Power(), 0.0, 2.0) == [0.0, 0.0]
    assert gradient(Power(), 0.0, 1.0) == [1.0, 0.0]
    assert gradient(Power(), 0.0, 0.0) == [0.0, 0.0]
    assert gradient(Power(), 3.0, 0.0) == [0.0, pytest.approx(math.log(3.0))]


def test_derivative_of_a_power_of_a_negative_number() -> None:
    by_base, by_exponent = gradient(Power(), -2.0, 3.0)
    assert by_base == pytest.approx(12.0)
    assert math.isnan(by_exponent)


def test_derivatives_at_the_ends_of_the_domain() -> None:
    assert gradient(Sqrt(), 0.0) == [math.inf]
    assert gradient(Log(), 0.0) == [math.inf]
    assert gradient(Asin(), 1.0) == [math.inf]
    assert gradient(Acos(), 1.0) == [-math.inf]
    assert gradient(Atanh(), 1.0) == [math.inf]


def test_derivatives_keep_their_digits() -> None:
    assert gradient(Expm1(), -40.0) == [pytest.approx(math.exp(-40.0), rel=1e-14)]
    near = 1 - 2.0**-40
    assert gradient(Asin(), near) == [
        pytest.approx(1 / math.sqrt((1 - near) * (1 + near)), rel=1e-14)
    ]
