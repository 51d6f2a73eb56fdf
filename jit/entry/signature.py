"""What a compiled program takes and returns: trees whose leaves are arrays of one dtype and shape.

A tree says both how to find the data pointers in the Python arguments and how to build the Python
result. Leaves are numbered from left to right; the kernel has one pointer per leaf, arguments
first.
"""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from ...core.lazy_dataclass import dataclass
from ...core.types import DTYPES, MAX_RANK
from .guards import Guard
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
    """Arguments and result of a program, and the slots in which wrappers and records keep their contents.

    With `given_result` a call has one argument more, by the keyword `out`, a tree of wrapped arrays like the result:
    they are written to, and the call returns that tree.
    The wrappers in the arguments numbered `donated` are empty after a call; `reused` are pairs of leaves, of these
    arguments and of the result, of which the kernel takes one buffer for both.
    """

    arguments: tuple[Node, ...]
    result: Node
    array_slot: str = "_array"
    fields_slot: str = "_fields"
    given_result: bool = False
    donated: tuple[int, ...] = ()
    reused: tuple[tuple[int, int], ...] = ()
    guard: Guard | None = None
    """What must be so besides."""

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
        if self.given_result and self.donated:
            raise ValueError("what is donated is where results go, so none is given")

    @property
    def inputs(self) -> tuple[ArrayNode, ...]:
        """The leaves of the arguments, in the order of the kernel's parameters."""
        return tuple(leaf for node in self.arguments for leaf in leaves(node))

    @property
    def outputs(self) -> tuple[ArrayNode, ...]:
        """The leaves of the result, in the order of the kernel's parameters."""
        return tuple(leaves(self.result))

    @property
    def donated_leaves(self) -> tuple[range, ...]:
        """The leaves of each donated argument."""
        counts = [sum(1 for _ in leaves(node)) for node in self.arguments]
        starts = [sum(counts[:number]) for number in self.donated]
        return tuple(range(s, s + counts[n]) for s, n in zip(starts, self.donated, strict=True))

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
