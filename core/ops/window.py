"""Reductions over windows that slide along the axes of a tensor: pooling.

Along one axis a window of w elements stands at every s-th place of n elements, padded on both sides:

| padding    | put on before and after  | places               |
|------------|--------------------------|----------------------|
| none       | 0, 0                     | ⌊(n − w) / s⌋ + 1    |
| half       | ⌊(w − 1) / 2⌋, ⌊w / 2⌋   | ⌊(n − 1) / s⌋ + 1    |
| full       | w − 1, w − 1             | ⌊(n + w − 2) / s⌋ + 1 |
| (low, high) | low, high; cut off where negative | ⌊(low + n + high − w) / s⌋ + 1 |

There are none when the window is larger than the padded axis.  What a window covers outside of the tensor
is the identity of the combinator.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Pure, Value
from ..lazy_dataclass import dataclass
from ..types import BOOL, I64, MAX_BYTES, Array, TensorType, scalar
from .arithmetic import Add, Multiply
from .combinator import Combinator
from .comparison import And, GreaterThanOrEqual, LessThan, Select
from .formulas import number
from .indexing import Gather, Iota, ScatterAdd
from .literal import constant
from .movement import reshaped
from .nest import Access, Bounds, Output, build_nest, coordinate
from .reduction import Reduce
from .scan import check_combinator, identity_of
from .slicing import Pad


class PaddingMode(enum.Enum):
    """DLVM's padding modes of windows."""

    NONE = "none"
    HALF = "half"
    FULL = "full"

    def __str__(self) -> str:
        return self.value

    def pair(self, window: int) -> tuple[int, int]:
        """What is put on before and after an axis."""
        match self:
            case PaddingMode.NONE:
                return 0, 0
            case PaddingMode.HALF:
                return (window - 1) // 2, window // 2
            case PaddingMode.FULL:
                return window - 1, window - 1


Padding: TypeAlias = "PaddingMode | tuple[tuple[int, int], ...]"
"""A word, or (low, high) for every axis."""


class WindowAxis(NamedTuple):
    """The window, stride and padding along one axis."""

    extent: int
    window: int
    stride: int
    low: int
    high: int

    @property
    def places(self) -> int:
        """How many places there are."""
        room = self.low + self.extent + self.high - self.window
        return room // self.stride + 1 if room >= 0 else 0

    @property
    def is_padded(self) -> bool:
        return self.low > 0 or self.high > 0

    @property
    def is_trivial(self) -> bool:
        """Whether every window is one element, and they stand side by side."""
        return (self.window, self.stride, self.low, self.high) == (1, 1, 0, 0)

    def positions(self) -> Array:
        """Where in the axis the elements of a window lie: one row per place."""
        return np.asarray(
            np.arange(self.places)[:, None] * self.stride + np.arange(self.window) - self.low
        )


def window_axes(
    name: str, x: TensorType, window: Sequence[int], strides: Sequence[int], padding: Padding
) -> list[WindowAxis]:
    """The axes of `x`, one by one.  Raises: RankError or ShapeError when the attributes do not fit."""
    rank = x.rank
    for what, count in (("dims", len(window)), ("strides", len(strides) or rank)):
        if count != rank:
            raise RankError(f"{name}: {what} has {count} entries for the {rank} axes of {x.words}")
    if not isinstance(padding, PaddingMode) and len(padding) != rank:
        raise RankError(
            f"{name}: padding has {len(padding)} entries for the {rank} axes of {x.words}"
        )
    for what, numbers in (("window", window), ("stride", strides)):
        if min(numbers, default=1) < 1:
            raise ShapeError(f"{name}: the {what} of an axis is {min(numbers)}, not at least 1")
    pairs = [padding.pair(n) for n in window] if isinstance(padding, PaddingMode) else padding
    panes = [
        WindowAxis(extent, n, stride, low, high)
        for extent, n, stride, (low, high) in zip(
            x.shape, window, strides or (1,) * rank, pairs, strict=True
        )
    ]
    for pane in panes:
        if max(pane.window, pane.stride, abs(pane.low), abs(pane.high)) > MAX_BYTES:
            raise ShapeError(f"{name}: {pane} leaves the address space")
    return panes


