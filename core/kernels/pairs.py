"""Sums as pairs of numbers: what was summed, and what rounding has cut off from it."""

from __future__ import annotations

from ..ir.instruction import Value
from ..ops.arithmetic import Add, Subtract
from ..ops.comparison import Equal, LessThan, Or, Select
from ..ops.literal import splat
from ..types import BOOL
from .build import KernelBuilder


def add_compensated(build: KernelBuilder, total: Value, rest: Value, x: Value) -> list[Value]:
    """total + rest + x as such a pair again, what is cut off being less than half a unit of the sum.

    Source: Knuth, TAOCP 2, 4.2.2; Dekker 1971, "A floating-point technique for extending the available precision",
    add2.
    """
    following, cut = two_sum(build, total, x)
    return normalized(build, following, _add(build, cut, rest))


def two_sum(build: KernelBuilder, total: Value, x: Value) -> tuple[Value, Value]:
    """A sum, and what rounding cuts off from it: Knuth's TwoSum."""
    following = _add(build, total, x)
    part = _subtract(build, following, total)
    cut = _subtract(build, total, _subtract(build, following, part))
    return following, _add(build, cut, _subtract(build, x, part))


def normalized(build: KernelBuilder, total: Value, rest: Value) -> list[Value]:
    """The same sum, with what fits it moved from the rest to the total."""
    following = corrected(build, total, rest)
    return [following, _subtract(build, rest, _subtract(build, following, total))]


def add_in_excess(
    build: KernelBuilder, total: Value, excess: Value, x: Value
) -> tuple[Value, Value]:
    """total − excess + x, and what that has too much: the sum alone is right to 2 u · Σ|x|, however long it gets.

    The excess of a sum that is zero is zero, and that of one that is not finite does not count, whatever `excess`
    is: memory for it need not be filled.

    Source: Kahan 1965, "Further remarks on reducing truncation errors"; Higham 2002, §4.3.
    """
    type = total.tensor
    bools = type.with_dtype(BOOL)
    doubled = _add(build, total, total)
    less, more = [
        build.emit_typed(LessThan(), bools, *pair) for pair in ((total, doubled), (doubled, total))
    ]
    counts = build.emit_typed(Or(), bools, less, more)  # not zero, no infinity, no NaN
    zero = build.emit(splat(type, 0))
    excess = build.emit_typed(Select(), type, excess, zero, counts)
    y = _subtract(build, x, excess)
    following = _add(build, total, y)
    return following, _subtract(build, _subtract(build, following, total), y)


def corrected(build: KernelBuilder, total: Value, rest: Value) -> Value:
    """A sum with what rounding had cut off from it; the sum alone where that is no finite number."""
    type = total.tensor
    zero = build.emit(splat(type, 0))
    difference = _subtract(build, rest, rest)
    is_finite = build.emit_typed(Equal(), type.with_dtype(BOOL), difference, zero)
    return build.emit_typed(Select(), type, _add(build, total, rest), total, is_finite)


def _add(build: KernelBuilder, x: Value, y: Value) -> Value:
    return build.emit_typed(Add(), x.tensor, x, y)


def _subtract(build: KernelBuilder, x: Value, y: Value) -> Value:
    return build.emit_typed(Subtract(), x.tensor, x, y)
