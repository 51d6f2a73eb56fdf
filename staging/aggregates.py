"""Fields of structs and elements of tuples, as expressions."""

from __future__ import annotations

from typing import Any, Protocol

from .expression import Expression, GetElement, MakeAggregate, make
from .primitive import dtype_error, index_error, is_index, staging_error
from .spec import Spec, StructSpec, TupleSpec


class FieldLens(Protocol):
    """A field of a struct class."""

    owner: Any
    name: str
    index: int


def field_of(struct: Expression, lens: Any) -> Expression:
    """The field a lens names."""
    spec = struct.type
    assert isinstance(spec, StructSpec)
    position = _position(spec, lens)
    return part_of(struct, position, spec.fields[position][1])


def set_field(struct: Expression, lens: FieldLens, value: object) -> Expression:
    """The struct with one field replaced.  Raises: DTypeError when the value is of another type."""
    spec = struct.type
    if not isinstance(spec, StructSpec):
        raise staging_error(f"only a struct has fields to set, not a {spec.words}")
    position = _position(spec, lens)
    held = spec.fields[position][1]
    new = getattr(value, "expression", None)
    if not isinstance(new, Expression) or new.type != held:
        found = new.type.words if isinstance(new, Expression) else type(value).__name__
        raise dtype_error(
            f"field {lens.name} of {spec.words} must be a {held.words}, and is a {found}"
        )
    parts = [
        new if k == position else part_of(struct, k, element)
        for k, (_, element) in enumerate(spec.fields)
    ]
    return make(MakeAggregate(spec), parts, spec)


def element_of(value: Expression, key: Any) -> Expression:
    """An element of a tuple.  Raises: IndexOutOfRangeError when there is none at `key`."""
    spec = value.type
    assert isinstance(spec, TupleSpec)
    count = len(spec.elements)
    if not is_index(key):
        raise staging_error(f"an element of a tuple is chosen by an int, not {key!r}")
    if not -count <= key < count:
        raise index_error(f"element {key} does not exist: the tuple has {count} elements")
    position = int(key) % count
    return part_of(value, position, spec.elements[position])


def _position(spec: StructSpec, lens: Any) -> int:
    """Where the struct has the field; a subclass may have it elsewhere than its base."""
    owner, name = getattr(lens, "owner", None), getattr(lens, "name", None)
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
