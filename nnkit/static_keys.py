"""Keys of static values: what two values share exactly if a program cannot tell them apart."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from .core.lazy_dataclass import dataclass
from .staging.carry import kind
from .staging.rep import Rep
from .structs import Struct
from .tensors import AnyTensor


class NotStatic(Exception):
    """A value has no key."""

    def __init__(self, what: str, problem: str, *, is_data: bool = False) -> None:
        super().__init__(what)
        self.what, self.problem, self.is_data = what, problem, is_data


def static_key(value: Any) -> Hashable:
    """What two values share exactly if they are the same to a program: True, 1 and 1.0 do not.

    Raises: NotStatic for data, and for what is not hashable.
    """
    held: Any = value  # which no test narrows
    kind_of: Any = held.__class__
    if kind_of in _PLAIN or isinstance(value, enum.Enum | type):
        return kind_of, held
    if kind_of is float:
        return float, value.hex()  # −0 is not 0, and nan is itself
    if kind_of is complex:
        return complex, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return kind_of, *map(static_key, held)
    if isinstance(value, frozenset):
        return kind_of, frozenset(map(static_key, held))
    if isinstance(value, Rep | AnyTensor | Struct | np.ndarray):
        if isinstance(value, Rep) and value.is_function:
            return Rep, id(value)
        raise NotStatic(kind(held), "is data", is_data=True)
    try:
        hash(held)
    except TypeError:
        if any(isinstance(part, Rep | AnyTensor | Struct | np.ndarray) for part in _parts(held)):
            raise NotStatic(f"{kind(held)} of tensors", "is data", is_data=True) from None
        raise NotStatic(kind(held), "is not hashable") from None
    if is_dataclass(held):
        compared = [one.name for one in fields(held) if one.compare]
        return kind_of, *(static_key(getattr(held, name)) for name in compared)
    if kind_of.__hash__ is object.__hash__ and not callable(held):
        return kind_of, held, _state(getattr(held, "__dict__", {}))
    return kind_of, held


def _parts(held: Any) -> Iterable[Any]:
    """Those of a dictionary or list."""
    found: Any = held  # whose elements isinstance leaves Any
    if isinstance(held, dict):
        return [*found.values()]
    return [*found] if isinstance(held, list) else []


def _state(value: Any) -> Hashable:
    """What an object of a class without equality holds, which may be given other attributes: numbers and sequences of
    such by value, the rest by identity."""
    known: object = value
    kind_of = type(known)
    if kind_of in (tuple, list):
        return kind_of, *map(_state, value)
    if kind_of is dict:
        return kind_of, *((name, _state(inside)) for name, inside in value.items())
    if kind_of in _PLAIN or kind_of in (float, complex):
        return static_key(value)
    return _Same(value)


@dataclass(frozen=True, eq=False)
class _Same:
    """Equal to another one of the same object, which is kept so that no other one gets its place."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_PLAIN: Final = frozenset({bool, int, str, bytes, type(None), type(...)})
