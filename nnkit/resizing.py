"""Resizing of signals, images and volumes by their nearest elements or linearly, as PyTorch's `interpolate`."""

from __future__ import annotations

import math
from typing import Any, Final

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

_MODES: Final = {
    "nearest": (3, 4, 5),
    "linear": (3, 4, 5),
    "bilinear": (4,),
    "trilinear": (5,),
    "bicubic": (4,),
}
"""The ranks that each is for."""
_CUBIC: Final = -0.75
"""The slope that cubic pieces have where they meet, as PyTorch has it."""


def interpolate(
    input: Any,
    size: Any = None,
    *,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> Rep:
    """The signal, image or volume with another number of places along its spatial axes, those from the third on.

    `size` has the number for each, or `scale_factor` by how much there are more; one number is for all of them.
    `mode` is "nearest", "linear" (for images "bilinear" and for volumes "trilinear" as well), or for images "bicubic";
    with `align_corners` the first and last places stay where they are, and otherwise the ends of the axis.

    Shapes: input (n, c, l) → (n, c, size); input (n, c, h, w) → (n, c, size, size) for a number;
        input (n, c, d, h, w) → (n, c, size, size, size).

    Example: `nk.interpolate(m.expand_dims(0), scale_factor=2, mode="linear")`
    """
    rep, name = as_rep(input), "interpolate"
    spec = primitive.tensor_of(rep.expression, name)
    if spec.rank not in (3, 4, 5):
        raise rank_error(f"{name} takes a tensor of rank 3, 4 or 5, not a {spec.words}")
    if mode not in _MODES:
        raise shape_error(
            f"{name}: mode is 'nearest', 'linear', 'bilinear', 'trilinear' or 'bicubic', not {mode!r}"
        )
    if spec.rank not in _MODES[mode]:
        of = "images, of rank 4" if _MODES[mode] == (4,) else "volumes, of rank 5"
        raise rank_error(f"{name}: mode={mode!r} is for {of}, not a {spec.words}")
    if (size is None) is (scale_factor is None):
        raise shape_error(f"{name} takes size or scale_factor, one of them")
    if align_corners and mode == "nearest":
        raise shape_error(f"{name}: align_corners is for mode='linear' and 'bicubic'")
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
            elif mode == "bicubic":
                x = _cubic(b, x, axis + 2, count, step, align_corners)
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


def _cubic(b: Builder, x: Value, axis: int, count: int, step: float, align: bool) -> Value:
    """Each place is on the cubic piece between two, which has its slopes from their neighbours; ends go on beyond.

    Source: Keys 1981, "Cubic convolution interpolation for digital image processing".
    """
    last = x.tensor.shape[axis] - 1
    places = np.arange(count, dtype=np.float64)
    at = (places + 0.5) * step - 0.5
    if align:
        at = places * (last / (count - 1) if count > 1 else 0.0)
    low = np.floor(at)
    total: Value | None = None
    for offset in (-1, 0, 1, 2):
        distance = np.abs(at - low - offset)
        near = ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance**2 + 1
        far = _CUBIC * (((distance - 5) * distance + 8) * distance - 4)
        where = np.clip(low + offset, 0, last).astype(np.int64)
        term = _weighted(b, x, axis, where, np.where(distance <= 1, near, far))
        total = term if total is None else b.emit(Add(), total, term)
    assert total is not None
    return total


def _linear(b: Builder, x: Value, axis: int, count: int, step: float, align: bool) -> Value:
    """Each place is between two, in the proportion of its distances from them."""
    last = x.tensor.shape[axis] - 1
    places = np.arange(count, dtype=np.float64)
    if align:
        at = places * (last / (count - 1) if count > 1 else 0.0)
    else:
        at = np.clip((places + 0.5) * step - 0.5, 0, last)
    low = np.minimum(np.floor(at).astype(np.int64), last)
    below = _weighted(b, x, axis, low, 1 - (at - low))
    return b.emit(Add(), below, _weighted(b, x, axis, np.minimum(low + 1, last), at - low))


def _weighted(b: Builder, x: Value, axis: int, places: Array, shares: Array) -> Value:
    """What is at the places, each times its share."""
    column, dtype = (len(places), *[1] * (x.tensor.rank - axis - 1)), x.tensor.dtype
    weights = b.emit(dense(TensorType(column, dtype), dtype.round(shares.reshape(column))))
    return b.emit(Multiply(), _read(b, x, axis, places), weights)


def _read(b: Builder, x: Value, axis: int, places: Array) -> Value:
    indices = b.emit(dense(TensorType(places.shape, I64), places))
    return b.emit(Gather(axis, Bounds.INSIDE), x, indices)
