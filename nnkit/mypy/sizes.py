"""Sizes that a program writes as numbers: `nk.zeros((3,), f32) + nk.ones((4,), f32)` does not broadcast.

They are read from the expressions, as types have none: a tensor of `nk.zeros((28, 28), f32)` fits any names of
dimensions.  A variable has the sizes of its value, where it is assigned in one place of the file and nowhere else.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeAlias

from mypy.nodes import (
    AssignmentStmt,
    Block,
    CallExpr,
    ClassDef,
    ComparisonExpr,
    Decorator,
    Expression,
    FloatExpr,
    ForStmt,
    FuncDef,
    IfStmt,
    IntExpr,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    StarExpr,
    TryStmt,
    TupleExpr,
    UnaryExpr,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.plugin import CheckerPluginInterface, MethodContext

LiteralSizes: TypeAlias = "Sequence[int | None] | None"
"""Of each axis as far as it is known; None where not even their number is."""
Assigned: TypeAlias = Mapping[Node, Expression]

MAX_DEPTH = 50
"""Of variables that are assigned from others, and of expressions: `a = f(a)` of a loop has no end."""

_OF_SHAPE = frozenset({"nnkit.zeros", "nnkit.ones", "nnkit.full"})
_OF_COUNT = {"nnkit.arange": 1, "nnkit.eye": 2}
"""How many axes they make of one number."""
_OF_DATA = {f"nnkit.Tensor{rank}D": rank for rank in range(1, 6)}
"""How many axes they make of lists."""
_LIKE_THE_FIRST = frozenset(
    f"nnkit.{name}"
    for name in (
        "const zeros_like ones_like stop_gradient abs exp log log1p expm1 sqrt sin cos tan tanh sigmoid relu gelu silu"
        " softplus softmax log_softmax sign square floor ceil round erf"
    ).split()
)


def check_sizes(ctx: MethodContext) -> None:
    """An error if the operands of an operator have sizes that do not fit."""
    match ctx.context:
        case OpExpr(op=op, left=left, right=right):
            pass
        case ComparisonExpr(operands=[left, right]):
            op = "<"
        case _:
            return
    once = assigned_once(ctx.api)
    one, other = sizes_of(left, once), sizes_of(right, once)
    if one is None or other is None:
        return
    shapes = " and ".join(map(_shown, (one, other)))
    if op == "@":
        inner = _inner(one, other)
        if inner is not None and None not in inner and inner[0] != inner[1]:
            ctx.api.fail(f"cannot multiply {shapes}: {inner[0]} and {inner[1]} differ", ctx.context)
        return
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            ctx.api.fail(f"cannot broadcast {shapes}: {a} and {b} differ", ctx.context)
            return


def _shown(sizes: Sequence[int | None]) -> str:
    return f"[{', '.join('?' if n is None else str(n) for n in sizes)}]"


def _inner(one: Sequence[int | None], other: Sequence[int | None]) -> LiteralSizes:
    """What a product goes along: the last axis of the one, and of the other the first of a matrix."""
    return [one[-1], other[-min(len(other), 2)]] if one and other else None


@lru_cache(maxsize=4)  # files are checked one after the other
def _assigned_once(tree: MypyFile) -> dict[Node, Expression]:
    try:
        places = assigned_in_one_place(Path(tree.path).read_text())
    except (OSError, SyntaxError, UnicodeDecodeError):  # mypy was given text, or says what is wrong
        return {}
    found: dict[Node, Expression] = {}
    for each in _statements(tree.defs):
        match each:
            case AssignmentStmt(
                lvalues=[NameExpr(node=Var() as variable, name=name)], rvalue=value
            ):
                if (each.line, name) in places:
                    found[variable] = value
            case _:
                pass
    return found


def assigned_in_one_place(source: str) -> set[tuple[int, str]]:
    """The lines of `name = value` whose name is bound nowhere else in the function, with the name."""
    found: set[tuple[int, str]] = set()
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        bound = Counter(name for node in ast.walk(scope) for name in _bound(node))
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) if bound[name] == 1:
                    found.add((node.lineno, name))
                case _:
                    pass
    return found


def _bound(node: ast.AST) -> Sequence[str]:
    """The names that this piece of syntax binds; that of a function inside may be another variable."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            return [name]
        case (
            ast.MatchMapping(rest=str(name)) | ast.FunctionDef(name=name) | ast.ClassDef(name=name)
        ):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case _:
            return []


