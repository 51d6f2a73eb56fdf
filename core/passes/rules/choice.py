"""Laws of comparison, logic and select."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import (
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
from ...ops.comparison import Comparison
from ...ops.reduction import broadcast_to
from ..rewrite import Laws
from .patterns import filled, inputs, made_by, number


def simplify_comparison(b: Builder, instruction: Instruction) -> Value | None:
    x, y = instruction.operands
    # x = x, x ≤ x and x ≥ x are true, the others false; not of floats, where x may be NaN
    if x is not y or x.tensor.dtype.is_float:
        return None
    is_true = isinstance(instruction.op, Equal | LessThanOrEqual | GreaterThanOrEqual)
    return filled(b, instruction.result.tensor, is_true)


def simplify_equal(b: Builder, instruction: Instruction) -> Value | None:
    # (x = true) = x, (x = false) = ¬x
    return _compare_to_truth(b, instruction, when=True)


def simplify_not_equal(b: Builder, instruction: Instruction) -> Value | None:
    # (x ≠ false) = x, (x ≠ true) = ¬x
    return _compare_to_truth(b, instruction, when=False)


def _compare_to_truth(b: Builder, instruction: Instruction, *, when: bool) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    for x, truth in ((u, number(v)), (v, number(u))):
        if isinstance(truth, bool):
            same = broadcast_to(b, x, type.shape)
            return same if truth is when else b.emit(Not(), same)
    return None


def simplify_and(b: Builder, instruction: Instruction) -> Value | None:
    # x ∧ true = x, x ∧ false = false
    return _absorb(b, instruction, neutral=True)


def simplify_or(b: Builder, instruction: Instruction) -> Value | None:
    # x ∨ false = x, x ∨ true = true
    return _absorb(b, instruction, neutral=False)


def _absorb(b: Builder, instruction: Instruction, *, neutral: bool) -> Value | None:
    u, v = instruction.operands
    type = instruction.result.tensor
    # x ∧ x = x ∨ x = x
    if u is v:
        return u
    for x, truth in ((u, number(v)), (v, number(u))):
        if truth is not None:
            return (
                broadcast_to(b, x, type.shape) if truth == neutral else filled(b, type, not neutral)
            )
    return None


def simplify_not(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    match x.op, inputs(x):
        # ¬¬x = x
        case Not(), (y,):
            return y
        # ¬(x = y) = x ≠ y
        case Equal(), operands:
            return b.emit(NotEqual(), *operands)
        # ¬(x ≠ y) = x = y
        case NotEqual(), operands:
            return b.emit(Equal(), *operands)
        # ¬(x < y) = x ≥ y, and so on; not of floats, where both are false for NaN
        case Comparison() as comparison, (y, z) if y.tensor.dtype.is_integer:
            return b.emit(_OPPOSITES[type(comparison)], y, z)
        case _:
            return None


def simplify_select(b: Builder, instruction: Instruction) -> Value | None:
    x, y, condition = instruction.operands
    type = instruction.result.tensor
    # select x, x by c = x
    if x is y:
        return broadcast_to(b, x, type.shape)
    match number(condition), made_by(condition, Not):
        # select x, y by true = x
        case True, _:
            return broadcast_to(b, x, type.shape)
        # select x, y by false = y
        case False, _:
            return broadcast_to(b, y, type.shape)
        # select x, y by ¬c = select y, x by c
        case _, (opposite,):
            return b.emit(Select(), y, x, opposite)
        case _:
            return _select_truth(b, instruction)


def _select_truth(b: Builder, instruction: Instruction) -> Value | None:
    x, y, condition = instruction.operands
    type = instruction.result.tensor
    match number(x), number(y):
        # select true, false by c = c
        case True, False if type.dtype == condition.tensor.dtype:
            return broadcast_to(b, condition, type.shape)
        # select false, true by c = ¬c
        case False, True if type.dtype == condition.tensor.dtype:
            return b.emit(Not(), broadcast_to(b, condition, type.shape))
        case _:
            return None


_OPPOSITES: dict[type[Comparison], Comparison] = {
    LessThan: GreaterThanOrEqual(),
    LessThanOrEqual: GreaterThan(),
    GreaterThan: LessThanOrEqual(),
    GreaterThanOrEqual: LessThan(),
}

CHOICE: Laws = {
    LessThan: (simplify_comparison,),
    LessThanOrEqual: (simplify_comparison,),
    GreaterThan: (simplify_comparison,),
    GreaterThanOrEqual: (simplify_comparison,),
    Equal: (simplify_comparison, simplify_equal),
    NotEqual: (simplify_comparison, simplify_not_equal),
    And: (simplify_and,),
    Or: (simplify_or,),
    Not: (simplify_not,),
    Select: (simplify_select,),
}
