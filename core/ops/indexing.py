"""Reading and writing at computed indices, and tensors made of indices.

Gather and scatter are each other's transposes: no dense one-hot product appears in a derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from ..errors import DTypeError, IndexOutOfRangeError, ShapeError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..types import F32, F64, I64, Array, DType, Shape, TensorType, scalar, tensor_bytes
from .arithmetic import Add, Maximum, Minimum, Multiply
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import And, Equal, GreaterThanOrEqual, LessThanOrEqual, Select
from .forms import Linear, check_axis, check_kind
from .literal import constant
from .movement import permuted, reshaped
from .nest import Access, Bounds, Index, Loaded, Output, build_nest, identity_access

NAIVE_UPDATES: Final = 12
"""Numbers that may be added one by one: 11 roundings are less than the 8 + log₂ 12 that a sum may have."""


@dataclass(frozen=True)
class Gather(Linear):
    """The entries of x at `indices` along an axis: y[…, i…, …] = x[…, indices[i…], …].

    Shapes: x (p…, n, q…), indices (i…) → (p…, i…, q…), the axis n replaced by all axes of the indices.
    Indices are i32 or i64 and count from 0; negative ones are outside.  `bounds` says what happens
    outside: check is an IndexOutOfRangeError, clip takes the nearest end, zero gives 0.  An empty axis has no
    inside: only zero takes indices there.  A gather whose result nobody uses may be left out, its check with it.
    """

    name: ClassVar[str] = "gather"
    syntax: ClassVar[str] = "gather {x} at {indices} along {axis} [bounds {bounds}]"
    linear_operands: ClassVar[tuple[int, ...] | None] = (0,)
    axis: int
    bounds: Bounds = Bounds.CHECK

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _check_indices("gather", indices)
        check_axis("gather", self.axis, x)
        _check_some("gather", x.shape[self.axis], indices, x, self.bounds)
        return x.with_shape(_gathered(x.shape, self.axis, indices.shape))

    def evaluate(self, x: Array, indices: Array) -> Array:
        if 0 in (indices.size, x.shape[self.axis]):
            return np.zeros(_gathered(x.shape, self.axis, indices.shape), x.dtype)
        where, outside = _resolved(indices, x.shape[self.axis], self.bounds)
        taken = np.take(x, where, axis=self.axis)
        trailing = (1,) * (x.ndim - self.axis - 1)
        return np.where(outside.reshape((*outside.shape, *trailing)), np.zeros((), x.dtype), taken)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        x, indices = xs
        return b.emit(ScatterAdd(x.tensor.shape, self.axis, self.bounds), ct, indices), None

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, indices = xs
        if not batched[1]:
            return b.emit(Gather(self.axis + 1, self.bounds), x, indices)
        if not batched[0]:
            found = b.emit(self, x, indices)
            order = list(range(found.tensor.rank))
            return permuted(b, found, (order.pop(self.axis), *order))
        extent, *shape = x.tensor.shape
        before, size, after = shape[: self.axis], shape[self.axis], shape[self.axis + 1 :]
        if not size:
            return constant(b, x.tensor.with_shape(self._batched_shape(x, indices)), 0)
        together = _axis_first(b, x, self.axis + 1)
        rows = reshaped(b, together, (extent * size, *before, *after))
        where, bounds = _places_in_rows(b, indices, size, self.bounds)
        found = b.emit(Gather(0, bounds), rows, where)
        return _axes_back(b, found, indices.tensor.rank, self.axis)

    def _batched_shape(self, x: Value, indices: Value) -> Shape:
        extent, *shape = x.tensor.shape
        return (extent, *_gathered(tuple(shape), self.axis, indices.tensor.shape[1:]))

    def nest(self, b: Emitter, x: Value, indices: Value) -> Value:
        result = self.infer(x.tensor, indices.tensor)
        point = identity_access(result.shape)
        after = self.axis + indices.tensor.rank
        reads = [
            (indices, Access(point[self.axis : after])),
            (x, Access((*point[: self.axis], Loaded(0), *point[after:]), self.bounds)),
        ]
        output = Output(result, point)
        return build_nest(b, result.shape, reads, [output], lambda _, __, read: [read[1]])[0]

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

    Shapes: updates (p…, i…, q…), indices (i…) → (p…, n, q…) = shape.  Updates at the same index add up, floats to
    within the bound of any other sum.
    Outside, `bounds` zero leaves an update out; the rest is as in `gather`.
    """

    name: ClassVar[str] = "scatterAdd"
    syntax: ClassVar[str] = (
        "scatterAdd {updates} at {indices} along {axis} to {shape} [bounds {bounds}]"
    )
    linear_operands: ClassVar[tuple[int, ...] | None] = (0,)
    shape: Shape
    axis: int
    bounds: Bounds = Bounds.CHECK

    def infer(self, updates: TensorType, indices: TensorType) -> TensorType:
        _check_indices("scatterAdd", indices)
        check_kind("scatterAdd", updates, ("float", "integer"))
        result = updates.with_shape(self.shape)
        check_axis("scatterAdd", self.axis, result)
        expected = _gathered(self.shape, self.axis, indices.shape)
        if updates.shape != expected:
            raise ShapeError(
                f"scatterAdd to {result.words} at {indices.words} along axis {self.axis} takes updates "
                f"of shape {list(expected)}, not {updates.words}"
            )
        _check_some("scatterAdd", self.shape[self.axis], indices, result, self.bounds)
        return result

    def evaluate(self, updates: Array, indices: Array) -> Array:
        result = np.zeros(self.shape, updates.dtype)
        if indices.size == 0:
            return result
        where, outside = _resolved(indices, self.shape[self.axis], self.bounds)
        kept = ~outside.ravel()
        rows = np.moveaxis(result, self.axis, 0)
        leading = (*updates.shape[: self.axis], indices.size, *self.shape[self.axis + 1 :])
        values = np.moveaxis(updates.reshape(leading), self.axis, 0)
        Combinator.ADD.join(rows, (where.ravel()[kept],), values[kept])
        return result

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        _, indices = xs
        return b.emit(Gather(self.axis, self.bounds), ct, indices), None

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        updates, indices = xs
        extent, size = updates.tensor.shape[0], self.shape[self.axis]
        if not batched[1]:
            return b.emit(
                ScatterAdd((extent, *self.shape), self.axis + 1, self.bounds), updates, indices
            )
        if not size:
            return constant(b, updates.tensor.with_shape((extent, *self.shape)), 0)
        rank = indices.tensor.rank - 1
        rest = (*self.shape[: self.axis], *self.shape[self.axis + 1 :])
        # the axes of the indices first, then those before and behind them
        order = list(range(1, updates.tensor.rank))
        inner = order[self.axis : self.axis + rank]
        outer = [axis for axis in order if axis not in inner]
        moved = permuted(b, updates, (0, *inner, *outer))
        where, bounds = _places_in_rows(b, indices, size, self.bounds)
        rows = b.emit(ScatterAdd((extent * size, *rest), 0, bounds), moved, where)
        return _axes_back(b, reshaped(b, rows, (extent, size, *rest)), 2, self.axis)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """Each element has updates of its own."""
        return True, batched[1]

    def nest(self, b: Emitter, updates: Value, indices: Value) -> Value:
        shape = updates.tensor.shape
        point = identity_access(shape)
        after = self.axis + indices.tensor.rank
        reads = [(indices, Access(point[self.axis : after])), (updates, Access(point))]
        target: tuple[Index, ...] = (*point[: self.axis], Loaded(0), *point[after:])
        dtype = updates.tensor.dtype
        wide = self._type_of_sums(dtype, indices.tensor.size)
        output = Output(TensorType(self.shape, wide), target, Combinator.ADD, self.bounds)

        def body(inner: Emitter, _: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            return [read[1] if wide is dtype else inner.emit(DataTypeCast(wide), read[1])]

        result = build_nest(b, shape, reads, [output], body)[0]
        return result if wide is dtype else b.emit(DataTypeCast(dtype), result)

    def can_fail(self) -> bool:
        return self.bounds is Bounds.CHECK

    def trusted(self, operands: Sequence[Value]) -> Sequence[Value]:
        return operands[1:] if self.bounds is Bounds.INSIDE else ()

    def _type_of_sums(self, dtype: DType, updates: int) -> DType:
        """What elements are while updates are added: f32 for halves at least, f64 where that is the cheapest way.

        That is where an index has one number, so that no vectors are to be had, and no element of the result, on
        average, is left out: converting it costs little beside what a compensated addition waits for (1.2 of the
        time for naive sums, not 1.5 to 2).
        """
        if not dtype.is_float or dtype is F64:
            return dtype
        is_narrow = math.prod(self.shape[self.axis + 1 :]) == 1
        if is_narrow and updates > NAIVE_UPDATES and updates >= self.shape[self.axis]:
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


def _check_indices(name: str, indices: TensorType) -> None:
    if not indices.dtype.is_integer or indices.dtype.bits < 32:
        raise DTypeError(f"{name}: indices must be i32 or i64, not {indices.words}")


def _check_some(name: str, extent: int, indices: TensorType, x: TensorType, bounds: Bounds) -> None:
    if extent == 0 and indices.size and bounds is not Bounds.ZERO:
        raise ShapeError(f"{name}: the axis of {x.words} is empty, no index is inside it")


def _gathered(shape: Shape, axis: int, indices: Shape) -> Shape:
    return (*shape[:axis], *indices, *shape[axis + 1 :])


def _resolved(indices: Array, extent: int, bounds: Bounds) -> tuple[Array, Array]:
    """The indices moved inside the axis, and where the result is zero instead.

    Raises: IndexOutOfRangeError when the bounds are to be checked.
    """
    outside = (indices < 0) | (indices >= extent)
    if bounds in (Bounds.CHECK, Bounds.INSIDE) and outside.any():
        raise IndexOutOfRangeError(
            f"index {int(indices[outside][0])} is out of range for an axis of extent {extent}"
        )
    inside = np.clip(indices, 0, extent - 1).astype(np.int64)
    return inside, outside if bounds is Bounds.ZERO else np.zeros_like(outside)


def _axis_first(b: Emitter, x: Value, axis: int) -> Value:
    """The axis right behind the leading one."""
    order = [k for k in range(x.tensor.rank) if k not in (0, axis)]
    return permuted(b, x, (0, axis, *order))


def _axes_back(b: Emitter, x: Value, leading: int, axis: int) -> Value:
    """The first `leading` axes but one, which stays, behind the `axis` that follow them."""
    order = list(range(x.tensor.rank))
    first, moved, rest = order[:1], order[1:leading], order[leading:]
    return permuted(b, x, (*first, *rest[:axis], *moved, *rest[axis:]))


def _places_in_rows(b: Emitter, indices: Value, size: int, bounds: Bounds) -> tuple[Value, Bounds]:
    """Where indices of an axis of `size` lie if the axes of all elements of a batch stand one after the other.

    With what is to be done about those that are outside; whether they are, has been checked if it was asked for.
    """
    wide = indices if indices.tensor.dtype is I64 else b.emit(DataTypeCast(I64), indices)
    zero, last = (constant(b, scalar(I64), n) for n in (0, size - 1))
    if bounds is Bounds.CHECK:
        # which gives every index itself, or the error that names it
        wide = b.emit(Gather(0, bounds), b.emit(Iota((size,), 0, I64)), wide)
    elif bounds is Bounds.CLIP:
        wide = b.emit(Minimum(), b.emit(Maximum(), wide, zero), last)
    extent, *shape = indices.tensor.shape
    numbers = b.emit(Iota((extent, *[1] * len(shape)), 0, I64))
    start = b.emit(Multiply(), numbers, constant(b, scalar(I64), size))
    places = b.emit(Add(), start, wide)
    if bounds is not Bounds.ZERO:
        return places, Bounds.INSIDE
    above = b.emit(GreaterThanOrEqual(), wide, zero)
    inside = b.emit(And(), above, b.emit(LessThanOrEqual(), wide, last))
    return b.emit(Select(), places, constant(b, scalar(I64), -1), inside), bounds
