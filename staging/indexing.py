"""Subscripts of tensors: ints, strided slices, `...`, and staged indices.

1. Every axis gets an entry: an int, a slice, or a staged scalar.
2. Staged scalars become gathers, those of neighbouring axes together (they count from the end when negative).
3. Ints and slices become one `slice`, one `reverse` for negative steps and one `shapeCast`, whose
   numbers depend on the extents and are found at specialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import TypeIs

from ..core.errors import DTypeError, IndexOutOfRangeError
from ..core.ir import Builder, Value
from ..core.ops import (
    Add,
    And,
    Gather,
    LessThan,
    LessThanOrEqual,
    Reverse,
    Select,
    ShapeCast,
    Slice,
)
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.types import BOOL, I8, I64, scalar
from . import primitive
from .expression import Expression
from .extents import Extent, size_dependent
from .primitive import dtype_error, is_index, rank_error, staging_error
from .spec import TensorSpec

_WHOLE: Any = slice(None)


def subscript(
    x: Expression, entries: Sequence[Any], indices: Sequence[Expression | None]
) -> Expression:
    """`x[entries]`, one for each axis; `indices` are the expressions of those that are staged, all scalars."""
    spec = primitive.tensor_of(x, "a subscript")
    for axis, run in reversed(_runs(indices)):
        at = [wrap_negative(index, x, axis + number) for number, index in enumerate(run)]
        x = primitive.apply(Gather(axis, Bounds.CHECK), x, *at)
    static = [entry for entry, index in zip(entries, indices, strict=True) if index is None]
    if all(map(_is_whole, static)):
        return x
    rank = sum(isinstance(entry, slice) for entry in static)

    def build(b: Builder, known: list[Any], value: Value) -> Value:
        return select_part(b, value, known)

    return size_dependent("subscript", static, build, (x,), TensorSpec(rank, spec.dtype))


def without_new_axes(key: Any, x: Expression) -> tuple[Any, list[int]]:
    """The key without its `None`s, and where these put axes of extent 1 in the result, in order."""
    given: list[Any] = [*key] if isinstance(key, tuple) else [key]
    if not any(entry is None for entry in given):
        return tuple(given), []
    old = tuple(entry for entry in given if entry is not None)
    rank = primitive.tensor_of(x, "a subscript").rank
    places: list[int] = []
    at = 0
    for entry in given:
        if entry is None:
            places.append(at)
            at += 1
        elif entry is Ellipsis:
            at += max(rank - len(old) + 1, 0)
        elif _is_slice(entry):
            at += 1
        elif not is_index(entry) and not _is_scalar(entry):
            raise staging_error(
                "None and a tensor cannot be subscripts together", "`x[i].expand_dims(axis)`"
            )
    return old, places


def _is_scalar(entry: Any) -> bool:
    spec = getattr(entry, "spec", None)
    return isinstance(spec, TensorSpec) and spec.rank == 0


def _is_whole(entry: object) -> bool:
    """Of a slice with extents for ends that is not asked: whether they are the whole axis says specialisation."""
    return _is_slice(entry) and entry.start is None and entry.stop is None and entry.step is None


def _runs(indices: Sequence[Expression | None]) -> list[tuple[int, list[Expression]]]:
    """The staged indices of neighbouring axes together, each run with its first axis."""
    found: list[tuple[int, list[Expression]]] = []
    for axis, index in enumerate(indices):
        if index is None:
            continue
        if found and found[-1][0] + len(found[-1][1]) == axis:
            found[-1][1].append(index)
        else:
            found.append((axis, [index]))
    return found


def wrap_negative(index: Expression, x: Expression, axis: int) -> Expression:
    """Indices that count from the end when negative, as the IR's gather wants them.

    One too far below 0 stays as it is, so that the check names it.
    """
    spec = primitive.tensor_of(index, "an index")
    if not spec.dtype.is_integer:
        raise dtype_error(
            f"indices are integers, not a {spec.words}",
            "a mask chooses: `nk.where(mask, v, x)`, `x.at[mask].set(v)`"
            if spec.dtype is BOOL
            else "cast them, `i.cast(i64)`",
        )
    if spec.dtype is I8:  # it cannot hold the extent of a long axis
        index = primitive.cast(index, I64)
        spec = TensorSpec(spec.rank, I64)

    def build(b: Builder, i: Value, value: Value) -> Value:
        count = value.tensor.shape[axis]
        _check_reach(spec, count)
        extent, zero, least = (constant(b, scalar(spec.dtype), n) for n in (count, 0, -count))
        counts_back = b.emit(
            And(), b.emit(LessThan(), i, zero), b.emit(LessThanOrEqual(), least, i)
        )
        return b.emit(Select(), b.emit(Add(), i, extent), i, counts_back)

    return primitive.shape_dependent("index", build, (index, x), spec)


def _check_reach(spec: TensorSpec, count: int) -> None:
    """Raises: DTypeError when indices cannot say every position of an axis, counted from either end."""
    if count > np.iinfo(spec.dtype.numpy).max:
        raise DTypeError(
            f"indices of {spec.dtype.name} cannot reach all of an axis of extent {count}: that takes i64"
            "\n  help: cast them, `i.cast(i64)`"
        )


def entries_of(key: Any, spec: TensorSpec, *, tensors: bool = False) -> list[Any]:
    """One entry per axis; with `tensors`, what is no int and no slice may be one."""
    given: list[Any] = [*key] if isinstance(key, tuple) else [key]
    if sum(entry is Ellipsis for entry in given) > 1:
        raise staging_error("a subscript has at most one `...`")
    missing = spec.rank - sum(entry is not Ellipsis for entry in given)
    if missing < 0:
        raise rank_error(f"{len(given)} subscripts are too many for a {spec.words}")
    whole: list[Any] = [_WHOLE] * missing
    at = next((k for k, entry in enumerate(given) if entry is Ellipsis), None)
    if at is not None:
        given[at : at + 1] = whole
    else:
        given += whole
    return [_entry(entry, tensors=tensors) for entry in given]


def _is_slice(entry: object) -> TypeIs[slice[Any, Any, Any]]:
    return isinstance(entry, slice)


def _entry(entry: Any, *, tensors: bool) -> Any:
    if _is_slice(entry):
        ends: list[Any] = [entry.start, entry.stop, entry.step]
        if not all(end is None or is_index(end) for end in ends):
            raise staging_error(
                "the ends of a slice are Python ints: its extent must be static",
                "`take(x, i + arange(n))` reads n elements from a staged i on",
            )
        if is_index(ends[2]) and not isinstance(ends[2], Extent) and ends[2] == 0:
            raise staging_error("the step of a slice cannot be 0")
        return slice(*ends)
    if is_index(entry):
        return entry if isinstance(entry, Extent) else int(entry)
    if entry is None or isinstance(entry, bool):
        raise staging_error(f"{entry} is not a subscript", "`x.expand_dims(axis)` adds an axis")
    if not hasattr(entry, "expression") and not tensors:
        raise staging_error(
            f"a subscript is an int, a slice or a Rep, not a {type(entry).__name__}",
            "use `take` for several indices",
        )
    return entry


def select_part(b: Builder, value: Value, entries: Sequence[Any]) -> Value:
    """The part of a tensor that ints and slices say, one for each axis."""
    start: list[int] = []
    stop: list[int] = []
    step: list[int] = []
    kept: list[int] = []
    turned: list[int] = []
    for axis, (entry, extent) in enumerate(zip(entries, value.tensor.shape, strict=True)):
        if isinstance(entry, slice):
            first, last, stride = entry.indices(extent)
            number = len(range(first, last, stride))
            if stride < 0:
                turned.append(axis)
                first, stride = first + (number - 1) * stride if number else 0, -stride
            start.append(first if number else 0)
            stop.append(first + (number - 1) * stride + 1 if number else 0)
            kept.append(number)
        else:
            if not -extent <= entry < extent:
                raise IndexOutOfRangeError(
                    f"index {entry} is out of range for axis {axis} of {value.tensor.words}"
                )
            stride = 1
            start.append(entry % extent)
            stop.append(entry % extent + 1)
        step.append(stride)
    result = b.emit(Slice(tuple(start), tuple(stop), tuple(step)), value)
    if turned:
        result = b.emit(Reverse(tuple(turned)), result)
    return b.emit(ShapeCast(tuple(kept)), result)
