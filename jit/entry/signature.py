"""What a compiled program takes and returns: trees whose leaves are arrays of one dtype and shape.

A tree says both how to find the data pointers in the Python arguments and how to build the Python
result. Leaves are numbered from left to right; the kernel has one pointer per leaf, arguments
first.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from ...core.types import DTYPES, MAX_RANK
from .layout import slot_of

STORAGE: Final[Mapping[str, np.dtype[Any]]] = MappingProxyType(
    {dtype.name: dtype.storage for dtype in DTYPES.values()}
)
"""The NumPy dtype that holds each of ours; bf16, which NumPy lacks, as bit patterns."""


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """An array, bare or in the slot of a wrapper class; results are wrapped whenever `wrapper` is given."""

    dtype: str
    shape: tuple[int, ...]
    wrapper: type[object] | None = None

    def __post_init__(self) -> None:
        if self.dtype not in STORAGE:
            raise ValueError(f"unknown dtype {self.dtype!r}; known are {', '.join(STORAGE)}")
        if len(self.shape) > MAX_RANK or any(length < 0 for length in self.shape):
            raise ValueError(f"no array has the shape {self.shape}")

    @property
    def storage(self) -> np.dtype[Any]:
        """The dtype of the array in memory."""
        return STORAGE[self.dtype]

    @property
    def bytes(self) -> int:
        """Size of the data."""
        return math.prod(self.shape) * self.storage.itemsize


@dataclass(frozen=True, slots=True)
class RecordNode:
    """An instance of `cls` whose one slot holds a tuple of the fields."""

    cls: type[object]
    fields: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class TupleNode:
    """A Python tuple."""

    items: "tuple[Node, ...]"


Node: TypeAlias = ArrayNode | RecordNode | TupleNode


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments and result of a program, and the slots in which wrappers and records keep their contents."""

    arguments: tuple[Node, ...]
    result: Node
    array_slot: str = "_array"
    fields_slot: str = "_fields"

    def __post_init__(self) -> None:
        """Raises: TypeError when a class has no such slot."""
        for node in self.nodes:
            match node:
                case ArrayNode(_, _, wrapper) if wrapper is not None:
                    slot_of(wrapper, self.array_slot)
                case RecordNode(cls):
                    slot_of(cls, self.fields_slot)
                case _:
                    pass

    @property
    def inputs(self) -> tuple[ArrayNode, ...]:
        """The leaves of the arguments, in the order of the kernel's parameters."""
        return tuple(leaf for node in self.arguments for leaf in leaves(node))

    @property
    def outputs(self) -> tuple[ArrayNode, ...]:
        """The leaves of the result, in the order of the kernel's parameters."""
        return tuple(leaves(self.result))

    @property
    def nodes(self) -> Iterator[Node]:
        """Every node of every tree, parents first."""
        for node in (*self.arguments, self.result):
            yield from walk(node)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case ArrayNode():
            return ()
        case RecordNode(_, fields):
            return fields
        case TupleNode(items):
            return items


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def leaves(node: Node) -> Iterator[ArrayNode]:
    """The leaves of a tree, left to right."""
    return (below for below in walk(node) if isinstance(below, ArrayNode))
