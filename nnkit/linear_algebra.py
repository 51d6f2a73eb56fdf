"""Linear systems and decompositions of matrices, by the LAPACK that NumPy has loaded.

The last two axes are those of matrices; functions are mapped over the axes before.  Elements are f32 or f64.  A matrix
that is not finite, or singular where it must not be, gives NaN and no error, the others of a batch what they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core import ops
from .core.errors import ShapeError
from .core.ir import Builder, Value
from .core.ops.decomposition import parts_of_svd
from .core.ops.formulas import number
from .core.ops.matrix_form import flipped, identity, identity_of, lower
from .core.ops.movement import reshaped
from .core.ops.reduction import Broadcast
from .core.types import F32, F64, Shape, broadcast_shapes
from .matrix_results import EighResult, QRResult, SVDResult
from .reps import as_rep
from .staging import primitive
from .staging.primitive import dtype_error, rank_error, shape_error
from .staging.rep import Rep
from .staging.spec import TensorSpec


def solve(a: Any, b: Any) -> Rep:
    """The x with a @ x = b, by LU factorization; NaN where a is singular.

    Shapes: a (n, n), b (n) → (n); a (…, n, n), b (…, n, k) → (…, n, k), leading axes broadcast.
    Example: `nk.linalg.solve(s, x[:2])`
    """
    return _solved("solve", ops.Solve(), a, b)


def solve_triangular(
    a: Any, b: Any, *, lower: bool = False, trans: int = 0, unit_diagonal: bool = False
) -> Rep:
    """The x with t @ x = b, or t.T @ x = b (trans=1), of which t is the upper or `lower` triangle of a.

    With `unit_diagonal` the diagonal of a is taken for ones.  NaN where there is a zero in it.
    Shapes: a (n, n), b (n) → (n); a (…, n, n), b (…, n, k) → (…, n, k), as `solve`.
    Example: `nk.linalg.solve_triangular(s, x[:2], lower=True)`
    """
    if trans not in (0, 1):
        raise shape_error(f"trans is 0, or 1 for the transposed matrix, not {trans!r}")
    op = ops.TriangularSolve(not lower, bool(trans), bool(unit_diagonal))
    return _solved("solve_triangular", op, a, b)


def inv(a: Any) -> Rep:
    """The inverses; NaN where a is singular.

    Shapes: (…, n, n) → (…, n, n).
    Example: `nk.linalg.inv(s)`
    """

    def build(b: Builder, a: Value) -> Value:
        return b.emit(ops.Solve(transposed=True), a, identity(b, a))

    return of_matrices("inv", build, a)


def cholesky(a: Any, /, *, upper: bool = False) -> Rep:
    """The lower triangular l with l @ l.T = a, or its transpose (`upper`); NaN where a is not positive definite.

    Only the lower triangle of a is read (with `upper` the upper one), and has derivatives.
    Shapes: (…, n, n) → (…, n, n).
    Example: `nk.linalg.cholesky(s)`
    """

    def build(b: Builder, a: Value) -> Value:
        return (
            flipped(b, b.emit(ops.Cholesky(), flipped(b, a)))
            if upper
            else b.emit(ops.Cholesky(), a)
        )

    return of_matrices("cholesky", build, a)


def cholesky_solve(b: Any, factor: Any, *, upper: bool = False) -> Rep:
    """The x with a @ x = b, of a matrix that is given by its `cholesky` factor.

    Shapes: b (n), factor (n, n) → (n); b (…, n, k), factor (…, n, n) → (…, n, k), as `solve`.
    Example: `nk.linalg.cholesky_solve(x[:2], nk.linalg.cholesky(s))`
    """
    first = solve_triangular(factor, b, lower=not upper, trans=int(upper))
    return solve_triangular(factor, first, lower=not upper, trans=int(not upper))


def qr(a: Any, mode: str = "reduced") -> Any:
    """Orthonormal columns q and the upper triangular r with q @ r = a; r alone with mode="r".

    Signs are those of Householder's method in the LAPACK, as NumPy has them.  With mode="complete" q is square; it has
    no derivative unless a is, or is wider than high.
    Shapes: (…, m, n) → (…, m, min(m, n)), (…, min(m, n), n); → (…, m, m), (…, m, n) for `mode="complete"`.
    Returns: Q and R, by position or by these names.
    Example: `nk.linalg.qr(s).Q`
    """
    if mode not in ("reduced", "complete", "r"):
        raise shape_error(f"qr has the modes 'reduced', 'complete' and 'r', not {mode!r}")
    x = matrices("qr", a)
    rows = of_matrices("qr", _orthonormal_rows, x)

    def triangle(b: Builder, rows: Value, a: Value) -> Value:
        product = b.emit(ops.Dot(), rows, a)
        upper = flipped(b, lower(b, flipped(b, product))) if product.tensor.size else product
        *batch, k, n = upper.tensor.shape
        if mode != "complete" or k == a.tensor.shape[-2]:
            return upper
        below = number(b, a, 0)
        missing = b.emit(Broadcast((*batch, a.tensor.shape[-2] - k, n)), below)
        return b.emit(ops.Concatenate(len(batch)), upper, missing)

    rank = primitive.tensor_of(x.expression, "qr").rank
    r = made("qr", triangle, rank, rows, x)
    if mode == "r":
        return r
    if mode == "complete":
        rows = of_matrices("qr", _complete_rows, x)
    return QRResult(made("qr", flipped, rank, rows), r)


def eigh(a: Any, UPLO: str = "L") -> EighResult:  # NumPy's name
    """Eigenvalues in increasing order, and the orthonormal eigenvectors as columns, of symmetric matrices.

    Only the lower triangle of a is read ("U": the upper one), and has derivatives; those of the vectors of equal
    eigenvalues are infinite or NaN. A vector's sign is the LAPACK's.
    Shapes: (…, n, n) → (…, n) and (…, n, n).
    Returns: eigenvalues and eigenvectors, by position or by these names.
    Example: `nk.linalg.eigh(s).eigenvalues`
    """
    both, rank = _eigen("eigh", a, UPLO)
    return EighResult(_eigenvalues(both, rank), made("eigh", _eigenvectors, rank, both))


def eigvalsh(a: Any, UPLO: str = "L") -> Rep:  # NumPy's name
    """Eigenvalues of symmetric matrices, in increasing order; see `eigh`.

    Shapes: (…, n, n) → (…, n).
    Example: `nk.linalg.eigvalsh(s)`
    """
    return _eigenvalues(*_eigen("eigvalsh", a, UPLO))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition, a = (u * s) @ vh with s in decreasing order; s alone unless `compute_uv`.

    u and vh are square with `full_matrices`; unless a is square, they have no derivative then, while s has.  That of
    the vectors of equal singular values, and of those of 0, is infinite or NaN.  Signs are the LAPACK's.
    Shapes: (…, m, n) → (…, m, m), (…, min(m, n)), (…, n, n); reduced to the first min(m, n) of m, and of n, for
    `full_matrices=False`.
    Returns: U, S and Vh, by position or by these names.
    Example: `nk.linalg.svd(m, full_matrices=False).S`
    """
    x = matrices("svd", a)
    rank = primitive.tensor_of(x.expression, "svd").rank

    def values(b: Builder, a: Value) -> Value:
        return parts_of_svd(b, b.emit(ops.Svd(), a), a.tensor.shape).s

    def vectors(number: int) -> Callable[..., Value]:
        def build(b: Builder, a: Value) -> Value:
            *batch, m, n = a.tensor.shape
            if full_matrices and 0 in (m, n):
                side = (m, n)[number - 1]
                return identity_of(b, a, (*batch, side, side))
            full = bool(full_matrices) and m != n
            flat = b.emit(ops.Svd(full), a)
            return parts_of_svd(b, flat, a.tensor.shape, full=full)[number]

        return build

    s = made("svd", values, rank - 1, x)
    if not compute_uv:
        return s
    return SVDResult(made("svd", vectors(1), rank, x), s, made("svd", vectors(2), rank, x))


