"""Expressions by family, typed by the shape rules of their ops.

`apply` runs the rule of an op on types whose extents are not known: what rank and element type decide is an error
here, at the user's line.  What only extents decide (one that differs, a reshape that does not fit) is an error of
the same rule when the expression is specialised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from ..core.errors import (
    DifferentiationError,
    DTypeError,
    IndexOutOfRangeError,
    NNKitError,
    RankError,
    ShapeError,
    StagingError,
    UnsupportedError,
)
from ..core.ir import Builder, Op, Value
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
    PadShape,
    Reduce,
    ShapeCast,
    Transpose,
    TruncateDivide,
)
from ..core.ops.expansion import result_of_expansion
from ..core.ops.forms import check_kind
from ..core.ops.literal import check_range, constant
from ..core.types import Array, DType, Kind, TensorType, Type, scalar
from .expression import Constant, Expression, Parameter, Primitive, ShapeDependent
from .extents import Extent, Size, SymbolicNumber, examples, is_symbolic, size_dependent
from .location import HELP, current_location, with_location
from .spec import TensorSpec, as_tuple, dtype_words, is_tuple
from .tracing import make


def tensor_of(expression: Expression, what: str) -> TensorSpec:
    """The type of an expression that must be a tensor."""
    if not isinstance(expression.type, TensorSpec):
        raise dtype_error(f"{what} takes tensors, not a {expression.type.words}")
    return expression.type


def located(error: NNKitError, help: str = "") -> NNKitError:
    """`error` with the line the user is at."""
    result: NNKitError = with_location(error, current_location(), help)
    return result


def _located_error(kind: type[NNKitError], message: str, help: str = "") -> NNKitError:
    return located(kind(message), help)


# Errors at the line the user is at, of a message and a note that helps.
staging_error = partial(_located_error, StagingError)
dtype_error = partial(_located_error, DTypeError)
rank_error = partial(_located_error, RankError)
shape_error = partial(_located_error, ShapeError)
differentiation_error = partial(_located_error, DifferentiationError)
unsupported_error = partial(_located_error, UnsupportedError)
index_error = partial(_located_error, IndexOutOfRangeError)


def literal(number: Any, dtype: DType) -> Expression:
    """A Python number, or one computed from sizes, as a scalar of element type `dtype`.

    Raises: DTypeError when `dtype` cannot hold it.
    """
    if isinstance(number, SymbolicNumber):
        return _literal_of_sizes(number, dtype)
    return make(Constant(dtype, dtype.store(held(number, dtype))), (), TensorSpec(0, dtype))


def _literal_of_sizes(number: SymbolicNumber, dtype: DType) -> Expression:
    """Raises: DTypeError when `dtype` does not hold numbers of this kind."""
    try:
        held(number.example, dtype)
    except DTypeError:
        raise dtype_error(
            f"{number} is no {dtype_words(dtype)}", "cast the tensor, `x.cast(dtype)`"
        ) from None

    def build(b: Builder, known: Any) -> Value:
        held(known, dtype)
        return constant(b, scalar(dtype), known)

    return size_dependent("size", number, build, (), TensorSpec(0, dtype))


def held(number: Any, dtype: DType) -> Any:
    """The number as `dtype` holds it.  Raises: DTypeError when it cannot."""
    if isinstance(number, bool) is dtype.is_numeric:
        kind = "a bool" if dtype.is_numeric else "a number"
        raise dtype_error(
            f"{number} is {kind}, not {dtype_words(dtype)}", "cast the tensor, `x.cast(dtype)`"
        )
    try:
        check_range(dtype, number)
        nearest = dtype.nearest(number)
    except DTypeError as error:
        raise located(error, "cast the tensor, `x.cast(dtype)`") from None
    except OverflowError:
        raise located(_out_of_range(number, dtype)) from None
    if dtype.is_float and not np.isfinite(nearest) and abs(number) != math.inf and number == number:
        raise located(_out_of_range(number, dtype))
    return nearest


def _out_of_range(number: Any, dtype: DType) -> DTypeError:
    shown = f"an integer of {number.bit_length()} bits" if isinstance(number, int) else f"{number}"
    return DTypeError(f"{shown} is out of range for {dtype}: at most {dtype.normal_range[1]:.5g}")


def array_constant(dtype: DType, stored: Array) -> Expression:
    """A concrete tensor, given in its storage type; the caller does not write it afterwards."""
    return make(Constant(dtype, stored), (), TensorSpec(stored.ndim, dtype))


def apply(op: Op, *xs: Expression, name: str = "", help: str = "") -> Expression:
    """`op` on tensors: its shape rule finds rank and element type of the result, or what is wrong with the operands.

    `name` is what the language calls it, `help` what to do about elements that it does not take.
    """
    return make(Primitive(op), xs, _inferred(op.infer, xs, name or op.name, help))


def apply_sized(
    make_op: Callable[[Any], Op], sizes: Any, *xs: Expression, name: str = "", least: int = 0
) -> Expression:
    """The op that `make_op` makes of numbers, some of which are known once shapes are, on tensors.

    `sizes` are ints and extents, in nested tuples; each is at least `least`.
    """
    if not is_symbolic(sizes):
        return apply(make_op(sizes), *xs, name=name)
    example = make_op(examples(sizes))

    def build(b: Builder, known: Any, *values: Value) -> Value:
        check_sizes(known, name or example.name, least)
        return b.emit(make_op(known), *values)

    type = _inferred(example.infer, xs, name or example.name, "")
    return size_dependent(name or example.name, sizes, build, xs, type)


def check_sizes(sizes: Any, what: str, least: int = 0) -> None:
    """Raises: ShapeError for a size below `least` in nested tuples."""
    if is_tuple(sizes):
        for size in sizes:
            check_sizes(size, what, least)
    elif sizes < least:
        raise ShapeError(
            f"{what} takes numbers of at least {least}, not {sizes}{HELP}{least_help(what, least)}"
        )


def least_help(what: str, least: int) -> str:
    """What to write for a size that is too small."""
    if what == "broadcast_to":
        return "`x.shape[k]` keeps the extent of axis k; a size of -1, for what is left, is reshape's alone"
    return f"`max(n, {least})` for a size that may be less"


def compose(
    name: str,
    rule: Callable[..., Value],
    *xs: Expression,
    accepts: tuple[Kind, ...] = ("float",),
) -> Expression:
    """A function that is made of ops (`core.ops.composed`): `rule` emits them once shapes are known."""

    def infer(*specs: TensorSpec) -> Type:
        check_kind(name, specs[0], accepts)
        return result_of_expansion(rule, specs)

    return make(ShapeDependent(name, rule), xs, _inferred(infer, xs, name, ""))


def compose_along(
    name: str, rule: Callable[..., Value], x: Expression, axis: Any, **options: Any
) -> Expression:
    """The same of a rule that combines elements along axes: one, several, or all of them (None)."""
    axes = normalize_axes(axis, tensor_of(x, name).rank)
    return compose(name, partial(rule, axes=axes, **options), x)


def _inferred(
    infer: Callable[..., Type | Sequence[Type]], xs: Sequence[Expression], name: str, help: str
) -> TensorSpec:
    """What a shape rule says of operands whose extents are not known."""
    specs = [tensor_of(x, name) for x in xs]
    try:
        inferred = infer(*specs)
    except NNKitError as error:
        if isinstance(error, DTypeError):
            one = len({spec.dtype for spec in specs}) == 1
            help = help or f"cast {'it' if one else 'one of them'}, `x.cast(dtype)`"
            for x in () if one else xs:
                _note_argument(error, x)
        raise located(error, help) from None
    assert isinstance(inferred, TensorType)
    return TensorSpec(checked_rank(inferred.rank), inferred.dtype)


def _note_argument(error: NNKitError, x: Expression) -> None:
    """Say which argument of which function an operand is, if it is one."""
    parameter, trace = x.operation, x.trace
    if isinstance(parameter, Parameter) and trace is not None:
        which = f"{parameter.name} is argument {parameter.index} of {trace.name}"
        error.add_note(f"  note: {which}: {x.type.words}")


INTEGERS_OF_NUMPY: Final = (
    "an integer of NumPy has an element type, Python's has that of the tensor beside it: `int(n)`; of sizes "
    "`math.prod(x.shape)` or `x.size` for `np.prod(x.shape)`"
)
"""What helps where a NumPy integer is beside a tensor of another element type."""


def elementwise(op: Elementwise, *xs: Expression, help: str = "") -> Expression:
    """`op` on tensors that broadcast, of elements that the language has it for; the IR may have it for more."""
    if type(op) in _KINDS:
        try:
            check_kind(op.name, tensor_of(xs[0], op.name), kinds_of(op))
        except DTypeError as error:
            floor = isinstance(op, FloorDivide) and tensor_of(xs[0], op.name).dtype.is_float
            help = "`nk.floor(x / y)` of floats" if floor else "cast it, `x.cast(dtype)`"
            raise located(error, help) from None
    return apply(op, *xs, name=op.verb or op.name, help=help)


def kinds_of(op: Elementwise) -> tuple[Kind, ...]:
    """The kinds of elements that the language has `op` for."""
    return _KINDS.get(type(op), op.accepts)


_KINDS: Mapping[type[Op], tuple[Kind, ...]] = {
    Divide: ("float",),
    FloorDivide: ("integer",),
    TruncateDivide: ("integer",),
}


def cast(x: Expression, dtype: DType) -> Expression:
    """Each element converted to `dtype`."""
    return x if tensor_of(x, "cast").dtype is dtype else apply(DataTypeCast(dtype), x)


def dot(x: Expression, y: Expression) -> Expression:
    """Matrix product with NumPy's rules for vectors and leading axes."""
    is_scaled = 0 in (tensor_of(x, "@").rank, tensor_of(y, "@").rank)
    return apply(Dot(), x, y, help="use *" if is_scaled else "")


