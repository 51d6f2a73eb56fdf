"""Contractions: products summed over shared axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from ..errors import RankError, ShapeError
from ..ir.instruction import Emitter, Instruction, Value
from ..types import Array, Shape, TensorType, broadcast_shapes, same_dtype
from .arithmetic import Multiply
from .combinator import Combinator
from .forms import Bilinear, check_kind
from .movement import ShapeCast, Transpose, reshaped
from .nest import Access, Affine, Output, build_nest, coordinate
from .reduction import sum_to_shape

LEAST_PRODUCT: Final = 16 * 1024
"""Multiplications of one product from which a kernel computes it, by tiles: below, a nest is as fast and less code.

A product of two 25 × 25 matrices is just below.
"""

LEAST_MATRIX: Final = 64
"""Elements of a matrix below which it stays in registers, and a row of a product is as soon computed as stored."""


_LARGE: Final = 1 << 20
"""Bytes of a second operand that products pack in any case: the second cache of a core."""


def is_turned_for_products(instruction: Instruction) -> bool:
    """Whether it turns a matrix that only large products read: they read their first operand either way.

    The second one would be packed for each of them, as a large one is in any case.
    """
    if not isinstance(instruction.op, Transpose) or instruction.result.tensor.rank != 2:
        return False
    turned = instruction.result
    return all(
        isinstance(user.op, Dot)
        and (user.operands[1] is not turned or turned.tensor.bytes >= _LARGE)
        and user.operands[1].tensor.rank == 2
        and turned.tensor.size * user.operands[1].tensor.shape[1] >= LEAST_PRODUCT
        for user in turned.uses
    )


class Dot(Bilinear):
    """Matrix product: Σₖ u[…, i, k] · v[…, k, j], as NumPy's `@`.

    Shapes: u (…, m, k), v (…, k, n) → (…, m, n); leading axes broadcast.  A vector counts as one row on
    the left, one column on the right, and that axis is left out.  An empty k gives zeros.
    """

    name: ClassVar[str] = "dot"
    syntax: ClassVar[str] = "dot {u}, {v}"

    def infer(self, u: TensorType, v: TensorType) -> TensorType:
        dtype = same_dtype("multiply", (u, v))
        check_kind("dot", u, ("float", "integer"))
        if not u.rank or not v.rank:
            raise RankError(f"cannot multiply {u.words} by {v.words}: a scalar has no axes")
        inner_u, inner_v = u.shape[-1], v.shape[-2] if v.rank > 1 else v.shape[0]
        if inner_u != inner_v:
            raise ShapeError(
                f"cannot multiply {u.words} by {v.words}: inner dimensions {inner_u} and {inner_v} differ"
            )
        try:
            batch = broadcast_shapes((u.shape[:-2], v.shape[:-2]))
        except ShapeError:
            raise ShapeError(
                f"cannot multiply {u.words} by {v.words}: leading axes {list(u.shape[:-2])} and "
                f"{list(v.shape[:-2])} cannot be broadcast"
            ) from None
        return TensorType((*batch, *_rows(u.shape), *_columns(v.shape)), dtype)

    def evaluate(self, u: Array, v: Array) -> Array:
        with np.errstate(all="ignore"):
            return product(u, v)

    def transpose_rule(
        self, b: Emitter, xs: Sequence[Value], ct: Value
    ) -> tuple[Value | None, Value | None]:
        u, v = xs
        return self._left(b, u, v, ct), self._right(b, u, v, ct)

    def _left(self, b: Emitter, u: Value, v: Value, ct: Value) -> Value:
        """ū = c̄ · vᵀ."""
        if v.tensor.rank == 1:
            column = ct if u.tensor.rank == 1 else _new_axis(b, ct, ct.tensor.rank)
            return b.emit(Multiply(), column, v)
        if u.tensor.rank > 1:
            return sum_to_shape(b, b.emit(Dot(), ct, _flipped(b, v)), u.tensor.shape)
        if v.tensor.rank == 2:
            return b.emit(Dot(), v, ct)
        product = b.emit(Dot(), v, _new_axis(b, ct, ct.tensor.rank))
        return sum_to_shape(b, reshaped(b, product, product.tensor.shape[:-1]), u.tensor.shape)

    def _right(self, b: Emitter, u: Value, v: Value, ct: Value) -> Value:
        """v̄ = uᵀ · c̄; a batch of u against one v is one tall product."""
        if u.tensor.rank == 1:
            if v.tensor.rank == 1:
                return b.emit(Multiply(), u, ct)
            column = b.emit(ShapeCast((*u.tensor.shape, 1)), u)
            return b.emit(Multiply(), column, _new_axis(b, ct, ct.tensor.rank - 1))
        if v.tensor.rank <= 2:
            tall = reshaped(b, u, (math.prod(u.tensor.shape[:-1]), u.tensor.shape[-1]))
            if v.tensor.rank == 1:
                return b.emit(Dot(), reshaped(b, ct, tall.tensor.shape[:1]), tall)
            sides = reshaped(b, ct, (tall.tensor.shape[0], v.tensor.shape[1]))
            return b.emit(Dot(), b.emit(Transpose(), tall), sides)
        return sum_to_shape(b, b.emit(Dot(), _flipped(b, u), ct), v.tensor.shape)

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        """Vectors become matrices, and leading axes are lined up; a batch against one matrix is one tall product."""
        u, v = xs
        ranks = [x.tensor.rank - is_batched for x, is_batched in zip(xs, batched, strict=True)]
        extent = (u if batched[0] else v).tensor.shape[0]
        if batched == (True, False) and ranks[1] <= 2:
            rest = u.tensor.shape[:-1]
            tall = reshaped(b, u, (math.prod(rest), u.tensor.shape[-1]))
            return reshaped(b, b.emit(self, tall, v), (*rest, *_columns(v.tensor.shape)))
        if batched == (False, True) and ranks[1] == 1 and ranks[0] <= 2:
            return b.emit(self, v, u if ranks[0] == 1 else b.emit(Transpose(), u))
        left = _matrix(b, u, batched[0], ranks, 0)
        right = _matrix(b, v, batched[1], ranks, 1)
        found = b.emit(self, left, right)
        batch = found.tensor.shape[1:-2]
        rows = () if ranks[0] == 1 else found.tensor.shape[-2:-1]
        columns = () if ranks[1] == 1 else found.tensor.shape[-1:]
        return reshaped(b, found, (extent, *batch, *rows, *columns))

    def gains_from_batch(self, operands: Sequence[Value], batched: Sequence[bool]) -> bool:
        """Rows times a matrix that does not stay in registers: it is read once for all of them."""
        if all(batched):
            return False
        rows, matrix = operands if batched[0] else reversed(operands)
        is_tall = batched[0] or rows.tensor.rank == 1
        return is_tall and matrix.tensor.rank == 2 and matrix.tensor.size >= LEAST_MATRIX

    def nest(self, b: Emitter, u: Value, v: Value) -> Value:
        """Axes of the box: those of the result, then k."""
        result = self.infer(u.tensor, v.tensor)
        extent, rows = u.tensor.shape[-1], len(_rows(u.tensor.shape))
        columns = len(_columns(v.tensor.shape))
        batch, k = result.rank - rows - columns, coordinate(result.rank)
        point = tuple(coordinate(axis) for axis in range(result.rank))
        row, column = point[batch : batch + rows], point[result.rank - columns :]
        reads = [
            (u, Access((*_batch(u.tensor.shape[:-2], result.shape[:batch]), *row, k))),
            (v, Access((*_batch(v.tensor.shape[:-2], result.shape[:batch]), k, *column))),
        ]
        output = Output(result, point, Combinator.ADD)
        return build_nest(
            b, (*result.shape, extent), reads, [output],
            lambda inner, _, read: [inner.emit(Multiply(), *read)],
        )[0]  # fmt: skip


def product(u: Array, v: Array) -> Array:
    """NumPy's `u @ v`, of floats computed in f64 and rounded once."""
    if u.dtype.kind != "f" or u.itemsize == 8:
        return np.asarray(np.matmul(u, v))
    wide = np.matmul(u.astype(np.float64), v.astype(np.float64))
    return np.asarray(wide).astype(u.dtype)