def svdvals(x: Any, /) -> Rep:
    """Singular values, in decreasing order.

    Shapes: (…, m, n) → (…, min(m, n)).
    Example: `nk.linalg.svdvals(m)`
    """
    values: Rep = svd(x, compute_uv=False)
    return values


def _solved(name: str, op: ops.Solve | ops.TriangularSolve, a: Any, b: Any) -> Rep:
    left = matrices(name, a)
    spec = primitive.tensor_of(left.expression, name)
    right = as_rep(b)
    given = primitive.tensor_of(right.expression, name)
    if given.rank == 0:
        raise rank_error(f"{name} takes right-hand sides of rank 1 or more, not a {given.words}")
    if given.dtype is not spec.dtype:
        raise dtype_error(
            f"{name}: element types {spec.dtype} and {given.dtype} differ",
            "cast one of them, `x.cast(dtype)`",
        )
    rank = spec.rank - 1 if given.rank == 1 else max(spec.rank, given.rank)

    def build(builder: Builder, a: Value, sides: Value) -> Value:
        return _solution(builder, name, op, a, sides)

    return made(name, build, rank, left, right)


def _solution(
    b: Builder, name: str, op: ops.Solve | ops.TriangularSolve, a: Value, sides: Value
) -> Value:
    """Lines up the leading axes, and gives the op right-hand sides as rows."""
    _check_square(name, a)
    n, is_vector = a.tensor.shape[-1], sides.tensor.rank == 1
    columns = reshaped(b, sides, (*sides.tensor.shape, 1)) if is_vector else sides
    if columns.tensor.shape[-2] != n:
        raise ShapeError(
            f"{name}: right-hand sides {sides.tensor.words} do not fit {a.tensor.words}"
        )
    try:
        batch = broadcast_shapes((a.tensor.shape[:-2], columns.tensor.shape[:-2]))
    except ShapeError:
        raise ShapeError(
            f"{name}: leading axes of {a.tensor.words} and {sides.tensor.words} cannot be broadcast"
        ) from None
    k = columns.tensor.shape[-1]
    columns = _broadcast(b, columns, (*batch, n, k))
    rows = flipped(b, columns) if k != 1 else reshaped(b, columns, (*batch, 1, n))
    if a.tensor.rank == 2:
        found = b.emit(op, a, reshaped(b, rows, (rows.tensor.size // n if n else 0, n)))
        found = reshaped(b, found, rows.tensor.shape)
    else:
        found = b.emit(op, _broadcast(b, a, (*batch, n, n)), rows)
    if is_vector:
        return reshaped(b, found, (*batch, n))
    return flipped(b, found) if k != 1 else reshaped(b, found, (*batch, n, 1))


def _broadcast(b: Builder, x: Value, shape: Shape) -> Value:
    return x if x.tensor.shape == shape else b.emit(Broadcast(shape), x)


def _orthonormal_rows(b: Builder, a: Value) -> Value:
    """The first columns of a, as many as there are rows, as orthonormal rows."""
    *batch, m, n = a.tensor.shape
    if n > m:
        a = b.emit(ops.Slice((0,) * (len(batch) + 2), (*batch, m, m)), a)
    return b.emit(ops.Orthonormalize(), flipped(b, a))


def _complete_rows(b: Builder, a: Value) -> Value:
    """As many orthonormal rows as a column of a has elements."""
    m, n = a.tensor.shape[-2:]
    return _orthonormal_rows(b, a) if n >= m else b.emit(ops.Orthonormalize(True), flipped(b, a))


def _eigen(name: str, a: Any, UPLO: str) -> tuple[Rep, int]:
    """Eigenvalues and eigenvectors in one, and the rank of the matrices."""
    if UPLO not in ("L", "U"):
        raise shape_error(f"UPLO is 'L' or 'U', not {UPLO!r}")

    def build(b: Builder, a: Value) -> Value:
        return b.emit(ops.Eigh(), a if UPLO == "L" else flipped(b, a))

    both = of_matrices(name, build, a)
    return both, primitive.tensor_of(both.expression, name).rank


def _eigenvalues(both: Rep, rank: int) -> Rep:
    def build(b: Builder, both: Value) -> Value:
        *batch, _, n = both.tensor.shape
        first = b.emit(ops.Slice((0,) * len(both.tensor.shape), (*batch, 1, n)), both)
        return reshaped(b, first, (*batch, n))

    return made("eigh", build, rank - 1, both)


def _eigenvectors(b: Builder, both: Value) -> Value:
    *batch, rows, n = both.tensor.shape
    below = b.emit(ops.Slice((*(0 for _ in batch), 1, 0), (*batch, rows, n)), both)
    return flipped(b, below)


def matrices(name: str, a: Any) -> Rep:
    """a as a Rep.  Raises: RankError, DTypeError for what are no matrices of f32 or f64."""
    x = as_rep(a)
    spec = primitive.tensor_of(x.expression, name)
    if spec.rank < 2:
        raise rank_error(f"{name} takes matrices, of rank 2 or more, not a {spec.words}")
    if spec.dtype not in (F32, F64):
        raise dtype_error(
            f"{name} takes matrices of f32 or f64, not a {spec.words}", "cast it, `x.cast(f64)`"
        )
    return x


def square_ones(name: str, a: Any) -> Rep:
    """The same of square ones.  Raises: ShapeError for others, once shapes are known."""

    def checked(b: Builder, a: Value) -> Value:
        _check_square(name, a)
        return a

    x = matrices(name, a)
    return made(name, checked, primitive.tensor_of(x.expression, name).rank, x)


def of_matrices(name: str, build: Callable[..., Value], a: Any, *, lost: int = 0) -> Rep:
    """What `build` makes of square matrices, or of any where the op takes these, with so many axes less."""
    x = matrices(name, a)
    rank = primitive.tensor_of(x.expression, name).rank

    def checked(b: Builder, a: Value) -> Value:
        if name != "qr":
            _check_square(name, a)
        return build(b, a)

    return made(name, checked, rank - lost, x)


def made(name: str, build: Callable[..., Value], rank: int, *xs: Rep) -> Rep:
    """What `build` makes of tensors once shapes are known: of that rank, and the element type of the first."""
    operands = [x.expression for x in xs]
    spec = TensorSpec(rank, primitive.tensor_of(operands[0], name).dtype)
    return Rep(primitive.shape_dependent(name, build, operands, spec))


def _check_square(name: str, a: Value) -> None:
    rows, columns = a.tensor.shape[-2:]
    if rows != columns:
        raise ShapeError(f"{name} takes square matrices, not {a.tensor.words}")
