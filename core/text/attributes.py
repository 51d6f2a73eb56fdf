"""How the attributes of ops are written: one entry per annotation of a field, printing and parsing.

An annotation that is not in the table is a mistake of whoever wrote the op; a test looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..schedule.ops import Place
from .cursor import Cursor
from .indices import joined, parse_accesses, parse_bounds, parse_combinator, parse_outputs
from .lexer import written
from .types import parse_dtype, parse_shape, print_shape


@dataclass(frozen=True)
class Notation:
    """Both directions of one kind of attribute."""

    show: Callable[[Any], str]
    parse: Callable[[Cursor], Any]


def print_attribute(kind: str, value: Any) -> str:
    """The text of an attribute whose field is annotated `kind`."""
    return NOTATIONS[kind].show(value)


def parse_attribute(kind: str, cursor: Cursor) -> Any:
    """The attribute that begins at the cursor."""
    return NOTATIONS[kind].parse(cursor)


def parse_numbers(cursor: Cursor) -> tuple[int, ...]:
    """`1`, `(1, 0)`, `()`, and without parentheses `1, 0`."""
    values: list[int] = []
    if cursor.accept("("):
        while cursor.separated(")", not values):
            values.append(cursor.integer())
        return tuple(values)
    values.append(cursor.integer())
    while cursor.at(",") and cursor.ahead(1).kind == "integer":
        cursor.next()
        values.append(cursor.integer())
    return tuple(values)


def _print_numbers(values: tuple[int, ...]) -> str:
    inside = ", ".join(map(str, values))
    return inside if len(values) == 1 else f"({inside})"


def _parse_flag(cursor: Cursor) -> bool:
    return cursor.one_of(["true", "false"]) == "true"


def _parse_place(cursor: Cursor) -> Place:
    return Place(cursor.one_of(["arena", "output"]), cursor.integer())


def _parse_places(cursor: Cursor) -> tuple[Place, ...]:
    places = [_parse_place(cursor)]
    while cursor.accept(","):
        places.append(_parse_place(cursor))
    return tuple(places)


def _parse_keys(cursor: Cursor) -> tuple[int | str, ...]:
    keys: list[int | str] = []
    while not keys or cursor.accept(","):
        token = cursor.token
        if token.kind == "integer":
            keys.append(cursor.integer())
        elif token.text[:1] == "#":
            keys.append(cursor.name("#", "a field"))
        else:
            message = f"the number of an element or a field #… was expected, not {token.shown}"
            raise cursor.error(message)
    return tuple(keys)


def _print_keys(keys: tuple[int | str, ...]) -> str:
    return ", ".join(written("#", key) if isinstance(key, str) else str(key) for key in keys)


NOTATIONS: Mapping[str, Notation] = {
    "int": Notation(str, Cursor.integer),
    "bool": Notation(lambda flag: "true" if flag else "false", _parse_flag),
    "Shape": Notation(print_shape, parse_shape),
    "tuple[int, ...]": Notation(_print_numbers, parse_numbers),
    "tuple[int | str, ...]": Notation(_print_keys, _parse_keys),
    "DType": Notation(str, parse_dtype),
    "Combinator": Notation(str, parse_combinator),
    "Bounds": Notation(str, parse_bounds),
    "tuple[Access, ...]": Notation(joined, parse_accesses),
    "tuple[Output, ...]": Notation(joined, parse_outputs),
    "Place": Notation(str, _parse_place),
    "tuple[Place, ...]": Notation(joined, _parse_places),
}
