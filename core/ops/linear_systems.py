"""Systems of linear equations: their solutions, and the factors and determinants of their matrices.

Right-hand sides and solutions are rows: the LAPACK has matrices column by column, and what is a column to it is a row
here, so that nothing is transposed.

Source: Giles 2008, "An extended collection of matrix derivative results"; Murray 2016, "Differentiation of the
Cholesky decomposition".
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..errors import ShapeError
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..types import Array, TensorType
from .arithmetic import Multiply, Negate, Subtract
from .combinator import Combinator
from .contraction import Dot
from .formulas import number
from .matrix_form import (
    MatrixFunction,
    flipped,
    halved_diagonal,
    identity,
    lower,
    of_lower,
    to_lower,
)
from .movement import reshaped
from .reduction import Broadcast, Reduce
from .slicing import Pad, Slice


class LinearSystem(MatrixFunction):
    """The rows x with M x = b for each row b, or with Mᵀ x = b, of a matrix M that is a or a part of it.

    Shapes: a (…, n, n), rows (…, k, n) → (…, k, n).
    """

    transposed: bool

    def infer(self, a: TensorType, rows: TensorType) -> TensorType:
        self.check(a, rows)
        check_sides(self, a, rows)
        return rows

    @abc.abstractmethod
    def change(self, b: Emitter, x: Value) -> Value:
        """What of x, a change of a, changes the matrix of the system."""

    @abc.abstractmethod
    def flipped(self) -> LinearSystem:
        """The system of the transposed matrix."""

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (a, _), (da, drows) = ys, xs, dxs
        if da is not None:
            change = self.change(b, da)
            moved = b.emit(Dot(), y, change if self.transposed else flipped(b, change))
            drows = b.emit(Negate(), moved) if drows is None else b.emit(Subtract(), drows, moved)
        return (None,) if drows is None else (b.emit(self, a, drows),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        (y,), (a, _), (ct,) = ys, xs, cts
        if ct is None:
            return None, None
        rows = b.emit(self.flipped(), a, ct)
        return self.change(b, _outer(b, rows, y, self.transposed)), rows


@dataclass(frozen=True)
class Solve(LinearSystem):
    """The rows x with A x = b for each row b, or with Aᵀ x = b; NaN where A is singular to working precision.

    Shapes: a (…, n, n), rows (…, k, n) → (…, k, n).
    """

    name: ClassVar[str] = "solve"
    syntax: ClassVar[str] = "solve {a} for {rows} [transposed {transposed}]"
    transposed: bool = False

    def of_one(self, *matrices: Array) -> Array:
        a, rows = matrices
        return np.asarray(np.linalg.solve(a.T if self.transposed else a, rows.T)).T

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        n = a.shape[-1]
        return (n * n, False), (n, True)

    def operations(self, a: TensorType) -> int:
        return int(a.shape[-1] ** 3 * 2 / 3)

    def change(self, b: Emitter, x: Value) -> Value:
        return x

    def flipped(self) -> Solve:
        return replace(self, transposed=not self.transposed)


@dataclass(frozen=True)
class TriangularSolve(LinearSystem):
    """The rows x with T x = b, or Tᵀ x = b, of which T is the lower or upper triangle of a.

    With `unit` its diagonal is taken for ones.  NaN where there is a zero in the diagonal.
    Shapes: a (…, n, n), rows (…, k, n) → (…, k, n).
    """

    name: ClassVar[str] = "triangularSolve"
    syntax: ClassVar[str] = (
        "triangularSolve {a} for {rows} [upper {upper}] [transposed {transposed}] [unit {unit}]"
    )
    upper: bool = False
    transposed: bool = False
    unit: bool = False

    def of_one(self, *matrices: Array) -> Array:
        a, rows = matrices
        triangle = np.triu(a) if self.upper else np.tril(a)
        if self.unit:
            np.fill_diagonal(triangle, 1)
        return np.asarray(np.linalg.solve(triangle.T if self.transposed else triangle, rows.T)).T

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        return ()

    def operations(self, a: TensorType) -> int:
        return 0

    def change(self, b: Emitter, x: Value) -> Value:
        if not self.upper:
            return lower(b, x, strict=self.unit)
        return flipped(b, lower(b, flipped(b, x), strict=self.unit))

    def flipped(self) -> TriangularSolve:
        return replace(self, transposed=not self.transposed)


@dataclass(frozen=True)
class Cholesky(MatrixFunction):
    """L with L · Lᵀ = A, lower triangular with a positive diagonal, of the lower triangle of a symmetric A.

    What lies above the diagonal of A is not read, and has derivative 0.  NaN where A is not positive definite.
    Shapes: a (…, n, n) → (…, n, n).
    """

    name: ClassVar[str] = "cholesky"
    syntax: ClassVar[str] = "cholesky {a}"

    def infer(self, a: TensorType) -> TensorType:
        self.check(a)
        self.check_square(a)
        return a

    def of_one(self, *matrices: Array) -> Array:
        (a,) = matrices
        return np.asarray(np.linalg.cholesky(a))

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        return ()

    def operations(self, a: TensorType) -> int:
        return int(a.shape[-1] ** 3 / 3)

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """L̇ = L Φ(L⁻¹ Ȧ L⁻ᵀ)."""
        (y,), (da,) = ys, dxs
        if da is None:
            return (None,)
        left = flipped(b, b.emit(TriangularSolve(), y, of_lower(b, da)))
        return (b.emit(Dot(), y, halved_diagonal(b, b.emit(TriangularSolve(), y, left))),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Ā = L⁻ᵀ Φ(Lᵀ L̄) L⁻¹, folded into the lower triangle."""
        (y,), (ct,) = ys, cts
        if ct is None:
            return (None,)
        inner = halved_diagonal(b, b.emit(Dot(), flipped(b, y), ct))
        back = TriangularSolve(transposed=True)
        right = b.emit(back, y, inner)
        return (to_lower(b, b.emit(back, y, flipped(b, right))),)


