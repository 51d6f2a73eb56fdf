"""Pooling: maxima and means over windows that slide along the last axes.

Names and defaults are PyTorch's; what `padding` can be, `spatial` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.lazy_dataclass import dataclass
from .core.ops import Combinator, Divide, Reduce, ReduceWindow, Slice
from .core.ops.formulas import number
from .core.ops.literal import constant
from .core.ops.movement import reshaped
from .core.types import Shape, TensorType
from .documentation import named
from .in_f32 import in_f32
from .reps import as_rep
from .spatial import Pairs, check_reach, padding_of, per_axis, same_padding
from .staging import primitive
from .staging.primitive import dtype_error, rank_error
from .staging.rep import Rep


def _maxima(axes: int, text: str) -> Callable[..., Rep]:
    """`max_pool1d`, `max_pool2d` or `max_pool3d`, and what is said of it."""
    name = f"max_pool{axes}d"

    def function(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        *,
        padding: Any = 0,
        ceil_mode: bool = False,
    ) -> Rep:
        return _max_pool(_Windows(name, axes, kernel_size, stride, padding, bool(ceil_mode)), input)

    return named(function, name, text)


def _means(axes: int, text: str) -> Callable[..., Rep]:
    """`avg_pool1d`, `avg_pool2d` or `avg_pool3d`, and what is said of it."""
    name = f"avg_pool{axes}d"

    def function(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        *,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Rep:
        windows = _Windows(name, axes, kernel_size, stride, padding, bool(ceil_mode))
        return _avg_pool(windows, input, count_include_pad)

    return named(function, name, text)


@dataclass(frozen=True)
class _Windows:
    """The windows of a pool, as the user gave them."""

    name: str
    axes: int
    window: Any
    stride: Any
    padding: Any
    is_ceiled: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        return per_axis(self.name, "window", self.window, self.axes)

    @property
    def strides(self) -> tuple[int, ...]:
        given = self.stride
        return self.sizes if given is None else per_axis(self.name, "stride", given, self.axes)

    def ends(self, extents: Shape) -> Pairs:
        """The padding of axes of these extents.  Raises: ShapeError where a window does not fit."""
        sizes, strides = self.sizes, self.strides
        ends = padding_of(self.name, self.padding, self.axes)
        ends = same_padding(extents, sizes, strides) if ends is None else ends
        for size, pair in zip(sizes, ends, strict=True):
            if max(pair) >= size:
                raise ShapeError(
                    f"{self.name}: padding {pair} of a window of {size}: it would lie outside of the tensor"
                )
        check_reach(self.name, "the window", extents, sizes, ends)
        return ends

    def overhang(self, extents: Shape, ends: Pairs) -> tuple[int, ...]:
        """How far the last window reaches beyond each padded axis."""
        if not self.is_ceiled:
            return (0,) * self.axes
        found: list[int] = []
        for extent, (low, high), size, stride in zip(
            extents, ends, self.sizes, self.strides, strict=True
        ):
            whole = low + extent + high
            last = -(-(whole - size) // stride) * stride
            if last >= low + extent:  # it would have padding alone
                last -= stride
            found.append(max(last + size - whole, 0))
        return tuple(found)

    def reduce(self, b: Builder, x: Value, combinator: Combinator, ends: Pairs) -> Value:
        sizes, strides = self.sizes, self.strides
        if sizes == strides and not any(map(any, ends)):
            return _tiled(b, x, combinator, sizes)
        others = x.tensor.rank - self.axes
        whole: Pairs = ((0, 0),) * others
        ones = (1,) * others
        op = ReduceWindow(combinator, (*ones, *sizes), (*ones, *strides), (*whole, *ends))
        return b.emit(op, x)

    def staged(self, build: Callable[[Builder, Value], Value], x: Rep) -> Rep:
        spec = primitive.tensor_of(x.expression, self.name)
        if spec.rank < self.axes:
            raise rank_error(
                f"{self.name} takes a tensor of rank {self.axes} at least, not a {spec.words}"
            )
        return Rep(primitive.shape_dependent(self.name, build, (x.expression,), spec))


def _beyond(ends: Pairs, more: tuple[int, ...]) -> Pairs:
    return tuple((low, high + extra) for (low, high), extra in zip(ends, more, strict=True))


def _max_pool(windows: _Windows, x: Any) -> Rep:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, windows.name)
    if not spec.dtype.is_numeric:
        raise dtype_error(
            f"{windows.name} takes numbers, not {spec.words}", "cast it, `x.cast(dtype)`"
        )

    def build(b: Builder, x: Value) -> Value:
        extents = x.tensor.shape[-windows.axes :]
        ends = windows.ends(extents)
        ends = _beyond(ends, windows.overhang(extents, ends))
        return windows.reduce(b, x, Combinator.MAX, ends)

    return windows.staged(build, rep)


def _avg_pool(windows: _Windows, x: Any, counts_padding: bool) -> Rep:
    def build(b: Builder, x: Value) -> Value:
        extents = x.tensor.shape[-windows.axes :]
        ends = windows.ends(extents)
        more = windows.overhang(extents, ends)
        total = windows.reduce(b, x, Combinator.ADD, _beyond(ends, more))
        if counts_padding and not any(more):
            return b.emit(Divide(), total, number(b, total, math.prod(windows.sizes)))
        counted, around = extents, ends
        if counts_padding:
            counted = tuple(low + n + high for n, (low, high) in zip(extents, ends, strict=True))
            around = ((0, 0),) * windows.axes
        inner = (*[1] * (x.tensor.rank - windows.axes), *counted)
        ones = constant(b, TensorType(inner, x.tensor.dtype), 1)
        counts = windows.reduce(b, ones, Combinator.ADD, _beyond(around, more))
        return b.emit(Divide(), total, counts)

    return in_f32(windows.name, lambda x: windows.staged(build, x), x)


def _tiled(b: Builder, x: Value, combinator: Combinator, sizes: Sequence[int]) -> Value:
    """Of windows side by side: each axis is split in two, and the inner one reduced, which differentiates best."""
    others = x.tensor.rank - len(sizes)
    lead, extents = x.tensor.shape[:others], x.tensor.shape[others:]
    whole = tuple(extent // size * size for extent, size in zip(extents, sizes, strict=True))
    if whole != extents:
        stop = (*lead, *whole)
        x = b.emit(Slice((0,) * len(stop), stop), x)
    split = [n for extent, size in zip(whole, sizes, strict=True) for n in (extent // size, size)]
    inner = tuple(others + 2 * axis + 1 for axis in range(len(sizes)))
    return b.emit(Reduce(combinator, inner), reshaped(b, x, (*lead, *split)))


max_pool1d = _maxima(
    1,
    """The largest element of each window along the last axis, at every `stride`-th place (`kernel_size` by default).

