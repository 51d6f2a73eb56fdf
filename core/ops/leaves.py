"""The leaves of a type: what is left when tuples, structs and arrays are taken apart, from left to right.

Signatures, bodies, derivatives, files and memory all number the parts of a value as this module does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar

from ..errors import InternalError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..types import ArrayType, StructType, TupleType, Type, elements_of
from .aggregate import Aggregate, Extract

Key: TypeAlias = "int | str"
"""The number of an element, or the name of a field."""

_Part = TypeVar("_Part")

LARGE_ARRAY = 1 << 14
"""An array of more leaves is no list of values any more: code for so many would take minutes to generate."""


@dataclass(frozen=True)
class Leaf:
    """The type of a leaf, and the keys that lead to it (none when the type is its own leaf)."""

    type: Type
    path: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return ".".join(f"#{key}" if isinstance(key, str) else str(key) for key in self.path)


def parts_by_key(type: Type) -> Iterator[tuple[Key, Type]]:
    """The elements of an aggregate with their keys, one after the other, as an array may have billions."""
    match type:
        case TupleType(parts):
            yield from enumerate(parts)
        case StructType(fields=fields):
            yield from fields
        case ArrayType(count, element):
            yield from ((position, element) for position in range(count))
        case _:
            return


def leaves_of(type: Type, *, large_arrays: bool = True) -> Iterator[Leaf]:
    """All leaves of `type`; without `large_arrays` an array of more than LARGE_ARRAY leaves is one."""
    open = [iter([Leaf(type)])]
    while open:
        leaf = next(open[-1], None)
        if leaf is None:
            open.pop()
        elif is_leaf(leaf.type, large_arrays=large_arrays):
            yield leaf
        else:
            open.append(_inside(leaf))


def is_leaf(type: Type, *, large_arrays: bool = True) -> bool:
    """Whether `type` is not taken apart."""
    if isinstance(type, ArrayType) and not large_arrays:
        return next(islice(leaves_of(type), LARGE_ARRAY, None), None) is not None
    return not isinstance(type, TupleType | StructType | ArrayType)


def take_apart(b: Emitter, x: Value, *, large_arrays: bool = True) -> list[Value]:
    """The leaves of a value as values."""
    leaves = leaves_of(x.type, large_arrays=large_arrays)
    return [b.emit(Extract(leaf.path), x) if leaf.path else x for leaf in leaves]


def put_together(
    b: Emitter, type: Type, leaves: Iterator[Value], *, large_arrays: bool = True
) -> Value:
    """A value of `type` made of the next of `leaves`."""
    return assemble(type, leaves, partial(_made, b), large_arrays=large_arrays)


def assemble(
    type: Type,
    leaves: Iterator[_Part],
    make: Callable[[Type, list[_Part]], _Part],
    *,
    large_arrays: bool = True,
) -> _Part:
    """The whole that `make` gives for `type`, of its elements made so before, or of the next of `leaves`."""
    done: list[_Part] = []
    pending: list[tuple[Type, int | None]] = [(type, None)]
    while pending:
        current, count = pending.pop()
        if count is not None:
            first = len(done) - count
            done[first:] = [make(current, done[first:])]
        elif is_leaf(current, large_arrays=large_arrays):
            done.append(next(leaves))
        else:
            elements = elements_of(current) or ()
            pending.append((current, len(elements)))
            pending.extend((element, None) for element in reversed(elements))
    return done[0]


def with_parts(b: Emitter, x: Value, parts: Mapping[Key, Value]) -> Value:
    """The aggregate `x` with other elements, of which `parts` has some by their keys."""
    elements = [parts.get(key) or b.emit(Extract((key,)), x) for key, _ in parts_by_key(x.type)]
    return _made(b, x.type, elements)


def _made(b: Emitter, type: Type, elements: Sequence[Value]) -> Value:
    if not isinstance(type, TupleType | StructType | ArrayType):
        raise InternalError(f"{type} has no elements")
    return b.emit(Aggregate(type), *elements)


def _inside(leaf: Leaf) -> Iterator[Leaf]:
    return (Leaf(type, (*leaf.path, key)) for key, type in parts_by_key(leaf.type))
