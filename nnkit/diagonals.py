"""Triangles and diagonals of matrices, of the last two axes where there are more."""

from __future__ import annotations

from functools import partial
from typing import Any

from .core import ops
from .core.ir import Builder, Value
from .core.ops.literal import constant
from .core.types import I64, TensorType, scalar
from .functions import arange, ones
from .reps import as_rep
from .staging import primitive
from .staging.primitive import is_index, rank_error, staging_error
from .staging.rep import Rep
from .staging.spec import TensorSpec


def tril(m: Any, k: int = 0) -> Rep:
    """The lower triangle: 0 above diagonal number k of the last two axes.

    Example: `nk.tril(m)`
    """
    return _triangle("tril", m, k, upper=False)


def triu(m: Any, k: int = 0) -> Rep:
    """The upper triangle: 0 below diagonal number k of the last two axes.

    Example: `nk.triu(m, 1)`
    """
    return _triangle("triu", m, k, upper=True)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Rep:
    """An N by M matrix (N by N) of ones on and below diagonal number k, zeros above; of f32 by default.

    Example: `nk.tri(3)`
    """
    return tril(ones((N, N if M is None else M), dtype), k)


def diag(v: Any, k: int = 0) -> Rep:
    """The matrix with vector v on diagonal number k and zeros elsewhere; of a matrix, that diagonal.

    Example: `nk.diag(y)`
    """
    rep = as_rep(v)
    spec = primitive.tensor_of(rep.expression, "diag")
    if spec.rank == 2:
        return diagonal(rep, k)
    if spec.rank != 1:
        raise rank_error(
            f"diag takes a vector or a matrix, not a {spec.words}", "`diagonal` takes any rank"
        )
    build = partial(_matrix, number=_number(k, "diag"))
    return Rep(
        primitive.shape_dependent("diag", build, (rep.expression,), TensorSpec(2, spec.dtype))
    )


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Rep:
    """The elements where index `axis2` is index `axis1` plus `offset`, along a new last axis in place of the two.

    Example: `nk.diagonal(m, 1)`
    """
    rep = as_rep(a)
    spec = primitive.tensor_of(rep.expression, "diagonal")
    if spec.rank < 2:
        raise rank_error(f"diagonal takes a matrix at least, not a {spec.words}")
    pair = tuple(primitive.normalize_axis(axis, spec.rank) for axis in (axis1, axis2))
    if pair[0] == pair[1]:
        raise rank_error(f"the axes of a diagonal are different, not {axis1} and {axis2}")
    order = (*(axis for axis in range(spec.rank) if axis not in pair), *pair)
    matrices = primitive.transpose(rep.expression, order)
    build = partial(_diagonal, number=_number(offset, "diagonal"))
    result = TensorSpec(spec.rank - 1, spec.dtype)
    return Rep(primitive.shape_dependent("diagonal", build, (matrices,), result))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Rep:
    """The sum of the diagonal.

    Example: `nk.trace(s)`
    """
    return diagonal(a, offset, axis1, axis2).sum(-1)


def diag_indices(n: int, ndim: int = 2) -> tuple[Rep, ...]:
    """Indices (i64) of the diagonal of a tensor with `ndim` axes of extent n, one vector for each axis.

    Example: `nk.diag_indices(3)`
    """
    return (Rep(arange(n, I64).expression),) * ndim


def _number(k: Any, name: str) -> int:
    if not is_index(k):
        raise staging_error(f"the number of a diagonal of {name} is a Python int, not {k!r}")
    return int(k)


def _triangle(name: str, x: Any, k: Any, *, upper: bool) -> Rep:
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, name)
    if spec.rank < 2:
        raise rank_error(f"{name} takes a matrix at least, not a {spec.words}")
    number = _number(k, name)

    def build(b: Builder, value: Value) -> Value:
        rows, columns = _places(b, value.tensor.shape[-2], value.tensor.shape[-1], number)
        order = (rows, columns) if upper else (columns, rows)
        kept = b.emit(ops.LessThanOrEqual(), *order)
        return b.emit(ops.Select(), value, constant(b, scalar(spec.dtype), 0), kept)

    return Rep(primitive.shape_dependent(name, build, (rep.expression,), spec))


def _places(b: Builder, rows: int, columns: int, k: int) -> tuple[Value, Value]:
    """For each element of a matrix the column where diagonal number k is in its row, and its own."""
    start = b.emit(ops.Add(), b.emit(ops.Iota((rows, 1), 0, I64)), constant(b, scalar(I64), k))
    return start, b.emit(ops.Iota((rows, columns), 1, I64))


def _matrix(b: Builder, x: Value, *, number: int) -> Value:
    """Each column has the element of x that its diagonal goes through, in all rows; the others become 0."""
    zero = constant(b, scalar(x.tensor.dtype), 0)
    row = b.emit(ops.Pad((max(number, 0),), (max(-number, 0),)), x, zero)
    extent = row.tensor.shape[0]
    start, columns = _places(b, extent, extent, number)
    return b.emit(ops.Select(), row, zero, b.emit(ops.Equal(), start, columns))


def _diagonal(b: Builder, x: Value, *, number: int) -> Value:
    """In row-major order, its elements are one row and one column apart."""
    *leading, rows, columns = x.tensor.shape
    length = max(min(rows, columns - number) if number >= 0 else min(rows + number, columns), 0)
    if length == 0:
        return constant(b, TensorType((*leading, 0), x.tensor.dtype), 0)
    first = number if number >= 0 else -number * columns
    step = columns + 1
    row = b.emit(ops.ShapeCast((*leading, rows * columns)), x)
    none, ones_ = (0,) * len(leading), (1,) * len(leading)
    stop = (*leading, first + (length - 1) * step + 1)
    return b.emit(ops.Slice((*none, first), stop, (*ones_, step)), row)
