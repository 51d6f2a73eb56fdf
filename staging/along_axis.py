"""Reads and writes along an axis, by a tensor of indices for each row: `take_along_axis`, `put_along_axis`, `scatter`.

All elements are in one row, in which an element of x has its place in row-major order: so that one tensor of indices
says it, and no index is made for other axes.
"""

from __future__ import annotations

import math

from ..core.errors import ShapeError
from ..core.ir import Builder, Value
from ..core.ops import Add, Gather, Iota, Multiply, Scatter, Select, ShapeCast, Update
from ..core.ops.literal import constant
from ..core.ops.nest import Bounds
from ..core.ops.reduction import broadcast_to
from ..core.types import I64, Shape, scalar


def gather_along(
    b: Builder, x: Value, indices: Value, *, axis: int, bounds: Bounds = Bounds.INSIDE
) -> Value:
    """y[…, k, …] = x[…, indices[…, k, …], …]; the indices are inside, or nothing is."""
    if x.tensor.rank == 1:
        return b.emit(Gather(0, bounds), x, indices)
    row = b.emit(ShapeCast((x.tensor.size,)), x)
    return b.emit(Gather(0, bounds), row, flat_indices(b, indices, x.tensor.shape, axis))


def scatter_along(
    b: Builder,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    axis: int,
    update: Update = Update.SET,
    kept: Value | None = None,
) -> Value:
    """x with the elements there updated; the indices are inside, those that are `kept` if it is given."""
    shape = x.tensor.shape
    row = b.emit(ShapeCast((x.tensor.size,)), x)
    places = flat_indices(b, indices, shape, axis)
    if kept is not None:
        places = b.emit(Select(), places, constant(b, scalar(I64), -1), kept)
    op = Scatter(0, update, bounds=Bounds.INSIDE if kept is None else Bounds.ZERO)
    return b.emit(ShapeCast(shape), b.emit(op, updates, row, places))


def flat_indices(b: Builder, indices: Value, shape: Shape, axis: int) -> Value:
    """Where the elements stand in row-major order, of a tensor of `shape` with as many axes.

    Along another axis that has extent 1 there, all are at 0.
    """
    total: Value | None = None
    for other, extent in enumerate(shape):
        stride = constant(b, scalar(I64), math.prod(shape[other + 1 :]))
        if other == axis:
            term = b.emit(Multiply(), indices, stride)
        elif extent == 1:
            continue
        else:
            term = b.emit(Multiply(), b.emit(Iota(indices.tensor.shape, other, I64)), stride)
        total = term if total is None else b.emit(Add(), total, term)
    assert total is not None
    return total


def common_shape(x: Shape, indices: Shape, axis: int) -> Shape:
    """The shape of the indices once they are broadcast to the other axes of x.

    Raises: ShapeError when they do not fit.
    """
    extents: list[int] = []
    for other, (n, m) in enumerate(zip(x, indices, strict=True)):
        if other != axis and n != m and 1 not in (n, m):
            raise ShapeError(
                f"indices of shape {list(indices)} along axis {axis} do not fit a tensor of shape {list(x)}: "
                f"extents {m} and {n} of axis {other} differ"
            )
        extents.append(m if other == axis or n == 1 else n)
    return tuple(extents)


def checked(b: Builder, indices: Value, extent: int, shape: Shape, bounds: Bounds) -> Value:
    """i64 indices of that shape, all inside an axis, or moved inside it."""
    numbers = b.emit(Iota((extent,), 0, I64))
    return broadcast_to(b, b.emit(Gather(0, bounds), numbers, indices), shape)
