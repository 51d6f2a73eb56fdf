"""Reading and writing at computed indices, and tensors made of indices.

Gather and scatter are each other's transposes: no dense one-hot product appears in a derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, Self

import numpy as np

from ..errors import DTypeError, IndexOutOfRangeError, RankError, ShapeError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import (
    F32,
    F64,
    I64,
    Array,
    DType,
    IntegerRange,
    KnownRanges,
    Shape,
    TensorType,
    scalar,
    tensor_bytes,
)
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, Select
from .forms import Linear, check_axis, check_kind
from .literal import constant
from .movement import permuted
from .nest import Access, Bounds, Index, Loaded, Output, build_nest, identity_access

NAIVE_UPDATES: Final = 12
"""Numbers that may be added one by one: 11 roundings are less than the 8 + log₂ 12 that a sum may have."""


@dataclass(frozen=True)
class Gather(Linear):
    """The entries of x at `indices` along an axis: y[…, i…, …] = x[…, indices[i…], …].

    Shapes: x (p…, n, q…), indices (i…) → (p…, i…, q…), the axis n replaced by all axes of the indices.
    Several tensors of indices, of one shape, are for as many axes, `axis` the first: y[…, i…, …] = x[…, first[i…],
    second[i…], …].
    Indices are i32 or i64 and count from 0; negative ones are outside.  `bounds` says what happens
    outside: check is an IndexOutOfRangeError, clip takes the nearest end, zero gives 0.  An empty axis has no
    inside: only zero takes indices there.  A gather whose result nobody uses may be left out, its check with it.
    """

    name: ClassVar[str] = "gather"
    syntax: ClassVar[str] = "gather {x} at {indices*} along {axis} [bounds {bounds}]"
    linear_operands: ClassVar[tuple[int, ...] | None] = (0,)
    axis: int
    bounds: Bounds = Bounds.CHECK

    def infer(self, x: TensorType, *indices: TensorType) -> TensorType:
        at = check_indices("gather", self.axis, x, indices, self.bounds)
        return x.with_shape(indexed_shape(x.shape, self.axis, len(indices), at))

    def with_indices_inside(self, operands: Sequence[Value], ranges: KnownRanges) -> Self:
        inside = are_inside(ranges[1:], operands[0].tensor.shape, self.axis)
        return replace(self, bounds=Bounds.INSIDE) if inside else self

    def evaluate(self, x: Array, *indices: Array) -> Array:
        extents = x.shape[self.axis : self.axis + len(indices)]
        at = indices[0].shape
        if 0 in (*at, *extents):
            return np.zeros(indexed_shape(x.shape, self.axis, len(indices), at), x.dtype)
        where, outside = resolved(indices, extents, self.bounds)
        taken = x[(slice(None),) * self.axis + where]
        trailing = (1,) * (x.ndim - self.axis - len(indices))
        return np.where(outside.reshape((*outside.shape, *trailing)), np.zeros((), x.dtype), taken)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        x, *indices = xs
        made = b.emit(ScatterAdd(x.tensor.shape, self.axis, self.bounds), ct, *indices)
        return made, *(None for _ in indices)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        """With indices of its own for each element, they have one more in front: the number of the element."""
        x, *indices = xs
        if not batched[1]:
            return b.emit(Gather(self.axis + 1, self.bounds), x, *indices)
        if not batched[0]:
            found = b.emit(self, x, *indices)
            order = list(range(found.tensor.rank))
            return permuted(b, found, (order.pop(self.axis), *order))
        together = axes_first(b, x, self.axis, len(indices))
        found = b.emit(Gather(0, self.bounds), together, element_numbers(b, indices), *indices)
        return axes_back(b, found, indices[0].tensor.rank, self.axis)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """All indices have a batch axis, or none."""
        first, *indices = batched
        return first, *[any(indices)] * len(indices)

    def nest(self, b: Emitter, x: Value, *indices: Value) -> Value:
        result = self.infer(x.tensor, *(i.tensor for i in indices))
        point = identity_access(result.shape)
        after = self.axis + indices[0].tensor.rank
        place = (*point[: self.axis], *_loaded(indices), *point[after:])
        reads = [(i, Access(point[self.axis : after])) for i in indices]
        reads.append((x, Access(place, self.bounds)))
        output = Output(result, point)
        return build_nest(b, result.shape, reads, [output], lambda _, __, read: [read[-1]])[0]

    def can_fail(self) -> bool:
        return self.bounds is Bounds.CHECK

    def trusted(self, operands: Sequence[Value]) -> Sequence[Value]:
        return operands[1:] if self.bounds is Bounds.INSIDE else ()

    def bytes_moved(self, instruction: Instruction) -> int:
        """It reads no more of x than it gives."""
        made = tensor_bytes(instruction.result.type)
        first, *others = (tensor_bytes(x.type) for x in instruction.operands)
        return min(first, made) + sum(others) + made


@dataclass(frozen=True)
class ScatterAdd(Linear):
    """Zeros of `shape`, with each update added at its index along an axis: the transpose of `gather`.

    Shapes: updates (p…, i…, q…), indices (i…) → (p…, n, q…) = shape; of several axes as in `gather`.
    Updates at the same index add up, floats to within the bound of any other sum.
    Outside, `bounds` zero leaves an update out; the rest is as in `gather`.
    """

    name: ClassVar[str] = "scatterAdd"
    syntax: ClassVar[str] = (
        "scatterAdd {updates} at {indices*} along {axis} to {shape} [bounds {bounds}]"
    )
    linear_operands: ClassVar[tuple[int, ...] | None] = (0,)
    shape: Shape
    axis: int
    bounds: Bounds = Bounds.CHECK

    def infer(self, updates: TensorType, *indices: TensorType) -> TensorType:
        check_kind("scatterAdd", updates, ("float", "integer"))
        result = updates.with_shape(self.shape)
        at = check_indices("scatterAdd", self.axis, result, indices, self.bounds)
        expected = indexed_shape(self.shape, self.axis, len(indices), at)
        if updates.shape != expected:
            raise ShapeError(
                f"scatterAdd to {result.words} at {indices[0].words} along axis {self.axis} takes updates "
                f"of shape {list(expected)}, not {updates.words}"
            )
        return result

    def with_indices_inside(self, operands: Sequence[Value], ranges: KnownRanges) -> Self:
        inside = are_inside(ranges[1:], self.shape, self.axis)
        return replace(self, bounds=Bounds.INSIDE) if inside else self

    def evaluate(self, updates: Array, *indices: Array) -> Array:
        result = np.zeros(self.shape, updates.dtype)
        if indices[0].size == 0:
            return result
        write_at(result, updates, self.axis, indices, self.bounds, Combinator.ADD)
        return result

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        _, *indices = xs
        return b.emit(Gather(self.axis, self.bounds), ct, *indices), *(None for _ in indices)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        updates, *indices = xs
        shape = (updates.tensor.shape[0], *self.shape)
        if not batched[1]:
            return b.emit(ScatterAdd(shape, self.axis + 1, self.bounds), updates, *indices)
        count = len(indices)
        moved = axes_first(b, updates, self.axis, indices[0].tensor.rank - 1)
        order = first_order(len(shape), self.axis, count)
        op = ScatterAdd(tuple(shape[axis] for axis in order), 0, self.bounds)
        rows = b.emit(op, moved, element_numbers(b, indices), *indices)
        return axes_back(b, rows, 1 + count, self.axis)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """Each element has updates of its own."""
        _, *indices = batched
        return True, *[any(indices)] * len(indices)

    def nest(self, b: Emitter, updates: Value, *indices: Value) -> Value:
        shape = updates.tensor.shape
        point = identity_access(shape)
        after = self.axis + indices[0].tensor.rank
        reads = [(i, Access(point[self.axis : after])) for i in indices]
        reads.append((updates, Access(point)))
        target = (*point[: self.axis], *_loaded(indices), *point[after:])
        dtype = updates.tensor.dtype
        wide = self._type_of_sums(dtype, indices)
        output = Output(TensorType(self.shape, wide), target, Combinator.ADD, self.bounds)

        def body(inner: Emitter, _: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            return [read[-1] if wide is dtype else inner.emit(DataTypeCast(wide), read[-1])]

        result = build_nest(b, shape, reads, [output], body)[0]
        return result if wide is dtype else b.emit(DataTypeCast(dtype), result)

    def can_fail(self) -> bool:
        return self.bounds is Bounds.CHECK

    def trusted(self, operands: Sequence[Value]) -> Sequence[Value]:
        return operands[1:] if self.bounds is Bounds.INSIDE else ()

    def _type_of_sums(self, dtype: DType, indices: Sequence[Value]) -> DType:
        """What elements are while updates are added: f32 for halves at least, f64 where that is the cheapest way.

        That is where an index has one number, so that no vectors are to be had, and no element of the result, on
        average, is left out: converting it costs little beside what a compensated addition waits for (1.2 of the
        time for naive sums, not 1.5 to 2).
        """
        if not dtype.is_float or dtype is F64:
            return dtype
        after = self.axis + len(indices)
        is_narrow = math.prod(self.shape[after:]) == 1
        updates, extent = indices[0].tensor.size, math.prod(self.shape[self.axis : after])
        if is_narrow and updates > NAIVE_UPDATES and updates >= extent:
            return F64
        return F32


@dataclass(frozen=True)
class OneHot(Pure):
    """1 where the new last axis equals the index, else 0; an index outside gives a row of zeros.

    Shapes: indices (i…), of any integer type → (i…, depth).
    """

    name: ClassVar[str] = "oneHot"
    syntax: ClassVar[str] = "oneHot {indices} depth {depth} as {dtype}"
    not_differentiable: ClassVar[str] = "its operand is made of indices"
    depth: int
    dtype: DType

    def infer(self, indices: TensorType) -> TensorType:
        check_kind("oneHot", indices, ("integer",))
        return TensorType((*indices.shape, self.depth), self.dtype)

    def evaluate(self, indices: Array) -> Array:
        hot = indices[..., np.newaxis].astype(np.int64) == np.arange(self.depth)
        return np.asarray(hot, self.dtype.numpy)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(self, *xs)

    def nest(self, b: Emitter, indices: Value) -> Value:
        result = self.infer(indices.tensor)
        point = identity_access(result.shape)

        def body(inner: Emitter, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            hot = inner.emit(Equal(), at[-1], inner.emit(DataTypeCast(I64), *read))
            one, zero = (constant(inner, scalar(self.dtype), n) for n in (1, 0))
            return [inner.emit(Select(), one, zero, hot)]

        reads = [(indices, Access(point[:-1]))]
        return build_nest(b, result.shape, reads, [Output(result, point)], body)[0]


@dataclass(frozen=True)
class Iota(Pure):
    """The index along an axis: y[…, i, …] = i."""

    name: ClassVar[str] = "iota"
    syntax: ClassVar[str] = "iota {shape} along {axis} as {dtype}"
    not_differentiable: ClassVar[str] = "it is a constant"
    shape: Shape
    axis: int
    dtype: DType

    def infer(self) -> TensorType:
        result = TensorType(self.shape, self.dtype)
        check_axis("iota", self.axis, result)
        check_kind("iota", result, ("float", "integer"))
        return result

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        last = self.shape[self.axis] - 1
        if self.dtype.is_float or last > np.iinfo(self.dtype.numpy).max:
            return None  # which begins anew behind the largest number of its type
        return 0, last

    def evaluate(self) -> Array:
        extents = [-1 if axis == self.axis else 1 for axis in range(len(self.shape))]
        numbers = self.dtype.round(np.arange(self.shape[self.axis]))
        return np.broadcast_to(numbers.reshape(extents), self.shape)

    def nest(self, b: Emitter) -> Value:
        result = self.infer()
        output = Output(result, identity_access(self.shape))
        cast = DataTypeCast(self.dtype)
        return build_nest(
            b, self.shape, [], [output], lambda inner, at, _: [inner.emit(cast, at[self.axis])]
        )[0]


def _loaded(indices: Sequence[Value]) -> tuple[Index, ...]:
    """An index that is read of each of the first operands."""
    return tuple(Loaded(number) for number in range(len(indices)))


def are_inside(ranges: KnownRanges, shape: Shape, axis: int) -> bool:
    """Whether indices of the axes from `axis` on, which lie in these ranges, are inside; none are not."""
    extents = shape[axis : axis + len(ranges)]
    return bool(ranges) and all(
        known is not None and 0 <= known[0] and known[1] < extent
        for known, extent in zip(ranges, extents, strict=True)
    )


def entries_at(instruction: Instruction, index: Value, greatest: int) -> tuple[Value, int] | None:
    """The tensor and the axis of which a gather takes the entries at `index`, and at no other.

    `index` may have been cast to types that hold all of 0 to `greatest`.
    """
    op = instruction.op
    if not isinstance(op, Gather) or len(instruction.operands) != 2:
        return None
    x, at = instruction.operands
    while isinstance(at.op, DataTypeCast) and at.producer is not None:
        dtype = at.tensor.dtype
        if not dtype.is_integer or greatest >> (dtype.bits - 1):
            return None
        at = at.producer.operands[0]
    return (x, op.axis) if at is index else None


def index_of_entry(instruction: Instruction) -> Value | None:
    """The index, where a gather takes one entry along the leading axis."""
    op = instruction.op
    if not isinstance(op, Gather) or op.axis or len(instruction.operands) != 2:
        return None
    index = instruction.operands[1]
    return None if index.tensor.rank else index


def check_indices(
    name: str, axis: int, x: TensorType, indices: Sequence[TensorType], bounds: Bounds
) -> Shape:
    """The shape that the indices of the axes of `x` from `axis` on have in common.

    Raises: DTypeError, RankError or ShapeError when they do not fit.
    """
    if not indices:
        raise RankError(f"{name} takes indices")
    for number, given in enumerate(indices):
        if not given.dtype.is_integer or given.dtype.bits < 32:
            raise DTypeError(f"{name}: indices must be i32 or i64, not {given.words}")
        check_axis(name, axis + number, x)
        if given.shape != indices[0].shape:
            raise ShapeError(f"{name}: indices differ in shape: {indices[0].words}, {given.words}")
        if x.shape[axis + number] == 0 and given.size and bounds is not Bounds.ZERO:
            raise ShapeError(f"{name}: the axis of {x.words} is empty, no index is inside it")
    return indices[0].shape


def indexed_shape(shape: Shape, axis: int, count: int, indices: Shape) -> Shape:
    """`shape` with the axes of `indices` in place of `count` axes."""
    return (*shape[:axis], *indices, *shape[axis + count :])


def write_at(
    x: Array,
    updates: Array,
    axis: int,
    indices: Sequence[Array],
    bounds: Bounds,
    combinator: Combinator | None,
) -> None:
    """Write updates into x, one after the other, or join them with what is there."""
    where, outside = resolved(indices, x.shape[axis : axis + len(indices)], bounds)
    kept, last = ~outside.ravel(), axis + indices[0].ndim
    rows = np.moveaxis(x, range(axis, axis + len(indices)), range(len(indices)))
    values = np.moveaxis(updates, range(axis, last), range(last - axis))
    values = values.reshape((indices[0].size, *rows.shape[len(indices) :]))
    places = tuple(w.ravel()[kept] for w in where)
    if combinator is None:
        rows[places] = values[kept]
    else:
        combinator.join(rows, places, values[kept])


def resolved(
    indices: Sequence[Array], extents: Shape, bounds: Bounds
) -> tuple[tuple[Array, ...], Array]:
    """The indices moved inside their axes, and where one of them was outside, if it is to be left out.

    Raises: IndexOutOfRangeError when the bounds are to be checked.
    """
    outside = np.zeros(indices[0].shape, bool)
    inside: list[Array] = []
    for given, extent in zip(indices, extents, strict=True):
        wrong = (given < 0) | (given >= extent)
        if bounds in (Bounds.CHECK, Bounds.INSIDE) and wrong.any():
            raise IndexOutOfRangeError(
                f"index {int(given[wrong][0])} is out of range for an axis of extent {extent}"
            )
        inside.append(np.clip(given, 0, extent - 1).astype(np.int64))
        outside |= wrong
    return tuple(inside), outside if bounds is Bounds.ZERO else np.zeros_like(outside)


def element_numbers(b: Emitter, indices: Sequence[Value]) -> Value:
    """Beside indices of a batch: for each of them the number of its element."""
    return b.emit(Iota(indices[0].tensor.shape, 0, I64))


def first_order(rank: int, axis: int, count: int) -> tuple[int, ...]:
    """The axes of a batch with `count` from `axis` on, as an element counts them, right behind the leading one."""
    moved = range(axis + 1, axis + 1 + count)
    return (0, *moved, *(k for k in range(1, rank) if k not in moved))


def axes_first(b: Emitter, x: Value, axis: int, count: int) -> Value:
    """A batch with its axes so."""
    return permuted(b, x, first_order(x.tensor.rank, axis, count))


def axes_back(b: Emitter, x: Value, leading: int, axis: int) -> Value:
    """The first `leading` axes but one, which stays, behind the `axis` that follow them."""
    order = list(range(x.tensor.rank))
    first, moved, rest = order[:1], order[1:leading], order[leading:]
    return permuted(b, x, (*first, *rest[:axis], *moved, *rest[axis:]))
