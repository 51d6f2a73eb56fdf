"""Tracebacks of NNKit's errors: they end at the user's line, without the frames of NNKit below it.

A public function cuts the traceback of an error that leaves it, its own frame included: `raise` alone, in an `except`
block, does not add that frame again.  With NNKIT_TRACEBACK=full in the environment all frames are left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

from ..core.errors import NNKitError
from .expression import active_traces
from .location import is_own_frame
from .reads import is_library

_Function = TypeVar("_Function", bound=Callable[..., Any])


def end_at_user(error: NNKitError) -> None:
    """Leave the user's frames only; while a function is staged, that is for the outermost call to do."""
    if not active_traces() and os.environ.get("NNKIT_TRACEBACK") != "full":
        error.__traceback__ = without_own_frames(error.__traceback__)


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The same without the frames of NNKit, and of libraries where NNKit called them."""
    kept: list[TracebackType] = []
    hides = False
    while traceback is not None:
        frame = traceback.tb_frame
        hides = is_own_frame(frame) or (hides and is_library(frame.f_code.co_filename))
        if not hides:
            kept.append(traceback)
        traceback = traceback.tb_next
    made: TracebackType | None = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def public(function: _Function) -> _Function:
    """The same function, whose errors end at the user's line."""

    @wraps(function)
    def entry(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except NNKitError as error:
            end_at_user(error)
            raise

    return cast("_Function", entry)


def publish(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Make the functions of these names in a module's namespace public ones of that module, where pickle finds them."""
    for name in names:
        namespace[name] = public(namespace[name])
        namespace[name].__module__ = namespace["__name__"]
