"""Comparisons, logic and select: samples for the laws, then NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nnkit.core.autodiff.rules import check_differentiable
from nnkit.core.errors import DifferentiationError, DTypeError
from nnkit.core.ir import Builder
from nnkit.core.ops import (
    And,
    Equal,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqual,
    Or,
    Select,
)

from .running import result_of
from .samples import SPECIAL, ErrorSample, Sample, boolean, f32, f64, i32, i64

COMPARISONS = [
    (LessThan(), np.less),
    (LessThanOrEqual(), np.less_equal),
    (GreaterThan(), np.greater),
    (GreaterThanOrEqual(), np.greater_equal),
    (Equal(), np.equal),
    (NotEqual(), np.not_equal),
]
LOGIC = [(And(), np.logical_and), (Or(), np.logical_or)]


def _where(x: object, y: object, condition: object) -> object:
    return np.where(condition, x, y)  # type: ignore[call-overload]


SAMPLES = [
    *(
        Sample(op, types, numpy=f)
        for op, f in COMPARISONS
        for types in ((f64(), f64()), (f64(2, 3), f64(3)), (i32(2, 1), i32(9)), (f64(0), f64(0)))
    ),
    *(
        Sample(op, (f64(7, 1), f64(7)), (np.reshape(SPECIAL, (7, 1)), SPECIAL), numpy=f)
        for op, f in COMPARISONS
    ),
    *(Sample(op, (boolean(8), boolean(8)), numpy=f) for op, f in [*LOGIC, *COMPARISONS[4:]]),
    *(Sample(op, (boolean(2, 1), boolean(3)), numpy=f) for op, f in LOGIC),
    *(Sample(Not(), (x,), numpy=np.logical_not) for x in (boolean(), boolean(2, 3))),
    *(
        Sample(Select(), types, numpy=_where)
        for types in (
            (f64(), f64(), boolean()),
            (f64(3, 4), f64(3, 4), boolean(3, 4)),
            (f64(), f64(4), boolean(3, 1)),
            (f64(2, 3), f64(1, 1), boolean()),
            (i64(3), i64(3), boolean(3)),
            (boolean(3), boolean(3), boolean(3)),
            (f64(0), f64(0), boolean(1)),
        )
    ),
]
ERRORS = [
    ErrorSample(
        LessThan(), (boolean(2), boolean(2)), "takes float or integer elements", DTypeError
    ),
    ErrorSample(
        Equal(),
        (f64(2), f32(2)),
        "cannot compare f64[2] and f32[2]: element types f64 and f32 differ",
        DTypeError,
    ),
    ErrorSample(And(), (i32(2), i32(2)), "and takes boolean elements, not i32", DTypeError),
    ErrorSample(Or(), (boolean(2), f32(2)), "or takes boolean elements, not f32", DTypeError),
    ErrorSample(
        Select(),
        (f64(2), f64(2), f64(2)),
        "the condition of a select is boolean, not f64[2]",
        DTypeError,
    ),
    ErrorSample(
        Select(), (f64(2), i32(2), boolean(2)), "element types f64 and i32 differ", DTypeError
    ),
    ErrorSample(Select(), (f64(2), f64(2), boolean(3)), "cannot select from f64[2]"),
]


def test_select_keeps_the_nan_of_the_other_operand_out() -> None:
    chosen = result_of(
        Select(),
        [f64(2), f64(2), boolean(2)],
        [np.array([1.0, math.nan]), np.array([math.nan, 2.0]), np.array([True, False])],
    )
    assert chosen.tolist() == [1.0, 2.0]


def test_comparisons_say_why_they_have_no_derivative() -> None:
    with pytest.raises(
        DifferentiationError, match="lessThan cannot be differentiated: a comparison"
    ):
        check_differentiable(LessThan())


def test_the_user_sees_errors_when_building() -> None:
    b = Builder()
    x = b.argument(f64(2))
    with pytest.raises(DTypeError, match="the condition of a select"):
        b.emit(Select(), x, x, x)
