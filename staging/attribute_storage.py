"""Where Python's objects, classes, modules and functions keep what their attributes give."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from .location import is_own_file
from .read_places import is_instance
from .user_code import is_user_class, is_user_module

PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
"""Types whose values hold nothing else."""
OF_VALUES: Final = frozenset({"_array", "_fields", "_value_"})
"""Where tensors, structs and members of enumerations hold what they are made of."""


def function_in(member: Any) -> Any:
    """The function behind a descriptor of Python's, or what is given."""
    if is_instance(member, property):
        return member.fget
    if is_instance(member, (staticmethod, classmethod)):
        return member.__func__
    return member.func if is_instance(member, cached_property) else member


def class_of(value: object) -> type[Any]:
    return type(value)


def has_elements(value: object) -> bool:
    """Whether it is a collection that can change."""
    return isinstance(value, list | dict | set | np.ndarray | deque)


def is_own_module(module: ModuleType) -> bool:
    """Whether it is NNKit's."""
    return is_own_file(getattr(module, "__file__", None) or "")


def is_fixed(value: object) -> bool:
    """Whether it is a module that nobody gives another meaning, as `np`."""
    return isinstance(value, ModuleType) and not is_user_module(value)


def dictionary_of(value: object) -> dict[str, Any] | None:
    """Where an object has its attributes; None where it has none, or they are computed."""
    if isinstance(value, type | ModuleType):
        return None
    try:
        found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if is_instance(found, dict) else None


def variables_of(module: ModuleType) -> dict[str, Any]:
    return vars(module)


def members_in(cls: type[Any]) -> dict[str, Any]:
    """What the mapping proxy of a class shows."""
    found: dict[str, Any] = gc.get_referents(vars(cls))[0]
    return found


def members_of(cls: type[Any]) -> Iterator[str]:
    """What instances of the user's have by their class, and slots."""
    for each in cls.__mro__:
        if is_user_class(each):
            yield from list(vars(each))
        else:
            yield from (name for name in OF_VALUES if name in vars(each))


def is_own_record(value: object) -> bool:
    """Whether it is a dataclass of NNKit's, as an optimizer: what that reads of itself is not looked into."""
    cls = type(value)
    module = sys.modules.get(cls.__module__)
    return hasattr(cls, "__dataclass_fields__") and module is not None and is_own_module(module)


def is_called_by_text(value: object) -> bool:
    """Whether it is an `attrgetter`, say, which reads attributes under the names that it holds."""
    return type(value).__module__ in ("operator", "_operator")


def not_plain(values: Iterable[object]) -> list[object]:
    """Those that can hold something."""
    return [one for one in values if type(one) not in PLAIN]


def defaults_of(function: FunctionType) -> dict[str, object]:
    """Those of parameters, by name."""
    values, code = function.__defaults__ or (), function.__code__
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(last, values, strict=True)), **(function.__kwdefaults__ or {})}


def given_by(bound: partial[Any]) -> dict[str, object]:
    """What is given for parameters of its function, by name."""
    return {
        **dict(zip(bound.func.__code__.co_varnames, bound.args, strict=False)),
        **bound.keywords,
    }
