"""Movement within a tensor: elements change places, none is lost, none is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import Array, Shape, TensorType
from .forms import Linear, check_axis
from .nest import Access, coordinate, read_nest


@dataclass(frozen=True)
class Transpose(Linear):
    """Axis k of the result is axis `permutation[k]` of x; without a permutation all are reversed."""

    name: ClassVar[str] = "transpose"
    syntax: ClassVar[str] = "transpose {x} [permuting {permutation}]"
    is_moved: ClassVar[bool] = True
    permutation: tuple[int, ...] = ()

    def infer(self, x: TensorType) -> TensorType:
        order = self.order(x.rank)
        if sorted(order) != list(range(x.rank)):
            raise RankError(f"{order} is not a permutation of the axes of {x.words}")
        return x.with_shape(x.shape[axis] for axis in order)

    def order(self, rank: int) -> tuple[int, ...]:
        """The permutation, written out for operands of `rank`."""
        return self.permutation or tuple(reversed(range(rank)))

    def evaluate(self, x: Array) -> Array:
        return np.transpose(x, self.order(x.ndim))

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        inverse = tuple(self.permutation.index(axis) for axis in range(len(self.permutation)))
        return (b.emit(Transpose(inverse), ct),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        (x,) = xs
        order = self.order(x.tensor.rank - 1)
        return b.emit(Transpose((0, *(axis + 1 for axis in order))), x)

    def nest(self, b: Emitter, x: Value) -> Value:
        order = self.order(x.tensor.rank)
        indices = tuple(coordinate(order.index(axis)) for axis in range(len(order)))
        return read_nest(b, x, Access(indices), self.infer(x.tensor))


@dataclass(frozen=True)
class ShapeCast(Linear):
    """The same elements in row-major order under another shape: an alias of the same bytes."""

    name: ClassVar[str] = "shapeCast"
    syntax: ClassVar[str] = "shapeCast {x} to {shape}"
    stages: ClassVar[Stages] = frozenset(Stage)
    is_moved: ClassVar[bool] = True
    is_view: ClassVar[bool] = True
    shape: Shape

    def infer(self, x: TensorType) -> TensorType:
        if x.size != math.prod(self.shape):
            raise ShapeError(
                f"cannot reshape {x.words} to {list(self.shape)}: {x.size} elements do not fill "
                f"{math.prod(self.shape)}"
            )
        return x.with_shape(self.shape)

    def evaluate(self, x: Array) -> Array:
        return np.reshape(x, self.shape)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        return (b.emit(ShapeCast(xs[0].tensor.shape), ct),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        (x,) = xs
        return b.emit(ShapeCast((x.tensor.shape[0], *self.shape)), x)


@dataclass(frozen=True)
class PadShape(Linear):
    """A new axis of extent 1 before axis `axis`; at the end when it equals the rank."""

    name: ClassVar[str] = "padShape"
    syntax: ClassVar[str] = "padShape {x} at {axis}"
    is_moved: ClassVar[bool] = True
    is_view: ClassVar[bool] = True
    axis: int

    def infer(self, x: TensorType) -> TensorType:
        if not 0 <= self.axis <= x.rank:
            raise RankError(f"padShape: cannot insert an axis at {self.axis} into {x.words}")
        return x.with_shape((*x.shape[: self.axis], 1, *x.shape[self.axis :]))

    def evaluate(self, x: Array) -> Array:
        return np.expand_dims(x, self.axis)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        return (b.emit(SqueezeShape(self.axis), ct),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(PadShape(self.axis + 1), *xs)

    def nest(self, b: Emitter, x: Value) -> Value:
        return b.emit(ShapeCast(self.infer(x.tensor).shape), x)


@dataclass(frozen=True)
class SqueezeShape(Linear):
    """The axis `axis`, of extent 1, left out."""

    name: ClassVar[str] = "squeezeShape"
    syntax: ClassVar[str] = "squeezeShape {x} at {axis}"
    is_moved: ClassVar[bool] = True
    is_view: ClassVar[bool] = True
    axis: int

    def infer(self, x: TensorType) -> TensorType:
        check_axis("squeezeShape", self.axis, x)
        if x.shape[self.axis] != 1:
            raise ShapeError(
                f"cannot squeeze axis {self.axis} of {x.words}: its extent is "
                f"{x.shape[self.axis]}, not 1"
            )
        return x.with_shape((*x.shape[: self.axis], *x.shape[self.axis + 1 :]))

    def evaluate(self, x: Array) -> Array:
        return np.squeeze(x, self.axis)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        return (b.emit(PadShape(self.axis), ct),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(SqueezeShape(self.axis + 1), *xs)

    def nest(self, b: Emitter, x: Value) -> Value:
        return b.emit(ShapeCast(self.infer(x.tensor).shape), x)


@dataclass(frozen=True)
class Reverse(Linear):
    """The order of the elements turned around along each of `axes`."""

    name: ClassVar[str] = "reverse"
    syntax: ClassVar[str] = "reverse {x} along {axes}"
    is_moved: ClassVar[bool] = True
    axes: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        check_axes("reverse", self.axes, x)
        return x

    def evaluate(self, x: Array) -> Array:
        return np.flip(x, self.axes)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, ...]:
        return (b.emit(self, ct),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(Reverse(tuple(axis + 1 for axis in self.axes)), *xs)

    def nest(self, b: Emitter, x: Value) -> Value:
        indices = tuple(
            coordinate(axis) * -1 + (extent - 1) if axis in self.axes else coordinate(axis)
            for axis, extent in enumerate(x.tensor.shape)
        )
        return read_nest(b, x, Access(indices), x.tensor)


def reshaped(b: Emitter, x: Value, shape: Sequence[int]) -> Value:
    """x under `shape`; x itself when that is the shape it has."""
    return x if x.tensor.shape == tuple(shape) else b.emit(ShapeCast(tuple(shape)), x)


def permuted(b: Emitter, x: Value, order: tuple[int, ...]) -> Value:
    """x with its axes in another order; x itself when that is the order they have."""
    return x if order == tuple(range(len(order))) else b.emit(Transpose(order), x)


def check_axes(name: str, axes: Sequence[int], x: TensorType) -> None:
    """Raises: RankError for an axis out of range, ShapeError for one named twice."""
    for axis in axes:
        check_axis(name, axis, x)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: an axis is named twice in {list(axes)}")
