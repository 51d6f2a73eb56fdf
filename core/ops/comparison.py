"""Comparisons, logic and the choice by a condition.

Comparisons give bool and have no derivative; `Select` passes derivatives to the chosen operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..errors import DTypeError, InternalError
from ..ir.instruction import Emitter, Value
from ..types import BOOL, Array, DType, IntegerRange, Kind, KnownRanges, TensorType, same_dtype
from .forms import ADDITION, Elementwise, Partial, broadcast_operands, check_kind
from .formulas import number
from .literal import number_of


class Comparison(Elementwise):
    """A function of two operands to bool; false for a NaN, except that NaN is not equal to NaN."""

    verb: ClassVar[str] = "compare"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION
    not_differentiable: ClassVar[str] = "a comparison is constant between its jumps"
    changes_at: ClassVar[tuple[int, ...]] = ()
    """Integers x − y that differ in the result from the integer below; none if it is not about order."""

    def result_dtype(self, *dtypes: DType) -> DType:
        return BOOL

    def partials(self, b: Emitter, y: Value, *xs: Any, **_: Any) -> tuple[Partial, ...]:
        raise InternalError(f"{self.name} has no derivative: {self.not_differentiable}")


class Logic(Comparison):
    """A function of truth values."""

    accepts: ClassVar[tuple[Kind, ...]] = ("boolean",)
    verb: ClassVar[str] = "combine"
    not_differentiable: ClassVar[str] = "truth values have no derivative"

    def infer(self, *xs: TensorType) -> TensorType:
        for x in xs:
            check_kind(self.name, x, self.accepts)
        return super().infer(*xs)


class LessThan(Comparison):
    """x < y."""

    name: ClassVar[str] = "lessThan"
    syntax: ClassVar[str] = "lessThan {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.lt
    changes_at: ClassVar[tuple[int, ...]] = (0,)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(x < y)


class LessThanOrEqual(Comparison):
    """x ≤ y."""

    name: ClassVar[str] = "lessThanOrEqual"
    syntax: ClassVar[str] = "lessThanOrEqual {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.le
    changes_at: ClassVar[tuple[int, ...]] = (1,)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(x <= y)


class GreaterThan(Comparison):
    """x > y."""

    name: ClassVar[str] = "greaterThan"
    syntax: ClassVar[str] = "greaterThan {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.gt
    changes_at: ClassVar[tuple[int, ...]] = (1,)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(x > y)


class GreaterThanOrEqual(Comparison):
    """x ≥ y."""

    name: ClassVar[str] = "greaterThanOrEqual"
    syntax: ClassVar[str] = "greaterThanOrEqual {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.ge
    changes_at: ClassVar[tuple[int, ...]] = (0,)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(x >= y)


class Equal(Comparison):
    """x = y, also of truth values; −0 equals 0, NaN equals nothing."""

    name: ClassVar[str] = "equal"
    syntax: ClassVar[str] = "equal {x}, {y}"
    changes_at: ClassVar[tuple[int, ...]] = (0, 1)
    commutes: ClassVar[bool] = True
    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer", "boolean")

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        return _equal_range(ranges, 1)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(np.equal(x, y))


class NotEqual(Comparison):
    """x ≠ y, also of truth values; true when either is NaN."""

    name: ClassVar[str] = "notEqual"
    syntax: ClassVar[str] = "notEqual {x}, {y}"
    changes_at: ClassVar[tuple[int, ...]] = (0, 1)
    commutes: ClassVar[bool] = True
    accepts: ClassVar[tuple[Kind, ...]] = ("float", "integer", "boolean")

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        return _equal_range(ranges, 0)

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(np.not_equal(x, y))


def _equal_range(ranges: KnownRanges, same: int) -> IntegerRange | None:
    """The range of a comparison that is `same` of equal numbers: both are one number, or have none in common."""
    x, y = ranges
    if x is None or y is None:
        return None
    if x == y and x[0] == x[1]:
        return same, same
    return (1 - same, 1 - same) if x[1] < y[0] or y[1] < x[0] else None


class And(Logic):
    """x ∧ y."""

    name: ClassVar[str] = "and"
    syntax: ClassVar[str] = "and {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = min
    commutes: ClassVar[bool] = True

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(np.logical_and(x, y))


class Or(Logic):
    """x ∨ y."""

    name: ClassVar[str] = "or"
    syntax: ClassVar[str] = "or {x}, {y}"
    of_integers: ClassVar[Callable[..., int] | None] = max
    commutes: ClassVar[bool] = True

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(np.logical_or(x, y))


class Not(Logic):
    """¬x."""

    verb: ClassVar[str] = "invert"
    name: ClassVar[str] = "not"
    syntax: ClassVar[str] = "not {x}"
    of_integers: ClassVar[Callable[..., int] | None] = operator.not_

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.logical_not(x))


class Select(Elementwise):
    """x where the condition is true, y where it is false; all three broadcast.

    The operand that is not chosen has no influence: neither its NaN nor that of its derivative shows.
    """

    name: ClassVar[str] = "select"
    syntax: ClassVar[str] = "select {x}, {y} by {condition}"
    is_exact: ClassVar[bool] = True
    cost: ClassVar[int] = ADDITION

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        x, y, condition = ranges
        if condition in ((0, 0), (1, 1)):
            return x if condition == (1, 1) else y
        return (min(x[0], y[0]), max(x[1], y[1])) if x is not None and y is not None else None

    def infer(self, *xs: TensorType) -> TensorType:
        x, y, condition = xs
        dtype = same_dtype("select from", (x, y))
        if condition.dtype != BOOL:
            raise DTypeError(f"the condition of a select is boolean, not {condition.words}")
        return TensorType(broadcast_operands("select from", xs), dtype)

    def evaluate(self, x: Array, y: Array, condition: Array) -> Array:
        return np.where(condition, x, y)

    def partials(
        self, b: Emitter, y: Value, x: Value, other: Value, condition: Value
    ) -> tuple[Partial, ...]:
        one, zero = number(b, x, 1), number(b, x, 0)
        return b.emit(self, one, zero, condition), b.emit(self, zero, one, condition), None


def equal_to_number(condition: Value) -> tuple[Value, int] | None:
    """The integer and the number that `condition` says are equal, if that is what it says."""
    if not isinstance(condition.op, Equal) or condition.producer is None:
        return None
    x, y = condition.producer.operands
    known = number_of(y)
    return (x, known) if isinstance(known, int) else None
