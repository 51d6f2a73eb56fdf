"""What is no type error and fails at run time: formatting a staged value, asking for its truth."""

from __future__ import annotations

import ast
from typing import TypeAlias

from mypy.nodes import Context, StrExpr
from mypy.plugin import FunctionContext, FunctionSigContext, MethodContext
from mypy.types import FunctionLike, Type

from .dimensions import is_rep, is_rep_of_data

Span: TypeAlias = "tuple[int, int, int | None, int | None]"
"""Where an expression begins and ends: lines and columns."""

TRUTH = (
    "a Rep has no truth value while staging: choose with `nk.cond(p, lambda: a, lambda: b)`, or element by element "
    "with `nk.select(p, a, b)`"
)
NUMBER = "a Rep has no value while staging: keep computing with Reps, and return it from the staged function"
ROUND = "a Rep is rounded by nk.round(x)"
CONVERSIONS = {
    "builtins.float": NUMBER,
    "builtins.int": NUMBER,
    "builtins.complex": NUMBER,
    "builtins.round": ROUND,
}
"""Functions of several forms, of which mypy lists all where a Rep fits none."""
DIGITS = "a Rep has no digits while staging: `nk.print(x)` shows the value when the program runs"


def conditions_of(source: str) -> set[Span]:
    """The expressions of a file whose truth Python asks for."""
    found: set[Span] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                found.add(span(node.test))
            case ast.BoolOp():
                found |= {span(each) for each in node.values[:-1]}
            case ast.UnaryOp(op=ast.Not()):
                found.add(span(node.operand))
            case _:
                pass
    return found


def span(node: ast.expr) -> Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def refuse_truth(ctx: MethodContext | FunctionContext, conditions: set[Span]) -> None:
    """An error if the result of this call is a Rep, and what a condition asks for."""
    where: Context = ctx.context
    place = where.line, where.column, where.end_line, where.end_column
    if place in conditions and is_rep_of_data(ctx.default_return_type):
        ctx.api.fail(TRUTH, where)


def note_conversion(words: str, ctx: FunctionSigContext) -> FunctionLike:
    """A note beside mypy's error for a Rep where these functions want a number."""
    given = [each for group in ctx.args for each in group]
    if given and is_rep(ctx.api.get_expression_type(given[0])):
        ctx.api.msg.note(words, ctx.context)
    return ctx.default_signature


def truth(ctx: FunctionContext) -> Type:
    """bool, which takes anything."""
    given = [each for group in ctx.arg_types for each in group]
    if given and is_rep_of_data(given[0]):
        ctx.api.fail(TRUTH, ctx.context)
    return ctx.default_return_type


def formatted(ctx: MethodContext) -> Type:
    """str.format, as which mypy reads an f-string: of a Rep with a format."""
    given = [each for group in ctx.args for each in group]
    types = [each for group in ctx.arg_types for each in group]
    has_format = len(given) == 2 and not (isinstance(given[1], StrExpr) and not given[1].value)
    if has_format and is_rep(types[0]):
        ctx.api.fail(DIGITS, ctx.context)
    return ctx.default_return_type
