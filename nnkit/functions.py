"""The functions of the language that are ops of the IR and not elementwise: choices, shapes, indices, makers.

Concrete tensors among the arguments count as constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from .core import ops
from .core.ir import Builder, Value
from .core.ops.literal import constant
from .core.types import BOOL, F32, I64, Array, DType, TensorType
from .reps import as_rep
from .staging import primitive
from .staging.accumulation import accumulated
from .staging.extents import Extent, ShapeLike, Size, is_symbolic, larger
from .staging.index_modes import bounds_of, inside_by, is_inside
from .staging.leafwise import is_aggregate
from .staging.primitive import (
    MAX_RANK,
    dtype_error,
    is_index,
    rank_error,
    shape_error,
    staging_error,
    unsupported_error,
)
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import TensorSpec
from .staging.static import core_dtype, core_of, sizes_of


def select(pred: Any, on_true: Any, on_false: Any) -> Rep:
    """on_true where pred is true, else on_false; the branch not taken has no derivative, whatever it is.

    A Python bool, as comparisons of sizes are for the checkers, chooses all of one.
    """
    if is_number(on_true) and is_number(on_false):
        dtype = "i64" if isinstance(on_true + on_false, int) else "f32"
        raise dtype_error(
            "select between two Python numbers: one of them must be a tensor",
            f"say which element type, `nk.where(condition, nk.const({dtype}({on_true})), {on_false})`",
        )
    known = as_rep(on_false if is_number(on_true) else on_true)
    if is_aggregate(known):
        raise dtype_error(
            f"select takes tensors, not a {known.spec.words}",
            "`nk.cond(condition, lambda: p, lambda: q)` chooses one of two structs",
        )
    chosen = [known.lift(value, "select") for value in (on_true, on_false)]
    truth = primitive.literal(pred, BOOL) if isinstance(pred, bool) else as_rep(pred).expression
    return Rep(primitive.elementwise(ops.Select(), *chosen, truth))


def stop_gradient(x: Any) -> Rep:
    """x itself, which derivatives take for a constant."""
    return Rep(primitive.elementwise(ops.StopGradient(), as_rep(x).expression))


def matmul(x: Any, y: Any, /, *, accumulate: Any = None) -> Rep:
    """x @ y, whose sums, and those of its derivatives, are accumulated in a wider float type; rounded once."""
    operands = (as_rep(x).expression, as_rep(y).expression)
    return Rep(accumulated("matmul", accumulate, primitive.dot, *operands))


def concat(arrays: Sequence[Any], /, axis: int = 0) -> Rep:
    """Tensors one after the other along an existing axis."""
    _check_several(arrays, "concat")
    return Rep(primitive.concatenate([as_rep(x).expression for x in arrays], axis))


def stack(arrays: Sequence[Any], axis: int = 0) -> Rep:
    """Tensors of one shape along a new axis."""
    _check_several(arrays, "stack")
    reps = [as_rep(x) for x in arrays]
    return concat([rep.expand_dims(axis) for rep in reps], axis)


def _check_several(arrays: Any, name: str) -> None:
    if isinstance(arrays, Rep):
        raise staging_error(f"{name} takes a list of tensors, not a Rep", f"`{name}([x, y])`")


def flip(m: Any, axis: Any = None) -> Rep:
    """The elements along an axis, several or all, in reverse order."""
    rep = as_rep(m)
    spec = primitive.tensor_of(rep.expression, "flip")
    op = ops.Reverse(primitive.normalize_axes(axis, spec.rank))
    return Rep(primitive.apply(op, rep.expression))


def _is_pair(given: Any) -> bool:
    pair: Any = given  # whose elements isinstance leaves Any
    return isinstance(given, Sequence) and len(pair) == 2


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: float = 0) -> Rep:
    """`pad_width[k] = (before, after)` elements `constant_values` around axis k; of a number or a pair, around each.

    Example: `nk.pad(x, 1)`
    """
    if mode != "constant":
        raise unsupported_error(
            f"pad puts a number around a tensor, not {mode!r}", "`concat` it with parts of itself"
        )
    rep = as_rep(array)
    spec = primitive.tensor_of(rep.expression, "pad")
    pairs = _pairs(pad_width, spec.rank)
    if len(pairs) != spec.rank or not all(map(_is_pair, pairs)):
        raise rank_error(f"pad takes a pair (before, after) for each of the {spec.rank} axes")
    low = sizes_of([before for before, _ in pairs], "pad")
    high = sizes_of([after for _, after in pairs], "pad")
    filler = primitive.literal(constant_values, spec.dtype)
    operands = rep.expression, filler
    return Rep(primitive.apply_sized(lambda ends: ops.Pad(*ends), (low, high), *operands))


def _pairs(pad_width: Any, rank: int) -> list[Any]:
    """(before, after) for each axis; of a number or one pair, the same for all."""
    given: Any = pad_width.tolist() if isinstance(pad_width, np.ndarray) else pad_width
    listed: Any = given  # whose elements isinstance leaves Any
    if not isinstance(given, Sequence):
        return [(given, given)] * rank
    ends: list[Any] = [*listed]
    nested = [isinstance(end, Sequence) for end in ends]
    if nested == [False, False]:
        return [ends] * rank
    return ends * rank if nested == [True] else ends


def take(
    a: Any, indices: Any, axis: int = 0, *, mode: str = "error", fill_value: Any = None
) -> Rep:
    """The elements of a at `indices` along `axis`; negative ones count from the end.

    Outside, mode="clip" takes the nearest, "wrap" goes round, and "fill" gives `fill_value`: NaN by default, of
    integers the least one, true of truth values.
    Raises: IndexOutOfRangeError when run with an index outside the axis, by mode="error".
    """
    bounds = bounds_of(mode)
    if fill_value is not None and mode != "fill":
        raise shape_error("fill_value is for mode='fill'")
    rep = as_rep(a)
    at = indices_of(indices)
    spec = primitive.tensor_of(rep.expression, "take")
    position = primitive.normalize_axis(axis, spec.rank)
    index = inside_by(mode, at.expression, rep.expression, position)
    found = Rep(primitive.apply(ops.Gather(position, bounds), rep.expression, index))
    if mode != "fill":
        return found
    value = filler(rep, fill_value, "take")  # which complains of one that is not of the type
    if is_number(fill_value) and fill_value == 0 and math.copysign(1, fill_value) > 0:
        return found  # it is 0 outside by itself
    there = Rep(is_inside(index, rep.expression, position))
    for _ in range(spec.rank - 1 - position):
        there = there.expand_dims(-1)
    return select(there, found, value)


def indices_of(given: Any) -> Rep:
    """Indices that are staged, or Python's: an int, or lists of them."""
    if isinstance(given, int | Extent) and not isinstance(given, bool):
        return Rep(primitive.literal(given, I64))
    if isinstance(given, list | tuple):
        found: Array = np.asarray(cast("Sequence[Any]", given))
        if found.size and found.dtype.kind not in "iu":
            raise dtype_error(f"indices are ints, not {given!r}")
        return as_rep(found.astype(np.int64))
    return as_rep(given)


