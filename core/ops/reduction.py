"""Reductions and the broadcast, which is the transpose of a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..errors import InternalError, RankError, ShapeError
from ..ir.instruction import Emitter, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import I64, Array, Shape, TensorType, broadcast_shapes, scalar
from .arithmetic import Divide, Maximum, StrongMultiply
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import Equal, NotEqual, Or, Select
from .forms import Linear, check_axis, check_kind
from .formulas import number
from .literal import constant
from .movement import check_axes, permuted, reshaped
from .nest import Access, Output, broadcast_access, build_nest, identity_access, read_nest
from .scan import Scan, check_combinator, nan_where_nan


@dataclass(frozen=True)
class Broadcast(Linear):
    """x repeated along new leading axes and along axes of extent 1 (NumPy's rule)."""

    name: ClassVar[str] = "broadcast"
    syntax: ClassVar[str] = "broadcast {x} to {shape}"
    is_moved: ClassVar[bool] = True
    shape: Shape

    def infer(self, x: TensorType) -> TensorType:
        if x.rank > len(self.shape):
            raise RankError(f"cannot broadcast {x.words} to {list(self.shape)}: rank is lost")
        try:
            fits = broadcast_shapes((x.shape, self.shape)) == self.shape
        except ShapeError:
            fits = False
        if not fits:
            raise ShapeError(f"cannot broadcast {x.words} to {list(self.shape)}")
        return x.with_shape(self.shape)

    def evaluate(self, x: Array) -> Array:
        return np.broadcast_to(x, self.shape)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        return (sum_to_shape(b, ct, xs[0].tensor.shape),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        (x,) = xs
        extent, *shape = x.tensor.shape
        new = len(self.shape) - len(shape)
        return broadcast_to(b, reshaped(b, x, (extent, *[1] * new, *shape)), (extent, *self.shape))

    def nest(self, b: Emitter, x: Value) -> Value:
        result = self.infer(x.tensor)
        return read_nest(b, x, broadcast_access(x.tensor.shape, result.shape), result)


@dataclass(frozen=True)
class Reduce(Pure):
    """x₀ ∘ x₁ ∘ … over `axes`, which are left out of the result; over no axes it is x itself.

    An empty axis gives the identity of the combinator.  Derivatives: a minimum or maximum splits evenly
    among the elements that attain it, and is NaN by all of them if it is; that of a product is right at any
    number of zeros.
    """

    name: ClassVar[str] = "reduce"
    syntax: ClassVar[str] = "reduce {x} by {combinator} [along {axes}]"
    combinator: Combinator
    axes: tuple[int, ...] = ()

    def infer(self, x: TensorType) -> TensorType:
        check_axes("reduce", self.axes, x)
        check_combinator(self.combinator, x)
        return x.with_shape(n for axis, n in enumerate(x.shape) if axis not in self.axes)

    def evaluate(self, x: Array) -> Array:
        if not self.axes:
            return x
        with np.errstate(all="ignore"):
            return self.combinator.reduce(x, self.axes)

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (dx,) = ys, xs, dxs
        if dx is None:
            return (None,)
        match self.combinator:
            case Combinator.ADD:
                return (self._sum(b, dx),)
            case Combinator.MULTIPLY:
                return (self._sum(b, b.emit(StrongMultiply(), dx, self._other_factors(b, x))),)
            case Combinator.MIN | Combinator.MAX:
                attains, share, rest = self._attained(b, y, x)
                partial = b.emit(
                    Select(), *(self._kept(b, n, x.tensor.shape) for n in (share, rest)), attains
                )
                return (self._sum(b, b.emit(StrongMultiply(), dx, partial)),)
            case _:
                raise InternalError(f"a reduction by {self.combinator} has no derivative")

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (x,), (ct,) = ys, xs, cts
        if ct is None:
            return (None,)
        match self.combinator:
            case Combinator.ADD:
                return (self._spread(b, ct, x.tensor.shape),)
            case Combinator.MULTIPLY:
                kept = self._kept(b, ct, x.tensor.shape)
                return (b.emit(StrongMultiply(), kept, self._other_factors(b, x)),)
            case Combinator.MIN | Combinator.MAX:
                attains, share, rest = self._attained(b, y, x)
                parts = (
                    self._kept(b, b.emit(StrongMultiply(), ct, n), x.tensor.shape)
                    for n in (share, rest)
                )
                return (b.emit(Select(), *parts, attains),)
            case _:
                raise InternalError(f"a reduction by {self.combinator} has no derivative")

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(Reduce(self.combinator, tuple(axis + 1 for axis in self.axes)), *xs)

    def nest(self, b: Emitter, x: Value) -> Value:
        shape = x.tensor.shape
        point = identity_access(shape)
        kept = tuple(point[axis] for axis in range(len(shape)) if axis not in self.axes)
        output = Output(self.infer(x.tensor), kept, self.combinator if self.axes else None)
        reads = [(x, Access(point))]
        return build_nest(b, shape, reads, [output], lambda _, __, read: read)[0]

    def _sum(self, b: Emitter, x: Value) -> Value:
        return b.emit(Reduce(Combinator.ADD, self.axes), x)

    def _kept(self, b: Emitter, y: Value, shape: Shape) -> Value:
        """A reduced value in a shape that broadcasts against `shape`."""
        if set(self.axes) == set(range(len(self.axes))):
            return y
        return reshaped(b, y, [1 if a in self.axes else n for a, n in enumerate(shape)])

    def _spread(self, b: Emitter, y: Value, shape: Shape) -> Value:
        return broadcast_to(b, self._kept(b, y, shape), shape)

    def _attained(self, b: Emitter, y: Value, x: Value) -> tuple[Value, Value, Value]:
        """Where x attains the extremum y; the partial there, one over how often it does, and elsewhere, 0.

        Both are NaN where the extremum is.
        """
        attains = b.emit(Equal(), x, self._kept(b, y, x.tensor.shape))
        count = self._sum(b, b.emit(DataTypeCast(I64), attains))
        ties = b.emit(DataTypeCast(x.tensor.dtype), b.emit(Maximum(), count, number(b, count, 1)))
        share = b.emit(Divide(), nan_where_nan(b, y, 1), ties)
        return attains, share, nan_where_nan(b, y, 0)

    def _other_factors(self, b: Emitter, x: Value) -> Value:
        """For each element the product of all others: of those before it and those after it."""
        shape = x.tensor.shape
        kept = [axis for axis in range(len(shape)) if axis not in self.axes]
        order = (*kept, *self.axes)
        count = math.prod(shape[axis] for axis in self.axes)
        together = reshaped(b, permuted(b, x, order), [*(shape[axis] for axis in kept), count])
        before, after = (
            b.emit(Scan(Combinator.MULTIPLY, len(kept), reverse=way, exclusive=True), together)
            for way in (False, True)
        )
        others = reshaped(
            b, b.emit(StrongMultiply(), before, after), [shape[axis] for axis in order]
        )
        return permuted(b, others, tuple(order.index(axis) for axis in range(len(shape))))


@dataclass(frozen=True)
class _Arg(Pure):
    """The index of an extremum along an axis, i64; the first of ties, the first NaN if there is one."""

    not_differentiable: ClassVar[str] = "an index is constant between its jumps"
    combinator: ClassVar[Combinator]
    axis: int

    def infer(self, x: TensorType) -> TensorType:
        check_axis(self.name, self.axis, x)
        check_kind(self.name, x, ("float", "integer"))
        if x.shape[self.axis] == 0:
            raise ShapeError(f"{self.name}: axis {self.axis} of {x.words} is empty")
        return TensorType((*x.shape[: self.axis], *x.shape[self.axis + 1 :]), I64)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(replace(self, axis=self.axis + 1), *xs)

    def nest(self, b: Emitter, x: Value) -> Value:
        """The extremum, then the least index where it is attained."""
        extremum = Reduce(self.combinator, (self.axis,)).nest(b, x)
        point = identity_access(x.tensor.shape)
        kept = (*point[: self.axis], *point[self.axis + 1 :])

        def body(inner: Emitter, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            element, best = read
            found = inner.emit(Equal(), element, best)
            if element.tensor.dtype.is_float:
                found = inner.emit(Or(), found, inner.emit(NotEqual(), element, element))
            nowhere = constant(inner, scalar(I64), Combinator.MIN.identity(I64))
            return [inner.emit(Select(), at[self.axis], nowhere, found)]

        reads = [(x, Access(point)), (extremum, Access(kept))]
        output = Output(self.infer(x.tensor), kept, Combinator.MIN)
        return build_nest(b, x.tensor.shape, reads, [output], body)[0]


class ArgMax(_Arg):
    """Index of the greatest element along an axis, i64: the first of ties; a NaN counts as greatest."""

    name: ClassVar[str] = "argMax"
    syntax: ClassVar[str] = "argMax {x} along {axis}"
    combinator: ClassVar[Combinator] = Combinator.MAX

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.argmax(x, self.axis), np.int64)


class ArgMin(_Arg):
    """Index of the least element along an axis, i64: the first of ties; a NaN counts as least."""

    name: ClassVar[str] = "argMin"
    syntax: ClassVar[str] = "argMin {x} along {axis}"
    combinator: ClassVar[Combinator] = Combinator.MIN

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.argmin(x, self.axis), np.int64)


def broadcast_to(b: Emitter, x: Value, shape: Shape) -> Value:
    """x broadcast to `shape`; x itself when that is the shape it has."""
    return x if x.tensor.shape == shape else b.emit(Broadcast(shape), x)


def sum_to_shape(b: Emitter, x: Value, shape: Shape) -> Value:
    """x summed over the axes along which a tensor of `shape` was broadcast to the shape of x."""
    new = x.tensor.rank - len(shape)
    axes = tuple(
        axis
        for axis, extent in enumerate(x.tensor.shape)
        if axis < new or (shape[axis - new] == 1 and extent != 1)
    )
    total = b.emit(Reduce(Combinator.ADD, axes), x) if axes else x
    return reshaped(b, total, shape)
