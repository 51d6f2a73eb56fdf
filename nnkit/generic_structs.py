"""Structs that are generic: what their type variables stand for.

    class Linear(Struct, Generic[D, In, Out]):
        w: Field[Tensor2D[D, In, Out]]
        b: Field[Tensor1D[D, Out]]

is one class for all element types: `Field[Linear[f64]]` holds layers of f64, and `Field[Linear]` those of the defaults
of the type variables, as for the checkers.  Variables of dimensions stand for names, which are no part of a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

from .core.errors import DTypeError
from .staging.spec import StructSpec, TensorSpec, TupleSpec, is_sequence
from .tensors import DTYPES, RANKED, AnyTensor, DType

Known = Mapping[Any, Any]
"""Type variables with what they stand for."""


def is_variable(annotation: object) -> bool:
    """Whether it is a type variable."""
    return isinstance(annotation, TypeVar)


def substituted(annotation: Any, known: Known) -> Any:
    """The annotation, with each type variable replaced by what it stands for, or else by its default."""
    if is_variable(annotation):
        found = known.get(annotation, annotation)
        return getattr(found, "__default__", found) if is_variable(found) else found
    if not get_args(annotation) or not _is_open(annotation):
        return annotation
    inside = tuple(substituted(one, known) for one in get_args(annotation))
    return _of(annotation, inside)


def variables_of(annotation: Any) -> dict[Any, Any]:
    """What the type variables of a class stand for in `Linear[f64]`, or in `Linear` without arguments."""
    cls = get_origin(annotation) or annotation
    names = getattr(cls, "__parameters__", ())
    given = dict(zip(names, get_args(annotation), strict=False))
    return {name: substituted(given.get(name, name), {}) for name in names}


def inherited(cls: type[Any]) -> dict[Any, Any]:
    """What the type variables of its bases stand for in a class: `class Doubles(Linear[f64])`."""
    known: dict[Any, Any] = {}
    for base in cls.__dict__.get("__orig_bases__", ()):
        names = getattr(get_origin(base), "__parameters__", ())
        known |= dict(zip(names, get_args(base), strict=False))
    return known


def rewritten(annotation: Any, known: Known) -> Any:
    """The annotation with the type variables that are known replaced; the others stay."""
    if is_variable(annotation):
        return known.get(annotation, annotation)
    if not known or not get_args(annotation) or not _is_open(annotation):
        return annotation
    return _of(annotation, tuple(rewritten(one, known) for one in get_args(annotation)))


def bound_by(held: Any, value: Any, known: dict[Any, Any]) -> None:
    """Adds the element types that the tensors of a value, or of the type of a staged one, give to type variables.

    Raises: DTypeError where one variable would stand for two.
    """
    origin: Any = get_origin(held) or held
    arguments = get_args(held)
    if origin in RANKED:
        dtype = _element_type(value)
        if not is_variable(arguments[0]) or dtype is None:
            return
        found = known.setdefault(arguments[0], dtype)
        if found is not dtype:
            raise DTypeError(
                f"{arguments[0].__name__} is one element type in a struct, and stands for {found.__name__} "
                f"and {dtype.__name__}"
            )
        return
    parts = _parts(value)
    if origin in (list, tuple):
        many = origin is list or arguments[1:] == (...,)
        kinds = arguments[:1] * len(parts) if many else arguments
        for kind, part in zip(kinds, parts, strict=False):
            bound_by(kind, part, known)
    elif _is_open(held):
        inside = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
        for field, part in zip(origin._declared, parts, strict=False):
            bound_by(rewritten(field.type, inside), part, known)


def _element_type(value: Any) -> Any:
    if isinstance(value, TensorSpec):
        return DTYPES[value.dtype]
    return value.dtype if isinstance(value, AnyTensor) else None


def _parts(value: Any) -> Sequence[Any]:
    """Of a struct or sequence, or of the type of one."""
    if isinstance(value, TupleSpec):
        return value.elements
    if isinstance(value, StructSpec):
        return [part for _, part in value.fields]
    return value if is_sequence(value) else getattr(value, "_fields", ())


def is_element_type(argument: object) -> bool:
    """Whether it is one, or a type variable of one."""
    if is_variable(argument):
        bound = getattr(argument, "__bound__", None)
        return isinstance(bound, type) and issubclass(bound, DType)
    return isinstance(argument, type) and issubclass(argument, DType)


def _is_open(annotation: Any) -> bool:
    """Whether a type variable occurs in it."""
    return is_variable(annotation) or any(map(_is_open, get_args(annotation)))


def _of(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    return get_origin(annotation)[arguments]