def filler(x: Rep, fill_value: Any, what: str) -> Rep:
    """The value for what is outside of x: NaN by default, of integers the least one, true of truth values."""
    dtype = primitive.tensor_of(x.expression, what).dtype
    if fill_value is None:
        least = True if dtype is BOOL else np.nan
        fill_value = int(np.iinfo(dtype.numpy).min) if dtype.is_integer else least
    return Rep(x.lift(fill_value, what))


def one_hot(x: Any, num_classes: Any, dtype: Any = None, axis: int = -1) -> Rep:
    """1 at positions x of a new axis of `num_classes` elements, 0 elsewhere (all 0 outside); f32 by default.

    Example: `nk.one_hot(i, 4)`
    """
    core = core_dtype(dtype, F32)
    sizes = sizes_of([num_classes], "one_hot")
    made = primitive.apply_sized(
        lambda known: ops.OneHot(known[0], core), sizes, as_rep(x).expression
    )
    last = primitive.tensor_of(made, "one_hot").rank - 1
    position = primitive.normalize_axis(axis, last + 1)
    if position == last:
        return Rep(made)
    order = [*range(last)]
    order.insert(position, last)
    return Rep(primitive.transpose(made, tuple(order)))


def iota(shape: ShapeLike, dtype: Any, axis: int = 0) -> Rep:
    """0, 1, 2, … along `axis`."""
    extents = _shape(shape, "iota")
    core = core_dtype(dtype)
    position = primitive.normalize_axis(axis, len(extents))

    def iota_of(known: tuple[int, ...]) -> ops.Iota:
        if known[position] > 0:
            primitive.held(known[position] - 1, core)  # the last number must exist
        return ops.Iota(known, position, core)

    return Rep(primitive.apply_sized(iota_of, extents, name="iota"))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Rep:
    """start, start + step, … before `stop`; `arange(stop)` begins at 0, and `arange(stop, dtype)` is short for that.

    Of numbers and sizes: of i64 if all are integers, else of f32, by default.
    Example: `nk.arange(1, 7, 2)`
    """
    if core_of(stop) is not None:
        if dtype is not None:
            raise dtype_error(f"arange takes one element type, not {stop!r} and {dtype!r}")
        stop, dtype = None, stop
    first, end = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    for number in (first, end, by):
        if not is_number(number) and not is_index(number):
            raise dtype_error(
                f"arange takes Python numbers and sizes, not {number!r}",
                "an extent cannot depend on data; `iota` makes numbers, which arithmetic moves",
            )
    return _stepped(first, end, by, dtype)


