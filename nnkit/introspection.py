"""Introspection of Python functions: parameters, annotations, name and location.

Anything callable can be staged: functions, lambdas, bound methods, partials, objects with `__call__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from types import CellType
from typing import Any, get_type_hints

from .core.lazy_dataclass import dataclass
from .staging.location import DefinitionLocation
from .staging.primitive import staging_error


def underlying_function(function: Callable[..., Any]) -> Any:
    """The function with a `def` behind a partial, a method or a callable object."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isfunction(function) or inspect.isbuiltin(function):
        return function
    if inspect.ismethod(function):
        return function.__func__
    return type(function).__call__


def name_of(function: Callable[..., Any]) -> str:
    """What messages and the IR call it."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def location_of(function: Callable[..., Any]) -> DefinitionLocation | None:
    """Where it is defined; None for what is not written in Python."""
    code = getattr(underlying_function(function), "__code__", None)
    return DefinitionLocation(code) if code is not None else None


def parameters_of(
    function: Callable[..., Any], is_static: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """The parameters to stage: those without a default that are not static.

    Raises: StagingError when there is one that cannot be staged, or no signature at all.
    """
    if not callable(function):
        raise staging_error(f"only a function can be staged, not a {type(function).__name__}")
    try:
        given = inspect.signature(function).parameters.values()
    except ValueError:
        raise staging_error(
            f"{name_of(function)} does not say what its parameters are", "wrap it, `lambda x: ...`"
        ) from None
    staged = [one for one in given if one.default is one.empty and not is_static(one.name)]
    for parameter in staged:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise staging_error(
                f"parameter {parameter} of {name_of(function)} cannot be staged: a staged "
                "function has a fixed number of positional parameters",
                "give it a default, or pass a tuple",
            )
    return tuple(parameter.name for parameter in staged)


@dataclass(frozen=True)
class StaticSignature:
    """The parameters of a function: those of data, by position, and static ones.

    `order` has the positional ones up to the last that must be given by position or is static: the name of a static
    one, None for data.
    """

    data: tuple[str, ...]
    statics: tuple[inspect.Parameter, ...]
    order: tuple[str | None, ...]


def static_signature(
    function: Callable[..., Any], is_static: Callable[[str], bool]
) -> StaticSignature:
    """The parameters of `function`, of which those with a default are static, and those that `is_static` says.

    Raises: StagingError as `parameters_of`.
    """
    names = parameters_of(function, is_static)
    given = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    statics = tuple(one for one in given if one.name not in names)
    order = [None if one.name in names else one.name for one in given if one.kind in by_position]
    return StaticSignature(names, statics, tuple(order))


def signature_of_names(data: Iterable[str], statics: Iterable[str]) -> inspect.Signature:
    """Of a function that takes data by position, and static arguments by name if they are given."""
    by_position = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in data]
    by_name = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=...) for name in statics
    ]
    return inspect.Signature([*by_position, *by_name])


def _enclosed(function: Any) -> dict[str, Any]:
    """The variables of enclosing functions that it mentions, as far as they are set."""
    cells = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if cells else ()
    found = zip(names, cells, strict=True)
    return {name: cell.cell_contents for name, cell in found if cell != _EMPTY}


_EMPTY = CellType()
"""A variable not yet set, such as the function being defined."""


def hints_of(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations, those written as text resolved where the function is defined.

    Raises: StagingError when one names something that is not there.
    """
    written = underlying_function(function)
    if not getattr(written, "__annotations__", None):
        return {}
    try:
        return get_type_hints(written, localns={**_enclosed(written), **scope})
    except NameError as error:
        raise staging_error(
            f"the annotations of {name_of(function)} name {error.name}, which is not defined here",
            "define or import it before the function, not only for typing",
        ) from None
    except (SyntaxError, TypeError, AttributeError) as error:
        raise staging_error(
            f"the annotations of {name_of(function)} cannot be read: {error}"
        ) from None


def named(module: str, name: str) -> Any:
    """What a module calls so; None when there is nothing."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def short_value(value: object) -> str:
    """An argument in a few words: a number as it is, anything else by its type."""
    if isinstance(value, bool | int | float | str):
        return repr(value) if len(repr(value)) <= _SHORT else f"a {type(value).__name__}"
    return f"a {type(value).__name__}"


_SHORT = 30
"""Characters of a value in the middle of a sentence."""
