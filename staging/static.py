"""Static arguments: element types and shapes, which must be known while tracing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..core.types import DType
from .primitive import dtype_error, is_index, shape_error


def core_dtype(dtype: Any) -> DType:
    """The compiler's element type for one of the language's."""
    core = dtype if isinstance(dtype, DType) else getattr(dtype, "core", None)
    if not isinstance(core, DType):
        raise dtype_error(f"an element type is one of {LANGUAGE}, not {dtype!r}")
    return core


LANGUAGE = "f16, bf16, f32, f64, i8, i32, i64, boolean"
"""The element types a user can name."""


def static_shape(dims: Any, what: str, *, least: int = 0) -> tuple[int, ...]:
    """A shape made of Python ints.  Raises: DTypeError for anything else, such as a Rep."""
    if not isinstance(dims, tuple | list):
        raise dtype_error(f"{what} takes a shape, a tuple of ints, not {dims!r}")
    extents: list[int] = []
    for dim in cast("Sequence[Any]", dims):
        if not is_index(dim):
            help = "spread it, `*shape`" if isinstance(dim, tuple | list) else ""
            raise dtype_error(f"{what} takes Python ints, not {dim!r}", help)
        extent = int(dim)
        if extent < least:
            raise shape_error(f"{what} takes numbers of at least {least}, not {extent}")
        extents.append(extent)
    return tuple(extents)