What padding covers does not count; ties share the derivative evenly.  With `ceil_mode` there is a last window, too,
that reaches beyond the end, if it begins before it.

Shapes: input (…, l) → (…, places).

Example: `nk.max_pool1d(x, 2, stride=1)`
""",
)

max_pool2d = _maxima(
    2,
    """As `max_pool1d`, of windows along the last two axes.

Shapes: input (…, h, w) → (…, places, places).

Example: `nk.max_pool2d(m, 2)`
""",
)

max_pool3d = _maxima(
    3,
    """As `max_pool1d`, of windows along the last three axes.

Shapes: input (…, d, h, w) → (…, places, places, places).

Example: `nk.max_pool3d(m.expand_dims(0), (1, 2, 2))`
""",
)

avg_pool1d = _means(
    1,
    """The mean of each window along the last axis, at every `stride`-th place (`kernel_size` by default).

Padding counts as zeros, or not at all without `count_include_pad`; with `ceil_mode`, as in `max_pool1d`, what is
beyond it never does.

Shapes: input (…, l) → (…, places).

Example: `nk.avg_pool1d(x, 2, stride=1)`
""",
)

avg_pool2d = _means(
    2,
    """As `avg_pool1d`, of windows along the last two axes.

Shapes: input (…, h, w) → (…, places, places).

Example: `nk.avg_pool2d(m, (2, 3))`
""",
)

avg_pool3d = _means(
    3,
    """As `avg_pool1d`, of windows along the last three axes.

Shapes: input (…, d, h, w) → (…, places, places, places).

Example: `nk.avg_pool3d(m.expand_dims(0), (1, 2, 3))`
""",
)
