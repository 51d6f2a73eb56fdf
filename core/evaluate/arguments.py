"""Converts Python data to runtime values: arguments of a run, and results of extern functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..errors import DTypeError, ShapeError
from ..types import (
    ArrayType,
    BoxType,
    EnumType,
    FunctionType,
    PointerType,
    StackType,
    StructType,
    TensorType,
    TupleType,
    Type,
    parts_of,
    written,
)
from .runtime_values import EnumValue, FunctionValue, rounded, undefined

_REFERENCES: Mapping[type[Type], type] = {
    FunctionType: FunctionValue,
    PointerType: int,
    BoxType: int,
    StackType: int,
}


def convert(type: Type, data: Any) -> Any:
    """What someone gave as a value of `type`: arrays or numbers, sequences, pairs of a case and what it carries.

    Raises: ShapeError or DTypeError when it cannot be one.
    """
    done: list[Any] = []
    pending: list[tuple[Type | None, Any]] = [(type, data)]
    while pending:
        current, given = pending.pop()
        if current is None:  # the parts are done: put them together
            case, count = given
            made = tuple(done[len(done) - count :])
            del done[len(done) - count :]
            done.append(made if case is None else EnumValue(case, made))
        elif isinstance(current, TensorType):
            done.append(_tensor(current, given))
        else:
            inner = _parts_given(current, given)
            if inner is None:
                done.append(_checked(current, given))
                continue
            case, types, parts = inner
            pending.append((None, (case, len(parts))))
            pending.extend(reversed(list(zip(types, parts, strict=True))))
    return done[0]


def _tensor(type: TensorType, data: Any) -> Any:
    try:
        array = np.asarray(data)
    except ValueError:
        raise ShapeError(f"a {type} was expected, not rows of different lengths") from None
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"a {type} was expected, not {_shown(data)}")
    if array.shape != type.shape:
        raise ShapeError(f"a {type} was expected, not an array of shape {list(array.shape)}")
    with np.errstate(all="ignore"):
        converted = rounded(type, array)
    if not type.dtype.is_float and not np.array_equal(converted, array):
        raise DTypeError(f"{array[converted != array].flat[0]} is no {type.dtype}")
    return converted


def _parts_given(type: Type, data: Any) -> tuple[str | None, Sequence[Type], Sequence[Any]] | None:
    """Case, types and data of what makes up an aggregate or enum."""
    case = None
    types: Sequence[Type]
    match type:
        case TupleType() | StructType():
            types = parts_of(type)
        case ArrayType(count, element):
            fits = isinstance(data, Sequence) and len(cast(Any, data)) == count
            types = (element,) * count if fits else ()
        case EnumType():
            case, data = _case_given(type, data)
            types = type.carried(case)
        case _:
            return None
    if not isinstance(data, tuple | list):
        raise DTypeError(f"a {type} was expected, not {_shown(data)}")
    parts = cast("Sequence[Any]", data)
    if len(parts) != len(types):
        wanted = type.count if isinstance(type, ArrayType) else len(types)
        raise ShapeError(f"a {type} is made of {wanted} values, not {len(parts)}")
    return case, types, parts


def _case_given(type: EnumType, data: Any) -> tuple[str, Any]:
    case: str
    carried: Any
    match data:
        case EnumValue():
            case, carried = data.case, data.carried
        case (str(), _):
            case, carried = cast("tuple[str, Any]", data)
        case _:
            raise DTypeError(
                f"a case of {type} and what it carries was expected, not {_shown(data)}"
            )
    if case not in type.positions:
        raise DTypeError(f"{type} has no case {written('?', case)}")
    return case, carried


def _checked(type: Type, data: Any) -> Any:
    """A function, an address or something opaque: none of these can be made from other data."""
    if data is None:
        return undefined(type)
    for kind, values in _REFERENCES.items():
        if isinstance(type, kind) and not isinstance(data, values):
            raise DTypeError(f"a {type} was expected, not {_shown(data)}")
    return data


def _shown(data: Any) -> str:
    return f"a {type(data).__name__}"
