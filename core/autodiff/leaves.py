"""The tensors inside a type: differentiation sees a tuple or struct as its leaves, left to right.

A leaf is named by its path (`0`, `#w`) and numbered by its position; sets of leaves are bit masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from ..ir import Builder, Emitter, Value
from ..ops.aggregate import Aggregate, Extract, unpacked
from ..types import (
    ArrayType,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
)

Key: TypeAlias = "int | str"


@dataclass(frozen=True)
class Leaf:
    """A tensor inside a type, and the keys that lead to it (none when the type is the tensor)."""

    type: TensorType
    path: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return ".".join(f"#{key}" if isinstance(key, str) else str(key) for key in self.path)


def leaves_of(type: Type) -> tuple[Leaf, ...]:
    """All tensors inside `type`, left to right; a function inside it is not one."""
    if isinstance(type, TensorType):
        return (Leaf(type),)
    found: list[Leaf] = []
    pending: list[tuple[Type, tuple[Key, ...]]] = [(type, ())]
    while pending:
        current, path = pending.pop()
        if isinstance(current, TensorType):
            found.append(Leaf(current, path))
        else:
            pending.extend((t, (*path, key)) for key, t in reversed(list(_items(current))))
    return tuple(found)


def leaf_count(types: Sequence[Type]) -> int:
    """How many tensors are inside all of `types`."""
    return sum(len(leaves_of(type)) for type in types)


def elements(type: Type) -> tuple[Type, ...]:
    """The results a function of this result type is said to have: those of a tuple, else the one."""
    return type.elements if isinstance(type, TupleType) else (type,)


def split(b: Emitter, value: Value) -> tuple[Value, ...]:
    """The leaves of `value` as values; a tensor is its own leaf."""
    if isinstance(value.type, TensorType):
        return (value,)
    return tuple(b.emit(Extract(leaf.path), value) for leaf in leaves_of(value.type))


def join(b: Emitter, type: Type, leaves: Sequence[Value]) -> Value:
    """A value of `type` whose leaves are `leaves`."""
    remaining = iter(leaves)
    pending: list[tuple[Type, bool]] = [(type, False)]
    made: list[Value] = []
    while pending:
        current, is_complete = pending.pop()
        parts = elements_of(current)
        if parts is None:
            made.append(next(remaining))
        elif is_complete:
            assert isinstance(current, TupleType | StructType | ArrayType)
            first = len(made) - len(parts)
            made[first:] = [b.emit(Aggregate(current), *made[first:])]
        else:
            pending.append((current, True))
            pending.extend((part, False) for part in reversed(parts))
    return made[0]


def declared(b: Emitter, type: FunctionType, results: Sequence[Value]) -> Sequence[Value]:
    """What a declaration calls the results of a function of `type`: the element of a tuple of one, too."""
    if elements(type.result) == type.results:
        return results
    return [b.emit(Extract((0,)), *results)]


def returned(b: Builder, type: FunctionType, results: Sequence[Value]) -> Sequence[Value]:
    """What a function of `type` returns for what a declaration calls its results."""
    if len(results) == 1 and results[0].type == type.result:
        return unpacked(b, *results)
    if elements(type.result) == type.results:
        return results
    assert isinstance(type.result, TupleType)
    return [b.emit(Aggregate(type.result), *results)]


@dataclass
class Spans:
    """Where parts of aggregates lie among their leaves; what was found for a value is remembered."""

    _starts: dict[Value, list[int]] = field(default_factory=dict[Value, "list[int]"])

    def of(self, op: Extract, x: Value) -> slice:
        """The leaves of `x` that `op` takes out of it."""
        if x not in self._starts:
            self._starts[x] = _starts(x.type)
        first, type = 0, x.type
        for depth, position in enumerate(op.positions(type)):
            first += (_starts(type) if depth else self._starts[x])[position]
            type = (elements_of(type) or ())[position]
        return slice(first, first + len(leaves_of(type)))


def members(mask: int) -> Iterator[int]:
    """The positions of the bits set in `mask`, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(positions: Sequence[int]) -> int:
    """The mask with these bits set."""
    return sum(1 << position for position in set(positions))


def _starts(type: Type) -> list[int]:
    counts = (len(leaves_of(part)) for part in elements_of(type) or ())
    return list(accumulate(counts, initial=0))


def _items(type: Type) -> Iterator[tuple[Key, Type]]:
    match type:
        case TupleType(parts):
            yield from enumerate(parts)
        case StructType(fields=fields):
            yield from fields
        case ArrayType(count, element):
            yield from ((position, element) for position in range(count))
        case _:
            return