def normalize_axis(axis: Any, rank: int) -> int:
    """A non-negative axis.  Raises: RankError when there is none of that number."""
    if not is_index(axis):
        raise rank_error(f"an axis is an int, not {axis!r}")
    position = int(axis)
    if not -rank <= position < rank:
        axes = f"axes are 0 to {rank - 1}, or from the end -1 to -{rank}"
        help = {0: "a scalar has no axes", 1: "the axis of a vector is 0, or -1"}.get(rank, axes)
        raise rank_error(f"axis {position} does not exist: the tensor has rank {rank}", help)
    return int(position % rank)


def is_index(value: Any) -> bool:
    """Whether it is an int, Python's or NumPy's, or an extent; a bool or a staged value is none."""
    return isinstance(value, int | np.integer | Extent) and not isinstance(value, bool)


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """`None` is all axes; several must be different."""
    if axis is None:
        return tuple(range(rank))
    given = as_tuple(axis)
    axes = tuple(normalize_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise rank_error(f"axes {given} name an axis twice")
    return tuple(sorted(axes))


def reduce(x: Expression, combinator: Combinator, axis: Any, keepdims: bool) -> Expression:
    """Combine along the axes; `keepdims` leaves them with extent 1."""
    axes = normalize_axes(axis, tensor_of(x, combinator.noun).rank)
    result = apply(
        Reduce(combinator, axes), x, name=combinator.noun, help=_REDUCTION_HELP[combinator.noun]
    )
    for position in axes if keepdims else ():
        result = expand(result, position)
    return result


_REDUCTION_HELP: Final = {
    "sum": "`x.cast(i64)` counts",
    "product": "`x.all()` says whether all are true",
    "maximum": "`x.any()` says whether one is true",
    "minimum": "`x.all()` says whether all are true",
    "all": "compare first, `(x != 0).all()`",
    "any": "compare first, `(x != 0).any()`",
}
"""What to do about elements that a reduction does not take, by its noun."""


def expand(x: Expression, axis: int) -> Expression:
    """One new axis of extent 1."""
    return apply(PadShape(axis), x, name="expand_dims")


def checked_rank(rank: int) -> int:
    """Raises: RankError for ranks the language has no type for."""
    if rank > MAX_RANK:
        raise rank_error(f"the result would have rank {rank}; tensors have at most {MAX_RANK}")
    return rank


MAX_RANK = 5
"""`Tensor0D` to `Tensor5D`: checkers know ranks by classes, of which there are finitely many (docs/typing.md)."""


def arg_extremum(
    x: Expression, op: type[ArgMax] | type[ArgMin], axis: Any, keepdims: bool
) -> Expression:
    """Index of the first extremum along `axis` (None: in row-major order)."""
    rank = tensor_of(x, op.name).rank
    along = reshape(x, (-1,)) if axis is None else x
    position = 0 if axis is None else normalize_axis(axis, rank)
    help = "of truth values, `x.cast(i8)` has the same places"
    result = apply(op(position), along, help=help)
    for kept in (range(rank) if axis is None else (position,)) if keepdims else ():
        result = expand(result, kept)
    return result


def transpose(x: Expression, permutation: tuple[int, ...]) -> Expression:
    """Axis k of the result is axis `permutation[k]` of x."""
    return apply(Transpose(permutation), x)


def reshape(x: Expression, sizes: tuple[Size, ...]) -> Expression:
    """The same elements in row-major order; one extent may be −1."""
    spec = tensor_of(x, "reshape")
    written = [size for size in sizes if isinstance(size, int)]
    if written.count(-1) > 1 or any(extent < -1 for extent in written):
        raise shape_error(
            f"cannot reshape {spec.words} to {list(sizes)}: at most one extent may be -1"
        )

    def build(b: Builder, shape: tuple[int, ...], value: Value) -> Value:
        check_sizes(shape, "reshape", -1)
        size, known = value.tensor.size, math.prod(e for e in shape if e != -1)
        wanted = f"cannot reshape {value.tensor.words} to {list(shape)}"
        if -1 in shape and (known == 0 or size % known):
            raise ShapeError(f"{wanted}: {size} elements cannot be divided so")
        full = tuple(size // known if extent == -1 else extent for extent in shape)
        if math.prod(full) != size:
            raise ShapeError(f"{wanted}: {size} elements and {math.prod(full)} differ")
        return b.emit(ShapeCast(full), value)

    result = TensorSpec(checked_rank(len(sizes)), spec.dtype)
    return size_dependent("reshape", sizes, build, (x,), result)


def concatenate(xs: Sequence[Expression], axis: Any) -> Expression:
    """Tensors of one rank and element type, one after the other."""
    if not xs:
        raise shape_error("cannot concatenate nothing: pass at least one tensor")
    position = normalize_axis(axis, tensor_of(xs[0], "concat").rank)
    return apply(Concatenate(position), *xs, name="concat")


def shape_dependent(
    name: str, build: Callable[..., Value], operands: Sequence[Expression], type: TensorSpec
) -> Expression:
    """Instructions that `build(builder, *values)` makes once shapes are known."""
    return make(ShapeDependent(name, build), tuple(operands), type)
