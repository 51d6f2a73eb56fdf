"""How the attributes of ops are written: one entry per annotation of a field, printing and parsing.

An annotation that is not in the table is a mistake of whoever wrote the op; a test looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..ops import Combinator, Literal
from ..ops.literal import check_range, splat
from ..ops.nest import Access, Affine, Bounds, Index, Loaded, Output
from ..schedule.ops import Place
from ..types import DType, TensorType
from .cursor import Cursor
from .types import parse_dtype, parse_shape, parse_tensor, print_shape


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


def print_elements(literal: Literal) -> str:
    """`1.5`, or `<<1, 2>, <3, 4>>`."""
    value = literal.splat_value()
    dtype = literal.type.dtype
    if value is not None:
        return print_number(literal.elements()[()], dtype)
    numbers = [print_number(element, dtype) for element in literal.elements().ravel()]
    for extent in reversed(literal.type.shape):
        rows = range(0, len(numbers), extent)
        numbers = [f"<{', '.join(numbers[row : row + extent])}>" for row in rows]
    return numbers[0]


def print_number(element: Any, dtype: DType) -> str:
    """The shortest text that reads back as the same element."""
    if dtype.kind == "boolean":
        return "true" if element else "false"
    if dtype.is_integer:
        return str(int(element))
    text = str(dtype.numpy.type(element))
    return text if any(c in text for c in ".enai") else f"{text}.0"


def parse_elements(cursor: Cursor) -> tuple[list[Any], tuple[int, ...], int]:
    """Numbers in row-major order, the shape they are nested in, and where they begin."""
    start = cursor.position
    shape: list[int] = []
    counts: list[int] = []
    numbers: list[Any] = []
    while True:
        if cursor.accept("<"):
            cursor.descend()
            counts.append(0)
            continue
        numbers.append(parse_number(cursor))
        if cursor.at(":") and counts:  # a type with every element, as DLVM writes
            cursor.next()
            parse_tensor(cursor)
        while True:
            if not counts:
                return numbers, tuple(shape), start
            counts[-1] += 1
            if not cursor.at(">"):
                break
            cursor.next()
            depth = len(counts) - 1
            while len(shape) <= depth:
                shape.append(-1)
            if shape[depth] not in (-1, counts[-1]):
                raise cursor.error("rows of a tensor literal differ in length", start)
            shape[depth] = counts.pop()
            if cursor.at(":") and counts:
                cursor.next()
                parse_tensor(cursor)
        cursor.expect(",")


def parse_number(cursor: Cursor) -> Any:
    """A number, `true`, `false` or `zero`."""
    token = cursor.next()
    if token.text in ("true", "false"):
        return token.text == "true"
    if token.text == "zero":
        return 0
    if token.kind != "number":
        raise cursor.error_at(token, "a number was expected")
    try:
        return int(token.text)
    except ValueError:
        return float(token.text)


def literal_of(
    cursor: Cursor, numbers: list[Any], shape: tuple[int, ...], start: int, type: TensorType
) -> Literal:
    """The literal op; one number without brackets is a splat."""
    try:
        if not shape:
            return splat(type, _as_element(numbers[0], type.dtype))
        if shape != type.shape:
            raise cursor.error(f"a literal nested as {list(shape)} cannot be a {type}", start)
        for number in numbers:
            check_range(type.dtype, number)
        with np.errstate(over="ignore"):
            stored = type.dtype.store(np.asarray(numbers).astype(type.dtype.numpy))
    except (DTypeError, OverflowError) as error:
        raise cursor.error(str(error), start) from None
    data = stored.tobytes()
    one = data[: type.dtype.bytes]
    return Literal(type, one if one * type.size == data else data)


def _as_element(number: Any, dtype: DType) -> Any:
    """`zero` and `0` are false for booleans."""
    if dtype.kind == "boolean" and number in (0, 1):
        return bool(number)
    check_range(dtype, number)
    return number


def _numbers(values: tuple[int, ...]) -> str:
    inside = ", ".join(map(str, values))
    return inside if len(values) == 1 else f"({inside})"


def _parse_numbers(cursor: Cursor) -> tuple[int, ...]:
    """`1`, `(1, 0)`, `()`, and without parentheses `1, 0`."""
    closes = cursor.accept("(")
    if closes and cursor.accept(")"):
        return ()
    values = [cursor.integer()]
    while cursor.at(",") and (closes or cursor.ahead(1).kind == "number"):
        cursor.next()
        values.append(cursor.integer())
    if closes:
        cursor.expect(")")
    return tuple(values)


def _parse_affine(cursor: Cursor) -> Affine:
    """`2 * d0 + d1 + -3`."""
    total = Affine()
    while True:
        token = cursor.next()
        if token.kind == "number":
            number = cursor.as_integer(token)
            total = total + (_axis(cursor) * number if cursor.accept("*") else number)
        else:
            cursor.back()
            total = total + _axis(cursor)
        if not cursor.accept("+"):
            return total


def _axis(cursor: Cursor) -> Affine:
    token = cursor.next()
    if not (token.kind == "word" and token.text[0] == "d" and token.text[1:].isdecimal()):
        raise cursor.error_at(token, "a coordinate d0, d1, … was expected")
    return Affine(0, ((int(token.text[1:]), 1),))


def _parse_indices(cursor: Cursor) -> tuple[Index, ...]:
    cursor.expect("(")
    indices: list[Index] = []
    while not cursor.accept(")"):
        if indices:
            cursor.expect(",")
        if cursor.accept("read"):
            indices.append(Loaded(cursor.integer()))
        else:
            indices.append(_parse_affine(cursor))
    return tuple(indices)


def _parse_bounds(cursor: Cursor) -> Bounds:
    for bounds in Bounds:
        if cursor.accept(bounds.value):
            return bounds
    return Bounds.INSIDE


def _parse_accesses(cursor: Cursor) -> tuple[Access, ...]:
    accesses = [Access(_parse_indices(cursor), _parse_bounds(cursor))]
    while cursor.accept(","):
        accesses.append(Access(_parse_indices(cursor), _parse_bounds(cursor)))
    return tuple(accesses)


def _parse_output(cursor: Cursor) -> Output:
    type = parse_tensor(cursor)
    cursor.expect("at")
    indices, bounds = _parse_indices(cursor), _parse_bounds(cursor)
    return Output(type, indices, _parse_combinator(cursor) if cursor.accept("by") else None, bounds)


def _parse_outputs(cursor: Cursor) -> tuple[Output, ...]:
    outputs = [_parse_output(cursor)]
    while cursor.accept(","):
        outputs.append(_parse_output(cursor))
    return tuple(outputs)


def _parse_combinator(cursor: Cursor) -> Combinator:
    return Combinator(cursor.one_of([c.value for c in Combinator]))


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
        token = cursor.next()
        if token.kind == "name" and token.text[0] == "#":
            keys.append(token.text[1:])
        elif token.kind == "number":
            keys.append(cursor.as_integer(token))
        else:
            raise cursor.error_at(token, "an element number or a field #name was expected")
    return tuple(keys)


def _show_keys(keys: tuple[int | str, ...]) -> str:
    return ", ".join(f"#{key}" if isinstance(key, str) else str(key) for key in keys)


def _joined(values: tuple[Any, ...]) -> str:
    return ", ".join(map(str, values))


def _parse_flag(cursor: Cursor) -> bool:
    return cursor.one_of(["true", "false"]) == "true"


NOTATIONS: Mapping[str, Notation] = {
    "int": Notation(str, Cursor.integer),
    "bool": Notation(lambda flag: "true" if flag else "false", _parse_flag),
    "Shape": Notation(print_shape, parse_shape),
    "tuple[int, ...]": Notation(_numbers, _parse_numbers),
    "tuple[int | str, ...]": Notation(_show_keys, _parse_keys),
    "DType": Notation(str, parse_dtype),
    "Combinator": Notation(str, _parse_combinator),
    "Bounds": Notation(str, lambda cursor: Bounds(cursor.one_of([m.value for m in Bounds]))),
    "tuple[Access, ...]": Notation(_joined, _parse_accesses),
    "tuple[Output, ...]": Notation(_joined, _parse_outputs),
    "Place": Notation(str, _parse_place),
    "tuple[Place, ...]": Notation(_joined, _parse_places),
}