def _statements(statements: Iterable[Node]) -> Iterator[Node]:
    """Those inside of others as well."""
    for each in statements:
        yield each
        match each:
            case Block(body=inner):
                yield from _statements(inner)
            case FuncDef(body=body) | ClassDef(defs=body) | WithStmt(body=body):
                yield from _statements([body])
            case Decorator(func=function):
                yield from _statements([function])
            case IfStmt(body=bodies, else_body=last):
                yield from _statements([*bodies, *([last] if last else [])])
            case ForStmt(body=body) | WhileStmt(body=body) | TryStmt(body=body):
                yield from _statements([body])
            case _:
                pass


def assigned_once(api: CheckerPluginInterface) -> Assigned:
    """By variable, what is assigned to it in the file that is checked."""
    tree = getattr(api, "tree", None)  # of the checker, which the interface leaves out
    return _assigned_once(tree) if isinstance(tree, MypyFile) else {}


def sizes_of(expression: Expression, once: Assigned, depth: int = 0) -> LiteralSizes:
    """Of a call that makes a tensor, of operators and functions of such, and of a variable that is assigned once."""
    if depth > MAX_DEPTH:
        return None
    of = partial(sizes_of, once=once, depth=depth + 1)
    match expression:
        case NameExpr(node=Var() as variable):
            return of(once[variable]) if variable in once else None
        case CallExpr(callee=RefExpr(fullname=name), args=[first, *_]) if name in _OF_SHAPE:
            return _shape([first])
        case CallExpr(callee=RefExpr(fullname=name), args=[IntExpr(value=count), *rest]) if (
            name in _OF_COUNT and all(map(_is_element_type, rest))
        ):
            return [count] * _OF_COUNT[name]
        case CallExpr(callee=RefExpr(fullname=name), args=[first, *_]) if name in _OF_DATA:
            return _nested(first, _OF_DATA[name])
        case CallExpr(callee=RefExpr(fullname=name), args=[first]) if name in _LIKE_THE_FIRST:
            return of(first)
        case CallExpr(callee=MemberExpr(name="reshape"), args=given):
            return _shape(given)
        case UnaryExpr(op="-" | "+", expr=inner) | MemberExpr(expr=inner, name="T"):
            found = of(inner)
            return found[::-1] if found and isinstance(expression, MemberExpr) else found
        case OpExpr(op="+" | "-" | "*" | "/" | "**", left=left, right=IntExpr() | FloatExpr()):
            return of(left)
        case OpExpr(op="+" | "-" | "*" | "/", left=IntExpr() | FloatExpr(), right=right):
            return of(right)
        case OpExpr(op="+" | "-" | "*" | "/", left=left, right=right):
            return _broadcast(of(left), of(right))
        case OpExpr(op="@", left=left, right=right):
            return _product(of(left), of(right))
        case _:
            return None


def _product(one: LiteralSizes, other: LiteralSizes) -> LiteralSizes:
    """Of vectors and matrices."""
    if one is None or other is None or not 0 < len(one) <= 2 or not 0 < len(other) <= 2:
        return None
    return [*one[:-1], *other[1:]]


def _nested(given: Expression, rank: int) -> LiteralSizes:
    """Of lists in lists, as they are written."""
    sizes: list[int | None] = []
    for _ in range(rank):
        if not isinstance(given, ListExpr) or not given.items:
            return None
        if any(isinstance(each, StarExpr) for each in given.items):
            return None
        sizes.append(len(given.items))
        given = given.items[0]
    return sizes


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
