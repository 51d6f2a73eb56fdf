"""Expressions by family: each function finds the rank and element type of its result.

What only shapes can decide (an extent that differs, a reshape that does not fit) is decided when the
expression is specialised; what rank and element type decide is an error here, at the user's line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import DTypeError, NNKitError, RankError, ShapeError
from ..core.ir import Builder, Value
from ..core.ops import (
    ArgMax,
    ArgMin,
    Combinator,
    Concatenate,
    DataTypeCast,
    Divide,
    Dot,
    Elementwise,
    FloorDivide,
    Gather,
    PadShape,
    Power,
    Reduce,
    Scan,
    Select,
    ShapeCast,
    SqueezeShape,
    Transpose,
    TruncateDivide,
)
from ..core.ops.literal import check_range, constant
from ..core.ops.nest import Bounds
from ..core.types import BF16, BOOL, F16, F32, F64, I64, Array, DType, scalar
from .expression import Constant, Expression, Primitive, Shaped, at, make
from .location import here
from .spec import TensorSpec, as_tuple


def tensor_of(expression: Expression, what: str) -> TensorSpec:
    """The type of an expression that must be a tensor."""
    if not isinstance(expression.type, TensorSpec):
        raise located(DTypeError(f"{what} takes tensors, not a {expression.type.words}"))
    return expression.type


def located(error: NNKitError, help: str = "") -> NNKitError:
    """`error` with the line the user is at."""
    result: NNKitError = at(error, here(), help)
    return result


def literal(number: Any, dtype: DType) -> Expression:
    """A Python number as a scalar of element type `dtype`.

    Raises: DTypeError when `dtype` cannot hold it.
    """
    if isinstance(number, bool) is dtype.is_numeric:
        kind = "a bool" if dtype.is_numeric else "a number"
        raise located(
            DTypeError(f"{number} is {kind}, not {dtype_words(dtype)}"),
            "cast the tensor, `x.cast(dtype)`",
        )
    try:
        check_range(dtype, number)
        held = dtype.nearest(number)
    except DTypeError as error:
        raise located(error, "cast the tensor, `x.cast(dtype)`") from None
    except OverflowError:
        raise located(_out_of_range(number, dtype)) from None
    if dtype.is_float and not np.isfinite(held) and abs(number) != math.inf and number == number:
        raise located(_out_of_range(number, dtype))
    return make(Constant(dtype, dtype.store(held)), (), TensorSpec(0, dtype))


def _out_of_range(number: Any, dtype: DType) -> DTypeError:
    shown = f"an integer of {number.bit_length()} bits" if isinstance(number, int) else f"{number}"
    largest = dtype.round(np.asarray(LARGEST[dtype], dtype.numpy))
    return DTypeError(f"{shown} is out of range for {dtype}: at most {float(largest):.5g}")


LARGEST = {
    dtype: float(np.finfo(dtype.numpy).max) if dtype is not BF16 else 2.0**128 - 2.0**120
    for dtype in (F16, BF16, F32, F64)
}
"""The largest finite number of each float type."""


def dtype_words(dtype: DType) -> str:
    """An element type as the language calls it."""
    return "boolean" if dtype is BOOL else dtype.name


def array_constant(dtype: DType, stored: Array) -> Expression:
    """A concrete tensor, given in its storage type; the caller does not write it afterwards."""
    return make(Constant(dtype, stored), (), TensorSpec(stored.ndim, dtype))


def elementwise(op: Elementwise, *xs: Expression) -> Expression:
    """`op` on tensors that broadcast; all of one element type (a select's condition is boolean)."""
    specs = [tensor_of(x, op.verb or op.name) for x in xs]
    if specs[0].dtype.kind not in _accepted(op) and not isinstance(op, Select):
        raise located(_mixed(op, specs), "cast it, `x.cast(dtype)`")
    typed = [scalar(spec.dtype) for spec in specs]
    try:
        inferred = op.infer(*typed)
    except DTypeError:
        raise located(_mixed(op, specs), "cast one of them, `x.cast(dtype)`") from None
    return make(Primitive(op), xs, TensorSpec(max(s.rank for s in specs), inferred.dtype))


def _accepted(op: Elementwise) -> tuple[str, ...]:
    """The kinds of elements that the language has `op` for; the IR may have it for more."""
    if isinstance(op, Divide | Power):
        return ("float",)
    return ("integer",) if isinstance(op, FloorDivide | TruncateDivide) else op.accepts


def _mixed(op: Elementwise, specs: Sequence[TensorSpec]) -> DTypeError:
    compared = specs[:2] if isinstance(op, Select) else specs
    dtypes = {spec.dtype for spec in compared}
    operands = " and ".join(spec.words for spec in specs)
    if isinstance(op, Select) and specs[2].dtype is not BOOL:
        return DTypeError(f"the condition of a select is boolean, not {specs[2].words}")
    if len(dtypes) > 1:
        names = " and ".join(dtype_words(spec.dtype) for spec in compared)
        verb = "select from" if isinstance(op, Select) else op.verb or op.name
        operands = " and ".join(spec.words for spec in compared)
        return DTypeError(f"cannot {verb} {operands}: element types {names} differ")
    verb = op.verb or op.name
    return DTypeError(f"cannot {verb} {operands}: it takes {' or '.join(_accepted(op))} elements")


def cast(x: Expression, dtype: DType) -> Expression:
    """Each element converted to `dtype`."""
    spec = tensor_of(x, "cast")
    return x if spec.dtype is dtype else make(
        Primitive(DataTypeCast(dtype)), (x,), TensorSpec(spec.rank, dtype)
    )  # fmt: skip


def dot(x: Expression, y: Expression) -> Expression:
    """Matrix product with NumPy's rules for vectors and leading axes."""
    a, b = tensor_of(x, "@"), tensor_of(y, "@")
    if a.rank == 0 or b.rank == 0:
        raise located(
            RankError(f"cannot multiply {a.words} by {b.words} with @: a scalar has no axes"),
            "use *",
        )
    if a.dtype is not b.dtype:
        raise located(
            DTypeError(
                f"cannot multiply {a.words} by {b.words}: element types {dtype_words(a.dtype)} "
                f"and {dtype_words(b.dtype)} differ"
            ),
            "cast one of them, `x.cast(dtype)`",
        )
    if not a.dtype.is_numeric:
        raise located(
            DTypeError(f"cannot multiply {a.words} by {b.words}: truth values have no product"),
            "cast them, `x.cast(f32)`",
        )
    rank = max(a.rank, b.rank, 2) - (a.rank == 1) - (b.rank == 1)
    return make(Primitive(Dot()), (x, y), TensorSpec(rank, a.dtype))


def normalize_axis(axis: Any, rank: int) -> int:
    """A non-negative axis.  Raises: RankError when there is none of that number."""
    if not is_index(axis):
        raise located(RankError(f"an axis is an int, not {axis!r}"))
    position = int(axis)
    if not -rank <= position < rank:
        raise located(RankError(f"axis {position} does not exist: the tensor has rank {rank}"))
    return int(position % rank)


def is_index(value: Any) -> bool:
    """Whether it is an int, Python's or NumPy's; a bool or a staged value is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """`None` is all axes; several must be different."""
    if axis is None:
        return tuple(range(rank))
    given = as_tuple(axis)
    axes = tuple(normalize_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise located(RankError(f"axes {given} name an axis twice"))
    return tuple(sorted(axes))


def reduce(x: Expression, combinator: Combinator, axis: Any, keepdims: bool) -> Expression:
    """Combine along the axes; `keepdims` leaves them with extent 1."""
    spec = tensor_of(x, _REDUCTIONS[combinator])
    if combinator.is_logical != (spec.dtype is BOOL):
        wanted = "boolean" if combinator.is_logical else "numeric"
        raise located(
            DTypeError(f"{_REDUCTIONS[combinator]} takes {wanted} elements, not a {spec.words}"),
            "compare first, `(x != 0).any()`" if combinator.is_logical else "`x.cast(i64)` counts",
        )
    axes = normalize_axes(axis, spec.rank)
    rank = spec.rank - len(axes)
    result = make(Primitive(Reduce(combinator, axes)), (x,), TensorSpec(rank, spec.dtype))
    return keep_axes(result, axes) if keepdims else result


_REDUCTIONS = {
    Combinator.ADD: "sum",
    Combinator.MULTIPLY: "prod",
    Combinator.MIN: "min",
    Combinator.MAX: "max",
    Combinator.AND: "all",
    Combinator.OR: "any",
}
"""What each reduction is called in the language."""


def keep_axes(x: Expression, axes: tuple[int, ...]) -> Expression:
    """Insert axes of extent 1 at the (sorted) places."""
    for axis in axes:
        x = expand(x, axis)
    return x


def expand(x: Expression, axis: int) -> Expression:
    """One new axis of extent 1."""
    spec = tensor_of(x, "expand_dims")
    return make(
        Primitive(PadShape(axis)), (x,), TensorSpec(checked_rank(spec.rank + 1), spec.dtype)
    )


def squeeze(x: Expression, axis: int) -> Expression:
    """Drop an axis of extent 1."""
    spec = tensor_of(x, "squeeze")
    return make(Primitive(SqueezeShape(axis)), (x,), TensorSpec(spec.rank - 1, spec.dtype))


def checked_rank(rank: int) -> int:
    """Raises: RankError for ranks the language has no type for."""
    if rank > MAX_RANK:
        raise located(
            RankError(f"the result would have rank {rank}; tensors have at most {MAX_RANK}")
        )
    return rank


MAX_RANK = 4


def arg_extremum(x: Expression, op: type[ArgMax] | type[ArgMin], axis: Any) -> Expression:
    """Index of the first extremum along `axis` (None: in row-major order)."""
    name = op.name.lower()
    spec = tensor_of(x, name)
    if not spec.dtype.is_numeric:
        raise located(
            DTypeError(f"{name} takes numeric elements, not a {spec.words}"),
            "cast it, `x.cast(i8)`",
        )
    position = 0 if axis is None else normalize_axis(axis, spec.rank)

    def build(b: Builder, value: Value) -> Value:
        if axis is None:
            value = b.emit(ShapeCast((value.tensor.size,)), value)
        if value.tensor.shape[position] == 0:
            where = "it" if axis is None else f"axis {position}"
            raise ShapeError(f"{name} of {value.tensor.words}: {where} is empty")
        return b.emit(op(position), value)

    rank = 0 if axis is None else spec.rank - 1
    return shaped(name, build, (x,), TensorSpec(rank, I64))


def count(x: Expression, axis: Any, dtype: DType) -> Expression:
    """The number of elements along the axes, as a scalar of `dtype`."""
    axes = normalize_axes(axis, tensor_of(x, "mean").rank)

    def build(b: Builder, value: Value) -> Value:
        return constant(b, scalar(dtype), math.prod(value.tensor.shape[axis] for axis in axes))

    return make(Shaped("count", build), (x,), TensorSpec(0, dtype))


def transpose(x: Expression, permutation: tuple[int, ...]) -> Expression:
    """Axis k of the result is axis `permutation[k]` of x."""
    spec = tensor_of(x, "transpose")
    if sorted(permutation) != list(range(spec.rank)):
        raise located(
            RankError(f"{permutation} is not a permutation of the axes of a {spec.words}")
        )
    return make(Primitive(Transpose(permutation)), (x,), spec)


def reshape(x: Expression, shape: tuple[int, ...]) -> Expression:
    """The same elements in row-major order; one extent may be −1."""
    spec = tensor_of(x, "reshape")
    if sum(extent == -1 for extent in shape) > 1 or any(extent < -1 for extent in shape):
        raise located(
            ShapeError(
                f"cannot reshape {spec.words} to {list(shape)}: at most one extent may be -1"
            )
        )

    def build(b: Builder, value: Value) -> Value:
        size, known = value.tensor.size, math.prod(e for e in shape if e != -1)
        wanted = f"cannot reshape {value.tensor.words} to {list(shape)}"
        if -1 in shape and (known == 0 or size % known):
            raise ShapeError(f"{wanted}: {size} elements cannot be divided so")
        full = tuple(size // known if extent == -1 else extent for extent in shape)
        if math.prod(full) != size:
            raise ShapeError(f"{wanted}: {size} elements and {math.prod(full)} differ")
        return b.emit(ShapeCast(full), value)

    return make(Shaped("reshape", build), (x,), TensorSpec(checked_rank(len(shape)), spec.dtype))


def concatenate(xs: Sequence[Expression], axis: Any) -> Expression:
    """Tensors of one rank and element type, one after the other."""
    if not xs:
        raise located(ShapeError("cannot concatenate nothing: pass at least one tensor"))
    specs = [tensor_of(x, "concat") for x in xs]
    first = specs[0]
    for spec in specs:
        if spec.rank != first.rank:
            raise located(
                RankError(f"cannot concatenate {first.words} and {spec.words}: ranks differ")
            )
        if spec.dtype is not first.dtype:
            raise located(
                DTypeError(
                    f"cannot concatenate {first.words} and {spec.words}: element types differ"
                )
            )
    position = normalize_axis(axis, first.rank)
    return make(Primitive(Concatenate(position)), tuple(xs), first)


def scan(x: Expression, combinator: Combinator, axis: Any) -> Expression:
    """Running combination along one axis."""
    spec = tensor_of(x, "cumsum")
    if not spec.dtype.is_numeric:
        raise located(
            DTypeError(f"cumsum takes numeric elements, not a {spec.words}"),
            "cast it, `x.cast(i64)`",
        )
    return make(Primitive(Scan(combinator, normalize_axis(axis, spec.rank))), (x,), spec)


def gather(x: Expression, indices: Expression, axis: Any, bounds: Bounds) -> Expression:
    """Elements of `x` along `axis` at integer `indices` (which count from the end when negative)."""
    spec, at_spec = tensor_of(x, "take"), tensor_of(indices, "take")
    if not at_spec.dtype.is_integer:
        raise located(
            DTypeError(f"indices are integers, not {at_spec.words}"), "cast them, `i.cast(i64)`"
        )
    position = normalize_axis(axis, spec.rank)
    rank = checked_rank(spec.rank - 1 + at_spec.rank)
    return make(Primitive(Gather(position, bounds)), (x, indices), TensorSpec(rank, spec.dtype))


def shaped(
    name: str, build: Callable[..., Value], operands: Sequence[Expression], type: TensorSpec
) -> Expression:
    """Instructions that `build(builder, *values)` makes once shapes are known."""
    return make(Shaped(name, build), tuple(operands), type)