def _stepped(first: Any, end: Any, by: Any, dtype: Any) -> Rep:
    """The numbers of `arange`."""
    are_ints = all(map(is_index, (first, end, by)))
    core = core_dtype(dtype, I64 if are_ints else F32)
    if is_index(by) and not is_symbolic(by) and by == 0:
        raise shape_error("the step of arange is not 0")
    if are_ints:
        count = larger(0, 0 - (first - end) // by)
        known = not is_symbolic((first, end, by))
        if known and count:
            primitive.held(int(first + (count - 1) * by), core)
    else:
        first, end, by = float(first), float(end), float(by)
        count = max(0, math.ceil((end - first) / by))
        if core.is_float:  # NumPy's distance: that of the first two elements
            by = float(core.nearest(first + by)) - float(core.nearest(first))
    made = iota((count,), core)
    if is_symbolic(by) or by != 1:
        made = made * by
    return made + first if is_symbolic(first) or first != 0 else made


def broadcast_to(array: Any, shape: ShapeLike) -> Rep:
    """array repeated along axes of extent 1 and new leading axes."""
    return _broadcast_to(as_rep(array), shape, "broadcast_to")


def _broadcast_to(x: Rep, shape: ShapeLike, what: str) -> Rep:
    """The same for the function that is called `what`."""
    sizes = _shape(shape, what)
    return Rep(primitive.apply_sized(ops.Broadcast, sizes, x.expression, name=what))


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None) -> Rep:
    """A tensor whose elements are all `fill_value`, a number or a scalar.

    By default the elements are those of a scalar, and boolean, i64 or f32 as Python's bool, int or float.
    Example: `nk.full((2, 3), 7.0)`
    """
    if not is_number(fill_value) and not is_index(fill_value):
        scalar = as_rep(fill_value)
        filled = scalar if dtype is None else scalar.cast(core_dtype(dtype))
        return _broadcast_to(filled, shape, "full")
    kind = BOOL if isinstance(fill_value, bool) else I64 if is_index(fill_value) else F32
    return _full(shape, fill_value, core_dtype(dtype, kind), "full")


def zeros(shape: ShapeLike, dtype: Any = None) -> Rep:
    """A tensor of zeros, of f32 by default; of one axis if `shape` is an int."""
    return _full(shape, 0, core_dtype(dtype, F32), "zeros")


def ones(shape: ShapeLike, dtype: Any = None) -> Rep:
    """A tensor of ones, of f32 by default; of one axis if `shape` is an int."""
    return _full(shape, 1, core_dtype(dtype, F32), "ones")


def zeros_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Rep:
    """Zeros of the shape and element type of a, but where others are given."""
    return _filled_like(a, 0, dtype, shape, "zeros_like")


def ones_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Rep:
    """Ones of the shape and element type of a, but where others are given."""
    return _filled_like(a, 1, dtype, shape, "ones_like")


def _shape(shape: Any, what: str) -> tuple[Size, ...]:
    extents = sizes_of(shape, what)
    if len(extents) > MAX_RANK:
        raise rank_error(f"{what}: tensors have at most {MAX_RANK} axes, not {len(extents)}")
    return extents


def _full(shape: Any, value: float, dtype: DType, what: str) -> Rep:
    filler = bool(value) if dtype is BOOL and what != "full" else value
    return _broadcast_to(Rep(primitive.literal(filler, dtype)), shape, what)


def _filled_like(x: Any, number: int, dtype: Any, shape: Any, what: str) -> Rep:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, what)
    core = core_dtype(dtype, spec.dtype)
    if shape is not None:
        return _full(shape, number, core, what)

    def build(b: Builder, value: Value) -> Value:
        return constant(b, TensorType(value.tensor.shape, core), number)

    made = TensorSpec(spec.rank, core)
    return Rep(primitive.shape_dependent("filled", build, (rep.expression,), made))
