"""Staged lambdas, whose parameters have no annotations: `fn(Float2D)(lambda x: x @ x)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .annotations import named_dimensions
from .callables import StagedFunction, staged_with
from .conversion import declared_type
from .introspection import name_of, static_signature
from .staging.primitive import staging_error
from .staging.tracebacks import public


def fn(*types: Any) -> Callable[[Callable[..., Any]], StagedFunction]:
    """Stage a lambda whose parameters have these concrete types: `fn(Float2D)(lambda x: x @ x)`.

    Raises: StagingError when the number of parameters is another one.
    """
    declared = tuple(map(declared_type, types))

    @public
    def stage(function: Callable[..., Any], /) -> StagedFunction:
        signature = static_signature(function, lambda _: False)
        if len(signature.data) != len(types):
            raise staging_error(
                f"fn names {len(types)} types and {name_of(function)} has {len(signature.data)} parameters"
            )
        dimensions = named_dimensions([*zip(signature.data, types, strict=True)], None)
        return staged_with(function, signature, declared, None, dimensions)

    return stage
