"""Runtime values of the evaluator, their flattening, and default values.

| type | |
|---|---|
| tensor | an array (of bf16: float32) |
| tuple, struct, array | a tuple |
| enum | `EnumValue` |
| function | `FunctionValue` |
| pointer, box, stack | an address in `byte_memory`, a Python int; null is 0 |
| function or opaque value that is none | None |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..errors import TrapError
from ..lazy_dataclass import dataclass
from ..ops.enums import default_cases
from ..ops.leaves import assemble, is_leaf
from ..types import (
    ArrayType,
    BoxType,
    EnumType,
    PointerType,
    StackType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    parts_of,
    results_of,
    written,
)

MOST_PARTS = 1 << 24
"""A value made of more tensors than this would not fit into memory: an array of NumPy takes some 100 bytes, so 2
GiB."""


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A case of an enum, and what it carries."""

    case: str
    carried: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        """`?node(?leaf(1.0), ?none)`; a list of a million elements is one, too."""
        texts: list[str] = []
        pending: list[Any] = [self]
        while pending:
            current: Any = pending.pop()
            match current:
                case str() as text:
                    texts.append(text)
                case EnumValue(case, carried):
                    texts.append(written("?", case))
                    pending.extend(_listed(carried) if carried else ())
                case tuple():
                    pending.extend(_listed(cast(Any, current)))
                case other:
                    texts.append(str(other))
        return "".join(texts)


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function of the module, by name."""

    name: str

    def __str__(self) -> str:
        return written("@", self.name)


def _listed(elements: tuple[Any, ...]) -> list[Any]:
    """What is written between parentheses, the last one first."""
    parts: list[Any] = [")"]
    for element in reversed(elements):
        parts += [element, ", "]
    return [*(parts[:-1] if elements else parts), "("]


def rounded(type: Type, data: Any) -> Any:
    """A tensor's data rounded to its element type; everything else is left alone."""
    if not isinstance(type, TensorType):
        return data
    # row-major, as the order in which NumPy sums follows the layout in memory
    return np.asarray(type.dtype.round(data), order="C")


def packed_data(type: Type, results: Sequence[Any]) -> Any:
    """What a function that returns `type` has given, as one value."""
    return results[0] if results_of(type) == (type,) else tuple(results)


def unpacked_data(type: Type, value: Any) -> Sequence[Any]:
    """The results of a function that returns this value of `type`."""
    return (value,) if results_of(type) == (type,) else value


def flatten(type: Type, value: Any, *, large_arrays: bool = True) -> Iterator[Any]:
    """The leaves that a value is made of, in order; `leaves_of` says what is one."""
    pending = [(type, value)]
    while pending:
        current, data = pending.pop()
        if is_leaf(current, large_arrays=large_arrays):
            yield data
        else:
            pending.extend(reversed(list(zip(elements_of(current) or (), data, strict=True))))


def unflatten(type: Type, leaves: Iterator[Any], *, large_arrays: bool = True) -> Any:
    """The value that is made of these leaves, in order; aggregates may be nested deeply."""
    return assemble(type, leaves, lambda _, elements: tuple(elements), large_arrays=large_arrays)


def called(function: FunctionValue | None) -> str:
    """The name of a function that is called.  Raises: TrapError when it is none."""
    if function is None:
        raise TrapError("call null")
    return function.name


def undefined(type: Type) -> Any:
    """The value that `undefined` means, and that memory holds at first.

    Raises: TrapError when there is no value of the type, or it would be too large.
    """
    cases = default_cases(type)
    made: dict[int, tuple[Any, int]] = {}  # by identity: values, and of how many parts they are
    pending = [type]
    while pending:
        current = pending[-1]
        parts = _parts_of_default(current, cases)
        missing = [part for part in parts if id(part) not in made]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        elements = [made[id(part)] for part in parts]
        count = current.count if isinstance(current, ArrayType) else 1
        size = 1 + count * sum(size for _, size in elements)
        if size > MOST_PARTS:
            raise TrapError(f"out of memory: one value is made of {size} others")
        made[id(current)] = _default(current, [value for value, _ in elements], cases), size
    return made[id(type)][0]


def _parts_of_default(type: Type, cases: dict[str, str]) -> tuple[Type, ...]:
    match type:
        case EnumType(name):
            if name not in cases:
                raise TrapError(f"there is no value of {type}: each of its cases needs another one")
            return type.carried(cases[name])
        case TupleType() | StructType():
            return parts_of(type)
        case ArrayType(count, element):
            return (element,) if count else ()
        case _:
            return ()


def _default(type: Type, elements: list[Any], cases: dict[str, str]) -> Any:
    match type:
        case TensorType(shape, dtype):
            return np.zeros(shape, dtype.numpy)
        case TupleType() | StructType():
            return tuple(elements)
        case ArrayType(count=count):
            return tuple(elements) * count
        case EnumType(name):
            return EnumValue(cases[name], tuple(elements))
        case PointerType() | BoxType() | StackType():
            return 0
        case _:
            return None
