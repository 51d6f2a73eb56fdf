"""Pooling: maxima and means over windows that slide along the last axes.

Names and defaults are PyTorch's; what `padding` can be, `spatial` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Combinator, Divide, Reduce, ReduceWindow, Slice
from .core.ops.formulas import number
from .core.ops.literal import constant
from .core.ops.movement import reshaped
from .core.types import TensorType
from .in_f32 import in_f32
from .reps import as_rep
from .spatial import Pairs, check_reach, padding_of, per_axis, same_padding
from .staging import primitive
from .staging.primitive import dtype_error, rank_error
from .staging.rep import Rep


def max_pool1d(x: Any, window: Any, /, stride: Any = None, *, padding: Any = 0) -> Rep:
    """The largest element of each window along the last axis, at every `stride`-th place (`window` by default).

    What padding covers does not count; ties share the derivative evenly.

    Shapes: x (…, l) → (…, places).

    Example: `nk.max_pool1d(x, 2, stride=1)`
    """
    return _max_pool("max_pool1d", 1, x, window, stride, padding)


def max_pool2d(x: Any, window: Any, /, stride: Any = None, *, padding: Any = 0) -> Rep:
    """As `max_pool1d`, of windows along the last two axes.

    Shapes: x (…, h, w) → (…, places, places).

    Example: `nk.max_pool2d(m, 2)`
    """
    return _max_pool("max_pool2d", 2, x, window, stride, padding)


def avg_pool1d(
    x: Any, window: Any, /, stride: Any = None, *, padding: Any = 0, count_include_pad: bool = True
) -> Rep:
    """The mean of each window along the last axis, at every `stride`-th place (`window` by default).

    Padding counts as zeros, or not at all without `count_include_pad`.

    Shapes: x (…, l) → (…, places).

    Example: `nk.avg_pool1d(x, 2, stride=1)`
    """
    return _avg_pool("avg_pool1d", 1, x, window, stride, padding, count_include_pad)


def avg_pool2d(
    x: Any, window: Any, /, stride: Any = None, *, padding: Any = 0, count_include_pad: bool = True
) -> Rep:
    """As `avg_pool1d`, of windows along the last two axes.

    Shapes: x (…, h, w) → (…, places, places).

    Example: `nk.avg_pool2d(m, (2, 3))`
    """
    return _avg_pool("avg_pool2d", 2, x, window, stride, padding, count_include_pad)


def _max_pool(name: str, axes: int, x: Any, window: Any, stride: Any, padding: Any) -> Rep:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, name)
    if not spec.dtype.is_numeric:
        raise dtype_error(f"{name} takes numbers, not {spec.words}", "cast it, `x.cast(dtype)`")
    build = _windows(name, axes, Combinator.MAX, window, stride, padding)
    return _staged(name, axes, build, rep)


def _avg_pool(
    name: str, axes: int, x: Any, window: Any, stride: Any, padding: Any, counts_padding: bool
) -> Rep:
    sums = _windows(name, axes, Combinator.ADD, window, stride, padding)

    def build(b: Builder, x: Value) -> Value:
        total = sums(b, x)
        size = 1
        for extent in per_axis(name, "window", window, axes):
            size *= extent
        if counts_padding:
            return b.emit(Divide(), total, number(b, total, size))
        inner = (*[1] * (x.tensor.rank - axes), *x.tensor.shape[-axes:])
        ones = constant(b, TensorType(inner, x.tensor.dtype), 1)
        return b.emit(Divide(), total, sums(b, ones))

    return in_f32(name, lambda x: _staged(name, axes, build, x), x)


def _staged(name: str, axes: int, build: Callable[[Builder, Value], Value], x: Rep) -> Rep:
    spec = primitive.tensor_of(x.expression, name)
    if spec.rank < axes:
        raise rank_error(f"{name} takes a tensor of rank {axes} at least, not a {spec.words}")
    return Rep(primitive.shape_dependent(name, build, (x.expression,), spec))


def _windows(
    name: str, axes: int, combinator: Combinator, window: Any, stride: Any, padding: Any
) -> Callable[[Builder, Value], Value]:
    """The reduction of all windows, once the extents are known."""
    sizes = per_axis(name, "window", window, axes)
    strides = sizes if stride is None else per_axis(name, "stride", stride, axes)
    pairs = padding_of(name, padding, axes)

    def build(b: Builder, x: Value) -> Value:
        extents = x.tensor.shape[-axes:]
        ends = pairs or same_padding(extents, sizes, strides)
        for size, pair in zip(sizes, ends, strict=True):
            if max(pair) >= size:
                raise ShapeError(
                    f"{name}: padding {pair} of a window of {size}: it would lie outside of the tensor"
                )
        check_reach(name, "the window", extents, sizes, ends)
        if sizes == strides and not any(map(any, ends)):
            return _tiled(b, x, combinator, sizes)
        others = x.tensor.rank - axes
        whole: Pairs = ((0, 0),) * others
        ones = (1,) * others
        op = ReduceWindow(combinator, (*ones, *sizes), (*ones, *strides), (*whole, *ends))
        return b.emit(op, x)

    return build


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
