"""Parts of tensors: cut out, put together, and padded.

Slices and pads (with gaps) are each other's transposes, so no derivative sums over zeros.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar, TypeGuard

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Instruction, Value
from ..lazy_dataclass import dataclass
from ..stage import EARLY, Stage, Stages
from ..types import BOOL, I64, Array, Shape, TensorType, same_dtype, scalar, tensor_bytes
from .comparison import And, GreaterThanOrEqual, LessThan, Select
from .forms import Linear, check_axis
from .formulas import number
from .indexing import ScatterAdd
from .literal import Literal, constant, number_of
from .movement import ShapeCast, reshaped
from .nest import Access, Affine, Bounds, Output, build_nest, coordinate, identity_access, read_nest


@dataclass(frozen=True)
class Slice(Linear):
    """Elements start, start + stride, … before `stop`, along each of the leading axes; 0-based.

    `start`, `stop` and `strides` have one entry per leading axis; further axes stay whole, and without
    strides all are 1.  Shapes: ⌈(stop − start) / stride⌉ elements remain.
    """

    name: ClassVar[str] = "slice"
    syntax: ClassVar[str] = "slice {x} from {start} upto {stop} [strides {strides}]"
    is_moved: ClassVar[bool] = True
    start: tuple[int, ...]
    stop: tuple[int, ...]
    strides: tuple[int, ...] = ()

    def infer(self, x: TensorType) -> TensorType:
        axes = len(self.start)
        if len(self.stop) != axes or len(self.strides) not in (0, axes) or axes > x.rank:
            raise RankError(
                f"slice: {axes} starts, {len(self.stop)} stops and {len(self.strides)} strides "
                f"do not fit {x.words}"
            )
        for axis, (start, stop, stride) in enumerate(self._leading()):
            if not 0 <= start <= stop <= x.shape[axis]:
                raise ShapeError(
                    f"slice {start}:{stop} of axis {axis} is out of range for {x.words}"
                )
            if stride < 1:
                raise ShapeError(f"slice: the stride of axis {axis} is {stride}, not at least 1")
        return x.with_shape(len(range(*triple)) for triple in self.ranges(x.shape))

    def _leading(self) -> list[tuple[int, int, int]]:
        return list(zip(self.start, self.stop, self.strides or (1,) * len(self.start), strict=True))

    def ranges(self, shape: Sequence[int]) -> list[tuple[int, int, int]]:
        """(start, stop, stride) for every axis of an operand of `shape`."""
        return self._leading() + [(0, extent, 1) for extent in shape[len(self.start) :]]

    def evaluate(self, x: Array) -> Array:
        return np.asarray(x[tuple(slice(*triple) for triple in self._leading())])

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        shape = xs[0].tensor.shape
        ranges = self.ranges(shape)
        high = [
            extent - (start + (n - 1) * stride + 1 if n else start)
            for (start, _, stride), extent, n in zip(ranges, shape, ct.tensor.shape, strict=True)
        ]
        interior = tuple(stride - 1 for _, _, stride in ranges)
        pad = Pad(
            tuple(start for start, _, _ in ranges), tuple(high), interior if any(interior) else ()
        )
        return (b.emit(pad, ct, number(b, ct, 0)),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        (x,) = xs
        start, stop = (0, *self.start), (x.tensor.shape[0], *self.stop)
        return b.emit(Slice(start, stop, (1, *self.strides) if self.strides else ()), x)

    def nest(self, b: Emitter, x: Value) -> Value:
        ranges = self.ranges(x.tensor.shape)
        indices = tuple(
            coordinate(axis) * stride + start for axis, (start, _, stride) in enumerate(ranges)
        )
        result = self.infer(x.tensor)
        return read_nest(b, x, Access(indices), result)

    def bytes_moved(self, instruction: Instruction) -> int:
        return 2 * tensor_bytes(instruction.result.type)


@dataclass(frozen=True)
class Pad(Linear):
    """x between `low` and `high` copies of a scalar, and `interior` copies between neighbours, per axis.

    Shapes: x (n…), value () → (low + n + (n − 1)·interior + high …); an empty axis has no neighbours.
    Without `interior` there are no gaps.
    """

    name: ClassVar[str] = "pad"
    syntax: ClassVar[str] = "pad {x} by {value} low {low} high {high} [interior {interior}]"
    is_moved: ClassVar[bool] = True
    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...] = ()

    def infer(self, x: TensorType, value: TensorType) -> TensorType:
        same_dtype("pad", (x, value))
        if value.rank:
            raise RankError(f"pad: the value must be a scalar, not {value.words}")
        if not len(self.low) == len(self.high) == len(self.gaps) == x.rank:
            raise RankError(
                f"pad: {len(self.low)} low, {len(self.high)} high and {len(self.gaps)} interior "
                f"extents do not fit {x.words}"
            )
        if min((*self.low, *self.high, *self.gaps), default=0) < 0:
            raise ShapeError(f"pad: an extent is negative in low {list(self.low)}, high "
                             f"{list(self.high)}, interior {list(self.gaps)}")  # fmt: skip
        return x.with_shape(self._padded(x.shape))

    @property
    def gaps(self) -> tuple[int, ...]:
        """`interior`, written out."""
        return self.interior or (0,) * len(self.low)

    def _padded(self, shape: Sequence[int]) -> list[int]:
        return [
            low + n + max(n - 1, 0) * gap + high
            for low, n, gap, high in zip(self.low, shape, self.gaps, self.high, strict=True)
        ]

    def window(self, shape: Sequence[int]) -> Slice:
        """Where an x of `shape` lies in the result."""
        stop = (
            low + (n - 1) * (gap + 1) + 1 if n else low
            for low, n, gap in zip(self.low, shape, self.gaps, strict=True)
        )
        return Slice(self.low, tuple(stop), tuple(g + 1 for g in self.interior))

    def evaluate(self, x: Array, value: Array) -> Array:
        result = np.full(self._padded(x.shape), value, x.dtype)
        window = self.window(x.shape)
        strides = window.strides or (1,) * x.ndim
        result[tuple(map(slice, window.start, window.stop, strides))] = x
        return result

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        """What falls on x is a slice; the value gets the sum of the rest.

        The sum is a scatter to one element, since the rules of `reduce` are made of this op.
        """
        x, value = xs
        mask = b.emit(
            self, constant(b, x.tensor.with_dtype(BOOL), False), constant(b, scalar(BOOL), True)
        )
        rest = b.emit(Select(), ct, number(b, ct, 0), mask)
        flat = b.emit(ShapeCast((ct.tensor.size,)), rest)
        first = constant(b, TensorType(flat.tensor.shape, I64), 0)
        total = b.emit(ScatterAdd((1,), 0, Bounds.INSIDE), flat, first)
        return b.emit(self.window(x.tensor.shape), ct), b.emit(ShapeCast(value.tensor.shape), total)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, value = xs
        gaps = (0, *self.interior) if self.interior else ()
        wide = Pad((0, *self.low), (0, *self.high), gaps)
        if not batched[1]:
            return b.emit(wide, x, value)
        padded = b.emit(wide, x, number(b, x, 0))
        one = TensorType(x.tensor.shape[1:], BOOL)
        mask = b.emit(self, constant(b, one, False), constant(b, scalar(BOOL), True))
        each = reshaped(b, value, (x.tensor.shape[0], *[1] * one.rank))
        return b.emit(Select(), each, padded, mask)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """What is padded has as many elements as there are values."""
        return True, batched[1]

    def nest(self, b: Emitter, x: Value, value: Value) -> Value:
        result = self.infer(x.tensor, value.tensor)
        if not any(self.gaps):
            return self._nest_without_gaps(b, x, value, result)
        placed = self._scattered(b, x, result)
        if _is_zero(value):
            return placed
        inside = self._scattered(b, constant(b, x.tensor.with_dtype(BOOL), True), result)
        point = Access(identity_access(result.shape))
        reads = [(placed, point), (value, Access(())), (inside, point)]
        return build_nest(
            b, result.shape, reads, [Output(result, identity_access(result.shape))],
            lambda inner, _, read: [inner.emit(Select(), *read)],
        )[0]  # fmt: skip

    def _nest_without_gaps(self, b: Emitter, x: Value, value: Value, result: TensorType) -> Value:
        shifted = tuple(coordinate(axis) + -low for axis, low in enumerate(self.low))
        if _is_zero(value):
            return read_nest(b, x, Access(shifted, Bounds.ZERO), result)

        def body(inner: Emitter, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            inside = constant(inner, scalar(BOOL), True)
            for d, low, high, extent in zip(at, self.low, self.high, x.tensor.shape, strict=True):
                if low:
                    after = inner.emit(GreaterThanOrEqual(), d, number(inner, d, low))
                    inside = inner.emit(And(), inside, after)
                if high:
                    before = inner.emit(LessThan(), d, number(inner, d, low + extent))
                    inside = inner.emit(And(), inside, before)
            return [inner.emit(Select(), *read, inside)]

        reads = [(x, Access(shifted, Bounds.ZERO)), (value, Access(()))]
        output = Output(result, identity_access(result.shape))
        return build_nest(b, result.shape, reads, [output], body)[0]

    def _scattered(self, b: Emitter, x: Value, result: TensorType) -> Value:
        """x written at its places, zero elsewhere."""
        target = tuple(
            coordinate(axis) * (gap + 1) + low
            for axis, (low, gap) in enumerate(zip(self.low, self.gaps, strict=True))
        )
        shape = x.tensor.shape
        output = Output(result.with_dtype(x.tensor.dtype), target)
        reads = [(x, Access(identity_access(shape)))]
        return build_nest(b, shape, reads, [output], lambda _, __, read: read)[0]


@dataclass(frozen=True)
class Concatenate(Linear):
    """The operands one after the other along an axis; their other axes agree."""

    name: ClassVar[str] = "concatenate"
    syntax: ClassVar[str] = "concatenate {xs*} along {axis}"
    stages: ClassVar[Stages] = EARLY | {Stage.COMPUTE}
    is_moved: ClassVar[bool] = True
    axis: int

    def infer(self, *xs: TensorType) -> TensorType:
        if not xs:
            raise ShapeError("concatenate needs at least one operand")
        first = xs[0]
        same_dtype("concatenate", xs)
        check_axis("concatenate", self.axis, first)
        for x in xs:
            if x.rank != first.rank:
                raise RankError(f"cannot concatenate {first.words} and {x.words}: ranks differ")
            if _without(x.shape, self.axis) != _without(first.shape, self.axis):
                raise ShapeError(
                    f"cannot concatenate {first.words} and {x.words} along axis {self.axis}: "
                    "their other axes differ"
                )
        return first.with_shape(
            (
                *first.shape[: self.axis],
                sum(x.shape[self.axis] for x in xs),
                *first.shape[self.axis + 1 :],
            )
        )

    def evaluate(self, *xs: Array) -> Array:
        return np.concatenate(xs, self.axis)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        leading = ct.tensor.shape[: self.axis]
        ends = list(itertools.accumulate((x.tensor.shape[self.axis] for x in xs), initial=0))
        return tuple(
            b.emit(Slice((*(0 for _ in leading), start), (*leading, stop)), ct)
            for start, stop in itertools.pairwise(ends)
        )

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(Concatenate(self.axis + 1), *xs)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        return [True] * len(batched)

    def nest(self, b: Emitter, *xs: Value) -> Value:
        """A nest that selects each element from all pieces, for few of them (`compute.generate`)."""
        result = self.infer(*(x.tensor for x in xs))
        xs = tuple(x for x in xs if x.tensor.size) or xs[:1]
        if len(xs) == 1:
            return reshaped(b, xs[0], result.shape)
        starts = list(itertools.accumulate((x.tensor.shape[self.axis] for x in xs), initial=0))
        point = identity_access(result.shape)

        def body(inner: Emitter, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            d, chosen = at[self.axis], read[-1]
            for value, stop in list(zip(read, starts[1:], strict=True))[-2::-1]:
                before = inner.emit(LessThan(), d, number(inner, d, stop))
                chosen = inner.emit(Select(), value, chosen, before)
            return [chosen]

        reads = [(x, _shifted(point, self.axis, -s)) for x, s in zip(xs, starts[:-1], strict=True)]
        return build_nest(b, result.shape, reads, [Output(result, point)], body)[0]


def is_concatenation(instruction: Instruction) -> TypeGuard[Instruction[Concatenate]]:
    """Whether its result is its operands one after the other."""
    return isinstance(instruction.op, Concatenate)


@dataclass(frozen=True)
class PaddedPart:
    """What lies from the indices `low` on between zeros."""

    low: Shape
    part: Value

    @property
    def high(self) -> Shape:
        """The indices behind the last ones."""
        shape = self.part.tensor.shape
        return tuple(first + extent for first, extent in zip(self.low, shape, strict=True))


def padded_part(x: Value) -> PaddedPart | None:
    """The part that `x` is between zeros; None when it is anything else, or has zeros inside, or nothing."""
    if x.producer is None or not isinstance(x.op, Pad) or any(x.op.gaps):
        return None
    part, filler = x.producer.operands
    return PaddedPart(x.op.low, part) if number_of(filler) == 0 and part.tensor.size else None


def _shifted(point: tuple[Affine, ...], axis: int, by: int) -> Access:
    return Access((*point[:axis], point[axis] + by, *point[axis + 1 :]), Bounds.ZERO)


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _is_zero(value: Value) -> bool:
    """Whether the value is the literal +0, which nests fill with."""
    if not isinstance(value.op, Literal):
        return False
    element = value.op.splat_value()
    return element == 0 and math.copysign(1, element) > 0
