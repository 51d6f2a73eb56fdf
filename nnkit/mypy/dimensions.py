"""The dimensions of tensor types, as mypy has them: a type for each axis, Any where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mypy.nodes import TypeInfo
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    Type,
    TypeOfAny,
    get_proper_type,
)

UNKNOWN = AnyType(TypeOfAny.special_form)
_TENSOR = re.compile(r"nnkit\.Tensor(\d)D")


def tensor_in(type: Type | None) -> Instance | None:
    """The tensor type in `Rep[…]`, if there is one."""
    found = get_proper_type(type) if type is not None else None
    if isinstance(found, Instance) and found.type.fullname == "nnkit.Rep" and found.args:
        inner = get_proper_type(found.args[0])
        if isinstance(inner, Instance) and _TENSOR.fullmatch(inner.type.fullname):
            return inner
    return None


def is_rep(type: Type | None) -> bool:
    found = get_proper_type(type) if type is not None else None
    return isinstance(found, Instance) and found.type.has_base("nnkit.Rep")


def is_rep_of_data(type: Type | None) -> bool:
    """Whether it is a Rep, and no function, of which Python may ask the truth."""
    found = get_proper_type(type) if type is not None else None
    if not isinstance(found, Instance) or found.type.fullname != "nnkit.Rep":
        return False  # others that are Reps are functions
    return not any(isinstance(get_proper_type(each), CallableType) for each in found.args)


def dimensions(tensor: Instance) -> list[Type]:
    """Those of each axis, behind the element type."""
    return [get_proper_type(each) for each in tensor.args[1:]]


def with_dimensions(rep: Type, found: Sequence[Type]) -> Type:
    """The type `Rep[…]` with these dimensions in its tensor, if that has so many axes."""
    outer, tensor = get_proper_type(rep), tensor_in(rep)
    if not isinstance(outer, Instance) or tensor is None or len(tensor.args) != len(found) + 1:
        return rep
    return outer.copy_modified(args=[tensor.copy_modified(args=[tensor.args[0], *found])])


def is_known(dimension: Type) -> bool:
    return not isinstance(get_proper_type(dimension), AnyType)


def size_of(dimension: Type) -> int | None:
    """The size, where the type says it: `Literal[3]`."""
    found = get_proper_type(dimension)
    value = found.value if isinstance(found, LiteralType) else None
    return value if isinstance(value, int) else None


def is_named(dimension: Type) -> bool:
    """Whether it is a class of the user, `class Batch(Dim)`."""
    found = get_proper_type(dimension)
    info: TypeInfo | None = found.type if isinstance(found, Instance) else None
    return info is not None and info.has_base("nnkit.Dim")


def shown(dimension: Type) -> str:
    """As messages have it."""
    found = get_proper_type(dimension)
    if isinstance(found, Instance):
        return found.type.name
    return str(size_of(found)) if isinstance(found, LiteralType) else "?"
