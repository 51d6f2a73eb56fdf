"""Functions of matrices that are made of decompositions and products: norms, ranks, powers, exponentials, inverses.

Source: Higham 2005, "The scaling and squaring method for the matrix exponential revisited".
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from . import composed
from .control import fori
from .core import ops
from .core.ir import Builder, Value
from .core.ops.combinator import Combinator
from .core.ops.formulas import number
from .core.ops.matrix_form import identity
from .core.ops.movement import reshaped
from .core.types import DType
from .elementwise import abs as absolute
from .elementwise import ceil, log, maximum, minimum, power, square
from .functions import select, zeros_like
from .linear_algebra import inv, made, matrices, of_matrices, solve, square_ones, svdvals
from .reps import as_rep
from .staging import primitive
from .staging.primitive import dtype_error, is_index, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.spec import as_tuple
from .tensors import DTYPES, i64

_PADE: Final = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
"""Coefficients of the numerator of degree 13, the constant first; the denominator's have alternating signs."""

_LARGEST: Final = 5.371920351148152
"""The 1-norm up to which the quotient is exact to the last bits of f64."""

_SQUARINGS: Final = 1100
"""At most: what must be halved so often has an exponential that overflows or is 0."""


def pinv(a: Any, rcond: Any = None) -> Rep:
    """The inverses of Moore and Penrose; singular values up to `rcond` times the largest count as 0.

    By default that is the larger extent times the precision of the element type. The derivative is that among matrices
    of one rank.
    Shapes: (…, m, n) → (…, n, m).
    Example: `nk.linalg.pinv(m)`
    """
    if rcond is not None and not (is_number(rcond) and rcond >= 0):
        raise shape_error(f"rcond is a number of at least 0, not {rcond!r}")
    x = matrices("pinv", a)
    rank = primitive.tensor_of(x.expression, "pinv").rank

    def build(b: Builder, a: Value) -> Value:
        cutoff = _precision(a) if rcond is None else float(rcond)
        return b.emit(ops.PseudoInverse(), a, number(b, a, cutoff))

    return made("pinv", build, rank, x)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Rep, Rep, Rep, Rep]:
    """The x of least norm among those with the least |a @ x − b|; residuals, the rank (i64) and singular values of a.

    x is `pinv(a, rcond) @ b`.  Residuals are Σ (a @ x − b)² of each column, those of a vector as one; NumPy leaves them
    out where a is not of full rank or not higher than wide, which depends on data.
    Shapes: a (m, n), b (m) → (n), (1), (), (min(m, n)); a (…, m, n), b (…, m, k) → (…, n, k), (…, k), (…),
    (…, min(m, n)).
    Example: `nk.linalg.lstsq(s, x[:2])[0]`
    """
    x, sides = matrices("lstsq", a), as_rep(b)
    found = pinv(x, rcond) @ sides
    distance = x @ found - sides
    is_vector = primitive.tensor_of(sides.expression, "lstsq").rank == 1
    residuals = square(distance).sum(-1, keepdims=True) if is_vector else square(distance).sum(-2)
    return found, residuals, _rank("lstsq", x, rcond, relative=True), svdvals(x)


def cond(x: Any, p: Any = None) -> Rep:
    """The condition numbers: the largest singular value by the smallest, or norms of a and of its inverse by ord p.

    +∞ where a is singular.
    Shapes: (…, m, n) → (…); (…, n, n) → (…) for `p=1`.
    Example: `nk.linalg.cond(s)`
    """
    rep = matrices("cond", x)
    if p is None or p in (2, -2):
        values = svdvals(rep)
        largest, least = values[..., 0], values[..., -1]
        is_zero = least == 0.0
        ratio = largest / select(is_zero, 1.0, least)
        ratio = select(is_zero, math.inf, ratio)
        return 1.0 / ratio if p == -2 else ratio
    rep = square_ones("cond", rep)
    found = norm(rep, p, (-2, -1)) * norm(inv(rep), p, (-2, -1))
    is_number_all = (rep == rep).all((-2, -1))
    return select(is_number_all & (found != found), math.inf, found)


def matrix_rank(A: Any, tol: float | None = None) -> Rep:
    """How many singular values (i64) are greater than `tol`.

    By default that is the largest one times the larger extent times the precision of the element type.
    Shapes: (…, m, n) → (…).
    Example: `nk.linalg.matrix_rank(m)`
    """
    return _rank("matrix_rank", matrices("matrix_rank", A), tol, relative=False)


def _rank(name: str, x: Rep, tol: float | None, *, relative: bool) -> Rep:
    """How many singular values are above a bound, or a part of the largest."""
    values = svdvals(x)
    rank = primitive.tensor_of(values.expression, name).rank

    def build(b: Builder, values: Value, a: Value) -> Value:
        if values.tensor.shape[-1] == 0 or (tol is not None and not relative):
            return b.emit(ops.Broadcast(values.tensor.shape), number(b, a, tol or 0.0))
        largest = b.emit(ops.Reduce(Combinator.MAX, (rank - 1,)), values)
        part = _precision(a) if tol is None else float(tol)
        bound = b.emit(ops.Multiply(), largest, number(b, a, part))
        column = reshaped(b, bound, (*bound.tensor.shape, 1))
        return b.emit(ops.Broadcast(values.tensor.shape), column)

    bounds = made(name, build, rank, values, x)
    return (values > bounds).cast(i64).sum(-1)


