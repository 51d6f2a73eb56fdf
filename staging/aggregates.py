"""Fields of structs and elements of tuples, as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .expression import Expression, GetElement, MakeAggregate
from .number_help import typed_number
from .primitive import dtype_error, index_error, is_index, literal, staging_error
from .rep_base import RepBase, constant_of, is_number
from .spec import (
    Spec,
    StructSpec,
    TensorSpec,
    TupleSpec,
    another,
    difference,
    fits,
    is_open,
    is_sequence,
)
from .tracing import make


class FieldLens(Protocol):
    """A field of a struct class."""

    owner: Any
    name: str
    index: int

    @property
    def spec(self) -> Spec | None:
        """What the class declares of it."""
        ...


def field_of(struct: Expression, lens: Any) -> Expression:
    """The field a lens names."""
    spec = struct.type
    assert isinstance(spec, StructSpec)
    position = _position(spec, lens)
    return part_of(struct, position, spec.fields[position][1])


def set_field(struct: Expression, lens: FieldLens, value: object) -> Expression:
    """The struct with one field replaced by a Rep, a concrete value, or for a sequence a list of such.

    Raises: DTypeError when the value is of another type.
    """
    spec = struct.type
    if not isinstance(spec, StructSpec):
        raise staging_error(f"only a struct has fields to set, not a {spec.words}")
    position = _position(spec, lens)
    held = spec.fields[position][1]
    new = aggregate_of(value, held)
    if new.type != held and not (
        lens.spec is not None and is_open(lens.spec) and fits(lens.spec, new.type)
    ):
        found = difference(held, new.type)
        raise dtype_error(
            f"field {lens.name} of {spec.words} must be a {held.words}, and is {found}"
        )
    parts = [
        new if k == position else part_of(struct, k, element)
        for k, (_, element) in enumerate(spec.fields)
    ]
    named = zip(spec.fields, parts, strict=True)
    made = StructSpec(spec.cls, tuple((name, part.type) for (name, _), part in named))
    return make(MakeAggregate(made), parts, made)


def aggregate_of(value: object, like: Spec | None = None) -> Expression:
    """The expression of a Rep or a concrete value; of a tuple or list of such, that of a tuple.

    A Python number takes the element type of `like`, if that is a scalar.  Raises: DTypeError for another one.
    """
    if isinstance(value, RepBase):
        return value.expression
    if is_sequence(value):
        elements: Sequence[object] = value
        fitting = like.elements if isinstance(like, TupleSpec) else ()
        known = fitting if len(fitting) == len(elements) else (None,) * len(elements)
        parts = [aggregate_of(one, spec) for one, spec in zip(elements, known, strict=True)]
        spec = TupleSpec(tuple(part.type for part in parts))
        return make(MakeAggregate(spec), parts, spec)
    if is_number(value) and isinstance(like, TensorSpec) and like.rank == 0:
        return literal(value, like.dtype)
    if is_number(value):
        raise dtype_error(
            f"{value!r} is a Python number, which has no element type of its own",
            typed_number(value, like),
        )
    return constant_of(value)


def element_of(value: Expression, key: Any) -> Expression:
    """An element of a tuple, or a slice.  Raises: IndexOutOfRangeError when there is none at `key`."""
    spec = value.type
    assert isinstance(spec, TupleSpec)
    count = len(spec.elements)
    if isinstance(key, slice):
        chosen = range(count)[key]
        parts = [part_of(value, k, spec.elements[k]) for k in chosen]
        several = TupleSpec(tuple(part.type for part in parts))
        return make(MakeAggregate(several), parts, several)
    if not is_index(key):
        raise staging_error(f"an element of a tuple is chosen by an int, not {key!r}")
    if not -count <= key < count:
        raise index_error(f"element {key} does not exist: the tuple has {count} elements")
    position = int(key) % count
    return part_of(value, position, spec.elements[position])


def with_element(value: Expression, position: int, new: Expression) -> Expression:
    """The tuple with one element replaced."""
    spec = value.type
    assert isinstance(spec, TupleSpec)
    at = position % len(spec.elements)
    parts = [new if k == at else part_of(value, k, one) for k, one in enumerate(spec.elements)]
    made = TupleSpec(tuple(part.type for part in parts))
    return make(MakeAggregate(made), parts, made)


def _position(spec: StructSpec, lens: Any) -> int:
    """Where the struct has the field; a subclass may have it elsewhere than its base."""
    owner, name = getattr(lens, "owner", None), getattr(lens, "name", None)
    if isinstance(owner, type) and another(spec.cls, owner):
        raise staging_error(f"{lens!r} is of {another(spec.cls, owner)}; this is a {spec.words}")
    if not (isinstance(owner, type) and issubclass(spec.cls, owner)) or name is None:
        raise staging_error(
            f"{lens!r} is not a field of {spec.words}",
            f"its fields are {', '.join(f'{spec.words}.{field}' for field, _ in spec.fields)}",
        )
    return [field for field, _ in spec.fields].index(name)


def part_of(whole: Expression, position: int, spec: Spec) -> Expression:
    """An element of a tuple or struct; what it was made of, where that is known."""
    if isinstance(whole.operation, MakeAggregate):
        return whole.operands[position]
    return make(GetElement(position), (whole,), spec)
