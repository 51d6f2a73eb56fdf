"""Functions that rearrange elements, and makers of tensors that NumPy has: `split`'s pieces, `roll`, `eye`, …"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from .core import ops
from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Combinator
from .core.types import F32, I64
from .elementwise import maximum
from .functions import broadcast_to, iota, take
from .reps import as_rep
from .sorting import searchsorted
from .staging import primitive
from .staging.extents import Size, size_dependent
from .staging.primitive import dtype_error, is_index, rank_error, shape_error, staging_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import TensorSpec, as_tuple
from .staging.static import core_dtype, sizes_of


def expand_dims(a: Any, axis: Any) -> Rep:
    """a with new axes of extent 1, at these places of the result.

    Example: `nk.expand_dims(x, 0)`
    """
    rep = as_rep(a)
    places = as_tuple(axis)
    rank = _rank(rep, "expand_dims") + len(places)
    for place in primitive.normalize_axes(places, rank):
        rep = rep.expand_dims(place)
    return rep


def squeeze(a: Any, axis: Any = None) -> Rep:
    """a without these axes, which have extent 1; without all such by default, for which it is traced by shapes.

    Example: `nk.squeeze(nk.expand_dims(x, 0))`
    """
    return as_rep(a).squeeze(axis)


def ravel(a: Any) -> Rep:
    """All elements in row-major order, along one axis.

    Example: `nk.ravel(m)`
    """
    return as_rep(a).ravel()


def swapaxes(a: Any, axis1: int, axis2: int) -> Rep:
    """a with two axes in each other's place.

    Example: `nk.swapaxes(m, 0, 1)`
    """
    rep = as_rep(a)
    rank = _rank(rep, "swapaxes")
    one, other = (primitive.normalize_axis(axis, rank) for axis in (axis1, axis2))
    order = [*range(rank)]
    order[one], order[other] = other, one
    return Rep(primitive.transpose(rep.expression, tuple(order)))


def moveaxis(a: Any, source: Any, destination: Any) -> Rep:
    """a with its axes `source` at the places `destination`, the others in their order.

    Example: `nk.moveaxis(m, 0, 1)`
    """
    rep = as_rep(a)
    rank = _rank(rep, "moveaxis")
    sources, places = as_tuple(source), as_tuple(destination)
    if len(sources) != len(places):
        raise rank_error(
            f"moveaxis takes as many places as axes, not {len(sources)} axes and {len(places)} places"
        )
    primitive.normalize_axes(sources, rank)
    primitive.normalize_axes(places, rank)
    pairs = zip(places, sources, strict=True)
    moved = {
        primitive.normalize_axis(place, rank): primitive.normalize_axis(axis, rank)
        for place, axis in pairs
    }
    others = iter(axis for axis in range(rank) if axis not in moved.values())
    order = tuple(moved[k] if k in moved else next(others) for k in range(rank))
    return Rep(primitive.transpose(rep.expression, order))


def repeat(a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None) -> Rep:
    """Each element `repeats` times, one after the other, along an axis, or of all in row-major order.

    `repeats` is an int, or an int for each element.  With `total_repeat_length` the result has that extent, cut off or
    filled up with the last element, and the numbers may be staged.
    Example: `nk.repeat(x, 2)`
    """
    rep = as_rep(a)
    position = _position(rep, axis, "repeat")
    along = rep.ravel() if axis is None else rep
    if isinstance(repeats, Rep) or total_repeat_length is not None:
        return _repeated(along, repeats, position, total_repeat_length)
    if not is_index(repeats):
        given = np.asarray(repeats)
        if given.dtype.kind not in "iu" or given.ndim != 1 or np.any(given < 0):
            raise dtype_error(f"repeats are ints of at least 0, not {repeats!r}")
        places = np.repeat(np.arange(len(given)), given)
        return _rows(along, places, position, len(given))
    (count,) = sizes_of([repeats], "repeat")
    spec = primitive.tensor_of(along.expression, "repeat")

    def build(b: Builder, known: int, value: Value) -> Value:
        primitive.check_sizes(known, "repeat")
        shape = value.tensor.shape
        spread = b.emit(ops.PadShape(position + 1), value)
        wide = (*shape[: position + 1], known, *shape[position + 1 :])
        spread = b.emit(ops.Broadcast(wide), spread)
        joined = (*shape[:position], shape[position] * known, *shape[position + 1 :])
        return b.emit(ops.ShapeCast(joined), spread)

    return Rep(size_dependent("repeat", count, build, (along.expression,), spec))


def _repeated(x: Rep, repeats: Any, axis: int, total: Any) -> Rep:
    """With an extent that is given, and numbers that may be staged: the j-th is of the row that ends behind j."""
    if total is None:
        raise staging_error(
            "repeat by numbers that are staged has an extent that depends on data",
            "say how many there are in all, `repeat(x, repeats, total_repeat_length=n)`",
        )
    counts = iota((1,), I64) * 0 + int(repeats) if is_index(repeats) else as_rep(repeats)
    spec = primitive.tensor_of(counts.expression, "repeat")
    if spec.rank > 1 or not spec.dtype.is_integer:
        raise dtype_error(f"repeats are integers, one for all or one for each, not a {spec.words}")
    extent = x.shape[axis]
    counts = maximum(broadcast_to(counts.cast(I64), (extent,)), 0)
    ends = Rep(primitive.apply(ops.Scan(Combinator.ADD, 0), counts.expression))
    places = searchsorted(ends, iota((total,), I64), side="right")
    return take(x, places, axis=axis, mode="clip")


def _rows(x: Rep, places: Any, axis: int, wanted: int) -> Rep:
    """The rows at known places of an axis of that extent."""

    def check(b: Builder, value: Value) -> Value:
        if value.tensor.shape[axis] != wanted:
            raise ShapeError(
                f"repeat of {value.tensor.words} takes {value.tensor.shape[axis]} numbers along axis {axis}, "
                f"not {wanted}"
            )
        return value

    spec = primitive.tensor_of(x.expression, "repeat")
    checked = primitive.shape_dependent("repeat", check, (x.expression,), spec)
    return take(Rep(checked), places.astype(np.int64), axis=axis)


def tile(A: Any, reps: Any) -> Rep:
    """A, repeated as a whole `reps` times along each axis, the last ones if these are fewer numbers.

    Example: `nk.tile(x, 2)`
    """
    rep = as_rep(A)
    counts = sizes_of(as_tuple(reps), "tile")
    spec = primitive.tensor_of(rep.expression, "tile")
    rank = primitive.checked_rank(max(spec.rank, len(counts)))

    def build(b: Builder, known: tuple[int, ...], value: Value) -> Value:
        primitive.check_sizes(known, "tile")
        shape = (1,) * (rank - spec.rank) + value.tensor.shape
        times = (1,) * (rank - len(known)) + tuple(known)
        pairs = [*zip(times, shape, strict=True)]
        spread = b.emit(ops.ShapeCast(tuple(n for _, size in pairs for n in (1, size))), value)
        spread = b.emit(ops.Broadcast(tuple(n for pair in pairs for n in pair)), spread)
        return b.emit(ops.ShapeCast(tuple(count * size for count, size in pairs)), spread)

    result = TensorSpec(rank, spec.dtype)
    return Rep(size_dependent("tile", counts, build, (rep.expression,), result))


def roll(a: Any, shift: Any, axis: Any = None) -> Rep:
    """The elements moved on by `shift` along an axis, or several, those at the end to the beginning.

    Without `axis`, all in row-major order.  `shift` is an int or a staged integer, or one for each axis.
    Example: `nk.roll(x, 1)`
    """
    rep = as_rep(a)
    rank = _rank(rep, "roll")
    shifts = as_tuple(shift)
    for one in shifts:
        _check_shift(one)
    if axis is None:
        if len(shifts) != 1:
            raise rank_error("roll by several numbers takes as many axes")
        shape: tuple[Any, ...] = rep.shape
        return _rolled(rep.ravel(), shifts[0], 0).reshape(*shape)
    axes = as_tuple(axis)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) != len(shifts):
        raise rank_error(f"roll takes a number for each axis, not {len(shifts)} for {len(axes)}")
    for one, distance in zip(axes, shifts, strict=True):
        rep = _rolled(rep, distance, primitive.normalize_axis(one, rank))
    return rep


def _check_shift(shift: Any) -> None:
    if isinstance(shift, Rep):
        spec = primitive.tensor_of(shift.expression, "roll")
        if spec.rank or not spec.dtype.is_integer:
            raise dtype_error(f"roll takes integers, one for each axis, not a {spec.words}")
    elif not is_index(shift):
        raise dtype_error(f"roll takes integers, not {shift!r}", "a tensor of them: `(s[0], s[1])`")


def _rolled(x: Rep, shift: Any, axis: int) -> Rep:
    if isinstance(shift, Rep):
        extent = x.shape[axis]
        # every index is inside
        return take(x, (iota((extent,), I64) - shift.cast(I64)) % extent, axis=axis, mode="clip")

    def build(b: Builder, known: int, value: Value) -> Value:
        shape = value.tensor.shape
        cut = -known % shape[axis] if shape[axis] else 0
        if not cut:
            return value
        starts, ends, steps = [0] * len(shape), [*shape], (1,) * len(shape)
        starts[axis] = ends[axis] = cut
        first = b.emit(ops.Slice((0,) * len(shape), tuple(ends), steps), value)
        last = b.emit(ops.Slice(tuple(starts), shape, steps), value)
        return b.emit(ops.Concatenate(axis), last, first)

    spec = primitive.tensor_of(x.expression, "roll")
    return Rep(size_dependent("roll", shift, build, (x.expression,), spec))


def split_pieces(x: Any, indices_or_sections: Any, axis: int) -> tuple[Rep, ...]:
    """What `split` gives of a tensor: pieces of one extent, or between indices."""
    return _pieces("split", as_rep(x), indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Rep, ...]:
    """`split` whose pieces may differ by one in their extents, the first ones being the longer.

    Example: `nk.array_split(x, 2)[0]`
    """
    return _pieces("array_split", as_rep(ary), indices_or_sections, axis)


def _pieces(name: str, x: Rep, given: Any, axis: Any) -> tuple[Rep, ...]:
    spec = primitive.tensor_of(x.expression, name)
    position = primitive.normalize_axis(axis, spec.rank)
    if isinstance(given, tuple | list | np.ndarray):
        ends: list[Any] = [*cast("Sequence[Any]", given)]
        if not all(is_index(end) for end in ends):
            raise dtype_error(f"{name} takes an int, or indices where pieces begin, not {given!r}")
        whole = (slice(None),) * position
        bounds = itertools.pairwise([None, *ends, None])
        return tuple(x[(*whole, slice(start, stop))] for start, stop in bounds)
    if not is_index(given):
        raise dtype_error(f"{name} takes an int, or indices where pieces begin, not {given!r}")
    count = int(given)
    if count < 1:
        raise shape_error(f"{name} makes at least 1 piece, not {count}")

    def piece(number: int) -> Rep:
        def build(b: Builder, value: Value) -> Value:
            shape = value.tensor.shape
            least, more = divmod(shape[position], count)
            if more and name == "split":
                raise ShapeError(
                    f"cannot split {value.tensor.words} into {count} pieces of one extent along axis {position}"
                    "\n  help: `array_split` makes some of them longer"
                )
            starts, ends = [0] * len(shape), [*shape]
            starts[position] = number * least + min(number, more)
            ends[position] = (number + 1) * least + min(number + 1, more)
            return b.emit(ops.Slice(tuple(starts), tuple(ends), (1,) * len(shape)), value)

        return Rep(primitive.shape_dependent(name, build, (x.expression,), spec))

    return tuple(piece(number) for number in range(count))


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Rep:
    """A matrix of N rows and M (or N) columns with ones on diagonal k, which is above the main one if positive.

    Its elements are f32 by default.
    Example: `nk.eye(3)`
    """
    core = core_dtype(dtype, F32)
    if not is_index(k):
        raise dtype_error(f"the diagonal is a Python int, not {k!r}")
    shape = (N, N if M is None else M)
    return Rep((iota(shape, I64, axis=0) + k == iota(shape, I64, axis=1)).cast(core).expression)


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, *, dtype: Any = None
) -> Rep:
    """`num` numbers at one distance from `start` to `stop`, the last of them unless `endpoint` is false.

    Of scalars; its elements are those of the staged one by default, and f32 between Python numbers.
    Example: `nk.linspace(0.0, 1.0, 5)`
    """
    if dtype is None and not (is_number(start) and is_number(stop)):
        known = as_rep(stop if is_number(start) else start)
        core = primitive.tensor_of(known.expression, "linspace").dtype
    else:
        core = core_dtype(dtype, F32)
    if not core.is_float:
        raise dtype_error(f"linspace makes floats, not {core.name}", "`arange` makes integers")
    ends = [
        Rep(primitive.literal(end, core)) if is_number(end) else as_rep(end).cast(core)
        for end in (start, stop)
    ]
    if any(_rank(end, "linspace") for end in ends):
        raise rank_error("linspace takes scalars", "`vmap` makes a row for each of several")
    (count,) = sizes_of([num], "linspace")
    first, last = (end.expression for end in ends)

    def build(b: Builder, n: int, low: Value, high: Value) -> Value:
        primitive.check_sizes(n, "linspace")
        steps = n - 1 if endpoint else n
        parts = np.arange(n) / max(steps, 1)
        type = low.tensor.with_shape((n,))
        up, down = (b.emit(ops.dense(type, each)) for each in (parts, 1 - parts))
        # each end by itself, so that both are met exactly and have their derivatives
        return b.emit(
            ops.Add(), b.emit(ops.Multiply(), low, down), b.emit(ops.Multiply(), high, up)
        )

    result = TensorSpec(1, core)
    return Rep(size_dependent("linspace", count, build, (first, last), result))


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Rep, ...]:
    """The coordinates of all points of a grid whose axes have these vectors as coordinates, a tensor for each.

    The axes are in the order of the vectors with `indexing="ij"`; with "xy" the first two change places.
    Example: `nk.meshgrid(x, y)[1]`
    """
    if indexing not in ("xy", "ij"):
        raise staging_error(f"indexing is 'xy' or 'ij', not {indexing!r}")
    reps = [as_rep(x) for x in xi]
    for rep in reps:
        if _rank(rep, "meshgrid") > 1:
            raise rank_error(f"meshgrid takes vectors, not a {rep.spec.words}")
    primitive.checked_rank(len(reps))
    vectors = [rep.ravel() for rep in reps]
    order = [*range(len(vectors))]
    if indexing == "xy":
        order[:2] = reversed(order[:2])
    shape = tuple(vectors[k].shape[0] for k in order)
    placed: list[Rep] = []
    for number, vector in enumerate(vectors):
        sizes: list[Size] = [1] * len(vectors)
        sizes[order.index(number)] = vector.shape[0]
        placed.append(broadcast_to(vector.reshape(*sizes), shape))
    return tuple(placed)


def _rank(rep: Rep, name: str) -> int:
    return primitive.tensor_of(rep.expression, name).rank


def _position(rep: Rep, axis: Any, name: str) -> int:
    """The axis; that of the ravelled tensor where it is None."""
    return 0 if axis is None else primitive.normalize_axis(axis, _rank(rep, name))
