"""`dataclass`, by which the classes here are made: as that of `dataclasses`, with methods compiled on first use.

For type checkers it is that of `dataclasses`, as the stub beside this file says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .generated_methods import add_methods


def dataclass(
    cls: type[Any] | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
) -> Any:
    """Give a class the methods of its fields; `generated_methods` says how, and what it leaves to `dataclasses`."""
    add: Callable[[type[Any]], type[Any]] = partial(
        add_methods, init=init, repr=repr, eq=eq, frozen=frozen, slots=slots
    )
    return add if cls is None else add(cls)
