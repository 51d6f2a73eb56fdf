"""Static arguments: element types and sizes; sizes may be extents, which are known at specialisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..core.types import DType
from .extents import Extent, Ratio, Size
from .primitive import dtype_error, is_index, least_help, shape_error


def core_dtype(dtype: Any, default: DType | None = None) -> DType:
    """The compiler's element type for one of the language's; `default` stands for None."""
    core = default if dtype is None and default is not None else core_of(dtype)
    if core is None:
        raise dtype_error(f"an element type is one of {LANGUAGE}, not {dtype!r}")
    return core


def core_of(dtype: Any) -> DType | None:
    """The compiler's element type for one of the language's, or None for anything else."""
    core = dtype if isinstance(dtype, DType) else getattr(dtype, "core", None)
    return core if isinstance(core, DType) else None


LANGUAGE = "f16, bf16, f32, f64, i8, i32, i64, boolean"
"""The element types a user can name."""


def sizes_of(dims: Any, what: str, *, least: int = 0) -> tuple[Size, ...]:
    """A shape made of Python ints and extents, or the one of a vector: what `primitive.apply_sized` takes.

    Raises: DTypeError for anything else, such as a Rep.
    """
    if is_index(dims):
        dims = (dims,)
    if not isinstance(dims, tuple | list):
        raise dtype_error(f"{what} takes a shape, a tuple of ints, not {dims!r}")
    return tuple(_size(dim, what, least) for dim in cast("Sequence[Any]", dims))


def _size(dim: Any, what: str, least: int) -> Size:
    if not is_index(dim):
        help = ""
        if isinstance(dim, tuple | list):
            help = "spread it, `*shape`"
        elif isinstance(dim, Ratio):
            help = "divide sizes by `//`"
        elif core_of(dim) is not None:
            help = "the element type by its name, `dtype=`"
        raise dtype_error(f"{what} takes Python ints, not {dim!r}", help)
    if isinstance(dim, Extent):
        return dim
    extent = int(dim)
    if extent < least:
        raise shape_error(
            f"{what} takes numbers of at least {least}, not {extent}", least_help(what, least)
        )
    return extent


def static_shape(dims: Any, what: str, *, least: int = 0) -> tuple[int, ...]:
    """A shape as Python ints: with an extent in it, the function is traced for each shapes.

    Where the numbers become attributes of ops, `sizes_of` and `primitive.apply_sized` leave them symbolic.
    """
    return tuple(_size(int(size), what, least) for size in sizes_of(dims, what, least=least))  # type: ignore[misc]  # of ints there are ints
