"""Tracebacks of NNKit's errors: they end at the user's line, without the frames of NNKit below it.

A public function cuts the traceback of an error that leaves it, its own frame included: `raise` alone, in an `except`
block, does not add that frame again.  Errors of Python are cut where they are about the user's code: what that code
raised, calls with arguments that do not fit, attributes that do not exist.  Others are mistakes of NNKit, and keep all
frames.  With NNKIT_TRACEBACK=full in the environment all errors do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from opcode import opmap
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar, cast

from ..core.errors import NNKitError
from .location import is_own_frame
from .tracing import active_traces
from .user_code import is_library
from .wrong_calls import wrong_call

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type[Any])


def end_at_user(error: Exception) -> None:
    """Leave the user's frames only; while a function is staged, that is for the outermost call to do."""
    if active_traces() or os.environ.get("NNKIT_TRACEBACK") == "full":
        return
    if isinstance(error, NNKitError) or _is_of_user(error):
        error.__traceback__ = without_own_frames(error.__traceback__)


def _is_of_user(error: Exception) -> bool:
    """Whether it ends in the user's code, or where NNKit refuses what that code asks for."""
    hides, traceback = False, error.__traceback__
    last = traceback
    while traceback is not None:
        hides, last = _is_hidden(traceback, hides), traceback
        traceback = traceback.tb_next
    if not hides or last is None:
        return True
    if isinstance(error, AssertionError):
        return False
    code = last.tb_frame.f_code
    return code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"] or code.co_name in _PASSING


_PASSING: Final = ("entry_to_public", "passing")
"""Functions that pass on their arguments, here and in `static_parameters`: what ends there is a call whose arguments
do not fit."""


def _is_hidden(traceback: TracebackType, hides: bool) -> bool:
    """Whether the first frame is NNKit's, or that of a library which a frame that is hidden has called."""
    frame = traceback.tb_frame
    return is_own_frame(frame) or (hides and is_library(frame.f_code.co_filename))


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The same without the frames of NNKit, and of libraries where NNKit called them."""
    kept: list[TracebackType] = []
    hides = False
    while traceback is not None:
        hides = _is_hidden(traceback, hides)
        if not hides:
            kept.append(traceback)
        traceback = traceback.tb_next
    made: TracebackType | None = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def public(function: _Function) -> _Function:
    """The same function, whose errors end at the user's line."""

    says_what_fits = not function.__name__.startswith("_")

    @wraps(function)
    def entry_to_public(*arguments: Any, **keywords: Any) -> Any:
        try:
            try:
                return function(*arguments, **keywords)
            except TypeError as error:
                if not says_what_fits or was_called(error):
                    raise
                raise wrong_call(function, arguments, keywords) from None
        except Exception as error:
            end_at_user(error)
            raise

    return cast("_Function", entry_to_public)


def was_called(error: TypeError) -> bool:
    """Whether the function began to run; else the arguments did not fit its parameters."""
    return error.__traceback__ is None or error.__traceback__.tb_next is not None


def public_methods(cls: _Class) -> _Class:
    """The same class, whose methods and properties are public."""
    for name, member in [*vars(cls).items()]:
        if name.startswith("_") and not name.endswith("__"):
            continue
        if isinstance(member, classmethod | staticmethod) and not name.startswith("_"):
            method = cast("Any", member)
            setattr(cls, name, type(method)(public(method.__func__)))
        if isinstance(member, FunctionType):
            setattr(cls, name, public(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, member.getter(public(member.fget)))
    return cls


def publish(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Make the functions of these names in a module's namespace public ones of that module, where pickle finds them."""
    for name in names:
        namespace[name] = public(namespace[name])
        namespace[name].__module__ = namespace["__name__"]
