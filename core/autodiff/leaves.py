"""The tensors inside a type: differentiation sees a tuple or struct as those of its leaves that are tensors.

A leaf is numbered by its position, from left to right; sets of leaves are bit masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ..ir import Builder, Emitter, Value
from ..ops.aggregate import Aggregate, Extract, unpacked
from ..ops.leaves import leaves_of
from ..types import FunctionType, TensorType, TupleType, Type, elements_of


def tensors_in(type: Type) -> tuple[TensorType, ...]:
    """All tensors inside `type`, left to right; a function inside it is not one."""
    if isinstance(type, TensorType):
        return (type,)
    return tuple(leaf.type for leaf in leaves_of(type) if isinstance(leaf.type, TensorType))


def split(b: Emitter, value: Value) -> tuple[Value, ...]:
    """The tensors inside `value` as values; a tensor is its own."""
    if isinstance(value.type, TensorType):
        return (value,)
    leaves = [leaf for leaf in leaves_of(value.type) if isinstance(leaf.type, TensorType)]
    return tuple(b.emit(Extract(leaf.path), value) for leaf in leaves)


def leaf_count(types: Sequence[Type]) -> int:
    """How many tensors are inside all of `types`."""
    return sum(len(tensors_in(type)) for type in types)


def elements(type: Type) -> tuple[Type, ...]:
    """The results a function of this result type is said to have: those of a tuple, else the one."""
    return type.elements if isinstance(type, TupleType) else (type,)


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
        return slice(first, first + len(tensors_in(type)))


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
    counts = (len(tensors_in(part)) for part in elements_of(type) or ())
    return list(accumulate(counts, initial=0))
