"""Results as text: literals with their types, which can be given as arguments again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import UnsupportedError
from ..core.evaluate import EnumValue, FunctionValue
from ..core.ops import dense
from ..core.text.lexer import written
from ..core.text.literals import print_elements
from ..core.types import (
    ArrayType,
    EnumType,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
)


def print_value(type: Type, data: Any) -> str:
    """A value as a literal with its type; however deeply an enum contains itself."""
    texts: list[str] = []
    pending: list[str | tuple[Type, Any]] = [(type, data)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            pending += reversed([*_pieces(*piece), f": {piece[0]}"])
    return "".join(texts)


def _pieces(type: Type, data: Any) -> list[str | tuple[Type, Any]]:
    """A value as text and the values inside it."""
    match type:
        case TensorType():
            return [print_elements(dense(type, np.asarray(data)))]
        case TupleType(elements):
            return ["(", *_listed(elements, data), ")"]
        case ArrayType(count, element):
            return ["[", *_listed((element,) * count, data), "]"]
        case StructType(fields=fields):
            types = tuple(element for _, element in fields)
            return [
                "{",
                *_listed(types, data, [f"{written('#', name)} = " for name, _ in fields]),
                "}",
            ]
        case EnumType() if isinstance(data, EnumValue):
            carried = _listed(type.carried(data.case), data.carried)
            return [written("?", data.case), *(["(", *carried, ")"] if carried else [])]
        case FunctionType() if isinstance(data, FunctionValue):
            return [written("@", data.name)]
        case _:
            raise UnsupportedError(f"a value of type {type} has no text: return what it is made of")


def _listed(
    types: Sequence[Type], data: Sequence[Any], heads: Sequence[str] = ()
) -> list[str | tuple[Type, Any]]:
    pieces: list[str | tuple[Type, Any]] = []
    for number, pair in enumerate(zip(types, data, strict=True)):
        head = heads[number] if heads else ""
        pieces += [f", {head}" if number else head, pair]
    return pieces
