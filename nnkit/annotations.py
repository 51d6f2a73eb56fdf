"""What annotations say besides the types of staging: whether a parameter is data, and the names of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import numpy as np

from .staging.named_dimensions import NamedDimensions, NamedTensor, NamedTensors
from .staging.rep import Rep
from .staging.stacked import Stacked
from .structs import Struct, fields
from .tensors import RANKED, AnyTensor, Dim


def is_of_data(annotation: Any) -> bool:
    """Whether a parameter with this annotation takes a Rep, or may: one without says `Any`."""
    annotation = getattr(annotation, "__supertype__", annotation)  # of a NewType
    origin: Any = get_origin(annotation) or annotation
    if origin is Annotated:
        return is_of_data(get_args(annotation)[0])
    if origin is tuple or origin is Union or isinstance(annotation, UnionType):
        return any(map(is_of_data, get_args(annotation)))
    if annotation in (Any, object) or isinstance(annotation, TypeVar):
        return True
    bases: Any = getattr(origin, "__orig_bases__", ())
    if not isinstance(origin, type):
        return False
    return issubclass(origin, _DATA) or any(map(is_of_data, bases))  # of Residuals, say


_DATA = (Rep, AnyTensor, Struct, Stacked, np.ndarray)


def named_dimensions(parameters: Sequence[tuple[str, Any]], result: Any) -> NamedDimensions | None:
    """Those in the annotations of parameters, by name, and of the result; None if there are none."""
    places = tuple(named_tensors(annotation, name) for name, annotation in parameters)
    found = NamedDimensions(places, named_tensors(result, "the result"))
    return found or None


def named_tensors(annotation: Any, place: str) -> NamedTensors:
    """The tensors that an annotation, `Rep[...]` or a concrete type, declares, with the names of their dimensions."""
    return _named(annotation, place, {})


def _named(annotation: Any, place: str, known: Mapping[Any, Any]) -> NamedTensors:
    """`known` has what the type variables of a generic struct stand for."""
    origin: Any = get_origin(annotation) or annotation
    arguments = get_args(annotation)
    if origin is Callable:
        return ()  # nothing of it is in the IR
    if not isinstance(origin, type):
        return None
    if issubclass(origin, Rep) and arguments:
        return _named(arguments[0], place, known)
    if origin in RANKED:
        names = [known.get(one, one) if isinstance(one, TypeVar) else one for one in arguments[1:]]
        return (NamedTensor(place, tuple(one if _is_name(one) else None for one in names)),)
    if issubclass(origin, Struct):
        inside = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
        inside = {key: known.get(one, one) for key, one in inside.items()}
        return _joined(_named(lens.type, f"{place}.{lens.name}", inside) for lens in fields(origin))
    if origin is tuple and ... not in arguments:
        each = enumerate(arguments)
        return _joined(_named(one, f"{place}[{k}]", known) for k, one in each)
    return None


def _joined(parts: Iterable[NamedTensors]) -> NamedTensors:
    found: list[NamedTensor] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return tuple(found)


def _is_name(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, Dim) and one is not Dim
