"""Orthonormal bases, eigenvectors and singular vectors of matrices.

Where eigenvalues or singular values are equal, their vectors have no derivative: their coefficients 1/(λⱼ − λᵢ) are
infinite, and what they are multiplied by counts unless it is exactly 0, as it is for functions of the values alone.

Source: Townsend 2016, "Differentiating the singular value decomposition"; Walter & Lehmann 2013, "Algorithmic
differentiation of linear algebra functions with application in optimum experimental design" (QR).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from ..errors import DifferentiationError, ShapeError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..types import Array, Shape, TensorType
from .arithmetic import Add, Divide, Multiply, StrongMultiply, Subtract
from .comparison import Equal
from .contraction import Dot
from .formulas import number
from .linear_systems import TriangularSolve
from .matrix_form import (
    BLOCK,
    MatrixFunction,
    diagonal,
    each_diagonal,
    flipped,
    lower,
    masked,
    of_lower,
    to_lower,
)
from .movement import reshaped
from .reduction import Broadcast
from .slicing import Concatenate, Slice


@dataclass(frozen=True)
class Orthonormalize(MatrixFunction):
    """Orthonormal rows q of which the first j span what the first j rows of a do: a = L · q with L lower triangular.

    By Householder's method, as the LAPACK signs them.  A complete basis has further rows, orthogonal to all of a's;
    these have no derivative.
    Shapes: a (…, k, m) with k ≤ m → (…, k, m), or (…, m, m) if complete.
    """

    name: ClassVar[str] = "orthonormalize"
    syntax: ClassVar[str] = "orthonormalize {a} [complete {complete}]"
    complete: bool = False

    def infer(self, a: TensorType) -> TensorType:
        batch = self.check(a)
        if a.shape[-2] > a.shape[-1]:
            raise ShapeError(f"orthonormalize: {a.words} has more rows than can be orthonormal")
        return a.with_shape((*batch, a.shape[-1], a.shape[-1])) if self.complete else a

    def of_one(self, *matrices: Array) -> Array:
        (a,) = matrices
        found = np.linalg.qr(a.T, "complete") if self.complete else np.linalg.qr(a.T)
        return np.asarray(found[0]).T

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        k, m = a.shape[-2:]
        return (k, False), ((m if self.complete else k) * BLOCK, False)

    def operations(self, a: TensorType) -> int:
        return 4 * a.shape[-2] ** 2 * a.shape[-1]

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """With G = L⁻¹ Ȧ and M = G qᵀ: q̇ = G + (N − M) q, of which N = Mᵀ's part above minus M's … is antisymmetric."""
        (q,), (a,), (da,) = ys, xs, dxs
        if da is None:
            return (None,)
        _check_unique("a complete basis", self.complete and q.type != a.type)
        factor = b.emit(Dot(), a, flipped(b, q))
        moved = flipped(b, b.emit(TriangularSolve(), factor, flipped(b, da)))
        inner = b.emit(Dot(), moved, flipped(b, q))
        above = flipped(b, lower(b, flipped(b, inner), strict=True))
        turned = b.emit(Subtract(), above, flipped(b, above))
        change = b.emit(Dot(), b.emit(Subtract(), turned, inner), q)
        return (b.emit(Add(), moved, change),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (q,), (a,), (ct,) = ys, xs, cts
        if ct is None:
            return (None,)
        _check_unique("a complete basis", self.complete and q.type != a.type)
        factor = b.emit(Dot(), a, flipped(b, q))
        inner = b.emit(Dot(), ct, flipped(b, q))
        twist = b.emit(Subtract(), inner, flipped(b, inner))
        above = flipped(b, lower(b, flipped(b, twist), strict=True))
        change = b.emit(Dot(), b.emit(Subtract(), above, inner), q)
        total = b.emit(Add(), ct, change)
        back = b.emit(TriangularSolve(transposed=True), factor, flipped(b, total))
        return (flipped(b, back),)


@dataclass(frozen=True)
class Eigh(MatrixFunction):
    """Eigenvalues in increasing order, and below them the orthonormal eigenvectors as rows, of symmetric matrices.

    What lies above the diagonal of a is not read, and has derivative 0.
    Shapes: a (…, n, n) → (…, n + 1, n).
    """

    name: ClassVar[str] = "eigh"
    syntax: ClassVar[str] = "eigh {a}"

    def infer(self, a: TensorType) -> TensorType:
        batch = self.check(a)
        n = self.check_square(a)
        return a.with_shape((*batch, n + 1, n))

    def of_one(self, *matrices: Array) -> Array:
        (a,) = matrices
        values, vectors = np.linalg.eigh(a.T, UPLO="U")  # as compiled code does, signs and all
        return np.concatenate([values[None], vectors.T])

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        n = a.shape[-1]
        return (1 + (6 + BLOCK) * n + 2 * n * n, False), (3 + 5 * n, True)

    def operations(self, a: TensorType) -> int:
        return 9 * a.shape[-1] ** 3

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (da,) = ys, dxs
        if da is None:
            return (None,)
        values, vectors = _values_and_rows(b, y)
        change = _congruent(b, vectors, of_lower(b, da))
        turned = b.emit(StrongMultiply(), _inverse_differences(b, values), change)
        rows = b.emit(Dot(), flipped(b, turned), vectors)
        first = reshaped(
            b, diagonal(b, change), (*values.tensor.shape[:-1], 1, values.tensor.shape[-1])
        )
        return (b.emit(Concatenate(y.tensor.rank - 2), first, rows),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (ct,) = ys, cts
        if ct is None:
            return (None,)
        values, vectors = _values_and_rows(b, y)
        of_values, of_rows = _values_and_rows(b, ct)
        inner = b.emit(Dot(), vectors, flipped(b, of_rows))
        turned = b.emit(StrongMultiply(), _inverse_differences(b, values), inner)
        core = b.emit(Add(), each_diagonal(b, of_values), turned)
        return (to_lower(b, b.emit(Dot(), flipped(b, vectors), b.emit(Dot(), core, vectors))),)


@dataclass(frozen=True)
class Svd(MatrixFunction):
    """Singular values s in decreasing order, left and right singular vectors: a = u · diag(s) · vᵀ.

    One behind the other, row by row: s (k), u (m, k), vᵀ (k, n), with k the smaller of m and n.  Of the full form u and
    v are square: what is added to them is orthogonal to the rest, and has no derivative.
    Shapes: a (…, m, n) → (…, k + m · k + k · n), or (…, k + m · m + n · n) if full.
    """

    name: ClassVar[str] = "svd"
    syntax: ClassVar[str] = "svd {a} [full {full}]"
    full: bool = False

    def infer(self, a: TensorType) -> TensorType:
        batch = self.check(a)
        m, n = a.shape[-2:]
        return a.with_shape((*batch, sum(map(math.prod, shapes_of_svd(m, n, self.full)))))

    def of_one(self, *matrices: Array) -> Array:
        (a,) = matrices
        v, s, ut = np.linalg.svd(
            a.T, full_matrices=self.full
        )  # as compiled code does, signs and all
        return np.concatenate([s, ut.T.ravel(), v.T.ravel()])

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        m, n = a.shape[-2:]
        k = min(m, n)
        return (m * n, False), (4 * k * k + 7 * k + BLOCK * (m + n), False), (8 * k, True)

    def operations(self, a: TensorType) -> int:
        m, n = a.shape[-2:]
        return 14 * max(m, n) * min(m, n) ** 2

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (a,), (da,) = ys, xs, dxs
        if da is None:
            return (None,)
        m, n = a.tensor.shape[-2:]
        _check_unique("a full decomposition", self.full and m != n)
        f = parts_of_svd(b, y, a.tensor.shape)
        u, v = f.u, flipped(b, f.vt)
        inner = b.emit(Dot(), flipped(b, u), b.emit(Dot(), da, v))
        gaps, scales = _inverse_differences(b, _squares(b, f.s)), _reciprocals(b, f.s)
        columns, rows = _scaled_columns(b, inner, f.s), _scaled_rows(b, f.s, inner)
        du = b.emit(StrongMultiply(), gaps, b.emit(Add(), columns, flipped(b, columns)))
        dv = b.emit(StrongMultiply(), gaps, b.emit(Add(), rows, flipped(b, rows)))
        du, dv = b.emit(Dot(), u, du), b.emit(Dot(), v, dv)
        if m > n:
            outside = _without(b, u, b.emit(Dot(), da, v))
            du = b.emit(Add(), du, _strong_columns(b, outside, scales))
        if n > m:
            outside = _without(b, v, b.emit(Dot(), flipped(b, da), u))
            dv = b.emit(Add(), dv, _strong_columns(b, outside, scales))
        return (_joined(b, SvdParts(diagonal(b, inner), du, flipped(b, dv))),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (a,), (ct,) = ys, xs, cts
        if ct is None:
            return (None,)
        shape = a.tensor.shape
        m, n = shape[-2:]
        _check_unique("a full decomposition", self.full and m != n)
        f, g = parts_of_svd(b, y, shape), parts_of_svd(b, ct, shape)
        u, v, gv = f.u, flipped(b, f.vt), flipped(b, g.vt)
        gaps, scales = _inverse_differences(b, _squares(b, f.s)), _reciprocals(b, f.s)

        def turned(x: Value, ct: Value) -> Value:
            inner = b.emit(Dot(), flipped(b, x), ct)
            twist = b.emit(Subtract(), inner, flipped(b, inner))
            return b.emit(StrongMultiply(), gaps, twist)

        left, right = _scaled_columns(b, turned(u, g.u), f.s), _scaled_rows(b, f.s, turned(v, gv))
        core = b.emit(Add(), each_diagonal(b, g.s), b.emit(Add(), left, right))
        total = b.emit(Dot(), u, b.emit(Dot(), core, f.vt))
        if m > n:
            outside = _strong_columns(b, _without(b, u, g.u), scales)
            total = b.emit(Add(), total, b.emit(Dot(), outside, f.vt))
        if n > m:
            outside = _strong_columns(b, _without(b, v, gv), scales)
            total = b.emit(Add(), total, b.emit(Dot(), u, flipped(b, outside)))
        return (total,)


class SvdParts(NamedTuple):
    """Singular values (…, k), left (…, m, k) and right (…, k, n) singular vectors."""

    s: Value
    u: Value
    vt: Value


def shapes_of_svd(m: int, n: int, full: bool) -> tuple[Shape, Shape, Shape]:
    """The shapes of s, u and vᵀ."""
    k = min(m, n)
    return ((k,), (m, m), (n, n)) if full else ((k,), (m, k), (k, n))


def parts_of_svd(b: Emitter, y: Value, shape: Shape, *, full: bool = False) -> SvdParts:
    """What `Svd` of matrices of this shape puts one behind the other."""
    *batch, m, n = shape
    none, first = tuple(0 for _ in batch), 0
    parts: list[Value] = []
    for extents in shapes_of_svd(m, n, full):
        last = first + math.prod(extents)
        part = b.emit(Slice((*none, first), (*batch, last)), y)
        parts.append(reshaped(b, part, (*batch, *extents)))
        first = last
    return SvdParts(*parts)


def _check_unique(what: str, is_completed: bool) -> None:
    """Raises: DifferentiationError for vectors that are only known to be orthogonal to others."""
    if is_completed:
        raise DifferentiationError(
            f"{what} of matrices that are not square has no derivative: the vectors it adds are any that are orthogonal"
            "\n  help: the reduced form has one"
        )


def _joined(b: Emitter, parts: SvdParts) -> Value:
    batch = parts.s.tensor.shape[:-1]
    flat = [reshaped(b, x, (*batch, math.prod(x.tensor.shape[len(batch) :]))) for x in parts]
    return b.emit(Concatenate(len(batch)), *flat)


def _values_and_rows(b: Emitter, y: Value) -> tuple[Value, Value]:
    """Eigenvalues (…, n) and eigenvectors as rows (…, n, n)."""
    *batch, rows, n = y.tensor.shape
    none = tuple(0 for _ in batch)
    first = b.emit(Slice((*none, 0), (*batch, 1)), y)
    rest = b.emit(Slice((*none, 1), (*batch, rows)), y)
    return reshaped(b, first, (*batch, n)), rest


def _congruent(b: Emitter, rows: Value, x: Value) -> Value:
    """V x Vᵀ for vectors V that are rows."""
    return b.emit(Dot(), rows, b.emit(Dot(), x, flipped(b, rows)))


def _inverse_differences(b: Emitter, x: Value) -> Value:
    """Fᵢⱼ = 1 / (xⱼ − xᵢ), infinite where these are equal; 0 on the diagonal."""
    *batch, n = x.tensor.shape
    shape = (*batch, n, n)
    columns = b.emit(Broadcast(shape), reshaped(b, x, (*batch, 1, n)))
    rows = b.emit(Broadcast(shape), reshaped(b, x, (*batch, n, 1)))
    ones = b.emit(Broadcast(shape), number(b, x, 1))
    gaps = masked(b, ones, Equal(), b.emit(Subtract(), columns, rows))
    return masked(
        b, b.emit(Broadcast(shape), number(b, x, 0)), Equal(), b.emit(Divide(), ones, gaps)
    )


def _squares(b: Emitter, x: Value) -> Value:
    return b.emit(Multiply(), x, x)


def _reciprocals(b: Emitter, x: Value) -> Value:
    return b.emit(Divide(), number(b, x, 1), x)


def _scaled_columns(b: Emitter, x: Value, s: Value) -> Value:
    """x · diag(s)."""
    *batch, n = s.tensor.shape
    return b.emit(Multiply(), x, reshaped(b, s, (*batch, 1, n)))


def _scaled_rows(b: Emitter, s: Value, x: Value) -> Value:
    """diag(s) · x."""
    return b.emit(Multiply(), reshaped(b, s, (*s.tensor.shape, 1)), x)


def _strong_columns(b: Emitter, x: Value, s: Value) -> Value:
    """x · diag(s), with 0 · ∞ = 0."""
    *batch, n = s.tensor.shape
    wide = b.emit(Broadcast(x.tensor.shape), reshaped(b, s, (*batch, 1, n)))
    return b.emit(StrongMultiply(), x, wide)


def _without(b: Emitter, basis: Value, x: Value) -> Value:
    """The part of the columns of x that is orthogonal to the columns of a basis."""
    inside = b.emit(Dot(), basis, b.emit(Dot(), flipped(b, basis), x))
    return b.emit(Subtract(), x, inside)
