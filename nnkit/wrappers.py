"""Staged functions of NNKit's own around one of the user's: what they call stands at no line of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .callables import StagedFunction
from .documentation import documentation
from .staging.staged_functions import PythonFunction


def wrapper_of(of: StagedFunction, function: Callable[..., Any], name: str = "") -> StagedFunction:
    """`function` with the parameters of `of`, and by its name if no other is given."""
    stageable = of.stageable
    if inspect.isfunction(function) and function.__doc__ is None:
        function.__doc__ = documentation(stageable)
    return StagedFunction(
        PythonFunction(
            function,
            name or stageable.name,
            stageable.parameter_names,
            of.declared,
            None,
            is_wrapper=True,
        )
    )