def matrix_power(a: Any, n: int) -> Rep:
    """a @ a @ … of n factors, by repeated squaring; of inverses for n < 0, and the identity for 0.

    Shapes: (…, n, n) → (…, n, n).
    Example: `nk.linalg.matrix_power(s, 3)`
    """
    if not is_index(n):
        raise dtype_error(
            f"matrix_power takes an int, not {n!r}", "`expm(n * logarithm)` has others"
        )
    x = square_ones("matrix_power", a)
    factor, exponent = inv(x) if n < 0 else x, abs(int(n))
    result: Rep | None = None
    while exponent:
        if exponent & 1:
            result = factor if result is None else result @ factor
        exponent >>= 1
        factor = factor @ factor if exponent else factor
    return _identity("matrix_power", x) if result is None else result


def expm(A: Any) -> Rep:
    """The matrix exponentials, Σ Aᵏ / k!, by squarings of a rational function of degree 13.

    Shapes: (…, n, n) → (…, n, n).
    Example: `nk.linalg.expm(s)`
    """
    x = square_ones("expm", A)
    dtype = DTYPES[primitive.tensor_of(x.expression, "expm").dtype]
    size = absolute(x).sum(-2, keepdims=True).max(-1, keepdims=True)
    needed = ceil(log(maximum(size / _LARGEST, 1.0)) / math.log(2.0))
    squarings = minimum(needed, float(_SQUARINGS)).cast(i64)
    scaled = x * power(zeros_like(size) + 2.0, -squarings.cast(dtype))
    one = _identity("expm", x)
    second = scaled @ scaled
    fourth = second @ second
    sixth = fourth @ second
    c = _PADE
    odd = sixth @ (sixth * c[13] + fourth * c[11] + second * c[9])
    odd = scaled @ (odd + sixth * c[7] + fourth * c[5] + second * c[3] + one * c[1])
    even = sixth @ (sixth * c[12] + fourth * c[10] + second * c[8])
    even = even + sixth * c[6] + fourth * c[4] + second * c[2] + one * c[0]

    def squared(i: Rep, y: Rep) -> Rep:
        return select(i.cast(i64) < squarings, y @ y, y)

    return Rep(fori(0, squarings.max(), squared, solve(even - odd, even + odd)).expression)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Rep:
    """Norms of vectors along one axis, of matrices along two: √Σx² of all elements without `ord` and `axis`.

    Vectors have any number for `ord`, inf, -inf, and 0 for the count of what is not 0; matrices "fro", "nuc", 1, -1, 2,
    -2, inf and -inf.  The derivative of √Σx² is 0 at 0.
    Example: `nk.linalg.norm(m, "nuc")`
    """
    rep = as_rep(x)
    spec = primitive.tensor_of(rep.expression, "norm")
    if not spec.dtype.is_float:
        raise dtype_error(f"norm takes floats, not a {spec.words}", "cast it, `x.cast(dtype)`")
    if ord is None:
        return composed.norm(rep, axis, keepdims=keepdims)
    if axis is None and spec.rank not in (1, 2):
        raise rank_error(
            f"norm with ord={ord!r} of a {spec.words} wants an axis, or a pair of them"
        )
    axes = tuple(range(spec.rank)) if axis is None else as_tuple(axis)
    axes = tuple(primitive.normalize_axis(one, spec.rank) for one in axes)
    if len(axes) == 1:
        return _vector_norm(rep, ord, axes[0], keepdims)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise rank_error(f"norm is along one axis or two different ones, not {axis!r}")
    return _matrix_norm(rep, ord, (axes[0], axes[1]), keepdims)


def _vector_norm(x: Rep, ord: Any, axis: int, keepdims: bool) -> Rep:
    size = absolute(x)
    if not is_number(ord):
        raise shape_error(f"a norm of vectors has a number for ord, not {ord!r}")
    if ord == 2:
        return composed.norm(x, axis, keepdims=keepdims)
    if ord == 1:
        return size.sum(axis, keepdims=keepdims)
    if ord == math.inf:
        return size.max(axis, keepdims=keepdims)
    if ord == -math.inf:
        return size.min(axis, keepdims=keepdims)
    if ord == 0:
        counted: Rep = x != 0.0
        return counted.cast(DTYPES[_dtype(x)]).sum(axis, keepdims=keepdims)
    powers: Rep = size ** float(ord)
    root: Rep = powers.sum(axis, keepdims=keepdims) ** (1.0 / ord)
    return root


def _matrix_norm(x: Rep, ord: Any, axes: tuple[int, int], keepdims: bool) -> Rep:
    row, column = axes
    if ord == "fro":
        return composed.norm(x, axes, keepdims=keepdims)
    if is_number(ord) and abs(ord) in (1, math.inf):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = absolute(x).sum(summed, keepdims=True)
        found = sums.max(other, keepdims=True) if ord > 0 else sums.min(other, keepdims=True)
        return found if keepdims else found.squeeze(max(axes)).squeeze(min(axes))
    if ord not in ("nuc", 2, -2):
        raise shape_error(
            f"a norm of matrices has 'fro', 'nuc', 1, 2, inf or their negatives for ord, not {ord!r}"
        )
    rank = primitive.tensor_of(x.expression, "norm").rank
    kept = [axis for axis in range(rank) if axis not in axes]
    values = svdvals(x.transpose(*kept, row, column))
    found = values.sum(-1) if ord == "nuc" else values.max(-1) if ord == 2 else values.min(-1)
    for axis in sorted(axes) if keepdims else ():
        found = found.expand_dims(axis)
    return found


def _identity(name: str, x: Rep) -> Rep:
    return of_matrices(name, identity, x)


def _precision(a: Value) -> float:
    """What singular values are off by, as a part of the largest."""
    return max(a.tensor.shape[-2:]) * float(np.finfo(a.tensor.dtype.numpy).eps)


def _dtype(x: Rep) -> DType:
    return primitive.tensor_of(x.expression, "norm").dtype
