"""Laws of comparison, logic and select."""

from __future__ import annotations

import pytest

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
    splat,
)
from nnkit.core.types import BOOL, F32, I8, TensorType
from tests.core.passes.laws import Law, check, number, rows

X = TensorType((11,), F32)
N = TensorType((9,), I8)
P = TensorType((9,), BOOL)
Q = TensorType((11,), BOOL)
ONE = TensorType((), BOOL)

TRUE, FALSE = splat(ONE, True), splat(ONE, False)

LAWS = rows(
    ("x = x of integers", [N], lambda b, x: b.emit(Equal(), x, x), ""),
    ("x < x of integers", [N], lambda b, x: b.emit(LessThan(), x, x), ""),
    ("x ≥ x of integers", [N], lambda b, x: b.emit(GreaterThanOrEqual(), x, x), ""),
    ("p ≠ p", [P], lambda b, p: b.emit(NotEqual(), p, p), ""),
    ("x = x of floats", [X], lambda b, x: b.emit(Equal(), x, x), "equal"),
    ("x < y", [N, N], lambda b, x, y: b.emit(LessThan(), x, y), "lessThan"),
    ("(p = true) = p", [P], lambda b, p: b.emit(Equal(), p, number(b, p, True)), ""),
    ("(false = p) = ¬p", [P], lambda b, p: b.emit(Equal(), number(b, p, False), p), "not"),
    ("(p ≠ true) = ¬p", [P], lambda b, p: b.emit(NotEqual(), p, number(b, p, True)), "not"),
    ("x = 1 stays", [N], lambda b, x: b.emit(Equal(), x, number(b, x, 1)), "equal"),
    ("p ∧ true = p", [P], lambda b, p: b.emit(And(), p, number(b, p, True)), ""),
    ("p ∧ false", [P], lambda b, p: b.emit(And(), number(b, p, False), p), ""),
    ("p ∨ false = p", [P], lambda b, p: b.emit(Or(), p, number(b, p, False)), ""),
    ("p ∨ true", [P], lambda b, p: b.emit(Or(), p, number(b, p, True)), ""),
    ("p ∧ p = p", [P], lambda b, p: b.emit(And(), p, p), ""),
    ("p ∨ p = p", [P], lambda b, p: b.emit(Or(), p, p), ""),
    ("p ∧ q stays", [P, P], lambda b, p, q: b.emit(And(), p, q), "and"),
    ("¬¬p = p", [P], lambda b, p: b.emit(Not(), b.emit(Not(), p)), ""),
    ("¬(x = y)", [X, X], lambda b, x, y: b.emit(Not(), b.emit(Equal(), x, y)), "notEqual"),
    ("¬(x ≠ y)", [X, X], lambda b, x, y: b.emit(Not(), b.emit(NotEqual(), x, y)), "equal"),
    (
        "¬(x < y)",
        [N, N],
        lambda b, x, y: b.emit(Not(), b.emit(LessThan(), x, y)),
        "greaterThanOrEqual",
    ),
    (
        "¬(x ≤ y)",
        [N, N],
        lambda b, x, y: b.emit(Not(), b.emit(LessThanOrEqual(), x, y)),
        "greaterThan",
    ),
    (
        "¬(x > y)",
        [N, N],
        lambda b, x, y: b.emit(Not(), b.emit(GreaterThan(), x, y)),
        "lessThanOrEqual",
    ),
    (
        "¬(x < y) of floats",
        [X, X],
        lambda b, x, y: b.emit(Not(), b.emit(LessThan(), x, y)),
        "lessThan not",
    ),
    ("¬(p ∧ q) stays", [P, P], lambda b, p, q: b.emit(Not(), b.emit(And(), p, q)), "and not"),
    ("select x, x by c = x", [X, Q], lambda b, x, c: b.emit(Select(), x, x, c), ""),
    (
        "a scalar x",
        [TensorType((), F32), Q],
        lambda b, x, c: b.emit(Select(), x, x, c),
        "broadcast",
    ),
    ("by true", [X, X], lambda b, x, y: b.emit(Select(), x, y, b.emit(TRUE)), ""),
    ("by false", [X, X], lambda b, x, y: b.emit(Select(), x, y, b.emit(FALSE)), ""),
    ("by ¬c", [X, X, Q], lambda b, x, y, c: b.emit(Select(), x, y, b.emit(Not(), c)), "select"),
    ("by c", [X, X, Q], lambda b, x, y, c: b.emit(Select(), x, y, c), "select"),
    ("true or false by c", [P], lambda b, c: b.emit(Select(), b.emit(TRUE), b.emit(FALSE), c), ""),
    (
        "false or true by c",
        [P],
        lambda b, c: b.emit(Select(), b.emit(FALSE), b.emit(TRUE), c),
        "not",
    ),
    (
        "1 or 0 by c stays",
        [X, Q],
        lambda b, x, c: b.emit(Select(), number(b, x, 1), number(b, x, 0), c),
        "select",
    ),
)


@pytest.mark.parametrize("law", LAWS)
def test_law(law: Law) -> None:
    check(law)
