"""The functions of the language that are ops of the IR and not elementwise: choices, shapes, indices, makers.

Concrete tensors among the arguments count as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core import ops
from .core.ir import Builder, Value
from .core.ops.literal import constant
from .core.types import BOOL, I64, DType, TensorType
from .reps import as_rep
from .staging import primitive
from .staging.accumulation import accumulated
from .staging.extents import Extent, Size
from .staging.index_modes import bounds_of, inside_by, is_inside
from .staging.primitive import MAX_RANK, dtype_error, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.static import core_dtype, sizes_of


def select(pred: Any, a: Any, b: Any, /) -> Rep:
    """a where pred is true, else b; the branch not taken has no derivative, whatever it is.

    A Python bool, as comparisons of sizes are for the checkers, chooses all of one.
    """
    if is_number(a) and is_number(b):
        raise dtype_error("select between two Python numbers: one of them must be a tensor")
    known = as_rep(b if is_number(a) else a)
    chosen = [known.lift(value, "select") for value in (a, b)]
    truth = primitive.literal(pred, BOOL) if isinstance(pred, bool) else as_rep(pred).expression
    return Rep(primitive.elementwise(ops.Select(), *chosen, truth))


def stop_gradient(x: Any, /) -> Rep:
    """x itself, which derivatives take for a constant."""
    return Rep(primitive.elementwise(ops.StopGradient(), as_rep(x).expression))


def matmul(x: Any, y: Any, /, *, accumulate: Any = None) -> Rep:
    """x @ y, whose sums, and those of its derivatives, are accumulated in a wider float type; rounded once."""
    operands = (as_rep(x).expression, as_rep(y).expression)
    return Rep(accumulated("matmul", accumulate, primitive.dot, *operands))


def concat(xs: Sequence[Any], /, axis: int = 0) -> Rep:
    """Tensors one after the other along an existing axis."""
    return Rep(primitive.concatenate([as_rep(x).expression for x in xs], axis))


def stack(xs: Sequence[Any], /, axis: int = 0) -> Rep:
    """Tensors of one shape along a new axis."""
    reps = [as_rep(x) for x in xs]
    return concat([rep.expand_dims(axis) for rep in reps], axis)


def flip(x: Any, /, axis: Any = None) -> Rep:
    """The elements along an axis, several or all, in reverse order."""
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, "flip")
    op = ops.Reverse(primitive.normalize_axes(axis, spec.rank))
    return Rep(primitive.apply(op, rep.expression))


def _is_pair(given: Any) -> bool:
    pair: Any = given  # whose elements isinstance leaves Any
    return isinstance(given, Sequence) and len(pair) == 2


def pad(x: Any, widths: Any, /, *, value: float = 0) -> Rep:
    """`widths[k] = (before, after)` elements `value` around axis k; of a number, so many around each."""
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, "pad")
    is_number = not isinstance(widths, Sequence)
    pairs: list[Any] = [(widths, widths)] * spec.rank if is_number else [*widths]
    if len(pairs) != spec.rank or not all(map(_is_pair, pairs)):
        raise rank_error(f"pad takes a pair (before, after) for each of the {spec.rank} axes")
    low = sizes_of([before for before, _ in pairs], "pad")
    high = sizes_of([after for _, after in pairs], "pad")
    filler = primitive.literal(value, spec.dtype)
    operands = rep.expression, filler
    return Rep(primitive.apply_sized(lambda ends: ops.Pad(*ends), (low, high), *operands))


def take(
    x: Any, /, indices: Any, axis: int = 0, *, mode: str = "error", fill_value: Any = None
) -> Rep:
    """The elements of x at `indices` along `axis`; negative ones count from the end.

    Outside, mode="clip" takes the nearest, "wrap" goes round, and "fill" gives `fill_value`: NaN by default, of
    integers the least one, true of truth values.
    Raises: IndexOutOfRangeError when run with an index outside the axis, by mode="error".
    """
    bounds = bounds_of(mode)
    if fill_value is not None and mode != "fill":
        raise shape_error("fill_value is for mode='fill'")
    rep = as_rep(x)
    is_number = isinstance(indices, int | Extent) and not isinstance(indices, bool)
    at = Rep(primitive.literal(indices, I64)) if is_number else as_rep(indices)
    spec = primitive.tensor_of(rep.expression, "take")
    position = primitive.normalize_axis(axis, spec.rank)
    index = inside_by(mode, at.expression, rep.expression, position)
    found = Rep(primitive.apply(ops.Gather(position, bounds), rep.expression, index))
    if mode != "fill":
        return found
    there = Rep(is_inside(index, rep.expression, position))
    for _ in range(spec.rank - 1 - position):
        there = there.expand_dims(-1)
    return select(there, found, filler(rep, fill_value, "take"))


def filler(x: Rep, fill_value: Any, what: str) -> Rep:
    """The value for what is outside of x: NaN by default, of integers the least one, true of truth values."""
    dtype = primitive.tensor_of(x.expression, what).dtype
    if fill_value is None:
        least = True if dtype is BOOL else np.nan
        fill_value = int(np.iinfo(dtype.numpy).min) if dtype.is_integer else least
    return Rep(x.lift(fill_value, what))


def one_hot(indices: Any, count: int, /, dtype: Any) -> Rep:
    """1 at position `indices` of a new last axis of `count` elements, 0 elsewhere (all 0 outside)."""
    core = core_dtype(dtype)
    sizes = sizes_of([count], "one_hot")
    made = primitive.apply_sized(
        lambda known: ops.OneHot(known[0], core), sizes, as_rep(indices).expression
    )
    return Rep(made)


def iota(shape: Sequence[Size], /, dtype: Any, axis: int = 0) -> Rep:
    """0, 1, 2, … along `axis`."""
    extents = _shape(shape, "iota")
    core = core_dtype(dtype)
    position = primitive.normalize_axis(axis, len(extents))

    def iota_of(known: tuple[int, ...]) -> ops.Iota:
        if known[position] > 0:
            primitive.held(known[position] - 1, core)  # the last number must exist
        return ops.Iota(known, position, core)

    return Rep(primitive.apply_sized(iota_of, extents, name="iota"))


def arange(count: Size, /, dtype: Any) -> Rep:
    """0, 1, …, count − 1."""
    return iota((count,), dtype)


def broadcast_to(x: Any, /, shape: Sequence[Size]) -> Rep:
    """x repeated along axes of extent 1 and new leading axes."""
    sizes = _shape(shape, "broadcast_to")
    return Rep(
        primitive.apply_sized(ops.Broadcast, sizes, as_rep(x).expression, name="broadcast_to")
    )


def full(shape: Sequence[Size], fill_value: float, dtype: Any) -> Rep:
    """A tensor whose elements are all `fill_value`."""
    return _full(shape, fill_value, core_dtype(dtype), "full")


def zeros(shape: Sequence[Size], dtype: Any) -> Rep:
    """A tensor of zeros."""
    return _full(shape, 0, core_dtype(dtype), "zeros")


def ones(shape: Sequence[Size], dtype: Any) -> Rep:
    """A tensor of ones."""
    return _full(shape, 1, core_dtype(dtype), "ones")


def zeros_like(x: Any, /) -> Rep:
    """Zeros of the shape and element type of x."""
    return _filled_like(x, 0)


def ones_like(x: Any, /) -> Rep:
    """Ones of the shape and element type of x."""
    return _filled_like(x, 1)


def _shape(shape: Any, what: str) -> tuple[Size, ...]:
    extents = sizes_of(shape, what)
    if len(extents) > MAX_RANK:
        raise rank_error(f"{what}: tensors have at most {MAX_RANK} axes, not {len(extents)}")
    return extents


def _full(shape: Sequence[Size], value: float, dtype: DType, what: str) -> Rep:
    extents = _shape(shape, what)
    filler = bool(value) if dtype is BOOL and what != "full" else value
    return broadcast_to(Rep(primitive.literal(filler, dtype)), extents)


def _filled_like(x: Any, number: int) -> Rep:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, "zeros_like")

    def build(b: Builder, value: Value) -> Value:
        return constant(b, TensorType(value.tensor.shape, spec.dtype), number)

    return Rep(primitive.shape_dependent("filled", build, (rep.expression,), spec))