@dataclass(frozen=True)
class LogDeterminant(MatrixFunction):
    """The sign of the determinant of a, and the logarithm of its magnitude: 0 and −∞ where a is singular.

    Shapes: a (…, n, n) → (…, 2).
    """

    name: ClassVar[str] = "logDeterminant"
    syntax: ClassVar[str] = "logDeterminant {a}"

    def infer(self, a: TensorType) -> TensorType:
        batch = self.check(a)
        self.check_square(a)
        return TensorType((*batch, 2), a.dtype)

    def of_one(self, *matrices: Array) -> Array:
        (a,) = matrices
        sign, log = np.linalg.slogdet(a)
        return np.array([sign, log], a.dtype)

    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        n = a.shape[-1]
        return (n * n, False), (n, True)

    def operations(self, a: TensorType) -> int:
        return int(a.shape[-1] ** 3 * 2 / 3)

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """tr(A⁻¹ Ȧ), behind a zero."""
        (a,), (da,) = xs, dxs
        if da is None:
            return (None,)
        shape = a.tensor.shape
        inverse = b.emit(Solve(), a, identity(b, a))  # as rows: its transpose
        rank = len(shape)
        products = b.emit(Multiply(), inverse, da)
        trace = b.emit(Reduce(Combinator.ADD, (rank - 2, rank - 1)), products)
        column = reshaped(b, trace, (*shape[:-2], 1))
        low = (*(0 for _ in shape[:-2]), 1)
        return (b.emit(Pad(low, (0,) * (rank - 1)), column, number(b, a, 0)),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """A⁻ᵀ times the cotangent of the logarithm."""
        (a,), (ct,) = xs, cts
        if ct is None:
            return (None,)
        shape = a.tensor.shape
        start = (*(0 for _ in shape[:-2]), 1)
        column = reshaped(b, b.emit(Slice(start, (*shape[:-2], 2)), ct), (*shape[:-2], 1, 1))
        scaled = b.emit(Multiply(), identity(b, a), b.emit(Broadcast(shape), column))
        return (b.emit(Solve(), a, scaled),)


def check_sides(op: MatrixFunction, a: TensorType, rows: TensorType) -> None:
    """Raises: ShapeError when a is not square, or the rows are not as long as it."""
    n = op.check_square(a)
    if rows.shape[-1] != n:
        raise ShapeError(
            f"{op.name}: right-hand sides of {rows.shape[-1]} elements do not fit {a.words}"
        )


def _outer(b: Emitter, rows: Value, solutions: Value, transposed: bool) -> Value:
    """−Σ b̄ xᵀ, or its transpose: the cotangent of the matrix."""
    left, right = (solutions, rows) if transposed else (rows, solutions)
    return b.emit(Negate(), b.emit(Dot(), flipped(b, left), right))
