"""Between concrete values and what the compiler knows of them.

A value is a tree of tensors: a tensor, a struct, or a tuple of values.  Its *spec* is the tree of ranks
and element types, its *leaves* are the arrays from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin

import numpy as np

from .core import types
from .core.errors import DTypeError, RankError, ShapeError
from .core.types import Array
from .staging.primitive import MAX_RANK
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, as_tuple
from .structs import Struct, fields
from .tensors import DTYPES, RANKED, AnyTensor, DType


@dataclass(frozen=True)
class ArraySpec:
    """Stands for an array of this shape and element type where only those matter."""

    shape: tuple[int, ...]
    dtype: type[DType]

    def __repr__(self) -> str:
        return f"spec({self.shape}, {self.dtype.__name__})"


def spec(shape: Any, dtype: Any, /) -> ArraySpec:
    """An argument for `f.ir`, `f.compile` and the like: no data, only shape and element type.

    >>> from nnkit import f32
    >>> spec((1, 784), f32)
    spec((1, 784), f32)
    """
    given = as_tuple(shape)
    if not all(hasattr(extent, "__index__") for extent in given):
        raise ShapeError(f"a shape is a tuple of ints, not {shape!r}")
    extents = tuple(int(extent.__index__()) for extent in given)
    if any(extent < 0 for extent in extents):
        raise ShapeError(f"a shape has no negative extents: {shape}")
    if len(extents) > MAX_RANK:
        raise RankError(f"tensors have at most {MAX_RANK} axes, not {len(extents)}")
    if dtype not in DTYPES.values():
        names = ", ".join(known.__name__ for known in DTYPES.values())
        raise DTypeError(f"an element type is one of {names}, not {dtype!r}")
    return ArraySpec(extents, dtype)


@dataclass
class Argument:
    """A concrete argument, taken apart."""

    spec: Spec
    shapes: list[tuple[int, ...]]
    value: Any
    """The value in the form the compiled code reads: tensors, structs, tuples."""


def argument(value: Any, declared: Spec | None, name: str) -> Argument:
    """What `value` is; arrays become tensors, Python numbers scalars of the declared element type.

    Raises: RankError, DTypeError for what is no tensor, naming the argument.
    """
    if isinstance(value, ArraySpec):
        return Argument(TensorSpec(len(value.shape), value.dtype.core), [value.shape], value)
    if isinstance(value, Struct):
        parts = [argument(part, None, name) for part in value._fields]
        named = zip(fields(type(value)), parts, strict=True)
        found: Spec = StructSpec(type(value), tuple((lens.name, part.spec) for lens, part in named))
        return Argument(found, [shape for part in parts for shape in part.shapes], value)
    if isinstance(value, tuple) and not isinstance(declared, TensorSpec):
        given = as_tuple(cast("object", value))
        inner = declared.elements if isinstance(declared, TupleSpec) else (None,) * len(given)
        if len(inner) != len(given):
            raise DTypeError(
                f"argument {name} is a tuple of {len(inner)} values, not of {len(given)}"
            )
        parts = [argument(part, want, name) for part, want in zip(given, inner, strict=True)]
        return Argument(
            TupleSpec(tuple(part.spec for part in parts)),
            [shape for part in parts for shape in part.shapes],
            tuple(part.value for part in parts),
        )
    tensor = _tensor(value, declared, name)
    return Argument(TensorSpec(tensor.rank, tensor.dtype.core), [tensor.shape], tensor)


def _tensor(value: Any, declared: Spec | None, name: str) -> AnyTensor:
    if isinstance(value, AnyTensor):
        return value
    wanted = declared if isinstance(declared, TensorSpec) else None
    if isinstance(value, bool | int | float):
        if wanted is None or wanted.rank:
            raise DTypeError(
                f"argument {name} is the Python number {value!r}, which has no element type of its own\n"
                "  help: say which, for example f32(0.1)"
            )
        return RANKED[0](value, DTYPES[wanted.dtype])
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        array: Array = np.asarray(value)
        if array.ndim > MAX_RANK:
            raise RankError(
                f"argument {name} has rank {array.ndim}; tensors have at most {MAX_RANK} axes"
            )
        if wanted is not None and wanted.rank != array.ndim:
            raise RankError(
                f"argument {name} is a {wanted.words}, not an array of shape {list(array.shape)}"
            )
        try:
            return RANKED[array.ndim](array, DTYPES[wanted.dtype] if wanted else None)
        except DTypeError as error:
            raise DTypeError(f"argument {name}: {error}") from None
    shown = wanted.words if wanted else "tensor, a struct or an array"
    raise DTypeError(
        f"argument {name} is a {shown}, not a {type(value).__name__}\n"
        "  help: wrap it, for example Tensor2D([[0.0, 1.0]], f32)"
    )


def annotated(annotation: Any) -> Spec | None:
    """What `Rep[...]` in a signature promises; None when it leaves rank or element type open."""
    if isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Rep):
        return _declared(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return _several([annotated(part) for part in get_args(annotation)])
    return None


def declared_type(annotation: Any) -> Spec | None:
    """What a concrete type such as `Tensor2D[f32]` or a struct class says."""
    return _declared(annotation)


def _declared(annotation: Any) -> Spec | None:
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, Struct):
        parts = [(lens.name, _declared(lens.type)) for lens in fields(origin)]
        known = tuple((name, part) for name, part in parts if part is not None)
        return StructSpec(origin, known) if len(known) == len(parts) else None
    if origin is tuple:
        return _several([_declared(part) for part in get_args(annotation)])
    core = getattr(next(iter(get_args(annotation)), None), "core", None)
    if origin in RANKED and isinstance(core, types.DType):
        return TensorSpec(RANKED.index(origin), core)
    return None


def _several(parts: list[Spec | None]) -> Spec | None:
    known = tuple(part for part in parts if part is not None)
    return TupleSpec(known) if len(known) == len(parts) else None
