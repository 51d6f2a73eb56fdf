"""The form of functions of matrices that the LAPACK computes, and what their rules are made of.

The last two axes are those of a matrix; before them there may be any number of others, over which the function is
mapped.  A matrix with an element that is not finite, one that is singular where it must not be, and one for which the
LAPACK does not converge, have a result whose elements are all NaN; other matrices of the batch have theirs.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from ..errors import DTypeError, RankError, ShapeError
from ..ir.instruction import Emitter, Instruction, Pure, Value
from ..stage import Stage, Stages
from ..types import F32, F64, I64, Array, Shape, TensorType, same_dtype
from .arithmetic import Add, Multiply
from .combinator import Combinator
from .comparison import Equal, GreaterThan, GreaterThanOrEqual, Select
from .formulas import number
from .indexing import Iota
from .movement import Transpose, reshaped
from .reduction import Broadcast, Reduce

_NANOSECONDS: Final = 0.1
"""Of an operation in f32 by the LAPACK on one core: 10 GF/s, more than small ones reach and less than large ones."""

_INTEGER: Final = 8
"""Bytes of an integer of the LAPACK, at most."""

BLOCK: Final = 64
"""Columns for which a blocked routine of the LAPACK has workspace."""


class MatrixFunction(Pure):
    """A function of matrices that stays one call of the LAPACK for each of them, from staging to code."""

    stages: ClassVar[Stages] = frozenset(Stage)
    calls_lapack: ClassVar[bool] = True

    @abc.abstractmethod
    def of_one(self, *matrices: Array) -> Array:
        """The function of matrices without further axes, by NumPy.

        Raises: LinAlgError for what has the result NaN.
        """

    @abc.abstractmethod
    def workspace(self, a: TensorType) -> tuple[tuple[int, bool], ...]:
        """The scratch buffers for one matrix: how many elements, and whether these are the LAPACK's integers."""

    @abc.abstractmethod
    def operations(self, a: TensorType) -> int:
        """About how many operations on elements one matrix takes, right-hand sides aside."""

    def check(self, *xs: TensorType) -> Shape:
        """The leading axes, which are the same for all operands.

        Raises: RankError, ShapeError, DTypeError when these are no matrices of one float type that the LAPACK has.
        """
        dtype = same_dtype(self.name, xs)
        if dtype not in (F32, F64):
            raise DTypeError(f"{self.name} takes matrices of f32 or f64, not {xs[0].words}")
        for x in xs:
            if x.rank < 2:
                raise RankError(f"{self.name} takes matrices, not {x.words}")
        batch = xs[0].shape[:-2]
        for x in xs[1:]:
            if x.shape[:-2] != batch:
                raise ShapeError(
                    f"{self.name}: leading axes {list(batch)} and {list(x.shape[:-2])} differ"
                )
        return batch

    def check_square(self, a: TensorType) -> int:
        """How many rows and columns it has.  Raises: ShapeError when these differ."""
        rows, columns = a.shape[-2:]
        if rows != columns:
            raise ShapeError(f"{self.name} takes square matrices, not {a.words}")
        return rows

    def evaluate(self, *xs: Array) -> Array:
        types = [TensorType(x.shape, F32 if x.itemsize == 4 else F64) for x in xs]
        result = self.infer(*types)
        assert isinstance(result, TensorType)
        batch = xs[0].shape[:-2]
        found = np.full(result.shape, np.nan, xs[0].dtype)
        for index in np.ndindex(batch):
            if np.isfinite(xs[0][index]).all():
                try:
                    with np.errstate(all="ignore"):
                        found[index] = self.of_one(*(x[index] for x in xs))
                except np.linalg.LinAlgError:
                    pass  # it stays NaN
        return found

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        return b.emit(self, *xs)

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        return [True] * len(batched)

    def scratch(self, instruction: Instruction) -> tuple[int, ...]:
        type = instruction.operands[0].tensor
        sizes = self.workspace(type)
        return tuple(count * (_INTEGER if is_int else type.dtype.bytes) for count, is_int in sizes)

    def flops(self, instruction: Instruction) -> int:
        a = instruction.operands[0].tensor
        matrices = int(np.prod(a.shape[:-2]))
        sides = instruction.operands[1:]
        return matrices * self.operations(a) + sum(
            2 * side.tensor.size * a.shape[-1] for side in sides
        )

    def nanoseconds(self, instruction: Instruction) -> float:
        wide = instruction.result.tensor.dtype.bytes / F32.bytes
        return _NANOSECONDS * wide * self.flops(instruction)


def flipped(b: Emitter, x: Value) -> Value:
    """The matrices transposed."""
    rank = x.tensor.rank
    return b.emit(Transpose((*range(rank - 2), rank - 1, rank - 2)), x)


def lower(b: Emitter, x: Value, *, strict: bool = False) -> Value:
    """The matrices with zeros above the diagonal, or from it on."""
    return masked(b, x, GreaterThan() if strict else GreaterThanOrEqual())


def masked(
    b: Emitter, x: Value, op: GreaterThan | GreaterThanOrEqual | Equal, other: Value | None = None
) -> Value:
    """The elements of x where `op` holds between their row and column, elsewhere those of `other`, or zeros."""
    shape = x.tensor.shape[-2:]
    rows, columns = (b.emit(Iota(shape, axis, I64)) for axis in (0, 1))
    holds = b.emit(op, rows, columns)
    return b.emit(Select(), x, number(b, x, 0) if other is None else other, holds)


def halved_diagonal(b: Emitter, x: Value) -> Value:
    """The lower triangle with half of the diagonal: Φ."""
    half = masked(b, b.emit(Multiply(), x, number(b, x, 0.5)), Equal(), x)
    return lower(b, half)


def of_lower(b: Emitter, x: Value) -> Value:
    """The symmetric matrices whose lower triangle x has."""
    return b.emit(Add(), lower(b, x), flipped(b, lower(b, x, strict=True)))


def to_lower(b: Emitter, x: Value) -> Value:
    """The transpose of `of_lower`: elements above the diagonal are added to those below it."""
    both = masked(b, x, Equal(), b.emit(Add(), x, flipped(b, x)))
    return lower(b, both)


def identity(b: Emitter, x: Value) -> Value:
    """The identity in the shape of the square matrices x."""
    return identity_of(b, x, x.tensor.shape)


def identity_of(b: Emitter, x: Value, shape: Shape) -> Value:
    """The identity in the element type of x, as matrices of this shape."""
    ones = b.emit(Broadcast(shape), number(b, x, 1))
    return masked(b, ones, Equal())


def each_diagonal(b: Emitter, x: Value) -> Value:
    """The matrices (…, n, n) with the vectors (…, n) as diagonals."""
    from_rows = b.emit(
        Broadcast((*x.tensor.shape, x.tensor.shape[-1])), reshaped(b, x, (*x.tensor.shape, 1))
    )
    return masked(b, from_rows, Equal())


def diagonal(b: Emitter, x: Value) -> Value:
    """The diagonals (…, n) of square matrices."""
    rank = x.tensor.rank
    return b.emit(Reduce(Combinator.ADD, (rank - 1,)), masked(b, x, Equal()))
