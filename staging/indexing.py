"""Subscripts of tensors: ints, slices with steps, `...`, and staged indices.

1. Every axis gets an entry: an int, a slice, or a staged scalar.
2. Staged scalars become gathers, one axis at a time (they count from the end when negative).
3. Ints and slices become one `slice`, one `reverse` for negative steps and one `shapeCast`, whose
   numbers depend on the extents and are found at specialisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..core.errors import IndexOutOfRangeError, RankError, StagingError
from ..core.ir import Builder, Value
from ..core.ops import Add, LessThan, Reverse, Select, ShapeCast, Slice
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.types import scalar
from . import primitive
from .expression import Expression
from .primitive import located
from .spec import TensorSpec, as_tuple

_WHOLE: Any = slice(None)


def subscript(x: Expression, key: Any, staged: Callable[[Any], Expression | None]) -> Expression:
    """`x[key]`; `staged` finds the expression of an entry that is a Rep."""
    spec = primitive.tensor_of(x, "a subscript")
    entries = _entries(key, spec)
    indices = [staged(entry) for entry in entries]
    for axis in reversed(range(len(entries))):
        index = indices[axis]
        if index is not None:
            if primitive.tensor_of(index, "a subscript").rank != 0:
                raise located(
                    StagingError("an index is a scalar"), "use `take` for several indices"
                )
            x = primitive.gather(x, wrap_negative(index, x, axis), axis, Bounds.CHECK)
    static = [entry for entry, index in zip(entries, indices, strict=True) if index is None]
    if all(isinstance(entry, slice) and entry == _WHOLE for entry in static):
        return x
    rank = sum(isinstance(entry, slice) for entry in static)

    def build(b: Builder, value: Value) -> Value:
        return _select(b, value, static)

    return primitive.shaped("subscript", build, (x,), TensorSpec(rank, spec.dtype))


def wrap_negative(index: Expression, x: Expression, axis: int) -> Expression:
    """Indices that count from the end when negative, as the IR's gather wants them."""
    spec = primitive.tensor_of(index, "an index")

    def build(b: Builder, i: Value, value: Value) -> Value:
        extent = constant(b, scalar(spec.dtype), value.tensor.shape[axis])
        zero = constant(b, scalar(spec.dtype), 0)
        return b.emit(Select(), b.emit(Add(), i, extent), i, b.emit(LessThan(), i, zero))

    return primitive.shaped("index", build, (index, x), spec)


def _entries(key: Any, spec: TensorSpec) -> list[Any]:
    """One entry per axis."""
    given: list[Any] = list(as_tuple(key)) if isinstance(key, tuple) else [key]
    if sum(entry is Ellipsis for entry in given) > 1:
        raise located(StagingError("a subscript has at most one `...`"))
    missing = spec.rank - sum(entry is not Ellipsis for entry in given)
    if missing < 0:
        raise located(RankError(f"{len(given)} subscripts for a {spec.words}"))
    whole: list[Any] = [_WHOLE] * missing
    if Ellipsis in [entry for entry in given if isinstance(entry, type(Ellipsis))]:
        at = next(k for k, entry in enumerate(given) if entry is Ellipsis)
        given[at : at + 1] = whole
    else:
        given += whole
    return [_entry(entry) for entry in given]


def _entry(entry: Any) -> Any:
    if isinstance(entry, slice):
        bounds = cast("slice[Any, Any, Any]", entry)
        parts = (bounds.start, bounds.stop, bounds.step)
        if not all(part is None or _is_int(part) for part in parts):
            raise located(
                StagingError("the ends of a slice are Python ints: its extent must be static"),
                "use `take` with staged indices",
            )
        if bounds.step == 0:
            raise located(StagingError("the step of a slice cannot be 0"))
        return bounds
    if _is_int(entry):
        return int(entry)
    if entry is None or isinstance(entry, bool):
        raise located(
            StagingError(f"{entry} is not a subscript"), "`x.expand_dims(axis)` adds an axis"
        )
    if not hasattr(entry, "expression"):
        raise located(
            StagingError(f"a subscript is an int, a slice or a Rep, not a {type(entry).__name__}"),
            "use `take` for several indices",
        )
    return entry


def _is_int(value: Any) -> bool:
    return (
        not isinstance(value, bool)
        and hasattr(value, "__index__")
        and not hasattr(value, "expression")
    )


def _select(b: Builder, value: Value, entries: list[Any]) -> Value:
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
