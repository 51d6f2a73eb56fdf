"""The ops of stage compute besides nests: matrix products with their transpositions folded in, calls of addresses."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..errors import ShapeError
from ..ir.effect import Effect
from ..ir.instruction import Emitter, Op, Pure, Value
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Multiply
from ..ops.byte_memory import ADDRESS
from ..ops.combinator import Combinator
from ..ops.contraction import product
from ..ops.nest import Access, Affine, Output, build_nest, coordinate
from ..stage import Stage, Stages
from ..types import (
    Array,
    FunctionType,
    Shape,
    TensorType,
    Type,
    broadcast_shapes,
    same_dtype,
)


@dataclass(frozen=True)
class MatrixProduct(Pure):
    """C = op(A) · op(B), batched over leading axes, which broadcast; op transposes the last two axes.

    `Dot` becomes this where tiles pay (`compute.generate`): operands always have rank 2 or more, and
    a transposed operand costs nothing.

    Long sums are divided: with `parts`, each sums the next `length` of the k products, the first one from product
    `first` on, and is a matrix of its own, to be added up by others.  Without, `length` are summed, or all if it is 0.

    Shapes: a (…, m, k) or its transpose, b (…, k, n) or its transpose → (…, m, n), or (parts, …, m, n).
    """

    name: ClassVar[str] = "matrixProduct"
    syntax: ClassVar[str] = (
        "matrixProduct {a}, {b} [transposed {transpose_a}, {transpose_b}]"
        " [from {first}] [of {length}] [parts {parts}]"
    )
    stages: ClassVar[Stages] = frozenset({Stage.COMPUTE})
    transpose_a: bool = False
    transpose_b: bool = False
    first: int = 0
    length: int = 0
    parts: int = 0

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        shape = product_shape(a.shape, b.shape, self.transpose_a, self.transpose_b)
        dtype, k = same_dtype("multiply", (a, b)), flipped(a.shape, self.transpose_a)[-1]
        first, length, parts = self.first, self.length, self.parts
        if min(first, length, parts) < 0 or (parts and not length):
            raise ShapeError(f"there are no {parts} parts of {length} products from {first} on")
        end = first + (length * max(parts, 1) or k - first)
        if max(first, end) > k:
            raise ShapeError(f"of {k} products those from {first} upto {end} are not summed")
        return TensorType((self.parts, *shape) if self.parts else shape, dtype)

    @property
    def is_whole(self) -> bool:
        """Whether all products are summed, in one part."""
        return not (self.first or self.length or self.parts)

    def summed(self, a: TensorType) -> int:
        """How many products each element is the sum of."""
        return self.length or flipped(a.shape, self.transpose_a)[-1] - self.first

    def evaluate(self, a: Array, b: Array) -> Array:
        left = a.swapaxes(-1, -2) if self.transpose_a else a
        right = b.swapaxes(-1, -2) if self.transpose_b else b
        length = self.length or left.shape[-1] - self.first
        starts = [self.first + part * length for part in range(max(self.parts, 1))]
        found = [
            product(left[..., start : start + length], right[..., start : start + length, :])
            for start in starts
        ]
        return np.stack(found) if self.parts else found[0]

    def nest(self, b: Emitter, x: Value, y: Value) -> Value:
        """The product as a nest over (…, m, n, k), or (…, m, k, n) of a row times a matrix that is stored by rows."""
        result = self.infer(x.tensor, y.tensor)
        rank = len(result.shape)
        inner = self.summed(x.tensor)
        by_rows = result.shape[-2] == 1 and not self.transpose_b
        row, (summed, column) = rank - 2, (rank - 1, rank) if by_rows else (rank, rank - 1)
        place = coordinate(summed) + self.first
        if self.parts:
            place = place + coordinate(0) * inner
        kept = coordinate(row), coordinate(column)
        reads = [
            (x, _access(x.tensor.shape, rank, (kept[0], place), self.transpose_a)),
            (y, _access(y.tensor.shape, rank, (place, kept[1]), self.transpose_b)),
        ]
        last = (inner, result.shape[-1]) if by_rows else (result.shape[-1], inner)
        output = Output(
            result, (*map(coordinate, range(rank - 1)), coordinate(column)), Combinator.ADD
        )
        return build_nest(
            b,
            (*result.shape[:-1], *last),
            reads,
            [output],
            lambda body, _, scalars: [body.emit(Multiply(), *scalars)],
        )[0]


@dataclass(frozen=True)
class CallAddress(Op):
    """A call of the function at an address: `apply`, where only the running program knows which."""

    name: ClassVar[str] = "callAddress"
    syntax: ClassVar[str] = "callAddress {function} [of {arguments*}] as {type}"
    stages: ClassVar[Stages] = frozenset(Stage)
    takes_any: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.CALL
    type: FunctionType

    def infer(self, function: Type, *arguments: Type) -> tuple[Type, ...]:
        if function != ADDRESS:
            raise ShapeError(f"callAddress takes the address of a function, not a {function}")
        if arguments != self.type.parameters:
            raise ShapeError(f"a {self.type} does not take ({', '.join(map(str, arguments))})")
        return self.type.results


def product_shape(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool) -> Shape:
    """Shape of the product.  Raises: ShapeError when the inner extents differ or a rank is below 2."""
    if len(a) < 2 or len(b) < 2:
        raise ShapeError(f"a matrix product takes matrices, not shapes {list(a)} and {list(b)}")
    *batch_a, m, k = flipped(a, transpose_a)
    *batch_b, inner, n = flipped(b, transpose_b)
    if k != inner:
        raise ShapeError(f"a matrix product needs equal inner dimensions, {k} and {inner} differ")
    return (*broadcast_shapes([tuple(batch_a), tuple(batch_b)]), m, n)


def flipped(shape: Shape, transposed: bool) -> Shape:
    """`shape` with its last two extents exchanged if `transposed`."""
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _access(shape: Shape, rank: int, matrix: tuple[Affine, Affine], transposed: bool) -> Access:
    """Reads a row and a column of a matrix stored as `shape`, its batch axes broadcast to those of a result."""
    skipped = rank - len(shape)
    batch = [
        Affine() if extent == 1 else coordinate(axis + skipped)
        for axis, extent in enumerate(shape[:-2])
    ]
    return Access((*batch, *(matrix[::-1] if transposed else matrix)))
