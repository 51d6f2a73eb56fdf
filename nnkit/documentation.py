"""Names and docstrings: of staged functions, of what is made of them, and of functions that are made from a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .introspection import short_value
from .staging.batches import Batch
from .staging.derivatives import Derivative, Gradient, TangentMap
from .staging.location import HELP
from .staging.staged_functions import PythonFunction, Stageable

_Function = TypeVar("_Function", bound=Callable[..., object])


def named(function: _Function, name: str, text: str) -> _Function:
    """The function with the name and docstring of one that is written out."""
    described = cast("Any", function)
    described.__name__ = described.__qualname__ = name
    described.__doc__ = text
    return function


class Documentation:
    """A class's `__doc__`, and that of each staged function."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, function: Any, _: type[Any]) -> str | None:
        return self.text if function is None else documentation(function.stageable)


class ModuleName(str):
    """A class's `__module__`, and that of each staged function: the user's, where doctest looks for examples."""

    def __get__(self, function: Any, _: type[Any] | None = None) -> str:
        if function is None or not isinstance(function.stageable, PythonFunction):
            return str(self)
        return getattr(function.stageable.function, "__module__", None) or str(self)


def documentation(stageable: Stageable) -> str | None:
    """What a staged function does: what its Python function says, or what it was made of."""
    if isinstance(stageable, PythonFunction):
        return inspect.getdoc(stageable.function) if inspect.isroutine(stageable.function) else None
    of = getattr(stageable, "of", None)
    if not isinstance(of, Stageable):
        return None
    about = documentation(of)
    return "\n\n".join([_made(stageable, of), *([about] if about else [])])


def _made(stageable: Stageable, of: Stageable) -> str:
    if isinstance(stageable, Derivative):
        by = ", ".join(of.parameter_names[index] for index in stageable.wrt)
        kinds = ((Gradient, "gradient"), (TangentMap, "tangent"))
        kind = next((word for cls, word in kinds if isinstance(stageable, cls)), "derivative")
        return f"The {kind} of {of.name} by {by}."
    return f"{of.name} of a batch." if isinstance(stageable, Batch) else f"Made of {of.name}."


def unfit(names: tuple[str, ...], arguments: tuple[Any, ...], *statics: str) -> str:
    """What is wrong with the number of arguments: which parameter has none, or which argument is too many.

    `statics` are its static parameters.
    """
    if len(arguments) < len(names):
        return f": there is none for {', '.join(names[len(arguments) :])}"
    beyond = arguments[len(names) :]
    help = (
        f"{HELP}static parameters go by name, `{statics[0]}={short_value(beyond[0])}`"
        if statics
        else ""
    )
    return f": there is no parameter for {', '.join(map(short_value, beyond))}{help}"
