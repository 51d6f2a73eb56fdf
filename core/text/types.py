"""Types as text."""

from __future__ import annotations

from ..errors import ShapeError
from ..types import DTYPES, VOID, DType, FunctionType, Shape, TensorType, TupleType, Type
from .cursor import Cursor, alternatives


def parse_type(cursor: Cursor) -> Type:
    """Any type: `f32`, `<2 x f32>`, `(T, U)`, `(T) -> U`, `$S`, `void`."""
    token = cursor.token
    if token.text == "<" or token.text in DTYPES:
        return parse_tensor(cursor)
    if cursor.accept("void"):
        return VOID
    if token.kind == "name" and token.text[0] == "$":
        name = cursor.name("$", "a struct")
        if name not in cursor.structs:
            raise cursor.error_at(token, f"the struct {token.text} is not defined")
        return cursor.structs[name]
    if cursor.at("("):
        elements = _parse_list(cursor)
        if not cursor.accept("->"):
            return TupleType(elements)
        cursor.descend()
        result = parse_type(cursor)
        cursor.ascend()
        return FunctionType(elements, result)
    raise cursor.error(f"a type was expected, not {token.shown}")


def parse_function_type(cursor: Cursor) -> FunctionType:
    """`(T, U) -> R`."""
    start = cursor.position
    type = parse_type(cursor)
    if not isinstance(type, FunctionType):
        raise cursor.error("a function type (T, U) -> R was expected", start)
    return type


def parse_tensor(cursor: Cursor) -> TensorType:
    """`f32` or `<2 x 3 x f32>`; the same text is taken apart once."""
    start, first = cursor.position, cursor.token.start
    if not cursor.at("<"):
        return _made(cursor, start, (), parse_dtype(cursor))
    end = cursor.text.find(">", first)
    text = cursor.text[first : end + 1]
    if text in cursor.tensors:
        type, length = cursor.tensors[text]
        cursor.skip(length)
        return type
    type = _parse_extents(cursor, start)
    if cursor.tokens[cursor.position - 1].start == end:  # no comment with a > is inside
        cursor.tensors[text] = type, cursor.position - start
    return type


def _parse_extents(cursor: Cursor, start: int) -> TensorType:
    cursor.expect("<")
    extents: list[int] = []
    while cursor.token.kind == "integer":
        extents.append(cursor.integer())
        cursor.expect("x")
    if not extents:
        raise cursor.error("a tensor type has at least one extent, <2 x f32>; a scalar is f32")
    dtype = parse_dtype(cursor)
    cursor.expect(">")
    return _made(cursor, start, tuple(extents), dtype)


def parse_dtype(cursor: Cursor) -> DType:
    """`f32`."""
    token = cursor.next()
    dtype = DTYPES.get(token.text)
    if dtype is None:
        expected = alternatives(list(DTYPES))
        raise cursor.error_at(token, f"{expected} was expected, not {token.shown}")
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


def _made(cursor: Cursor, start: int, shape: Shape, dtype: DType) -> TensorType:
    try:
        return TensorType(shape, dtype)
    except ShapeError as error:
        raise cursor.error(str(error), start) from None


def _parse_list(cursor: Cursor) -> tuple[Type, ...]:
    cursor.expect("(")
    cursor.descend()
    types: list[Type] = []
    while cursor.separated(")", not types):
        types.append(parse_type(cursor))
    cursor.ascend()
    return tuple(types)
