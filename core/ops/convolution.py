"""Convolution over any number of spatial axes, as neural networks mean it: the kernel is not turned around.

Both cotangents are convolutions again, strides and dilations changing places; so is every higher derivative.
Along one axis the input of n elements is spread to (n − 1)·l + 1, then padded; the kernel of k elements
covers (k − 1)·r + 1 of it, at every s-th place.
Source: Dumoulin & Visin 2016, "A guide to convolution arithmetic for deep learning", §4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..types import F32, F64, MAX_BYTES, Array, Shape, TensorType, same_dtype
from .arithmetic import Multiply
from .combinator import Combinator
from .contraction import Dot, product
from .forms import Bilinear, check_kind
from .formulas import number
from .movement import Reverse, Transpose, permuted, reshaped
from .nest import Access, Bounds, Output, build_nest, coordinate
from .slicing import Pad

_LEAST_WORK = 32 * 1024
"""Multiplications of one product from which windows are laid out for it: twice those from which it is a kernel."""

_LEAST_ROWS = 4
"""Output channels of a group from which a product pays: what is laid out is read so often."""

_FEW_PLACES = 128
"""Places of an image below which all images make one product, whose result is then transposed."""

_MOST_BYTES = 256 * 1024 * 1024
"""Of windows laid out: beyond, memory is dearer than time, and the loops read them where they are."""


class SpatialAxis(NamedTuple):
    """How one spatial axis is run through."""

    extent: int
    window: int
    stride: int
    low: int
    high: int
    left: int
    right: int

    @property
    def spread(self) -> int:
        """Extent of the input with its gaps."""
        return _spread(self.extent, self.left)

    @property
    def reach(self) -> int:
        """Extent of the kernel with its gaps."""
        return (self.window - 1) * self.right + 1

    @property
    def places(self) -> int:
        """How many places the kernel fits in."""
        room = self.low + self.spread + self.high - self.reach
        return room // self.stride + 1 if room >= 0 else 0


@dataclass(frozen=True)
class Convolve(Bilinear):
    """y[n, o, p…] = Σ x[n, c, p·s + k·r − low …] · w[o, c, k…], over input channels c and places k in the kernel.

    Shapes: x (n, c, e…), kernel (o, c / groups, k…) → (n, o, places…).  `padding` has (low, high) for every
    spatial axis: zeros put on, or where negative, elements cut off.  `left_dilation` l puts l − 1 zeros
    between neighbours of x, `right_dilation` r spreads the kernel.  With `groups`, part g of the output
    channels sees part g of the input channels.  All that is left out is 1, and no padding.
    """

    name: ClassVar[str] = "convolve"
    syntax: ClassVar[str] = (
        "convolve {x} kernel {kernel} [strides {strides}] [padding {padding}] "
        "[leftDilation {left_dilation}] [rightDilation {right_dilation}] [groups {groups}]"
    )
    strides: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    left_dilation: tuple[int, ...] = ()
    right_dilation: tuple[int, ...] = ()
    groups: int = 1

    def infer(self, x: TensorType, kernel: TensorType) -> TensorType:
        dtype = same_dtype("convolve", (x, kernel))
        check_kind("convolve", x, ("float", "integer"))
        if x.rank != kernel.rank or x.rank < 3:
            raise RankError(
                "convolve takes an input and a kernel of the same rank, at least 3, "
                f"not {x.words} and {kernel.words}"
            )
        self._check_attributes(x.rank - 2)
        self._check_channels(x, kernel)
        if 0 in kernel.shape[2:]:
            raise ShapeError(f"convolve: a spatial axis of the kernel {kernel.words} is empty")
        sides = self.sides(x.shape, kernel.shape)
        for side in sides:
            if max(side.spread, side.reach, side.stride, abs(side.low), abs(side.high)) > MAX_BYTES:
                raise ShapeError(
                    "convolve: strides, padding or dilations leave the address space: "
                    f"{side.spread} elements, {side.reach} of the kernel, stride {side.stride}, "
                    f"padding ({side.low}, {side.high})"
                )
        return TensorType((x.shape[0], kernel.shape[0], *(side.places for side in sides)), dtype)

    def _check_attributes(self, axes: int) -> None:
        for what, values in (
            ("strides", self.strides),
            ("padding", self.padding),
            ("leftDilation", self.left_dilation),
            ("rightDilation", self.right_dilation),
        ):
            if len(values) not in (0, axes):
                raise RankError(
                    f"convolve: {what} has {len(values)} entries for {axes} spatial axes"
                )
        for what, numbers in (
            ("stride", self.strides),
            ("leftDilation", self.left_dilation),
            ("rightDilation", self.right_dilation),
        ):
            if min(numbers, default=1) < 1:
                raise ShapeError(f"convolve: a {what} is {min(numbers)}, not at least 1")

    def _check_channels(self, x: TensorType, kernel: TensorType) -> None:
        groups, given, made = self.groups, x.shape[1], kernel.shape[0]
        if groups < 1:
            raise ShapeError(f"convolve: groups is {groups}, not at least 1")
        if given % groups:
            raise ShapeError(
                f"convolve: {given} input channels cannot be split into {groups} groups"
            )
        if made % groups:
            raise ShapeError(
                f"convolve: {made} output channels cannot be split into {groups} groups"
            )
        if kernel.shape[1] != given // groups:
            raise ShapeError(
                f"convolve: the kernel {kernel.words} takes {kernel.shape[1]} channels, but {x.words} "
                f"has {given // groups}{' in each group' if groups > 1 else ''}"
            )

    def sides(self, x: Shape, kernel: Shape) -> list[SpatialAxis]:
        """The spatial axes, one by one."""
        ones = (1,) * (len(x) - 2)
        rows = zip(
            x[2:],
            kernel[2:],
            self.strides or ones,
            self.padding or tuple((0, 0) for _ in ones),
            self.left_dilation or ones,
            self.right_dilation or ones,
            strict=True,
        )
        return [
            SpatialAxis(extent, window, stride, low, high, left, right)
            for extent, window, stride, (low, high), left, right in rows
        ]

    def evaluate(self, x: Array, kernel: Array) -> Array:
        """The windows of the input side by side, times the kernel of their group."""
        sides, groups = self.sides(x.shape, kernel.shape), self.groups
        for axis, side in enumerate(sides):
            x = _windows(x, 2 + 2 * axis, side)
        batch, channels, *rest = x.shape
        places, window = rest[::2], rest[1::2]
        spatial = range(len(sides))
        order = (0, 1, *(3 + 2 * axis for axis in spatial), *(2 + 2 * axis for axis in spatial))
        taps = channels // groups * math.prod(window)
        columns = np.transpose(x, order).reshape(batch, groups, taps, math.prod(places))
        made = kernel.shape[0]
        with np.errstate(all="ignore"):
            result = product(kernel.reshape(groups, made // groups, taps), columns)
        return np.asarray(result.reshape(batch, made, *places))

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, Value | None]:
        x, kernel = xs
        if 0 in ct.tensor.shape[2:]:
            return None, None
        return self._input(b, x, kernel, ct), self._kernel(b, x, kernel, ct)

    def _input(self, b: Emitter, x: Value, kernel: Value, ct: Value) -> Value:
        """x̄: the cotangent, spread by the strides, convolved with the kernel turned around."""
        made, inside, *window = kernel.tensor.shape
        groups, spatial = self.groups, tuple(range(2, kernel.tensor.rank))
        turned = b.emit(Reverse(spatial), kernel)
        split = reshaped(b, turned, (groups, made // groups, inside, *window))
        order = (0, 2, 1, *(axis + 1 for axis in spatial))
        swapped = b.emit(Transpose(order), split)
        flipped = reshaped(b, swapped, (groups * inside, made // groups, *window))
        padding = [
            (side.reach - 1 - side.low, side.spread + side.low - _spread(side.places, side.stride))
            for side in self.sides(x.tensor.shape, kernel.tensor.shape)
        ]
        op = Convolve(self.left_dilation, tuple(padding), self.strides, self.right_dilation, groups)
        return b.emit(op, ct, flipped)

    def _kernel(self, b: Emitter, x: Value, kernel: Value, ct: Value) -> Value:
        """w̄: the input convolved with the cotangent, channels and batch changing places."""
        batch, channels, *extents = x.tensor.shape
        groups, inside = self.groups, channels // self.groups
        spatial = tuple(range(2, x.tensor.rank))
        split = reshaped(b, x, (batch, groups, inside, *extents))
        order = (2, 1, 0, *(axis + 1 for axis in spatial))
        images = reshaped(b, b.emit(Transpose(order), split), (inside, groups * batch, *extents))
        kernels = b.emit(Transpose((1, 0, *spatial)), ct)
        padding = [
            (side.low, _spread(side.places, side.stride) - side.spread + side.reach - 1 - side.low)
            for side in self.sides(x.tensor.shape, kernel.tensor.shape)
        ]
        op = Convolve(self.right_dilation, tuple(padding), self.left_dilation, self.strides, groups)
        return b.emit(Transpose((1, 0, *spatial)), b.emit(op, images, kernels))

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        """Elements of x are more images; those of the kernel more groups, as each has channels of its own."""
        x, kernel = xs
        if not batched[1]:
            extent, images, *image = x.tensor.shape
            y = b.emit(self, reshaped(b, x, (extent * images, *image)), kernel)
            return reshaped(b, y, (extent, images, *y.tensor.shape[1:]))
        extent, made, inside, *window = kernel.tensor.shape
        groups = self.groups
        split = reshaped(b, kernel, (extent, groups, made // groups, inside, *window))
        if batched[0]:
            _, images, channels, *image = x.tensor.shape
            x = reshaped(b, _exchanged(b, x, 0, 1), (images, extent * channels, *image))
            op = replace(self, groups=extent * groups)
            order = (extent, groups)
        else:
            images, op, order = x.tensor.shape[0], self, (groups, extent)
            split = _exchanged(b, split, 0, 1)
        y = b.emit(op, x, reshaped(b, split, (extent * made, inside, *window)))
        places = y.tensor.shape[2:]
        y = reshaped(b, y, (images, *order, made // groups, *places))
        if not batched[0]:
            y = _exchanged(b, y, 1, 2)
        y = _exchanged(b, y, 0, 1)
        return reshaped(b, y, (extent, images, made, *places))

    def nest(self, b: Emitter, x: Value, kernel: Value) -> Value:
        """Axes of the box: batch, group, channel of the group, places; then input channel, kernel."""
        result = self.infer(x.tensor, kernel.tensor)
        sides = self.sides(x.tensor.shape, kernel.tensor.shape)
        made, inside, *window = kernel.tensor.shape
        groups, count = self.groups, len(sides)
        if any(side.left > 1 for side in sides):
            gaps = (0, 0, *(side.left - 1 for side in sides))
            spread = Pad((0,) * x.tensor.rank, (0,) * x.tensor.rank, gaps)
            x = spread.nest(b, x, number(b, x, 0))
        if self._is_product(result, kernel.tensor):
            return self._as_product(b, x, kernel, result, sides)
        taps = reshaped(b, kernel, (groups, made // groups, inside, *window))
        places = result.shape[2:]
        extents = (result.shape[0], groups, made // groups, *places, inside, *window)
        at = [coordinate(axis) for axis in range(len(extents))]
        channel, first_tap = at[3 + count], 4 + count
        source = [
            at[3 + axis] * side.stride + at[first_tap + axis] * side.right + -side.low
            for axis, side in enumerate(sides)
        ]
        padded = any(side.low > 0 or side.high > 0 for side in sides)
        reads = [
            (
                x,
                Access(
                    (at[0], at[1] * inside + channel, *source),
                    Bounds.ZERO if padded else Bounds.INSIDE,
                ),
            ),
            (taps, Access((at[1], at[2], *at[3 + count :]))),
        ]
        split = result.with_shape(extents[: 3 + count])
        output = Output(split, tuple(at[: 3 + count]), Combinator.ADD)
        (y,) = build_nest(
            b, extents, reads, [output], lambda inner, _, read: [inner.emit(Multiply(), *read)]
        )
        return reshaped(b, y, result.shape)

    def _is_product(self, result: TensorType, kernel: TensorType) -> bool:
        """Whether the windows are laid out for a matrix product."""
        rows, taps = kernel.shape[0] // self.groups, math.prod(kernel.shape[1:])
        images, count = result.shape[0], math.prod(result.shape[2:])
        columns = images * count if self._joins(count) else count
        return (
            result.dtype in (F32, F64)
            and rows >= _LEAST_ROWS
            and rows * taps * columns >= _LEAST_WORK
            and taps * images * self.groups * count * result.dtype.bytes <= _MOST_BYTES
        )

    def _joins(self, places: int) -> bool:
        """Whether all images make one product."""
        return self.groups == 1 and places < _FEW_PLACES

    def _as_product(
        self,
        b: Emitter,
        x: Value,
        kernel: Value,
        result: TensorType,
        sides: Sequence[SpatialAxis],
    ) -> Value:
        """The kernel as a matrix times the windows as columns: of each image, or of all if these have few places.

        Source: Chellapilla, Puri & Simard 2006, "High performance convolutional neural networks" (im2col).
        """
        made, inside, *window = kernel.tensor.shape
        groups, batch, *places = self.groups, result.shape[0], *result.shape[2:]
        taps, count = inside * math.prod(window), math.prod(places)
        matrices = reshaped(b, kernel, (groups, made // groups, taps))
        joined = self._joins(count)
        columns = self._columns(b, x, (inside, *window), batch, places, sides, joined)
        if joined:
            flat = reshaped(b, columns, (taps, batch * count))
            found = b.emit(Dot(), reshaped(b, matrices, (made, taps)), flat)
            split = reshaped(b, found, (made, batch, count))
            return reshaped(b, b.emit(Transpose((1, 0, 2)), split), result.shape)
        shape = (batch, *([groups] if groups > 1 else []), taps, count)
        left = matrices if groups > 1 else reshaped(b, matrices, (made, taps))
        return reshaped(b, b.emit(Dot(), left, reshaped(b, columns, shape)), result.shape)

    def _columns(
        self,
        b: Emitter,
        x: Value,
        taps: Shape,
        batch: int,
        places: Sequence[int],
        sides: Sequence[SpatialAxis],
        joined: bool,
    ) -> Value:
        """What the window covers at each place: (batch, group, taps, places), or (taps, batch, places) if joined."""
        inside, outer = taps[0], 0 if joined else 2
        extents = (*taps, batch, *places) if joined else (batch, self.groups, *taps, *places)
        at = [coordinate(axis) for axis in range(len(extents))]
        image = at[len(taps)] if joined else at[0]
        channel = at[0] if joined else at[1] * inside + at[2]
        first_tap, first_place = outer + 1, len(extents) - len(places)
        source = [
            at[first_place + axis] * side.stride + at[first_tap + axis] * side.right + -side.low
            for axis, side in enumerate(sides)
        ]
        padded = any(side.low > 0 or side.high > 0 for side in sides)
        access = Access((image, channel, *source), Bounds.ZERO if padded else Bounds.INSIDE)
        output = Output(x.tensor.with_shape(extents), tuple(at))
        (columns,) = build_nest(
            b, extents, [(x, access)], [output], lambda _inner, _at, read: list(read)
        )
        return columns


def _exchanged(b: Emitter, x: Value, one: int, other: int) -> Value:
    """Two axes in each other's place."""
    order = list(range(x.tensor.rank))
    order[one], order[other] = other, one
    return permuted(b, x, tuple(order))


def _windows(x: Array, axis: int, side: SpatialAxis) -> Array:
    """The axis replaced by places and taps; what lies between elements or outside is zero."""
    places, taps = np.arange(side.places), np.arange(side.window)
    where = places[:, None] * side.stride + taps * side.right - side.low
    present = (where >= 0) & (where < side.spread) & (where % side.left == 0)
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    with_zero = np.concatenate([x, np.zeros(shape, x.dtype)], axis)
    return np.asarray(np.take(with_zero, np.where(present, where // side.left, side.extent), axis))


def _spread(extent: int, by: int) -> int:
    return (extent - 1) * by + 1 if extent else 0
