"""The syntax of nests: index maps, bounds and outputs."""

from __future__ import annotations

from typing import Any

from ..ops import ORDERED, Bounds, Combinator, Elementwise
from ..ops.nest import Access, Affine, Index, Loaded, Output, coordinate
from .cursor import INT64, Cursor
from .lexer import Token
from .types import parse_tensor

_MOST_AXES = 4
"""Digits of the number of a coordinate, of which a nest has few; Python refuses to convert thousands."""


def joined(values: tuple[Any, ...]) -> str:
    """Accesses, outputs or places, separated by commas."""
    return ", ".join(map(str, values))


def parse_accesses(cursor: Cursor) -> tuple[Access, ...]:
    """`(d0, 2 * d1 + 1) clip, (read 0)`."""
    return cursor.listed(lambda: Access(_parse_indices(cursor), _parse_optional_bounds(cursor)))


def parse_outputs(cursor: Cursor) -> tuple[Output, ...]:
    """`<2 x f32> at (d0) zero by add, f32 at (), <9 x f32> at (read 0) check init 1, <9 x f32> at (d0) within 2`."""
    return cursor.listed(_parse_output, cursor)


def parse_indices(cursor: Cursor) -> tuple[Affine, ...]:
    """`(d0, 2 * d1 + 1)`, of which none is read from an operand."""
    start = cursor.position
    indices = [index for index in _parse_indices(cursor) if isinstance(index, Affine)]
    if cursor.position - start and any(
        t.text == "read" for t in cursor.tokens[start : cursor.position]
    ):
        raise cursor.error("indices of a kernel are affine in coordinates; none is read", start)
    return tuple(indices)


def print_indices(indices: tuple[Affine, ...]) -> str:
    """The text of indices."""
    return f"({joined(indices)})"


def parse_affine(cursor: Cursor) -> Affine:
    """`2 * d0 + d1 + -3`."""
    return _parse_affine(cursor)


def parse_bounds(cursor: Cursor) -> Bounds:
    """`inside`, `zero`, `clip` or `check`."""
    return Bounds(cursor.one_of([bounds.value for bounds in Bounds]))


def parse_combinator(cursor: Cursor) -> Combinator:
    """`add`, …; DLVM's `builtin "max"` is `max`."""
    if cursor.accept("builtin"):
        token = cursor.next()
        known = [combinator for combinator in Combinator if token.text == f'"{combinator}"']
        if not known:
            raise cursor.error_at(token, f"no operation to combine with is called {token.shown}")
        return known[0]
    return Combinator(cursor.one_of([combinator.value for combinator in Combinator]))


def parse_ordered(cursor: Cursor) -> Elementwise:
    """`subtract`, …: an operation that is not associative."""
    return ORDERED[cursor.one_of(list(ORDERED))]


def _parse_output(cursor: Cursor) -> Output:
    type = parse_tensor(cursor)
    cursor.expect("at")
    indices, bounds = _parse_indices(cursor), _parse_optional_bounds(cursor)
    combinator = parse_combinator(cursor) if cursor.accept("by") else None
    init = cursor.integer() if cursor.accept("init") else None
    within = cursor.integer() if cursor.accept("within") else None
    return Output(type, indices, combinator, bounds, init, within)


def _parse_optional_bounds(cursor: Cursor) -> Bounds:
    for bounds in Bounds:
        if cursor.accept(bounds.value):
            return bounds
    return Bounds.INSIDE


def _parse_indices(cursor: Cursor) -> tuple[Index, ...]:
    cursor.expect("(")
    indices: list[Index] = []
    while cursor.separated(")", not indices):
        if cursor.accept("read"):
            indices.append(Loaded(cursor.integer()))
        else:
            indices.append(_parse_affine(cursor))
    return tuple(indices)


def _parse_affine(cursor: Cursor) -> Affine:
    """`2 * d0 + d1 + -3`."""
    start = cursor.position
    total = Affine()
    while True:
        if cursor.token.kind == "integer":
            number = cursor.integer()
            total = total + (_parse_axis(cursor) * number if cursor.accept("*") else number)
        else:
            total = total + _parse_axis(cursor)
        if not cursor.accept("+"):
            break
    if any(number not in INT64 for number in (total.constant, *(c for _, c in total.terms))):
        raise cursor.error("the index does not fit into 64 bits", start)
    return total


def _parse_axis(cursor: Cursor) -> Affine:
    token = cursor.next()
    match token:
        case Token("word", text) if text[0] == "d" and _is_short_number(text[1:]):
            return coordinate(int(text[1:]))
        case _:
            message = f"an index made of coordinates d0, d1, … was expected, not {token.shown}"
            raise cursor.error_at(token, message)


def _is_short_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_AXES
