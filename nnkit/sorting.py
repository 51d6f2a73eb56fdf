"""Functions that put elements in order, or find places in that order: sorts, the greatest, quantiles.

What is sorted is read by its permutation, which is a constant to derivatives: among equal elements they go to those
that stand at the place.  A NaN counts as greatest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .core import ops
from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops.literal import constant
from .core.ops.nest import Bounds
from .core.types import F64, I64, TensorType, scalar
from .reps import as_rep
from .staging import primitive
from .staging.along_axis import gather_along
from .staging.expression import Expression
from .staging.extents import size_dependent
from .staging.primitive import dtype_error, rank_error, staging_error
from .staging.rep import Rep
from .staging.spec import TensorSpec
from .staging.static import sizes_of


def sort(a: Any, axis: int | None = -1, *, descending: bool = False) -> Rep:
    """The elements along `axis` (None: of all, in a vector) in order; NaNs last, and first if `descending`.

    Example: `nk.sort(y)`
    """
    along, position = _along(a, axis, "sort")
    return Rep(_sorted(along, position, descending=descending))


def argsort(a: Any, axis: int | None = -1, *, descending: bool = False) -> Rep:
    """The indices (i64) that sort a along `axis` (None: of all elements in a row): equal elements stay in order.

    Example: `nk.argsort(i)`
    """
    along, position = _along(a, axis, "argsort")
    return Rep(primitive.apply(ops.ArgSort(position, bool(descending)), along))


def top_k(operand: Any, k: int, axis: int = -1) -> tuple[Rep, Rep]:
    """The k greatest elements along `axis`, the greatest first, and their indices (i64); of equal ones the first.

    Raises: ShapeError when there are fewer than k.
    Example: `nk.top_k(x, 2)`
    """
    along, position = _along(operand, axis, "top_k")
    sizes = sizes_of([k], "top_k")
    order = primitive.apply(ops.ArgSort(position, descending=True), along)

    def first(b: Builder, known: tuple[int], indices: Value) -> Value:
        (count,), shape = known, indices.tensor.shape
        if count > shape[position]:
            raise ShapeError(f"top_k of {shape[position]} elements cannot give {count}")
        stop = tuple(count if axis == position else n for axis, n in enumerate(shape))
        return b.emit(ops.Slice((0,) * len(shape), stop), indices)

    spec = primitive.tensor_of(order, "top_k")
    chosen = size_dependent("top_k", sizes, first, (order,), spec)
    return Rep(_read(along, chosen, position)), Rep(chosen)


def searchsorted(a: Any, v: Any, side: str = "left") -> Rep:
    """Where each element of v goes in the sorted vector a (i64): before its equals, or behind them with "right".

    By bisection: ⌈log₂(n + 1)⌉ steps.  Shapes: a (n), v (…) → (…).
    Example: `nk.searchsorted(x, y)`
    """
    table = as_rep(a)
    spec = primitive.tensor_of(table.expression, "searchsorted")
    if side not in ("left", "right"):
        raise staging_error(f"side is 'left' or 'right', not {side!r}")
    if spec.rank != 1:
        raise rank_error(f"searchsorted takes a sorted vector, not a {spec.words}")
    sought = table.lift(v, "searchsorted")
    given = primitive.tensor_of(sought, "searchsorted")
    if given.dtype is not spec.dtype or not spec.dtype.is_numeric:
        raise dtype_error(
            f"searchsorted takes numbers of one element type, not {spec.words} and {given.words}",
            "cast one of them, `x.cast(dtype)`",
        )
    build = partial(_bisected, behind_equals=side == "right")
    return Rep(
        primitive.shape_dependent(
            "searchsorted", build, (table.expression, sought), TensorSpec(given.rank, I64)
        )
    )


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Rep:
    """The middle element along the axes (all by default), the mean of two; NaN where there is one.

    Example: `nk.median(x)`
    """
    return _quantile("median", a, 0.5, axis, "linear", keepdims)


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Rep:
    """What a part q of the elements along the axes (all by default) lies below; NaN where one is NaN.

    Between two elements, `method` is "linear", "lower", "higher", "midpoint" or "nearest".
    Shapes: a (…, n), q () → (…) for `axis=-1`; a (…, n), q (m) → (m, …) for `axis=-1`; a (…), q (m) → (m).
    Example: `nk.quantile(x, [0.25, 0.75])`
    """
    return _quantile("quantile", a, q, axis, method, keepdims)


def percentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Rep:
    """The `quantile` of q percent.

    Example: `nk.percentile(x, 75)`
    """
    part = q / 100 if isinstance(q, Rep) else np.asarray(q, np.float64) / 100
    return _quantile("percentile", a, part, axis, method, keepdims)


def _along(x: Any, axis: Any, name: str) -> tuple[Expression, int]:
    """The tensor to sort and the axis; without one, all elements in a row."""
    expression = as_rep(x).expression
    spec = primitive.tensor_of(expression, name)
    if axis is None:
        return primitive.reshape(expression, (-1,)), 0
    if spec.rank == 0:
        raise rank_error(f"{name} takes a tensor with an axis, not a {spec.words}")
    return expression, primitive.normalize_axis(axis, spec.rank)


def _sorted(x: Expression, axis: int, *, descending: bool = False) -> Expression:
    return _read(x, primitive.apply(ops.ArgSort(axis, bool(descending)), x), axis)


def _read(x: Expression, indices: Expression, axis: int) -> Expression:
    """The elements at indices that are known to be inside."""
    spec = primitive.tensor_of(x, "sort")
    return primitive.shape_dependent("sorted", partial(gather_along, axis=axis), (x, indices), spec)


def _bisected(b: Builder, table: Value, sought: Value, *, behind_equals: bool) -> Value:
    """How many elements of the table come before: steps of powers of two, the longest first, where they lead on."""
    extent, shape = table.tensor.shape[0], sought.tensor.shape
    found = constant(b, TensorType(shape, I64), 0)
    step = 1 << extent.bit_length() >> 1
    while step:
        length = constant(b, scalar(I64), step)
        following = b.emit(ops.Add(), found, length)
        last = b.emit(ops.Subtract(), following, constant(b, scalar(I64), 1))
        element = b.emit(ops.Gather(0, Bounds.CLIP), table, last)
        if behind_equals:
            goes_on = b.emit(ops.Not(), _comes_before(b, sought, element))
        else:
            goes_on = _comes_before(b, element, sought)
        is_inside = b.emit(ops.LessThanOrEqual(), following, constant(b, scalar(I64), extent))
        found = b.emit(ops.Select(), following, found, b.emit(ops.And(), goes_on, is_inside))
        step >>= 1
    return found


def _comes_before(b: Builder, x: Value, y: Value) -> Value:
    """x < y, where a NaN counts as greatest."""
    less = b.emit(ops.LessThan(), x, y)
    if not x.tensor.dtype.is_float:
        return less
    is_number, is_nan = b.emit(ops.Equal(), x, x), b.emit(ops.NotEqual(), y, y)
    return b.emit(ops.Or(), less, b.emit(ops.And(), is_number, is_nan))


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Rep:
    expression = as_rep(x).expression
    spec = primitive.tensor_of(expression, name)
    if not spec.dtype.is_float:
        raise dtype_error(f"{name} takes float elements, not {spec.words}", "`x.cast(f32)`")
    if method not in _METHODS:
        raise staging_error(f"method is one of {', '.join(map(repr, _METHODS))}, not {method!r}")
    axes = primitive.normalize_axes(axis, spec.rank)
    places, rank_of_q = _places(name, q, spec, method)
    kept = [k for k in range(spec.rank) if k not in axes]
    rows = primitive.shape_dependent(
        name, partial(_rows, kept=kept, axes=axes), (expression,), TensorSpec(len(kept) + 1, spec.dtype)
    )  # fmt: skip
    ordered = _sorted(rows, len(kept))
    rank = primitive.checked_rank(len(kept) + rank_of_q)
    operands = (ordered,) if not isinstance(q, Rep) else (ordered, q.expression)
    result = primitive.shape_dependent(name, places, operands, TensorSpec(rank, spec.dtype))
    for position in axes if keepdims else ():
        result = primitive.expand(result, position + rank_of_q)
    return Rep(result)


def _places(name: str, q: Any, spec: TensorSpec, method: str) -> tuple[Callable[..., Value], int]:
    """How the result is read from sorted rows, and the rank of q."""
    if isinstance(q, Rep):
        given = primitive.tensor_of(q.expression, name)
        if not given.dtype.is_float:
            raise dtype_error(f"q of {name} is a float, not {given.words}", "`q.cast(f32)`")
        rank = given.rank
        build: Callable[..., Value] = partial(_read_staged, method=method)
    else:
        try:
            known = np.asarray(q, np.float64)
        except (TypeError, ValueError):
            raise staging_error(f"q of {name} is a number or several, not {q!r}") from None
        if not np.all((known >= 0) & (known <= 1)):
            ends = "0 to 100" if name == "percentile" else "0 to 1"
            raise staging_error(f"q of {name} is from {ends}")
        rank = known.ndim
        build = partial(_read_known, q=known, method=method)
    if rank > 1:
        raise rank_error(f"q of {name} is a scalar or a vector, not of rank {rank}")
    return build, rank


def _rows(b: Builder, x: Value, *, kept: list[int], axes: tuple[int, ...]) -> Value:
    """The elements to be ordered along one axis, the last.

    Raises: ShapeError when there are none.
    """
    shape = x.tensor.shape
    count = int(np.prod([shape[axis] for axis in axes], dtype=int))
    if count == 0:
        raise ShapeError(f"a quantile of no elements of {x.tensor.words} does not exist")
    order = (*kept, *axes)
    if order != tuple(range(len(shape))):
        x = b.emit(ops.Transpose(order), x)
    return b.emit(ops.ShapeCast((*(shape[axis] for axis in kept), count)), x)


def _read_known(b: Builder, ordered: Value, *, q: Any, method: str) -> Value:
    """At places that are known."""
    position = q * (ordered.tensor.shape[-1] - 1)
    below = np.floor(position)
    part = b.emit(ops.dense(TensorType(q.shape, F64), position - below))
    places = b.emit(ops.dense(TensorType(q.shape, I64), below.astype(np.int64)))
    return _between(b, ordered, places, part, method)


def _read_staged(b: Builder, ordered: Value, q: Value, *, method: str) -> Value:
    """At places that are found when it runs: computed in f64, which counts far enough; NaN where q is not in 0 … 1."""
    wide = b.emit(ops.DataTypeCast(F64), q)
    zero, one = (constant(b, scalar(F64), n) for n in (0, 1))
    is_inside = b.emit(
        ops.And(), b.emit(ops.LessThanOrEqual(), zero, wide), b.emit(ops.LessThanOrEqual(), wide, one)
    )  # fmt: skip
    wide = b.emit(ops.Select(), wide, constant(b, scalar(F64), np.nan), is_inside)
    last = constant(b, scalar(F64), ordered.tensor.shape[-1] - 1)
    position = b.emit(ops.Multiply(), wide, last)
    below = b.emit(ops.Floor(), position)
    places = b.emit(ops.DataTypeCast(I64), b.emit(ops.Select(), below, zero, is_inside))
    return _between(b, ordered, places, b.emit(ops.Subtract(), position, below), method)


def _between(b: Builder, ordered: Value, places: Value, part: Value, method: str) -> Value:
    """What lies a `part` (f64) behind the element at each of the places, all along the last axis."""
    type = ordered.tensor
    axis, dtype = type.rank - 1, type.dtype
    last = constant(b, scalar(I64), type.shape[-1] - 1)
    following = b.emit(ops.Minimum(), b.emit(ops.Add(), places, constant(b, scalar(I64), 1)), last)
    low, high = (
        _first_axis(b, b.emit(ops.Gather(axis, Bounds.CLIP), ordered, at), places.tensor.rank)
        for at in (places, following)
    )
    trailing = (*places.tensor.shape, *(1,) * axis)
    part = b.emit(ops.ShapeCast(trailing), b.emit(ops.DataTypeCast(dtype), part))
    zero, half = (constant(b, scalar(dtype), n) for n in (0, 0.5))
    if method == "nearest":  # of two that are as near, the one at an even place
        odd = b.emit(ops.Modulo(), places, constant(b, scalar(I64), 2))
        is_odd = b.emit(
            ops.ShapeCast(trailing), b.emit(ops.Equal(), odd, constant(b, scalar(I64), 1))
        )
        tie = b.emit(ops.And(), b.emit(ops.Equal(), part, half), is_odd)
        is_high = b.emit(ops.Or(), b.emit(ops.GreaterThan(), part, half), tie)
        found = b.emit(ops.Select(), high, low, is_high)
    elif method == "lower":
        found = low
    else:
        distance = b.emit(ops.Subtract(), high, low)
        share = {"higher": constant(b, scalar(dtype), 1), "midpoint": half}.get(method, part)
        moved = b.emit(ops.Add(), low, b.emit(ops.Multiply(), distance, share))
        if method == "higher":
            moved = high
        # neither ∞ − ∞ nor 0 · ∞ where the two are equal, or it is the element itself
        is_low = b.emit(ops.Or(), b.emit(ops.Equal(), part, zero), b.emit(ops.Equal(), low, high))
        found = b.emit(ops.Select(), low, moved, is_low)
    return _nan_with(b, found, ordered, part)


def _first_axis(b: Builder, x: Value, rank: int) -> Value:
    """The last `rank` axes, which are those of q, in front."""
    whole = x.tensor.rank
    if rank == 0 or whole == rank:
        return x
    return b.emit(ops.Transpose((*range(whole - rank, whole), *range(whole - rank))), x)


def _nan_with(b: Builder, found: Value, ordered: Value, part: Value) -> Value:
    """`found`, and NaN where a row ends with one or the part is none."""
    type = ordered.tensor
    start = (*(0,) * (type.rank - 1), type.shape[-1] - 1)
    last = b.emit(ops.Slice(start, type.shape), ordered)
    last = b.emit(ops.ShapeCast(type.shape[:-1]), last)
    is_number = b.emit(ops.Equal(), last, last)
    found = b.emit(ops.Select(), found, last, is_number)
    return b.emit(ops.Select(), found, part, b.emit(ops.Equal(), part, part))
