"""Where elements are not 0: `nonzero`, `flatnonzero`, `argwhere`, and `where` of a condition alone.

How many there are is data and no extent can depend on it, so `size` says how many places the result has: the first ones
in row-major order, then `fill_value` up to that size, as in JAX.
"""

from __future__ import annotations

from typing import Any

from .core import ops
from .core.ir import Builder, Value
from .core.ops import Combinator
from .core.ops.literal import constant
from .core.ops.movement import reshaped
from .core.ops.nest import Bounds
from .core.types import BOOL, I64, TensorType, scalar
from .functions import iota, select, stack
from .reps import as_rep
from .staging import primitive
from .staging.extents import size_dependent
from .staging.primitive import dtype_error, rank_error, staging_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import TensorSpec
from .staging.static import sizes_of


def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[Rep, ...]:
    """The indices (i64) of the first `size` elements that are not 0, or are true, a vector for each axis.

    Where there are fewer, the rest is `fill_value`: 0 by default; a.shape[0] is outside of the first axis.
    Raises: StagingError without a size, as how many there are is data.
    Example: `nk.nonzero(m > 2, size=4)`
    """
    return _indices("nonzero", a, size, fill_value)


def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Rep:
    """`nonzero` of all elements in a row.

    Example: `nk.flatnonzero(m > 2, size=6, fill_value=-1)`
    """
    return _indices("flatnonzero", as_rep(a).ravel(), size, fill_value)[0]


def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Rep:
    """`nonzero` with an element's indices in a row.

    Shapes: a (n, m) → (size, 2), or (size, r) of rank r.
    Example: `nk.argwhere(m > 2, size=4)`
    """
    return stack(_indices("argwhere", a, size, fill_value), axis=1)


def where_nonzero(condition: Any, size: Any, fill_value: Any) -> tuple[Rep, ...]:
    """`where` of a condition alone."""
    return _indices("where", condition, size, fill_value)


def _indices(name: str, x: Any, size: Any, fill_value: Any) -> tuple[Rep, ...]:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, name)
    if size is None:
        example = "condition, size=n" if name == "where" else "x, size=n"
        raise staging_error(
            f"how many elements {name} finds depends on data, and an extent cannot: say how many, {name}({example})",
            "`x.size` is always enough; what is not there is `fill_value`; `count_nonzero` counts them, "
            "`where(condition, x, 0.0)` keeps the shape",
        )
    if spec.rank == 0:
        raise rank_error(f"{name} takes a tensor with an axis, not a {spec.words}")
    filler = _filler(name, fill_value)
    truth = rep if spec.dtype is BOOL else rep != 0
    (count,) = sizes_of([size], name)
    places = Rep(
        size_dependent(name, count, _first_places, (truth.expression,), TensorSpec(1, I64))
    )
    is_there = iota(places.shape, I64) < truth.cast(I64).sum()
    found: list[Rep] = []
    for axis in range(spec.rank):

        def along(b: Builder, at: Value, x: Value, axis: int = axis) -> Value:
            return _along_axis(b, at, x, axis)

        operands = (places.expression, rep.expression)
        index = primitive.shape_dependent(name, along, operands, TensorSpec(1, I64))
        found.append(select(is_there, Rep(index), filler))
    return tuple(found)


def _filler(name: str, fill_value: Any) -> Rep:
    if fill_value is None:
        fill_value = 0
    if is_number(fill_value):
        return Rep(primitive.literal(fill_value, I64))
    given = as_rep(fill_value)
    spec = primitive.tensor_of(given.expression, name)
    if spec.rank or not spec.dtype.is_integer:
        raise dtype_error(f"fill_value of {name} is an integer, not a {spec.words}")
    return given.cast(I64)


def _first_places(b: Builder, size: int, truth: Value) -> Value:
    """The first `size` places of true elements in row-major order; 0 where there are fewer."""
    primitive.check_sizes(size, "size")
    type = TensorType((truth.tensor.size,), I64)
    row = reshaped(b, truth, type.shape)
    rank = b.emit(ops.Scan(Combinator.ADD, 0), b.emit(ops.DataTypeCast(I64), row))
    rank = b.emit(ops.Subtract(), rank, constant(b, scalar(I64), 1))
    outside = constant(b, scalar(I64), -1)
    target = b.emit(ops.Select(), rank, b.emit(ops.Broadcast(type.shape), outside), row)
    numbers = b.emit(ops.Iota(type.shape, 0, I64))
    # no two of them at one place: a sum is as good as a write, and is not checked
    return b.emit(ops.ScatterAdd((size,), 0, Bounds.ZERO), numbers, target)


def _along_axis(b: Builder, places: Value, x: Value, axis: int) -> Value:
    """The index along an axis of each place in row-major order."""
    shape = x.tensor.shape
    stride = 1
    for extent in shape[axis + 1 :]:
        stride *= extent
    if axis == len(shape) - 1 == 0:
        return places
    row = b.emit(ops.FloorDivide(), places, constant(b, scalar(I64), max(stride, 1)))
    return b.emit(ops.Modulo(), row, constant(b, scalar(I64), max(shape[axis], 1)))
