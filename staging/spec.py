"""Abstract values of staging: rank and element type, not the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, cast

from typing_extensions import TypeIs

from ..core.lazy_dataclass import dataclass
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
class SequenceSpec(Spec):
    """Any number of values of one type, as annotations declare them: `list[Layer]`, `tuple[Layer, ...]`.

    No value has this type: that of each is a `TupleSpec`, of so many elements.
    """

    element: Spec

    @property
    def words(self) -> str:
        return f"tuple[{self.element.words}, ...]"


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


def is_open(spec: Spec) -> bool:
    """Whether a declared type leaves the length of a sequence inside of it open."""
    match spec:
        case SequenceSpec():
            return True
        case TupleSpec(elements):
            return any(map(is_open, elements))
        case StructSpec(fields=fields):
            return any(is_open(one) for _, one in fields)
        case _:
            return False


def fits(wanted: Spec, given: Spec) -> bool:
    """Whether a value is of the declared type; of a function only that it is one."""
    if isinstance(wanted, CallableSpec):
        return isinstance(given, FunctionSpec)
    if not is_open(wanted):
        return wanted == given
    match wanted, given:
        case SequenceSpec(element), TupleSpec(elements):
            return all(fits(element, one) for one in elements)
        case TupleSpec(declared), TupleSpec(elements):
            return len(declared) == len(elements) and all(map(fits, declared, elements))
        case StructSpec(cls, declared), StructSpec(other, fields) if cls is other:
            return all(
                fits(one, found) for (_, one), (_, found) in zip(declared, fields, strict=True)
            )
        case _:
            return False


def with_article(words: str) -> str:
    """With its article."""
    return f"{'an' if words[0] in 'aeiouAEIOU' else 'a'} {words}"


def difference(wanted: Spec, given: Spec) -> str:
    """What is given in the place of another type, in words, which tell two struct classes of one name apart."""
    if isinstance(wanted, StructSpec) and isinstance(given, StructSpec):
        return another(wanted.cls, given.cls) or with_article(given.words) + _other_field(
            wanted, given
        )
    return with_article(given.words)


def _other_field(wanted: StructSpec, given: StructSpec) -> str:
    """Of two structs of one class, the field in which they differ."""
    if wanted.cls is not given.cls:
        return ""
    for (name, one), (_, other) in zip(wanted.fields, given.fields, strict=True):
        if not fits(one, other):
            return f" whose {name} is {difference(one, other)}, not {with_article(one.words)}"
    return ""


def another(wanted: type[Any], given: type[Any]) -> str:
    """Of a struct class with the name of `wanted`, defined at another time, where it was; nothing for another class."""
    if given is wanted or given.__qualname__ != wanted.__qualname__:
        return ""
    when = "before" if given._definition.number < wanted._definition.number else "after it"
    place = given._definition.location.resolve() if given._definition.location else None
    return f"another {wanted.__name__}, defined {when}{f' at {place.label}' if place else ''}"


def is_tuple(value: object) -> TypeIs[tuple[Any, ...]]:
    """Whether it is a tuple, of anything."""
    return isinstance(value, tuple)


def is_sequence(value: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Whether it is a list or a tuple, of anything."""
    return isinstance(value, list | tuple)


def as_tuple(value: object) -> tuple[Any, ...]:
    """What a tuple or list holds; anything else is the only element."""
    if isinstance(value, tuple | list):
        return tuple(cast("Sequence[Any]", value))
    return (value,)


def leaves(spec: Spec) -> list[TensorSpec]:
    """The tensors inside, from left to right; one of each kind, where a declared type leaves open how many."""
    match spec:
        case TensorSpec():
            return [spec]
        case TupleSpec(elements):
            return [leaf for element in elements for leaf in leaves(element)]
        case StructSpec(fields=fields):
            return [leaf for _, element in fields for leaf in leaves(element)]
        case SequenceSpec(element):
            return leaves(element)
        case _:
            return []
