"""Arithmetic progressions: what integers are known to be that are computed of an index by additions and products.

Indices often are: those of every row, of rows from the last to the first, of one in three.  Reading and writing there
is a movement, which vectors do, and fusion sees through.

Source: Bachmann, Wang & Zima 1994, Chains of recurrences: a method to expedite the evaluation of closed-form functions
(those of one step; scalar evolution in LLVM).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from ..ir.instruction import Emitter, Value
from ..types import DType, TensorType, scalar
from .arithmetic import Add, Multiply, Negate, Subtract
from .casting import DataTypeCast
from .indexing import Iota
from .literal import constant, literal_of, number_of

Progression: TypeAlias = range
"""The numbers in order; it may descend."""

NOTHING_KNOWN: Final[Mapping[Value, Progression]] = MappingProxyType({})

_Change: TypeAlias = Callable[[Progression], Progression]


def progression_of(
    x: Value, known: Mapping[Value, Progression] = NOTHING_KNOWN
) -> Progression | None:
    """The numbers that a vector of integers is known to be, or those that a scalar is one after the other.

    A scalar is so where it is computed of one that is `known`, as the index of a loop; a literal is one number.
    None where nothing is known, or there is no number, or one that does not fit the type.
    """
    changes: list[tuple[Value, _Change]] = []
    while (numbers := known.get(x) or _first(x)) is None:
        found = _change(x)
        if found is None:
            return None
        changes.append((x, found[1]))
        x = found[0]
    for made, change in reversed(changes):
        numbers = change(numbers)
        if not numbers or not _fits(numbers, made.tensor.dtype):
            return None
        # a number that is broadcast is no progression
        if made.tensor.shape != x.tensor.shape:
            return None
    return numbers


def emit_progression(b: Emitter, numbers: Progression, dtype: DType) -> Value:
    """A vector of these numbers."""
    count = b.emit(Iota((len(numbers),), 0, dtype))
    first = constant(b, scalar(dtype), numbers.start)
    step = numbers.step if len(numbers) > 1 else 1
    if step == -1:
        return b.emit(Subtract(), first, count)
    if step != 1:
        count = b.emit(Multiply(), count, constant(b, scalar(dtype), step))
    return b.emit(Add(), first, count) if numbers.start else count


def _first(x: Value) -> Progression | None:
    """The numbers of a literal, or an iota."""
    type = x.type
    if not isinstance(type, TensorType) or type.rank > 1 or not type.dtype.is_integer:
        return None
    if isinstance(x.op, Iota):
        counted = range(type.size)
        return counted if counted and _fits(counted, type.dtype) else None
    literal = literal_of(x)
    if literal is None or not type.size or (literal.is_splat and type.size > 1):
        return None
    elements = np.atleast_1d(literal.elements())
    first, last = int(elements[0]), int(elements[-1])
    step = int(elements[1]) - first if len(elements) > 1 else 1
    # the last one is where it should be, so that none of the sums overflows
    if step == 0 or last - first != step * (len(elements) - 1):
        return None
    if (np.diff(elements) != step).any():
        return None
    return range(first, last + (1 if step > 0 else -1), step)


def _change(x: Value) -> tuple[Value, _Change] | None:
    """The operand that an integer is computed of besides a literal, and how its numbers change."""
    if x.producer is None or not isinstance(x.type, TensorType) or not x.type.dtype.is_integer:
        return None
    operands = x.producer.operands
    match x.op:
        case Negate():
            return operands[0], lambda r: _scaled(r, -1)
        case DataTypeCast() if operands[0].tensor.dtype.is_integer:
            return operands[0], lambda r: r
        case Add() | Multiply() | Subtract():
            pass
        case _:
            return None
    left, right = (number_of(operand) for operand in operands)
    if (left is None) == (right is None):
        return None
    by, other = (right, operands[0]) if left is None else (left, operands[1])
    match x.op:
        case Add():
            return other, lambda r: _shifted(r, by)
        case Multiply():
            return other, lambda r: _scaled(r, by)
        case _ if left is None:
            return other, lambda r: _shifted(r, -by)
        case _:
            return other, lambda r: _shifted(_scaled(r, -1), by)


def _shifted(numbers: Progression, by: int) -> Progression:
    return range(numbers.start + by, numbers.stop + by, numbers.step)


def _scaled(numbers: Progression, by: int) -> Progression:
    """Multiplied by a number; nothing by 0, which makes all of them one."""
    return range(numbers.start * by, numbers.stop * by, numbers.step * by) if by else range(0)


def _fits(numbers: Progression, dtype: DType) -> bool:
    """Whether a type has all of the numbers, and their step, which may be larger than any of them."""
    limits = np.iinfo(dtype.numpy)
    needed = (numbers[0], numbers[-1], numbers.step if len(numbers) > 1 else 0)
    return int(limits.min) <= min(needed) and max(needed) <= int(limits.max)