def _rows(shape: Shape) -> Shape:
    return shape[-2:-1]


def _columns(shape: Shape) -> Shape:
    return shape[-1:] if len(shape) > 1 else ()


def _batch(shape: Shape, batch: Shape) -> tuple[Affine, ...]:
    """Where an operand with the leading axes `shape` is read in the common `batch`."""
    skipped = len(batch) - len(shape)
    return tuple(
        Affine() if extent == 1 != batch[axis + skipped] else coordinate(axis + skipped)
        for axis, extent in enumerate(shape)
    )


def _flipped(b: Emitter, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = x.tensor.rank
    return b.emit(Transpose((*range(rank - 2), rank - 1, rank - 2) if rank > 2 else ()), x)


def _new_axis(b: Emitter, x: Value, axis: int) -> Value:
    shape = x.tensor.shape
    return b.emit(ShapeCast((*shape[:axis], 1, *shape[axis:])), x)


def _matrix(b: Emitter, x: Value, is_batched: bool, ranks: Sequence[int], position: int) -> Value:
    """An operand of a batch's product as matrices, of which both have as many leading axes.

    `ranks` are those of one element's operands; one that is not batched broadcasts.
    """
    rank, axes = ranks[position], max(2, *ranks) - 2
    shape = x.tensor.shape
    lead, own = (shape[:1], shape[1:]) if is_batched else ((), shape)
    if rank == 1:
        own = (*own, 1) if position else (1, *own)
    ones = (1,) * (axes + 2 - len(own)) if is_batched else ()
    return reshaped(b, x, (*lead, *ones, *own))
