"""Types as text."""

from __future__ import annotations

from ..errors import ShapeError
from ..types import DTYPES, VOID, DType, FunctionType, Shape, TensorType, TupleType, Type
from .cursor import Cursor


def parse_type(cursor: Cursor) -> Type:
    """Any type: `f32`, `<2 x f32>`, `(T, U)`, `(T) -> U`, `$S`, `void`."""
    if cursor.accept("void"):
        return VOID
    token = cursor.token
    if token.kind == "name" and token.text[0] == "$":
        name = cursor.name("$", "a struct")
        if name not in cursor.structs:
            raise cursor.error_at(token, f"the struct ${name} is not defined")
        return cursor.structs[name]
    if cursor.at("("):
        elements = _parse_list(cursor)
        if cursor.accept("->"):
            cursor.descend()
            result = parse_type(cursor)
            cursor.ascend()
            return FunctionType(elements, result)
        return TupleType(elements)
    return parse_tensor(cursor)


def parse_function_type(cursor: Cursor) -> FunctionType:
    """`(T, U) -> R`."""
    start = cursor.position
    type = parse_type(cursor)
    if not isinstance(type, FunctionType):
        raise cursor.error("a function type (T, U) -> R was expected", start)
    return type


def parse_tensor(cursor: Cursor) -> TensorType:
    """`f32` or `<2 x 3 x f32>`."""
    start = cursor.position
    if not cursor.accept("<"):
        return TensorType((), parse_dtype(cursor))
    extents: list[int] = []
    while cursor.token.kind == "number":
        extents.append(cursor.integer())
        cursor.expect("x")
    if not extents:
        raise cursor.error("a tensor type has at least one extent, <2 x f32>; a scalar is f32")
    dtype = parse_dtype(cursor)
    cursor.expect(">")
    try:
        return TensorType(tuple(extents), dtype)
    except ShapeError as error:
        raise cursor.error(str(error), start) from None


def parse_dtype(cursor: Cursor) -> DType:
    """`f32`."""
    token = cursor.next()
    if token.text not in DTYPES or token.kind != "word":
        shown = repr(token.text) if token.text else "the end of the text"
        raise cursor.error_at(token, f"a type was expected, not {shown}")
    return DTYPES[token.text]


def parse_shape(cursor: Cursor) -> Shape:
    """`2 x 3` or `scalar`."""
    if cursor.accept("scalar"):
        return ()
    extents = [cursor.integer()]
    while cursor.accept("x"):
        extents.append(cursor.integer())
    if any(extent < 0 for extent in extents):
        raise cursor.error("an extent cannot be negative")
    return tuple(extents)


def print_shape(shape: Shape) -> str:
    """`2 x 3` or `scalar`."""
    return " x ".join(map(str, shape)) or "scalar"


def _parse_list(cursor: Cursor) -> tuple[Type, ...]:
    cursor.expect("(")
    cursor.descend()
    types: list[Type] = []
    while not cursor.accept(")"):
        if types:
            cursor.expect(",")
        types.append(parse_type(cursor))
    cursor.ascend()
    return tuple(types)
