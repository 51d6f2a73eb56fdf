"""LiteralSizes that a program writes as numbers: `nk.zeros((3,), f32) + nk.ones((4,), f32)` does not broadcast.

They are read from the expression, as types have none: a tensor of `nk.zeros((28, 28), f32)` fits any names of
dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Expression,
    IntExpr,
    MemberExpr,
    OpExpr,
    RefExpr,
    TupleExpr,
)
from mypy.plugin import MethodContext

LiteralSizes: TypeAlias = "Sequence[int | None] | None"
"""Of each axis as far as it is known; None where not even their number is."""

_OF_SHAPE = frozenset({"nnkit.zeros", "nnkit.ones", "nnkit.full"})
_OF_COUNT = {"nnkit.arange": 1, "nnkit.eye": 2}
"""How many axes they make of one number."""


def check_broadcast(ctx: MethodContext) -> None:
    """An error if the operands of an operator have sizes that do not fit."""
    match ctx.context:
        case OpExpr(left=left, right=right) | ComparisonExpr(operands=[left, right]):
            one, other = sizes_of(left), sizes_of(right)
        case _:
            return
    if one is None or other is None:
        return
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            shapes = " and ".join(
                f"[{', '.join('?' if n is None else str(n) for n in each)}]"
                for each in (one, other)
            )
            ctx.api.fail(f"cannot broadcast {shapes}: {a} and {b} differ", ctx.context)
            return


def sizes_of(expression: Expression) -> LiteralSizes:
    """Of a call that makes a tensor, or of an operator on such."""
    match expression:
        case CallExpr(callee=RefExpr(fullname=name), args=[first, *_]) if name in _OF_SHAPE:
            return _shape([first])
        case CallExpr(callee=RefExpr(fullname=name), args=[IntExpr(value=count), *rest]) if (
            name in _OF_COUNT and all(map(_is_element_type, rest))
        ):
            return [count] * _OF_COUNT[name]
        case CallExpr(callee=MemberExpr(name="reshape"), args=given):
            return _shape(given)
        case OpExpr(op="+" | "-" | "*" | "/", left=left, right=right):
            return _broadcast(sizes_of(left), sizes_of(right))
        case _:
            return None


def _is_element_type(given: Expression) -> bool:
    return isinstance(given, RefExpr) and given.fullname.startswith("nnkit.")


def _shape(given: Sequence[Expression]) -> LiteralSizes:
    """What is written as a tuple, or as numbers; −1 and what is computed are not known."""
    match given:
        case [TupleExpr(items=items)]:
            given = items
        case _:
            pass
    return [each.value if isinstance(each, IntExpr) else None for each in given]


def _broadcast(one: LiteralSizes, other: LiteralSizes) -> LiteralSizes:
    """Of the result, if both have one number of axes."""
    if one is None or other is None or len(one) != len(other):
        return None
    return [
        a if a == b or b == 1 else b if a == 1 else None for a, b in zip(one, other, strict=True)
    ]
