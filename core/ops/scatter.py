"""Writing into parts of a tensor: at computed indices, and into slices.

The result is a new value, as of every op.  Where the tensor is dead afterwards, compiled code updates its buffer in
place, so that an update of a row costs the row (`Output.init`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import replace
from types import EllipsisType
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import (
    F32,
    I64,
    Array,
    DType,
    KnownRanges,
    Shape,
    TensorType,
    same_dtype,
    scalar,
    tensor_bytes,
)
from .arithmetic import Add, Divide, Maximum, StrongMultiply
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, Select
from .forms import check_kind
from .formulas import number
from .indexing import (
    Gather,
    Iota,
    ScatterAdd,
    are_inside,
    axes_back,
    axes_first,
    check_indices,
    element_numbers,
    first_order,
    indexed_shape,
    write_at,
)
from .literal import constant, number_of
from .movement import permuted, reshaped
from .nest import Access, Affine, Bounds, Index, Loaded, Output, build_nest, coordinate
from .scan import nan_where_nan
from .segmented_products import other_factors
from .slicing import Pad, Slice


class Update(enum.Enum):
    """What happens to an element that an update falls on."""

    SET = "set"
    ADD = "add"
    MULTIPLY = "multiply"
    MIN = "min"
    MAX = "max"

    def __str__(self) -> str:
        return self.value

    @property
    def combinator(self) -> Combinator | None:
        """What an update is joined with the element by; None if it takes its place."""
        return None if self is Update.SET else Combinator(self.value)


@dataclass(frozen=True)
class Scatter(Pure):
    """x with updates written into a part of it, or joined with what is there, one after the other.

    Shapes: x (p…, n…, q…), updates (p'…, i…, q'…), indices (i…) → x's.  Indices are those of `gather`, one tensor for
    each of the axes n from `axis` on; without any, updates are for a slice.  Of each other axis the updates are for the
    elements start, start + stride, …, as many as they have there; `start` and `strides` have an entry for every
    axis (0 and 1 for those with indices), by default 0 and 1.  Without indices nothing is outside.

    Updates at the same place come in order: the last one is set, and sums of floats are within the bound of any other
    sum.  The derivative by an update that another one replaces is 0, by a factor it is the product of the others; ties
    of min and max are split evenly among all that attain it.  Outside, `bounds` zero leaves an update out; the rest is
    as in `gather`.
    """

    name: ClassVar[str] = "scatter"
    syntax: ClassVar[str] = (
        "scatter {updates} to {x} [at {indices*}] [along {axis}] [by {update}] [from {start}] "
        "[strides {strides}] [bounds {bounds}]"
    )
    axis: int = 0
    update: Update = Update.SET
    start: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    bounds: Bounds = Bounds.CHECK

    def infer(self, updates: TensorType, x: TensorType, *indices: TensorType) -> TensorType:
        same_dtype("scatter", (updates, x))
        if self.update is not Update.SET:
            check_kind(f"scatter by {self.update}", x, ("float", "integer"))
        at: Shape = ()
        if indices:
            at = check_indices("scatter", self.axis, x, indices, self.bounds)
        elif not 0 <= self.axis <= x.rank:
            raise RankError(f"scatter: axis {self.axis} is out of range for {x.words}")
        if any(len(given) not in (0, x.rank) for given in (self.start, self.strides)):
            raise RankError(f"scatter: starts and strides have one entry per axis of {x.words}")
        expected = indexed_shape(x.shape, self.axis, len(indices), at)
        if len(updates.shape) != len(expected):
            raise ShapeError(
                f"scatter to {x.words} along axis {self.axis} takes updates of rank {len(expected)}, "
                f"not {updates.words}"
            )
        self._check_windows(updates, x, len(indices), at)
        return x

    def _check_windows(self, updates: TensorType, x: TensorType, count: int, at: Shape) -> None:
        first, last = self.axis, self.axis + len(at)
        if updates.shape[first:last] != at:
            raise ShapeError(
                f"scatter takes an update for each of the indices, {list(at)}, not {updates.words}"
            )
        for axis, (start, stride) in enumerate(self.window(x.rank)):
            if first <= axis < first + count:
                if (start, stride) != (0, 1):
                    raise ShapeError(f"scatter: axis {axis} has indices, and starts at {start}")
                continue
            extent = updates.shape[axis if axis < first else axis - count + len(at)]
            if (
                stride < 1
                or start < 0
                or (extent and start + (extent - 1) * stride >= x.shape[axis])
            ):
                raise ShapeError(
                    f"scatter: {extent} elements from {start} in steps of {stride} are out of range "
                    f"for axis {axis} of {x.words}"
                )

    def window(self, rank: int) -> list[tuple[int, int]]:
        """Start and stride of every axis."""
        return list(zip(self.start or (0,) * rank, self.strides or (1,) * rank, strict=True))

    def with_indices_inside(self, operands: Sequence[Value], ranges: KnownRanges) -> Self:
        inside = are_inside(ranges[2:], operands[1].tensor.shape, self.axis)
        return replace(self, bounds=Bounds.INSIDE) if inside else self

    def evaluate(self, updates: Array, x: Array, *indices: Array) -> Array:
        result = np.array(x)
        if updates.size:
            combinator = self.update.combinator
            part = result[self._slices(updates, x.ndim, len(indices))]
            if indices:
                write_at(part, updates, self.axis, indices, self.bounds, combinator)
            elif combinator is None:
                part[...] = updates
            else:
                where = tuple(index.ravel() for index in np.indices(part.shape))
                combinator.join(part, where, updates.ravel() if where else updates)
        return result

    def _slices(self, updates: Array, rank: int, count: int) -> tuple[slice | EllipsisType, ...]:
        """With `...`, by which a part of rank 0 is an array, too, and no number."""
        extents = self._extents(updates.shape, rank, count)
        slices = (
            slice(None) if extent is None else slice(start, start + extent * stride, stride)
            for (start, stride), extent in zip(self.window(rank), extents, strict=True)
        )
        return (*slices, ...)

    def _extents(self, updates: Shape, rank: int, count: int) -> list[int | None]:
        """How many elements of each axis there are updates for; None for those with indices."""
        after = rank - self.axis - count
        last = updates[len(updates) - after :]
        return [*updates[: self.axis], *[None] * count, *last]

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (updates, x, *indices), (du, dx, *_) = xs, dxs
        if du is None and dx is None:
            return (None,)
        tangent = dx or constant(b, x.tensor, 0)
        if self.update in (Update.SET, Update.ADD):
            change = du or constant(b, updates.tensor, 0)
            return (b.emit(self, change, tangent, *indices),)
        if self.update is Update.MULTIPLY:
            return (self._product_tangent(b, xs, du, dx),)
        by_update, by_element = self._shares(b, ys[0], xs)
        if dx is not None:
            row = b.emit(StrongMultiply(), by_element, self.part(b, dx, updates, indices))
            tangent = b.emit(self._by(Update.SET), row, dx, *indices)
        if du is not None:
            part = b.emit(StrongMultiply(), by_update, du)
            tangent = b.emit(self._by(Update.ADD), part, tangent, *indices)
        return (tangent,)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (updates, _, *indices), (ct,) = xs, cts
        if ct is None:
            return (None,) * len(xs)
        # read before what is read is updated
        rows = self.part(b, ct, updates, indices)
        none = (None,) * len(indices)
        if self.update is Update.ADD:
            return (rows, ct, *none)
        if self.update is Update.SET:
            zeros = constant(b, updates.tensor, 0)
            kept = self._kept(b, rows, zeros, xs)
            return (kept, b.emit(self, zeros, ct, *indices), *none)
        if self.update is Update.MULTIPLY:
            change = b.emit(StrongMultiply(), self._by_factor(b, xs), rows)
            return (change, b.emit(StrongMultiply(), self._factors(b, xs), ct), *none)
        by_update, by_element = self._shares(b, ys[0], xs)
        row = b.emit(StrongMultiply(), by_element, rows)
        element = b.emit(self._by(Update.SET), row, ct, *indices)
        return (b.emit(StrongMultiply(), by_update, rows), element, *none)

    def _product_tangent(
        self, b: Emitter, xs: Sequence[Value], du: Value | None, dx: Value | None
    ) -> Value:
        _, x, *indices = xs
        tangent = constant(b, x.tensor, 0)
        if dx is not None:
            tangent = b.emit(StrongMultiply(), self._factors(b, xs), dx)
        if du is None:
            return tangent
        change = b.emit(StrongMultiply(), self._by_factor(b, xs), du)
        return b.emit(self._by(Update.ADD), change, tangent, *indices)

    def _factors(self, b: Emitter, xs: Sequence[Value]) -> Value:
        """What each element of x is multiplied by."""
        updates, x, *indices = xs
        return b.emit(self, updates, constant(b, x.tensor, 1), *indices)

    def _by_factor(self, b: Emitter, xs: Sequence[Value]) -> Value:
        """∂y/∂update of a product, at each update: the element times the other factors."""
        updates, x, *indices = xs
        element = self.part(b, x, updates, indices)
        if not self._has_repeats(indices):
            return element
        # places are numbered from 1: 0 is outside
        extents = x.tensor.shape[self.axis : self.axis + len(indices)]
        count = math.prod(extents)
        numbers = b.emit(Add(), b.emit(Iota((count,), 0, I64)), constant(b, scalar(I64), 1))
        places = b.emit(Gather(0, self.bounds), reshaped(b, numbers, extents), *indices)
        set_row = Scatter(0, Update.SET, bounds=Bounds.INSIDE)
        others = other_factors(b, updates, self.axis, places, count + 1, set_row)
        return b.emit(StrongMultiply(), element, others)

    def _by(self, update: Update) -> Scatter:
        return Scatter(self.axis, update, self.start, self.strides, self.bounds)

    def part(self, b: Emitter, x: Value, updates: Value, indices: Sequence[Value]) -> Value:
        """What `x` has where the updates go, in their shape."""
        windows = self.window(x.tensor.rank)
        extents = self._extents(updates.tensor.shape, x.tensor.rank, len(indices))
        start = tuple(first for first, _ in windows)
        stop = tuple(
            extent if n is None else first + (n - 1) * stride + 1 if n else first
            for (first, stride), n, extent in zip(windows, extents, x.tensor.shape, strict=True)
        )
        part = x
        if x.tensor.shape != tuple(
            extent if n is None else n for n, extent in zip(extents, x.tensor.shape, strict=True)
        ):
            part = b.emit(Slice(start, stop, tuple(stride for _, stride in windows)), x)
        return b.emit(Gather(self.axis, self.bounds), part, *indices) if indices else part

    def _has_repeats(self, indices: Sequence[Value]) -> bool:
        """Whether several updates may fall on one element."""
        return bool(indices) and indices[0].tensor.size > 1

    def _kept(self, b: Emitter, rows: Value, zeros: Value, xs: Sequence[Value]) -> Value:
        """`rows`, with zeros for the updates that later ones replace."""
        _, x, *indices = xs
        if not self._has_repeats(indices):
            return rows
        at, extents = indices[0].tensor.shape, x.tensor.shape[self.axis : self.axis + len(indices)]
        numbers = reshaped(b, b.emit(Iota((math.prod(at),), 0, I64)), at)
        table = constant(b, TensorType(extents, I64), 0)
        written = b.emit(Scatter(bounds=self.bounds), numbers, table, *indices)
        stays = b.emit(Equal(), b.emit(Gather(0, self.bounds), written, *indices), numbers)
        trailing = (1,) * (rows.tensor.rank - self.axis - len(at))
        return b.emit(Select(), rows, zeros, reshaped(b, stays, (*at, *trailing)))

    def _shares(self, b: Emitter, y: Value, xs: Sequence[Value]) -> tuple[Value, Value]:
        """∂y/∂update and ∂y/∂element of min and max, at each update; NaN where the extremum is."""
        updates, x, *indices = xs
        attained = self.part(b, y, updates, indices)
        ties = [b.emit(Equal(), u, attained) for u in (updates, self.part(b, x, updates, indices))]
        counts = [b.emit(DataTypeCast(I64), tie) for tie in ties]
        if self._has_repeats(indices):
            none = constant(b, TensorType(x.tensor.shape, I64), 0)
            total = b.emit(self._by(Update.ADD), counts[0], none, *indices)
            counts[0] = self.part(b, total, updates, indices)
        count = b.emit(Maximum(), b.emit(Add(), *counts), number(b, counts[0], 1))
        share = b.emit(
            Divide(), nan_where_nan(b, attained, 1), b.emit(DataTypeCast(x.tensor.dtype), count)
        )
        rest = nan_where_nan(b, attained, 0)
        by_update, by_element = (b.emit(Select(), share, rest, tie) for tie in ties)
        return by_update, by_element

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        """With indices of its own for each element, they have one more in front: the number of the element."""
        updates, x, *indices = xs
        windows = [(0, 1), *self.window(x.tensor.rank - 1)]
        if not any(batched[2:]):
            return b.emit(self._moved(self.axis + 1, windows), updates, x, *indices)
        count, rank = len(indices), x.tensor.rank
        order = first_order(rank, self.axis, count)
        op = self._moved(0, [windows[axis] for axis in order])
        together = permuted(b, x, order)
        changes = axes_first(b, updates, self.axis, indices[0].tensor.rank - 1)
        made = b.emit(op, changes, together, element_numbers(b, indices), *indices)
        return axes_back(b, made, 1 + count, self.axis)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """Each element has a tensor and updates of its own; all indices have a batch axis, or none."""
        _, _, *indices = batched
        return True, True, *[any(indices)] * len(indices)

    def _moved(self, axis: int, windows: Sequence[tuple[int, int]]) -> Scatter:
        start, strides = (tuple(window[k] for window in windows) for k in (0, 1))
        return Scatter(
            axis,
            self.update,
            start if any(start) else (),
            strides if any(stride != 1 for stride in strides) else (),
            self.bounds,
        )

    def nest(self, b: Emitter, updates: Value, x: Value, *indices: Value) -> Value:
        dtype = x.tensor.dtype
        if self._rounds_often(dtype, indices):
            wide = [b.emit(DataTypeCast(F32), value) for value in (updates, x)]
            return b.emit(DataTypeCast(dtype), b.emit(self, *wide, *indices))
        shape = updates.tensor.shape
        after = self.axis + (indices[0].tensor.rank if indices else 0)
        point = tuple(coordinate(axis) for axis in range(len(shape)))
        windows = self.window(x.tensor.rank)
        target: list[Index] = [Affine() for _ in windows]
        for axis, (start, stride) in enumerate(windows):
            if axis < self.axis:
                target[axis] = coordinate(axis) * stride + start
            elif axis < self.axis + len(indices):
                target[axis] = Loaded(axis - self.axis)
            else:
                target[axis] = coordinate(axis - self.axis - len(indices) + after) * stride + start
        bounds = self.bounds if indices else Bounds.INSIDE
        place = Access(tuple(target), bounds)
        reads = [(i, Access(point[self.axis : after])) for i in indices]
        reads += [(updates, Access(point)), (x, place)]
        output = Output(x.tensor, place.indices, self.update.combinator, bounds, len(indices) + 1)
        return build_nest(b, shape, reads, [output], lambda _, __, read: [read[-2]])[0]

    def _rounds_often(self, dtype: DType, indices: Sequence[Value]) -> bool:
        """Whether several updates may be added to one f16 or bf16, which is rounded once."""
        is_sum = self.update is Update.ADD and dtype.is_float and dtype.bits < F32.bits
        return is_sum and self._has_repeats(indices)

    def trusted(self, operands: Sequence[Value]) -> Sequence[Value]:
        return operands[2:] if self.bounds is Bounds.INSIDE else ()

    def can_fail(self) -> bool:
        return self.bounds is Bounds.CHECK

    def bytes_moved(self, instruction: Instruction) -> int:
        """It reads and writes no more of x than there are updates, if it is done in place."""
        updates, x, *indices = (tensor_bytes(x.type) for x in instruction.operands)
        return updates + 2 * min(updates, x) + sum(indices)


_LARGEST_SLICE: Final = 16
"""A slice is added to its place if it is at most one part in so many: those that tile a tensor, as the four gates of an
LSTM do, are fewer, and fuse padded into one pass over the whole. 4 gives LSTMs of 8 and 32 states the same times."""


class AddedPart(NamedTuple):
    """Updates that are added to a part of zeros, and by which op to a part of any tensor."""

    op: Scatter
    updates: Value
    indices: tuple[Value, ...]

    def add_to(self, b: Emitter, x: Value) -> Value:
        """The same part of `x` with the updates added."""
        return b.emit(self.op, self.updates, x, *self.indices)


def added_part(x: Value) -> AddedPart | None:
    """The part that `x` has beside zeros, if it is less than the whole: a row that was read has such a cotangent."""
    if x.producer is None:
        return None
    match x.producer.op:
        case ScatterAdd(_, axis, bounds):
            updates, *indices = x.producer.operands
            if updates.tensor.size < x.tensor.size:
                return AddedPart(Scatter(axis, Update.ADD, bounds=bounds), updates, tuple(indices))
        case Pad(low, high, gaps):
            part, filler = x.producer.operands
            is_small = _LARGEST_SLICE * part.tensor.size <= x.tensor.size
            if is_small and number_of(filler) == 0 and min((*low, *high), default=0) >= 0:
                strides = tuple(gap + 1 for gap in gaps) or (1,) * len(low)
                return AddedPart(Scatter(0, Update.ADD, low, strides, Bounds.INSIDE), part, ())
        case _:
            pass
    return None
