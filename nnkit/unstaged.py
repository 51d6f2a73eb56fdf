"""The error for data where Reps are taken, outside of staged functions: it names the function to decorate."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from .staging.carry import kind
from .staging.location import DefinitionLocation, is_own_frame
from .staging.primitive import staging_error
from .staging.tracing import current_trace
from .staging.user_code import is_library
from .structs import Struct
from .tensors import AnyTensor


def check_is_staged(value: object) -> None:
    """Raises: StagingError for data, unless a function is being staged."""
    if current_trace() is not None or not _is_data(value):
        return
    frame, called = sys._getframe(1), ""
    while frame.f_back is not None and is_own_frame(frame):
        if frame.f_globals.get("__name__") in OF_DATA:
            return
        called = _name_of(frame)
        frame = frame.f_back
    raise _error(value, called, _given_data(frame))


OF_DATA: Final = ("nnkit.optimizers", "nnkit.trees")
"""Modules whose functions take data as well, and compute with Reps of it."""


def _error(value: object, called: str, found: tuple[CodeType, str, Any] | None) -> Exception:
    takes = f"{called or 'this'} takes Reps, and is given {kind(value)}"
    if found is None:
        return staging_error(
            f"{takes}: it is for functions decorated with @nk.staged",
            f"write it in one; of data, {called or 'f'}(nk.const(x)).eval() is the value",
        )
    code, parameter, given = found
    name = "this lambda" if code.co_name == "<lambda>" else code.co_name
    error = staging_error(
        f"{takes}: {name}, whose parameter {parameter} is {kind(given)}, is not staged",
        "stage it, nk.staged(lambda …)"
        if code.co_name == "<lambda>"
        else f"decorate {name} with @nk.staged",
    )
    place = DefinitionLocation(code).resolve()
    if place is not None:
        error.__notes__ = [
            f"  note: {name} is defined here  {place.excerpt().splitlines()[0]}",
            *getattr(error, "__notes__", []),
        ]
    return error


def _name_of(frame: FrameType) -> str:
    """The public name of the function of ours that runs in a frame."""
    function = frame.f_locals.get("function") if frame.f_code.co_name == "entry_to_public" else None
    return getattr(function, "__name__", frame.f_code.co_name)


def _given_data(frame: FrameType | None) -> tuple[CodeType, str, Any] | None:
    """The user's function nearest to a frame that has data for a parameter, its name, and the data."""
    while frame is not None and not is_library(frame.f_code.co_filename):
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count]:
            value = frame.f_locals.get(name)
            if _is_data(value):
                return code, name, value
        frame = frame.f_back
    return None


def _is_data(value: object) -> bool:
    """Whether it is a concrete tensor, a struct, or an array."""
    return isinstance(value, AnyTensor | Struct | np.ndarray)
