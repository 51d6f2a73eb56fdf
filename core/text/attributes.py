"""How the attributes of ops are written: one entry per annotation of a field, printing and parsing.

An annotation that is not in the table is a mistake of whoever wrote the op; a test looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..lazy_dataclass import dataclass
from ..ops.scatter import Update
from ..ops.window import Padding, PaddingMode
from ..types import TensorType
from .cursor import Cursor
from .lexer import quoted, written
from .nest_syntax import (
    joined,
    parse_accesses,
    parse_affine,
    parse_bounds,
    parse_combinator,
    parse_indices,
    parse_ordered,
    parse_outputs,
    print_indices,
)
from .types import (
    parse_dtype,
    parse_function_type,
    parse_shape,
    parse_type,
    parse_types,
    print_shape,
)


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
            if token.text[:1] == "%":
                message += "; values count in elementPointer, and in gather for tensors"
            raise cursor.error(message)
    return tuple(keys)


def _print_keys(keys: tuple[int | str, ...]) -> str:
    return ", ".join(written("#", key) if isinstance(key, str) else str(key) for key in keys)


def _parse_tensor_type(cursor: Cursor) -> TensorType:
    start = cursor.position
    type = parse_type(cursor)
    if not isinstance(type, TensorType):
        raise cursor.error(f"a tensor type was expected, not {type}", start)
    return type


def _parse_pairs(cursor: Cursor) -> tuple[tuple[int, int], ...]:
    """`(1, 0), (2, 2)`, or `()` for none."""
    if cursor.at("(") and cursor.ahead(1).text == ")":
        cursor.skip(2)
        return ()
    return cursor.listed(_parse_pair, cursor)


def _parse_pair(cursor: Cursor) -> tuple[int, int]:
    cursor.expect("(")
    low = cursor.integer()
    cursor.expect(",")
    high = cursor.integer()
    cursor.expect(")")
    return low, high


def _print_pairs(pairs: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"({low}, {high})" for low, high in pairs) or "()"


def _parse_padding(cursor: Cursor) -> Padding:
    if cursor.at("("):
        return _parse_pairs(cursor)
    return PaddingMode(cursor.one_of([border.value for border in PaddingMode]))


def _print_padding(padding: Padding) -> str:
    return str(padding) if isinstance(padding, PaddingMode) else _print_pairs(padding)


def _parse_update(cursor: Cursor) -> Update:
    return Update(cursor.one_of([update.value for update in Update]))


NOTATIONS: Mapping[str, Notation] = {
    "int": Notation(str, Cursor.integer),
    "bool": Notation(lambda flag: "true" if flag else "false", _parse_flag),
    "Shape": Notation(print_shape, parse_shape),
    "tuple[int, ...]": Notation(_print_numbers, parse_numbers),
    "tuple[int | str, ...]": Notation(_print_keys, _parse_keys),
    "str": Notation(quoted, lambda cursor: cursor.quoted("a name")),
    "Type": Notation(str, parse_type),
    "tuple[Type, ...]": Notation(joined, parse_types),
    "FunctionType": Notation(str, parse_function_type),
    "Symbol": Notation(
        lambda name: written("@", name), lambda cursor: cursor.name("@", "a function")
    ),
    "TensorType": Notation(str, _parse_tensor_type),
    "tuple[tuple[int, int], ...]": Notation(_print_pairs, _parse_pairs),
    "Padding": Notation(_print_padding, _parse_padding),
    "DType": Notation(str, parse_dtype),
    "Combinator": Notation(str, parse_combinator),
    "Elementwise": Notation(lambda op: str(op.name), parse_ordered),
    "Bounds": Notation(str, parse_bounds),
    "Update": Notation(str, _parse_update),
    "tuple[Access, ...]": Notation(joined, parse_accesses),
    "tuple[Affine, ...]": Notation(print_indices, parse_indices),
    "Affine": Notation(str, parse_affine),
    "tuple[Output, ...]": Notation(joined, parse_outputs),
    "Case": Notation(lambda case: written("?", case), lambda cursor: cursor.name("?", "a case")),
}
