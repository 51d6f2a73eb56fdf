"""Every number that decides something has a name, and beside it stands why it is that number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.rows import each

from .test_architecture import FILES, ROOT

CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
MADE_OF_NUMBERS = (
    ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Name,
    ast.Attribute, ast.Load,
)  # fmt: skip
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
PLAIN = {-1, 0, 0.5, 1, 2, 3}
"""Numbers of things that are there or not, or in pairs and threes: no bound that could be another one."""
WIDTHS = {"bits", "itemsize", "rank", "lanes", "vector_bytes"}
"""What is compared with a number of bits, bytes or axes, which is not chosen."""
FORMULAS = Path("jit/emit/math")
"""Numbers in formulas of mathematics stand there as in the book."""


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def constants(path: Path) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign, ast.stmt | None]]:
    """The constants of a module that are made of numbers, each with the statement that follows."""
    body = ast.parse((ROOT / path).read_text()).body
    for statement, following in pairwise([*body, None]):
        match statement:
            case ast.Assign(
                targets=[ast.Name(name) | ast.Tuple([ast.Name(name), *_])], value=value
            ):
                pass
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                pass
            case _:
                continue
        parts = list(ast.walk(value))
        is_made_of_them = all(isinstance(part, MADE_OF_NUMBERS) for part in parts)
        if CONSTANT.fullmatch(name) and is_made_of_them and any(map(is_number, parts)):
            yield name, statement, following


def is_text(node: ast.stmt | None) -> bool:
    match node:
        case ast.Expr(ast.Constant(str())):
            return True
        case _:
            return False


def is_explained(lines: list[str], statement: ast.stmt, following: ast.stmt | None) -> bool:
    """By a docstring, a comment on its lines, or one above it and those that follow each other without a gap."""
    last = statement.end_lineno or statement.lineno
    if is_text(following) or any("#" in line for line in lines[statement.lineno - 1 : last]):
        return True
    first = statement.lineno - 1
    while first > 0 and lines[first - 1] and not lines[first - 1].startswith("#"):
        first -= 1
    return lines[first - 1].startswith("#")


@each("path", FILES, ids=str)
def test_every_number_with_a_name_says_why(path: Path) -> None:
    lines = (ROOT / path).read_text().splitlines()
    silent = [name for name, *found in constants(path) if not is_explained(lines, *found)]
    assert not silent, f"{path}: say beside {', '.join(silent)} why these values"


def bounds(tree: ast.AST) -> Iterator[ast.Constant]:
    """The numbers that something is compared with, by order, or cut to."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others) if isinstance(ops[0], ORDERS):
                sides = [left, *others]
                names = {
                    x.attr for side in sides for x in ast.walk(side) if isinstance(x, ast.Attribute)
                }
                if names.isdisjoint(WIDTHS):
                    yield from (x for side in sides for x in _terms(side))
            case ast.Slice(lower=lower, upper=upper):
                yield from (x for side in (lower, upper) if side for x in _terms(side))
            case _:
                pass


def _terms(node: ast.expr) -> Iterator[ast.Constant]:
    """The numbers of a bound, which is one or a product of one."""
    match node:
        case ast.Constant():
            if is_number(node):
                yield node
        case ast.BinOp(left, ast.Mult() | ast.LShift() | ast.Pow(), right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            pass


@each("path", [path for path in FILES if FORMULAS not in path.parents], ids=str)
def test_bounds_have_names(path: Path) -> None:
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    found = [
        f"{path}:{bound.lineno} {lines[bound.lineno - 1].strip()}"
        for bound in bounds(ast.parse(text))
        if bound.value not in PLAIN and "#" not in "".join(lines[bound.lineno - 2 : bound.lineno])
    ]
    assert not found, "these bounds have no name:\n" + "\n".join(found)
