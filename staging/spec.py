"""Abstract values of staging: rank and element type, not the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from typing_extensions import TypeIs

from ..core.types import BOOL, DType, TensorType


class Spec:
    """Base of the staging-time types."""

    @property
    def words(self) -> str:
        """As users read it."""
        raise AssertionError("every spec says how it reads")


class TensorSpec(TensorType, Spec):
    """A tensor of `rank` axes whose extents are not known: what the shape rules of ops are run on while staging.

    Every extent is 1: an axis of extent 1 broadcasts with, and is as long as, every other one, so that a
    rule finds the rank and element type, or a mistake in them, and never one that only extents decide.
    """

    def __init__(self, rank: int, dtype: DType) -> None:
        super().__init__((1,) * rank, dtype)

    @property
    def words(self) -> str:
        return f"Tensor{self.rank}D[{dtype_words(self.dtype)}]"


def dtype_words(dtype: DType) -> str:
    """An element type as the language calls it."""
    return "boolean" if dtype is BOOL else dtype.name


@dataclass(frozen=True, eq=False)
class TupleSpec(Spec):
    """Several values."""

    elements: tuple[Spec, ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.elements))

    def __hash__(self) -> int:
        """Kept, as a tuple of tuples of … may mention a part exponentially often."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Types of other depths are told apart by their hashes, without a look inside."""
        return self is other or (
            isinstance(other, TupleSpec)
            and self._hash == other._hash
            and self.elements == other.elements
        )

    @property
    def words(self) -> str:
        return f"tuple[{', '.join(e.words for e in self.elements)}]"


@dataclass(frozen=True, eq=False)
class StructSpec(Spec):
    """A struct class and what is known of its fields."""

    cls: type[Any]
    fields: tuple[tuple[str, Spec], ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.cls, self.fields)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, StructSpec)
            and self._hash == other._hash
            and self.cls is other.cls
            and self.fields == other.fields
        )

    @property
    def words(self) -> str:
        return self.cls.__name__

    def find(self, name: str) -> Spec | None:
        """The type of a field; None when there is none of that name."""
        return dict(self.fields).get(name)


@dataclass(frozen=True)
class CallableSpec(Spec):
    """A staged function of which the annotation says what it takes and returns (None where it does not)."""

    parameters: tuple[Spec | None, ...]
    result: Spec | None

    @property
    def words(self) -> str:
        return "staged function"


@dataclass(frozen=True, eq=False)
class FunctionSpec(Spec):
    """A certain staged function, equal to itself only; there is nothing of it at run time."""

    function: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSpec) and self.function is other.function

    def __hash__(self) -> int:
        return hash(id(self.function))

    @property
    def words(self) -> str:
        return "staged function"


def is_tuple(value: object) -> TypeIs[tuple[Any, ...]]:
    """Whether it is a tuple, of anything."""
    return isinstance(value, tuple)


def as_tuple(value: object) -> tuple[Any, ...]:
    """What a tuple or list holds; anything else is the only element."""
    if isinstance(value, tuple | list):
        return tuple(cast("Sequence[Any]", value))
    return (value,)


def leaves(spec: Spec) -> list[TensorSpec]:
    """The tensors inside, from left to right."""
    match spec:
        case TensorSpec():
            return [spec]
        case TupleSpec(elements):
            return [leaf for element in elements for leaf in leaves(element)]
        case StructSpec(fields=fields):
            return [leaf for _, element in fields for leaf in leaves(element)]
        case _:
            return []
