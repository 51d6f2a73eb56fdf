"""Reading and writing along an axis by indices of each row, and combining the rows of each segment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from .core import ops
from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops import Combinator, Update
from .core.ops.literal import constant
from .core.ops.nest import Bounds
from .core.ops.reduction import broadcast_to
from .core.types import I8, I64, DType, Shape, TensorType
from .functions import filler, indices_of, select
from .reps import as_rep
from .staging import primitive
from .staging.along_axis import checked, common_shape, gather_along, scatter_along
from .staging.expression import Expression
from .staging.extents import is_symbolic, size_dependent
from .staging.index_modes import WRITES, bounds_of, inside_by, is_inside
from .staging.primitive import dtype_error, rank_error, shape_error, staging_error
from .staging.rep import Rep
from .staging.spec import TensorSpec, dtype_words
from .staging.static import sizes_of


def take_along_axis(
    arr: Any, indices: Any, axis: int = -1, *, mode: str = "error", fill_value: Any = None
) -> Rep:
    """y[…, k, …] = arr[…, indices[…, k, …], …]: each row at indices of its own; negative ones count from the end.

    Shapes: arr (p…, n), indices (p…, k) of integers → (p…, k); arr (n, q…), indices (k, q…) of integers → (k, q…)
    for `axis=0`; along the other axes they broadcast.
    Raises: IndexOutOfRangeError when run with an index outside the axis, by mode="error"; others are those of `take`.
    Example: `nk.take_along_axis(m, nk.argsort(m, descending=True))`
    """
    tensor, at, position = _along("take_along_axis", arr, indices, axis, mode)
    bounds = bounds_of(mode)
    if fill_value is not None and mode != "fill":
        raise shape_error("fill_value is for mode='fill'")

    def build(b: Builder, value: Value, given: Value) -> Value:
        shape = value.tensor.shape
        common = common_shape(shape, given.tensor.shape, position)
        inside = checked(b, given, shape[position], common, bounds)
        is_empty = bounds is Bounds.ZERO and value.tensor.size == 0
        return gather_along(
            b, value, inside, axis=position, bounds=Bounds.ZERO if is_empty else Bounds.INSIDE
        )

    spec = primitive.tensor_of(tensor, "take_along_axis")
    found = Rep(primitive.shape_dependent("take_along_axis", build, (tensor, at), spec))
    if mode != "fill":
        return found
    there = Rep(is_inside(at, tensor, position))
    return select(there, found, filler(Rep(tensor), fill_value, "take_along_axis"))


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int = -1, *, mode: str = "error"
) -> Rep:
    """arr with the elements that `take_along_axis` would read set to `values`, which are broadcast to the indices.

    Of several values for one element, the last one stays.
    Raises: IndexOutOfRangeError when run with an index outside the axis; mode="clip" takes the nearest, "wrap" goes
    round, "drop" leaves it out.
    Example: `nk.put_along_axis(x, i[:1], 9.0)`
    """
    return _written("put_along_axis", arr, indices, values, axis, mode, Update.SET)


def scatter(
    x: Any, indices: Any, values: Any, axis: int = -1, *, reduce: str = "set", mode: str = "error"
) -> Rep:
    """x with `values` written at indices along an axis, those of each row its own, or joined with what is there.

    `reduce` says how: "set", "add", "multiply", "min" or "max".  Updates come in row-major order of the indices: of
    several for one element "set" keeps the last one, and the others join all of them with x.  The derivative by a value
    that another one replaces is 0; elements and values that attain an extremum share its derivative.

    Shapes: x (p…, n), indices (p…, k) of integers, values (p…, k) → (p…, n), values broadcast to the indices.
    Raises: IndexOutOfRangeError when run with an index outside the axis; mode="clip" takes the nearest, "wrap" goes
    round, "drop" leaves it out.
    Example: `nk.scatter(x, i, y, reduce="add")`
    """
    return _written("scatter", x, indices, values, axis, mode, _update_of(reduce))


_OTHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sum": "add",
        "prod": "multiply",
        "mul": "multiply",
        "amin": "min",
        "amax": "max",
        "replace": "set",
    }
)
"""What PyTorch and others call the updates."""


def _update_of(reduce: Any) -> Update:
    names = [str(update) for update in Update]
    if reduce in names:
        return Update(reduce)
    if reduce == "mean":
        help = (
            "divide sums by counts, each a scatter with reduce='add', or `nk.segment_mean` of rows"
        )
    else:
        meant = _OTHERS.get(reduce) if isinstance(reduce, str) else None
        help = f"write `reduce={meant!r}`" if meant else ""
    *first, last = map(repr, names)
    raise staging_error(f"reduce is {', '.join(first)} or {last}, not {reduce!r}", help)


def _written(
    name: str, x: Any, indices: Any, values: Any, axis: int, mode: str, update: Update
) -> Rep:
    """x with elements updated where `take_along_axis` would read them."""
    _check_order(name, indices)
    tensor, at, position = _along(name, x, indices, axis, mode)
    bounds = bounds_of(mode, WRITES)
    spec = primitive.tensor_of(tensor, name)
    given = as_rep(x).lift(values, name)
    written = primitive.tensor_of(given, name)
    if written.dtype is not spec.dtype:
        raise dtype_error(
            f"{name} of {dtype_words(spec.dtype)} takes such values, not {written.words}",
            "cast them, `values.cast(dtype)`",
        )
    if update is not Update.SET and not spec.dtype.is_numeric:
        raise dtype_error(
            f"{name} by {str(update)!r} takes numbers, not {spec.words}",
            "reduce='set' writes any elements",
        )
    if written.rank > spec.rank:
        raise rank_error(f"{name} into a {spec.words} cannot take {written.words}")

    def build(b: Builder, value: Value, places: Value, updates: Value, *kept: Value) -> Value:
        shape = value.tensor.shape
        common = common_shape(shape, places.tensor.shape, position)
        if any(n != m for k, (n, m) in enumerate(zip(common, shape, strict=True)) if k != position):
            raise ShapeError(
                f"{name}: indices of shape {list(places.tensor.shape)} do not fit {value.tensor.words}"
            )
        inside = checked(b, places, shape[position], common, bounds)
        stays = broadcast_to(b, kept[0], common) if kept else None
        if not _fits(updates.tensor.shape, common):
            raise ShapeError(
                f"{name}: values of shape {list(updates.tensor.shape)} do not fit indices of shape {list(common)}"
            )
        changes = broadcast_to(b, updates, common)
        return scatter_along(b, value, inside, changes, axis=position, update=update, kept=stays)

    there = (is_inside(at, tensor, position),) if mode == "drop" else ()
    operands = (tensor, at, given, *there)
    return Rep(primitive.shape_dependent(name, build, operands, spec))


def _fits(shape: Shape, common: Shape) -> bool:
    """Whether it broadcasts to that shape."""
    last = common[len(common) - len(shape) :]
    return all(n in (1, m) for n, m in zip(shape, last, strict=True))


def _check_order(name: str, indices: Any) -> None:
    """Raises: StagingError for a number, which PyTorch has before the indices: the axis."""
    if primitive.is_index(indices):
        raise staging_error(
            f"{name} takes a tensor of indices, not {indices!r}",
            f"the axis comes last, `{name}(x, indices, values, axis={indices!r})`; of one place, `x.at[i].set(v)`",
        )


def bincount(
    x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None, mode: str = "error"
) -> Rep:
    """How often each of 0 … minlength − 1 occurs in a vector of integers (i64), or the sum of its weights.

    The extent of the result cannot depend on the numbers, so one of `minlength` and `length`, as JAX calls it, is
    given, and there are as many.  Which of them occur at all is `bincount(x, minlength=n) > 0`.
    Raises: IndexOutOfRangeError when run with a number outside; mode="clip" counts it as the nearest, "drop" nowhere.
    Example: `nk.bincount(i, minlength=4)`
    """
    numbers = as_rep(x)
    spec = primitive.tensor_of(numbers.expression, "bincount")
    if spec.rank != 1 or not spec.dtype.is_integer:
        raise rank_error(
            f"bincount takes a vector of integers, not a {spec.words}", "`x.reshape(-1)`"
        )
    if (
        length is None
        and primitive.is_index(minlength)
        and not is_symbolic(minlength)
        and minlength == 0
    ):
        raise staging_error(
            "bincount has an extent that depends on data",
            "say how many there are, `bincount(x, minlength=n)`",
        )
    count = minlength if length is None else length
    if weights is None:
        one = primitive.literal(1, I64)
        return _segments("bincount", one, numbers.expression, count, _added, mode)
    given = as_rep(weights).expression
    weighted = primitive.tensor_of(given, "bincount")
    if weighted.rank != 1 or not weighted.dtype.is_numeric:
        raise rank_error(f"weights of bincount are a vector of numbers, not a {weighted.words}")
    return _segments("bincount", given, numbers.expression, count, _added, mode)


def segment_sum(data: Any, segment_ids: Any, num_segments: int, *, mode: str = "error") -> Rep:
    """Row s is the sum of the rows of data whose segment is s; 0 of none.

    Shapes: data (n, q…), segment_ids (n) of integers → (num_segments, q…).
    Raises: IndexOutOfRangeError when run with a segment outside 0 … num_segments − 1; mode="clip" takes the nearest,
    "drop" leaves the row out.
    Example: `nk.segment_sum(x, i, 3)`
    """
    return _segment("segment_sum", data, segment_ids, num_segments, _added, mode)


def segment_max(data: Any, segment_ids: Any, num_segments: int, *, mode: str = "error") -> Rep:
    """Row s has the greatest elements of the rows of data whose segment is s; −∞ or the smallest integer of none.

    Example: `nk.segment_max(x, i // 2, 2)`
    """
    build = partial(_updated, update=Update.MAX)
    return _segment("segment_max", data, segment_ids, num_segments, build, mode)


def segment_min(data: Any, segment_ids: Any, num_segments: int, *, mode: str = "error") -> Rep:
    """Row s has the least elements of the rows of data whose segment is s; +∞ or the greatest integer of none.

    Example: `nk.segment_min(x, i // 2, 2)`
    """
    build = partial(_updated, update=Update.MIN)
    return _segment("segment_min", data, segment_ids, num_segments, build, mode)


def segment_prod(data: Any, segment_ids: Any, num_segments: int, *, mode: str = "error") -> Rep:
    """Row s is the product of the rows of data whose segment is s; 1 of none.

    Example: `nk.segment_prod(x, i // 2, 2)`
    """
    build = partial(_updated, update=Update.MULTIPLY)
    return _segment("segment_prod", data, segment_ids, num_segments, build, mode)


def segment_mean(data: Any, segment_ids: Any, num_segments: int, *, mode: str = "error") -> Rep:
    """Row s is the mean of the rows of data whose segment is s; NaN of none.

    Example: `nk.segment_mean(x, i // 2, 2)`
    """
    rep = as_rep(data)
    dtype = primitive.tensor_of(rep.expression, "segment_mean").dtype
    if not dtype.is_float:
        raise dtype_error(
            f"segment_mean takes float elements, not {rep.spec.words}", "`x.cast(f32)`"
        )
    total = segment_sum(rep, segment_ids, num_segments, mode=mode)
    counts = bincount(segment_ids, length=num_segments, mode=mode)
    rank = primitive.tensor_of(total.expression, "segment_mean").rank
    divisor = primitive.cast(counts.expression, dtype)
    for axis in range(1, rank):
        divisor = primitive.expand(divisor, axis)
    return total / Rep(divisor)


def _along(
    name: str, x: Any, indices: Any, axis: int, mode: str
) -> tuple[Expression, Expression, int]:
    """The tensor, the indices none of which is negative, and the axis."""
    tensor, at = as_rep(x).expression, indices_of(indices).expression
    spec, given = primitive.tensor_of(tensor, name), primitive.tensor_of(at, name)
    if spec.rank == 0 or given.rank != spec.rank:
        raise rank_error(
            f"{name} takes indices of the rank of the tensor, at least 1, not {spec.words} and {given.words}",
            "`take(x, indices, axis)` reads all rows at the same indices"
            if name == "take_along_axis"
            else "`x.at[i].set(rows)`, `.add(rows)` and so on update whole rows; `i[:, None]` is a column, which "
            "broadcasts",
        )
    position = primitive.normalize_axis(axis, spec.rank)
    return tensor, inside_by(mode, at, tensor, position), position


def _segment(
    name: str, data: Any, segment_ids: Any, num_segments: int, build: Any, mode: str
) -> Rep:
    rows, ids = as_rep(data).expression, as_rep(segment_ids).expression
    spec, given = primitive.tensor_of(rows, name), primitive.tensor_of(ids, name)
    if given.rank != 1 or not given.dtype.is_integer:
        raise rank_error(f"segments of {name} are a vector of integers, not a {given.words}")
    if spec.rank == 0 or not spec.dtype.is_numeric:
        raise rank_error(
            f"{name} takes a tensor of numbers with a leading axis, not a {spec.words}"
        )
    return _segments(name, rows, ids, num_segments, build, mode)


def _segments(
    name: str, rows: Expression, ids: Expression, count: int, build: Any, mode: str
) -> Rep:
    bounds = bounds_of(mode, ("error", "clip", "drop"))
    sizes = sizes_of([count], name)
    spec = primitive.tensor_of(rows, name)
    if primitive.tensor_of(ids, name).dtype is I8:
        ids = primitive.cast(ids, I64)

    def combine(b: Builder, known: tuple[int], data: Value, places: Value) -> Value:
        if data.tensor.rank and data.tensor.shape[0] != places.tensor.shape[0]:
            raise ShapeError(
                f"{name}: {data.tensor.shape[0]} rows of {data.tensor.words} and "
                f"{places.tensor.shape[0]} segments differ in number"
            )
        if data.tensor.rank == 0:
            data = broadcast_to(b, data, places.tensor.shape)
        made: Value = build(b, data, places, (*known, *data.tensor.shape[1:]), bounds)
        return made

    result = TensorSpec(max(spec.rank, 1), spec.dtype)
    return Rep(size_dependent(name, sizes, combine, (rows, ids), result))


def _added(b: Builder, data: Value, places: Value, shape: Shape, bounds: Bounds) -> Value:
    return b.emit(ops.ScatterAdd(shape, 0, bounds), data, places)


def _updated(
    b: Builder, data: Value, places: Value, shape: Shape, bounds: Bounds, *, update: Update
) -> Value:
    combinator = update.combinator
    assert combinator is not None
    start = _filled(b, shape, data.tensor.dtype, combinator)
    return b.emit(ops.Scatter(0, update, bounds=bounds), data, start, places)


def _filled(b: Builder, shape: Shape, dtype: DType, combinator: Combinator) -> Value:
    return constant(b, TensorType(shape, dtype), combinator.identity(dtype))
