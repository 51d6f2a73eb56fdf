"""Types as text."""

from __future__ import annotations

import re

from ..errors import ShapeError
from ..types import (
    DTYPES,
    MAX_BYTES,
    MAX_ELEMENTS,
    STACK,
    VOID,
    ArrayType,
    BoxType,
    DType,
    FunctionType,
    PointerType,
    Shape,
    TensorType,
    TupleType,
    Type,
)
from .cursor import INT64, Cursor, alternatives
from .lexer import Token

_MOST_EXTENT_DIGITS = 19
"""2⁶³ − 1 has so many."""

_OTHER_WIDTH = re.compile(r"(i|u|f|bf)[0-9]+")


def parse_type(cursor: Cursor) -> Type:
    """Any type: `f32`, `<2 x f32>`, `(T, U)`, `(T) -> U`, `[4 x T]`, `*T`, `box{T}`, `stack`, `$S`, `void`."""
    token = cursor.token
    if token.kind == "tensor":
        known = cursor.tensors.get(token.text)
        if known is not None:
            cursor.position += 1
            cursor.token = cursor.tokens[cursor.position]
            return known
    if token.text == "<" or token.text in DTYPES or token.kind == "tensor":
        return parse_tensor(cursor)
    if token.kind == "name" and token.text[0] == "$":
        cursor.skip(1)
        return cursor.type_of(token)
    match token.text:
        case "void":
            cursor.skip(1)
            return VOID
        case "stack":
            cursor.skip(1)
            return STACK
        case "(":
            elements = _parse_list(cursor)
            return _parse_result(cursor, elements) if cursor.at("->") else TupleType(elements)
        case "[":
            return _parse_array(cursor)
        case "*":
            cursor.skip(1)
            return PointerType(_parse_inside(cursor))
        case "box":
            cursor.skip(1)
            cursor.expect("{")
            content = _parse_inside(cursor)
            cursor.expect("}")
            return BoxType(content)
        case _:
            raise cursor.error(_no_dtype(token) or f"a type was expected, not {token.shown}")


def parse_function_type(cursor: Cursor) -> FunctionType:
    """`(T, U) -> R`."""
    start = cursor.position
    type = parse_type(cursor)
    if not isinstance(type, FunctionType):
        raise cursor.error("a function type (T, U) -> R was expected", start)
    return type


def parse_types(cursor: Cursor) -> tuple[Type, ...]:
    """`T, U`: at least one."""
    return cursor.listed(parse_type, cursor)


def parse_tensor(cursor: Cursor) -> TensorType:
    """`f32` or `<2 x 3 x f32>`."""
    start, token = cursor.position, cursor.token
    if token.kind == "tensor":
        cursor.skip(1)
        if token.text not in cursor.tensors:
            *extents, dtype = token.text[1:-1].split(" x ")
            shape = tuple(_extent(cursor, start, extent) for extent in extents)
            cursor.tensors[token.text] = _made(cursor, start, shape, DTYPES[dtype])
        return cursor.tensors[token.text]
    if not cursor.accept("<"):
        return _made(cursor, start, (), parse_dtype(cursor))
    numbers: list[int] = []
    while cursor.token.kind == "integer":
        numbers.append(cursor.integer())
        cursor.expect("x")
    if not numbers:
        raise cursor.error("a tensor type has at least one extent, <2 x f32>; a scalar is f32")
    element = parse_dtype(cursor)
    cursor.expect(">")
    return _made(cursor, start, tuple(numbers), element)


def parse_dtype(cursor: Cursor) -> DType:
    """`f32`."""
    token = cursor.token
    dtype = DTYPES.get(token.text)
    if dtype is None:
        expected = alternatives(list(DTYPES))
        raise cursor.error(_no_dtype(token) or f"{expected} was expected, not {token.shown}")
    cursor.skip(1)
    return dtype


def parse_shape(cursor: Cursor) -> Shape:
    """`2 x 3` or `scalar`."""
    if cursor.accept("scalar"):
        return ()
    start = cursor.position
    extents = [cursor.integer()]
    while cursor.accept("x"):
        extents.append(cursor.integer())
    if any(extent < 0 for extent in extents):
        raise cursor.error("an extent cannot be negative", start)
    return tuple(extents)


def print_shape(shape: Shape) -> str:
    """`2 x 3` or `scalar`."""
    return " x ".join(map(str, shape)) or "scalar"


def _no_dtype(token: Token) -> str:
    """What to say of an element type of another width; nothing if `token` is none."""
    found = _OTHER_WIDTH.fullmatch(token.text)
    if not found:
        return ""
    if found[1] == "u":
        return f"there is no {token.text}: integers are signed, i8, i16, i32 or i64"
    if found[1] == "i":
        return f"there is no {token.text}: integers have 8, 16, 32 or 64 bits (i8, i16, i32, i64)"
    return f"there is no {token.text}: floats are f16, bf16, f32 and f64"


def _extent(cursor: Cursor, position: int, text: str) -> int:
    # Python refuses to convert thousands of digits
    if len(text) > _MOST_EXTENT_DIGITS or int(text) not in INT64:
        raise cursor.error(
            f"the extent {text[: 2 * _MOST_EXTENT_DIGITS]} does not fit into 64 bits", position
        )
    return int(text)


def _made(cursor: Cursor, start: int, shape: Shape, dtype: DType) -> TensorType:
    try:
        return TensorType(shape, dtype)
    except ShapeError as error:
        raise cursor.error(str(error), start) from None


def _parse_list(cursor: Cursor) -> tuple[Type, ...]:
    cursor.skip(1)
    cursor.descend()
    types: list[Type] = []
    while cursor.separated(")", not types):
        types.append(parse_type(cursor))
    cursor.ascend()
    return tuple(types)


def _parse_result(cursor: Cursor, parameters: tuple[Type, ...]) -> FunctionType:
    cursor.skip(1)
    return FunctionType(parameters, _parse_inside(cursor))


def _parse_inside(cursor: Cursor) -> Type:
    cursor.descend()
    type = parse_type(cursor)
    cursor.ascend()
    return type


def _parse_array(cursor: Cursor) -> ArrayType:
    """`[4 x T]`."""
    start = cursor.position
    cursor.skip(1)
    count = cursor.integer()
    cursor.expect("x")
    cursor.descend()
    element = parse_type(cursor)
    cursor.ascend()
    cursor.expect("]")
    if count < 0:
        raise cursor.error("an array cannot have a negative number of elements", start)
    if count > MAX_ELEMENTS:
        raise cursor.error(
            f"an array has at most {MAX_ELEMENTS} elements, not {count}; make it a tensor", start
        )
    if count * _bytes(element) > MAX_BYTES:
        raise cursor.error("an array of this size is larger than the address space", start)
    return ArrayType(count, element)


def _bytes(type: Type) -> int:
    """At least how many bytes a value takes, looking at arrays of arrays and of tensors."""
    factor = 1
    while isinstance(type, ArrayType):
        factor *= type.count
        type = type.element
    return factor * (type.bytes if isinstance(type, TensorType) else 1)