@dataclass(frozen=True)
class ReduceWindow(Pure):
    """x₀ ∘ x₁ ∘ … over the elements that a window covers, at every place of the window.

    `window` and `strides` have one entry per axis; without strides all are 1.  Derivatives are those of
    `reduce`: a minimum or maximum splits evenly among the elements of the window that attain it (what is
    outside counts as one, should the identity itself be the extremum).
    """

    name: ClassVar[str] = "reduceWindow"
    syntax: ClassVar[str] = (
        "reduceWindow {x} by {combinator} dims {window} [strides {strides}] [padding {padding}]"
    )
    combinator: Combinator
    window: tuple[int, ...]
    strides: tuple[int, ...] = ()
    padding: Padding = PaddingMode.NONE

    def infer(self, x: TensorType) -> TensorType:
        check_combinator(self.combinator, x, "windowed ")
        return x.with_shape(pane.places for pane in self._panes(x))

    def _panes(self, x: TensorType) -> list[WindowAxis]:
        return window_axes(self.name, x, self.window, self.strides, self.padding)

    def evaluate(self, x: Array) -> Array:
        """The windows as further axes, over which is then reduced."""
        identity = identity_of(self.combinator, x.dtype)
        for axis, pane in enumerate(self._panes(TensorType(x.shape, BOOL))):
            x = _taken(x, 2 * axis, pane, identity)
        axes = tuple(range(1, x.ndim, 2))
        return Reduce(self.combinator, axes).evaluate(x)

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (x,), (dx,) = xs, dxs
        if dx is None:
            return (None,)
        if self.combinator is Combinator.ADD:
            return (b.emit(self, dx),)
        if 0 in ys[0].tensor.shape:
            return (None,)
        views, reduce = self._views(x), self._reduction(x)
        spread = views.apply(b, x, self.combinator.identity(x.tensor.dtype))
        return reduce.jvp(b, ys, [spread], [views.apply(b, dx, 0)])

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (x,), (ct,) = xs, cts
        if ct is None or 0 in ct.tensor.shape:
            return (None,)
        if self.combinator is Combinator.ADD:
            return (self._spread(b, x, ct),)
        views = self._views(x)
        spread = views.apply(b, x, self.combinator.identity(x.tensor.dtype))
        (part,) = self._reduction(x).vjp(b, ys, [spread], cts)
        return (None if part is None else views.pull(b, part),)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        padding = self.padding
        wide = padding if isinstance(padding, PaddingMode) else ((0, 0), *padding)
        strides = (1, *self.strides) if self.strides else ()
        return b.emit(ReduceWindow(self.combinator, (1, *self.window), strides, wide), *xs)

    def _reduction(self, x: Value) -> Reduce:
        return Reduce(self.combinator, tuple(range(1, 2 * x.tensor.rank, 2)))

    def _views(self, x: Value) -> Views:
        return Views(tuple(self._panes(x.tensor)))

    def _spread(self, b: Emitter, x: Value, ct: Value) -> Value:
        """The transpose of a sum: each element gets the cotangents of all windows that cover it."""
        panes = self._panes(x.tensor)
        gaps = tuple(pane.stride - 1 for pane in panes)
        none = (0,) * len(panes)
        wide = b.emit(Pad(none, none, gaps), ct, number(b, ct, 0)) if any(gaps) else ct
        padding = tuple(
            (pane.window - 1 - pane.low, pane.extent + pane.low - extent)
            for pane, extent in zip(panes, wide.tensor.shape, strict=True)
        )
        return b.emit(ReduceWindow(self.combinator, self.window, (), padding), wide)

    def nest(self, b: Emitter, x: Value) -> Value:
        """Axes of the box: those of the result, then those of the window."""
        result = self.infer(x.tensor)
        panes, rank = self._panes(x.tensor), x.tensor.rank
        extents = (*result.shape, *self.window)
        source = tuple(
            coordinate(axis) * pane.stride + coordinate(rank + axis) + -pane.low
            for axis, pane in enumerate(panes)
        )
        padded = any(pane.is_padded for pane in panes)
        identity = self.combinator.identity(x.tensor.dtype)

        def body(inner: Emitter, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
            (element,) = read
            if not padded or not identity:  # what is read outside is zero
                return [element]
            inside = constant(inner, scalar(BOOL), True)
            for axis, pane in enumerate(panes):
                if pane.is_padded:
                    inside = inner.emit(
                        And(), inside, _is_inside(inner, pane, at[axis], at[rank + axis])
                    )
            outside = constant(inner, scalar(x.tensor.dtype), identity)
            return [inner.emit(Select(), element, outside, inside)]

        output = Output(result, tuple(coordinate(axis) for axis in range(rank)), self.combinator)
        access = Access(source, Bounds.ZERO if padded else Bounds.INSIDE)
        return build_nest(b, extents, [(x, access)], [output], body)[0]


@dataclass(frozen=True)
class Views:
    """The windows of a tensor as a tensor: every axis is replaced by places and elements of a window.

    Shapes: (n…) → (places, window, …).
    """

    panes: tuple[WindowAxis, ...]

    def apply(self, b: Emitter, x: Value, outside: float) -> Value:
        """The windows of `x`; `outside` is what they cover outside of it."""
        if any(pane.is_padded for pane in self.panes):
            x = b.emit(self._pad(), x, number(b, x, outside))
        for axis, pane in self._moving():
            x = b.emit(Gather(axis, Bounds.INSIDE), x, self._positions(b, pane))
        return reshaped(b, x, [n for pane in self.panes for n in (pane.places, pane.window)])

    def pull(self, b: Emitter, ct: Value) -> Value:
        """The transpose: for each element the sum of what the windows have of it."""
        padded = [
            n + low + high for n, low, high in zip(self._extents(), *self._ends(), strict=True)
        ]
        shapes = [tuple(padded)]
        for axis, pane in self._moving():
            before = shapes[-1]
            shapes.append((*before[:axis], pane.places, pane.window, *before[axis + 1 :]))
        ct = reshaped(b, ct, shapes.pop())
        for axis, pane in reversed(self._moving()):
            scatter = ScatterAdd(shapes.pop(), axis, Bounds.INSIDE)
            ct = b.emit(scatter, ct, self._positions(b, pane))
        if any(pane.is_padded for pane in self.panes):
            ct = b.emit(self._pad().window(self._extents()), ct)
        return ct

    def _extents(self) -> list[int]:
        return [pane.extent for pane in self.panes]

    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is put on before and after each axis; what is cut off is just not looked at."""
        return tuple(max(p.low, 0) for p in self.panes), tuple(max(p.high, 0) for p in self.panes)

    def _pad(self) -> Pad:
        return Pad(*self._ends())

    def _moving(self) -> list[tuple[int, WindowAxis]]:
        """The axes that windows move along, the last one first: those before it keep their numbers."""
        moving = [(axis, pane) for axis, pane in enumerate(self.panes) if not pane.is_trivial]
        return moving[::-1]

    def _positions(self, b: Emitter, pane: WindowAxis) -> Value:
        """Where in the padded axis the elements of each window lie, computed rather than kept."""
        shape = (pane.places, pane.window)
        place, tap = (b.emit(Iota(shape, axis, I64)) for axis in (0, 1))
        start = b.emit(Multiply(), place, number(b, place, pane.stride))
        first = max(pane.low, 0) - pane.low
        return b.emit(Add(), start, b.emit(Add(), tap, number(b, tap, first)) if first else tap)


def _taken(x: Array, axis: int, pane: WindowAxis, outside: Array) -> Array:
    """The axis replaced by places and elements of the window."""
    where = pane.positions()
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    extended = np.concatenate([x, np.full(shape, outside, x.dtype)], axis)
    present = (where >= 0) & (where < pane.extent)
    return np.asarray(np.take(extended, np.where(present, where, pane.extent), axis))


def _is_inside(b: Emitter, pane: WindowAxis, place: Value, tap: Value) -> Value:
    """Whether an element that a window covers is one of the tensor."""
    start = b.emit(Multiply(), place, number(b, place, pane.stride))
    where = b.emit(Add(), start, b.emit(Add(), tap, number(b, tap, -pane.low)))
    inside = constant(b, scalar(BOOL), True)
    if pane.low > 0:
        inside = b.emit(GreaterThanOrEqual(), where, number(b, where, 0))
    if pane.high > 0:
        before = b.emit(LessThan(), where, number(b, where, pane.extent))
        inside = b.emit(And(), inside, before) if pane.low > 0 else before
    return inside
