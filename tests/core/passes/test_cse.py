"""Common subexpression elimination."""

from __future__ import annotations

import pytest

from nnkit.core.ops import (
    Add,
    Exp,
    Literal,
    Maximum,
    Multiply,
    Negate,
    Reduce,
    Subtract,
    Transpose,
    splat,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.passes import CommonSubexpressions, apply_pass
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import Law, check, define, module_of, rows

X = TensorType((3, 3), F32)
ADD, MAX = Combinator.ADD, Combinator.MAX

LAWS = rows(
    (
        "twice the same",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Exp(), x), b.emit(Exp(), x)),
        "exp add",
    ),
    (
        "a chain",
        [X],
        lambda b, x: b.emit(
            Subtract(), b.emit(Negate(), b.emit(Exp(), x)), b.emit(Negate(), b.emit(Exp(), x))
        ),
        "exp negate subtract",
    ),
    (
        "other operands",
        [X, X],
        lambda b, x, y: b.emit(Add(), b.emit(Exp(), x), b.emit(Exp(), y)),
        "exp exp add",
    ),
    (
        "other ops",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Exp(), x), b.emit(Negate(), x)),
        "exp negate add",
    ),
    (
        "other attributes",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Reduce(ADD, (0,)), x), b.emit(Reduce(MAX, (0,)), x)),
        "reduce reduce add",
    ),
    (
        "equal attributes",
        [X],
        lambda b, x: b.emit(Add(), b.emit(Transpose((1, 0)), x), b.emit(Transpose((1, 0)), x)),
        "transpose add",
    ),
    (
        "x + y and y + x",
        [X, X],
        lambda b, x, y: b.emit(Subtract(), b.emit(Add(), x, y), b.emit(Add(), y, x)),
        "add subtract",
    ),
    (
        "x · y and y · x",
        [X, X],
        lambda b, x, y: b.emit(Subtract(), b.emit(Multiply(), x, y), b.emit(Multiply(), y, x)),
        "multiply subtract",
    ),
    (
        "x − y and y − x",
        [X, X],
        lambda b, x, y: b.emit(Add(), b.emit(Subtract(), x, y), b.emit(Subtract(), y, x)),
        "subtract subtract add",
    ),
    (
        "max commutes: the larger of -0 and +0 is +0",
        [X, X],
        lambda b, x, y: b.emit(Add(), b.emit(Maximum(), x, y), b.emit(Maximum(), y, x)),
        "max add",
    ),
)


@pytest.mark.parametrize("law", LAWS)
def test_merge(law: Law) -> None:
    check(law, CommonSubexpressions())


def test_literals_are_compared_by_bits() -> None:
    for one, other, left in ((0.0, 0.0, 1), (0.0, -0.0, 2), (float("nan"), float("nan"), 1)):
        module = module_of(
            [], lambda b, m=one, n=other: b.emit(Add(), b.emit(splat(X, m)), b.emit(splat(X, n)))
        )
        apply_pass(CommonSubexpressions(), module)
        instructions = module.functions["main"].entry.instructions
        assert sum(isinstance(i.op, Literal) for i in instructions) == left


def test_a_name_survives() -> None:
    module = module_of([X], lambda b, x: b.emit(Add(), b.emit(Exp(), x), b.emit(Exp(), x)))
    first, second, *_ = module.functions["main"].entry.instructions
    second.result.name = "h"
    apply_pass(CommonSubexpressions(), module)
    assert first.result.name == "h"


def test_functions_are_apart() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    define(module, "other", [X], lambda b, x: b.emit(Exp(), x))
    assert not apply_pass(CommonSubexpressions(), module)
