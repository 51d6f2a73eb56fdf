"""Parts of a tensor by keys with integer tensors: `x[key]` reads one, `x.at[key].set(value)` replaces it, or joins it.

1. A key is read as in a subscript, and may have integer tensors, whose entries are indices.
2. The axes from the first to the last staged index become indices of one `scatter`, ints and slices between them as
   well; ints and slices elsewhere become its window.
3. The value is broadcast to the part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import IndexOutOfRangeError, ShapeError
from ..core.ir import Builder, Value
from ..core.lazy_dataclass import dataclass
from ..core.ops import (
    Add,
    Broadcast,
    Gather,
    Iota,
    Multiply,
    Reverse,
    Scatter,
    ShapeCast,
    Update,
)
from ..core.ops.literal import constant, dense
from ..core.ops.nest import Bounds
from ..core.types import I64, Shape, TensorType, broadcast_shapes, scalar
from . import primitive
from .expression import Constant, Expression
from .extents import size_dependent
from .index_modes import WRITES, bounds_of, inside_by
from .indexing import entries_of, select_part, subscript, wrap_negative
from .masks import mask_of, masked, no_extent
from .primitive import dtype_error, rank_error, unsupported_error
from .spec import TensorSpec, dtype_words

_WHOLE: Any = slice(None)


def read(x: Expression, key: Any, staged: Callable[[Any], Expression | None]) -> Expression:
    """`x[key]`; `staged` finds the expression of an entry that is a tensor.

    Integer tensors are indices of axes that are neighbours, broadcast together, whose axes replace these.
    """
    spec = primitive.tensor_of(x, "a subscript")
    if (mask := mask_of(key)) is not None:
        return _read_known(x, mask, staged)
    entries = entries_of(key, spec, tensors=True)
    indices = [staged(entry) for entry in entries]
    if all(i is None or primitive.tensor_of(i, "an index").rank == 0 for i in indices):
        return subscript(x, entries, indices)
    part = _Part.of(entries, indices).with_neighbours()
    outside = (*entries[: part.first], *entries[part.first + part.count :])
    if not all(isinstance(entry, slice) for entry in outside):
        raise unsupported_error(
            "an int and integer tensors on both sides of a slice cannot be subscripts together",
            "one after the other: `x[0][:, i]`",
        )
    operands = [
        wrap_negative(index, x, axis) for axis, index in enumerate(indices) if index is not None
    ]

    def build(b: Builder, known: tuple[Any, ...], tensor: Value, *at: Value) -> Value:
        return replace(part, entries=known).read(b, tensor, at)

    result = TensorSpec(primitive.checked_rank(part.rank), spec.dtype)
    return size_dependent("subscript", part.entries, build, (x, *operands), result)


def _read_known(
    x: Expression, mask: Expression, staged: Callable[[Any], Expression | None]
) -> Expression:
    """`x[mask]` of a mask that is data: how many elements it chooses is known."""
    if not isinstance(mask.operation, Constant):
        raise no_extent(mask)
    known = mask.operation.array.astype(bool)

    def check(_: Builder, value: Value) -> Value:
        if value.tensor.shape[: known.ndim] != known.shape:
            raise ShapeError(f"a mask of shape {[*known.shape]} does not fit {value.tensor.words}")
        return value

    spec = primitive.tensor_of(x, "a subscript")
    fitting = primitive.shape_dependent("mask", check, (x,), spec)
    return read(fitting, np.nonzero(known), staged)


def updated(
    x: Expression,
    key: Any,
    value: Expression,
    update: Update,
    staged: Callable[[Any], Expression | None],
    mode: str = "error",
) -> Expression:
    """`x` with the part at `key` updated by `value`; `staged` finds the expression of an entry that is a Rep."""
    bounds = bounds_of(mode, WRITES)
    if (mask := mask_of(key)) is not None:
        return masked(x, mask, value, update)
    what = f"at[…].{update}"
    spec = primitive.tensor_of(x, what)
    given = primitive.tensor_of(value, what)
    if given.dtype is not spec.dtype:
        raise dtype_error(
            f"{what} of {dtype_words(spec.dtype)} takes such a value, not {given.words}",
            "cast it, `value.cast(dtype)`",
        )
    if update is not Update.SET and not spec.dtype.is_numeric:
        raise dtype_error(f"{what} takes numbers, not {spec.words}", "`set` writes any elements")
    entries = entries_of(key, spec, tensors=True)
    indices = [staged(entry) for entry in entries]
    for axis, index in enumerate(indices):
        if index is not None:
            indices[axis] = inside_by(mode, index, x, axis)
    part = replace(_Part.of(entries, indices), bounds=bounds)
    if given.rank > part.rank:
        raise rank_error(f"{what} of a part of rank {part.rank} cannot take {given.words}")
    operands = [index for index in indices if index is not None]

    def build(
        b: Builder, entries: tuple[Any, ...], tensor: Value, written: Value, *at: Value
    ) -> Value:
        return replace(part, entries=entries).build(b, tensor, written, at, update)

    return size_dependent("update", part.entries, build, (x, value, *operands), spec)


@dataclass(frozen=True)
class _Part:
    """The part of a tensor that a key means: an entry for each axis, None where an index is staged."""

    entries: tuple[Any, ...]
    first: int
    """The axes from this one on, `count` of them, have indices."""
    count: int
    rank_of_indices: int
    bounds: Bounds = Bounds.CHECK

    @classmethod
    def of(cls, entries: Sequence[Any], indices: Sequence[Expression | None]) -> _Part:
        staged = [axis for axis, index in enumerate(indices) if index is not None]
        if not staged:
            return cls(tuple(entries), 0, 0, 0)
        first, count = staged[0], staged[-1] - staged[0] + 1
        between = entries[first : first + count]
        ranks = [primitive.tensor_of(i, "an index").rank for i in indices if i is not None]
        slices = sum(isinstance(entry, slice) for entry in between)
        if slices and max(ranks):
            raise unsupported_error(
                "integer tensors on both sides of a slice cannot be indices",
                "transpose the tensor, so that the axes that they are for are neighbours",
            )
        kept = [
            None if index is not None else entry
            for entry, index in zip(entries, indices, strict=True)
        ]
        return cls(tuple(kept), first, count, max(ranks) + slices)

    def with_neighbours(self) -> _Part:
        """The same, with indices of the axes beside that have ints."""
        first, last = self.first, self.first + self.count
        while first and not isinstance(self.entries[first - 1], slice):
            first -= 1
        while last < len(self.entries) and not isinstance(self.entries[last], slice):
            last += 1
        return replace(self, first=first, count=last - first)

    @property
    def rank(self) -> int:
        outside = (*self.entries[: self.first], *self.entries[self.first + self.count :])
        return self.rank_of_indices + sum(isinstance(entry, slice) for entry in outside)

    def read(self, b: Builder, x: Value, given: Sequence[Value]) -> Value:
        """What the part is, where all entries outside of the indices are slices."""
        indices = self._indices(b, x.tensor.shape, given)
        inside = range(self.first, self.first + self.count)
        outside = [_WHOLE if k in inside else entry for k, entry in enumerate(self.entries)]
        return b.emit(Gather(self.first, Bounds.CHECK), select_part(b, x, outside), *indices)

    def build(
        self, b: Builder, x: Value, value: Value, given: Sequence[Value], update: Update
    ) -> Value:
        shape = x.tensor.shape
        indices = self._indices(b, shape, given)
        at = indices[0].tensor.shape if indices else ()
        windows = [
            (0, 1, 0, False)
            if self.first <= axis < self.first + self.count
            else _window(entry, axis, x.tensor)
            for axis, entry in enumerate(self.entries)
        ]
        before, after = windows[: self.first], windows[self.first + self.count :]
        entries_after = self.entries[self.first + self.count :]
        user = (
            *(
                n
                for e, (_, _, n, _) in zip(self.entries, before, strict=False)
                if isinstance(e, slice)
            ),
            *at,
            *(
                n
                for e, (_, _, n, _) in zip(entries_after, after, strict=True)
                if isinstance(e, slice)
            ),
        )
        updates = _fitted(b, value, user, x)
        full = (*(n for _, _, n, _ in before), *at, *(n for _, _, n, _ in after))
        updates = b.emit(ShapeCast(full), updates)
        turned = [axis for axis, (*_, is_turned) in enumerate(before) if is_turned]
        last = self.first + len(at)
        turned += [last + axis for axis, (*_, is_turned) in enumerate(after) if is_turned]
        if turned:
            updates = b.emit(Reverse(tuple(turned)), updates)
        start, strides = (tuple(w[k] for w in windows) for k in (0, 1))
        op = Scatter(
            self.first,
            update,
            start if any(start) else (),
            strides if any(stride != 1 for stride in strides) else (),
            self.bounds if indices else Bounds.INSIDE,
        )
        return b.emit(op, updates, x, *indices)

    def _indices(self, b: Builder, shape: Shape, given: Sequence[Value]) -> list[Value]:
        """One tensor of indices, all of one shape, for each axis that has them."""
        remaining = iter(given)
        found: list[Value] = []
        axes = range(self.first, self.first + self.count)
        slices = sum(isinstance(self.entries[axis], slice) for axis in axes)
        position = 0
        for axis in axes:
            entry = self.entries[axis]
            if entry is None:
                found.append(next(remaining))
            elif isinstance(entry, slice):
                trailing = (1,) * (slices - position - 1)
                places = np.arange(shape[axis])[entry].reshape((-1, *trailing))
                found.append(_progression(b, places))
                position += 1
            else:
                found.append(constant(b, scalar(I64), _inside(entry, axis, shape[axis], shape)))
        if not found:
            return []
        common = broadcast_shapes([index.tensor.shape for index in found])
        return [_broadcast(b, index, common) for index in found]


def _progression(b: Builder, places: Any) -> Value:
    """Indices that go on by equal steps, computed rather than kept."""
    if places.size < 2:
        return b.emit(dense(TensorType(places.shape, I64), places.astype(np.int64)))
    first, second = places.ravel()[:2]
    numbers = b.emit(Iota(places.shape, 0, I64))
    steps = b.emit(Multiply(), numbers, constant(b, scalar(I64), int(second - first)))
    return b.emit(Add(), steps, constant(b, scalar(I64), int(first)))


def _window(entry: Any, axis: int, x: TensorType) -> tuple[int, int, int, bool]:
    """Start, stride and extent of an axis, and whether it is written from its end."""
    extent = x.shape[axis]
    if not isinstance(entry, slice):
        return _inside(entry, axis, extent, x.shape), 1, 1, False
    places = range(extent)[entry]
    if not places:
        return 0, 1, 0, False
    if places.step < 0:
        return places[-1], -places.step, len(places), True
    return places[0], places.step, len(places), False


def _inside(index: int, axis: int, extent: int, shape: Shape) -> int:
    if not -extent <= index < extent:
        raise IndexOutOfRangeError(
            f"index {index} is out of range for axis {axis} of a tensor of shape {list(shape)}"
        )
    return index % extent


def _fitted(b: Builder, value: Value, shape: Shape, x: Value) -> Value:
    """The value broadcast to the part of `x` that has this shape."""
    try:
        fits = broadcast_shapes([value.tensor.shape, shape]) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"cannot write {value.tensor.words} to a part of {x.tensor.words} of shape {list(shape)}"
        )
    return _broadcast(b, value, shape)


def _broadcast(b: Builder, value: Value, shape: Shape) -> Value:
    return value if value.tensor.shape == shape else b.emit(Broadcast(shape), value)
