"""Resizing of signals and images by their nearest elements or linearly, as PyTorch's `interpolate`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Add, Broadcast, Gather, Multiply
from .core.ops.literal import dense
from .core.ops.movement import reshaped
from .core.ops.nest import Bounds
from .core.types import I64, Array, TensorType
from .in_f32 import in_f32
from .reps import as_rep
from .spatial import per_axis
from .staging import primitive
from .staging.primitive import rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import as_tuple

_MODES = ("nearest", "linear", "bilinear")


def interpolate(
    x: Any,
    /,
    size: Any = None,
    *,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> Rep:
    """The signal or image with another number of places along its spatial axes, the third and fourth.

    `size` has the number for each, or `scale_factor` by how much there are more; one number is for all of them.
    `mode` is "nearest", or "linear" (for images "bilinear" as well); with `align_corners` the first and last places
    stay where they are, and otherwise the ends of the axis.

    Shapes: x (n, c, l) or (n, c, h, w) → (n, c, …).

    Example: `nk.interpolate(m.expand_dims(0), scale_factor=2, mode="linear")`
    """
    rep, name = as_rep(x), "interpolate"
    spec = primitive.tensor_of(rep.expression, name)
    if spec.rank not in (3, 4):
        raise rank_error(f"{name} takes a tensor of rank 3 or 4, not a {spec.words}")
    if mode not in _MODES:
        raise shape_error(f"{name}: mode is 'nearest', 'linear' or 'bilinear', not {mode!r}")
    if (size is None) is (scale_factor is None):
        raise shape_error(f"{name} takes size or scale_factor, one of them")
    if align_corners and mode == "nearest":
        raise shape_error(f"{name}: align_corners is for mode='linear'")
    axes = spec.rank - 2
    sizes = None if size is None else per_axis(name, "size", size, axes)
    factors = () if scale_factor is None else _factors(scale_factor, axes)

    def build(b: Builder, x: Value) -> Value:
        extents = x.tensor.shape[2:]
        if 0 in extents:
            raise ShapeError(f"{name}: a spatial axis of {x.tensor.words} is empty")
        made = sizes or tuple(math.floor(n * f) for n, f in zip(extents, factors, strict=True))
        for axis, (extent, count) in enumerate(zip(extents, made, strict=True)):
            step = extent / count if sizes or not count else 1 / factors[axis]
            if mode == "nearest":
                x = _nearest(b, x, axis + 2, count, step)
            else:
                x = _linear(b, x, axis + 2, count, step, align_corners)
        return x

    def compute(x: Rep) -> Rep:
        kept = primitive.tensor_of(x.expression, name)
        return Rep(primitive.shape_dependent(name, build, (x.expression,), kept))

    return compute(rep) if mode == "nearest" else in_f32(name, compute, rep)


def _factors(scale_factor: Any, axes: int) -> tuple[float, ...]:
    given = as_tuple(scale_factor)
    given = given * axes if len(given) == 1 else given
    if len(given) != axes or not all(is_number(f) and 0 < f < math.inf for f in given):
        raise shape_error(
            f"interpolate: scale_factor is a positive number, or one for each of {axes} spatial axes, "
            f"not {scale_factor!r}"
        )
    return tuple(map(float, given))


def _nearest(b: Builder, x: Value, axis: int, count: int, step: float) -> Value:
    """Each place reads ⌊place · step⌋; a whole multiple of places repeats each, whose derivative is a sum."""
    shape = x.tensor.shape
    times, rest = divmod(count, shape[axis])
    if not rest and step == shape[axis] / max(count, 1):
        wide = (*shape[: axis + 1], times, *shape[axis + 1 :])
        repeated = b.emit(
            Broadcast(wide), reshaped(b, x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        )
        return reshaped(b, repeated, (*shape[:axis], count, *shape[axis + 1 :]))
    places = np.floor(np.arange(count) * step).astype(np.int64)
    return _read(b, x, axis, np.minimum(places, shape[axis] - 1))


def _linear(b: Builder, x: Value, axis: int, count: int, step: float, align: bool) -> Value:
    """Each place is between two, in the proportion of its distances from them."""
    last = x.tensor.shape[axis] - 1
    places = np.arange(count, dtype=np.float64)
    if align:
        at = places * (last / (count - 1) if count > 1 else 0.0)
    else:
        at = np.clip((places + 0.5) * step - 0.5, 0, last)
    low = np.minimum(np.floor(at).astype(np.int64), last)
    column = (count, *[1] * (x.tensor.rank - axis - 1))
    sides: list[Value] = []
    for where, share in ((low, 1 - (at - low)), (np.minimum(low + 1, last), at - low)):
        dtype = x.tensor.dtype
        weights = b.emit(dense(TensorType(column, dtype), dtype.round(share.reshape(column))))
        sides.append(b.emit(Multiply(), _read(b, x, axis, where), weights))
    return b.emit(Add(), *sides)


def _read(b: Builder, x: Value, axis: int, places: Array) -> Value:
    indices = b.emit(dense(TensorType(places.shape, I64), places))
    return b.emit(Gather(axis, Bounds.INSIDE), x, indices)
