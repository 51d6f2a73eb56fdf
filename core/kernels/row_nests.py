"""Nests over rows: which nests can be computed row by row in a kernel, and where their rows lie.

A nest has a *form by rows* if its outer axes are the rows, there is at most one more axis, the elements of a row, and
each result has one element per point, or one per row, of which reductions join those of the row.  The row that it
writes is then a run of neighbouring elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from ..compute.address import address, delinearize
from ..compute.bodies import base_of
from ..ir.instruction import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat_literal
from ..ops.nest import Access, Affine, Bounds, Loaded, Nest, Output, coordinate, is_nest
from ..types import F32, Shape
from .bodies import stands_in_kernels
from .errors import IllegalRewrite


@dataclass(frozen=True, eq=False)
class RowNest:
    """A nest in its form by rows: the first `rank` axes are the rows, and `length` the elements of one, 0 for none.

    Raises: IllegalRewrite when it has none.
    """

    nest: Instruction[Nest]
    rank: int

    def __post_init__(self) -> None:
        for reason in self._reasons():
            raise IllegalRewrite(reason)

    @property
    def extents(self) -> Shape:
        return self.nest.op.extents

    @property
    def rows(self) -> Shape:
        return self.extents[: self.rank]

    @property
    def length(self) -> int:
        return self.extents[self.rank] if len(self.extents) > self.rank else 0

    def is_reduced(self, number: int) -> bool:
        """Whether a result joins the elements of a row."""
        return self.nest.op.outputs[number].combinator is not None

    def has_rows(self, number: int) -> bool:
        """Whether a result has rows of elements, and not one element per row."""
        return bool(self.length) and not self.is_reduced(number)

    def reads_each_row(self, number: int) -> Affine | None:
        """Where in a row an operand is read, if it has a row for each row, in order, of which only that is read."""
        return self._positions[number]

    def is_at_point(self, number: int) -> bool:
        """Whether an operand has an element for each point, in order, and is read at the point."""
        position = self._positions[number]
        return (
            position is not None
            and self.nest.operands[number].tensor.size == self.nest.op.points
            and (self.length < 2 or position == coordinate(self.rank))
        )

    @cached_property
    def _positions(self) -> tuple[Affine | None, ...]:
        return tuple(map(self._position, range(len(self.nest.op.accesses))))

    def _position(self, number: int) -> Affine | None:
        operand, access = self.nest.operands[number].tensor, self.nest.op.accesses[number]
        count = math.prod(self.rows)
        if operand.size % count:
            return None
        where = address(self.extents, operand, access.indices, access.bounds)
        if where is None:
            return None
        size = operand.size // count
        position = where + _first_of_row(self.rows, size) * -1
        if any(axis != self.rank for axis, _ in position.terms):
            return None
        low, high = position.bounds(self.extents)
        return position if low >= 0 and high < size else None

    def indices_into(self, number: int, shape: Shape) -> tuple[Affine, ...]:
        """Where an operand is read, as indices into what it views, a tensor of this shape."""
        operand, access = self.nest.operands[number].tensor, self.nest.op.accesses[number]
        affine = tuple(index for index in access.indices if isinstance(index, Affine))
        if operand.shape == shape:
            return affine
        where = address(self.extents, operand, affine, access.bounds)
        found = None if where is None else delinearize(where, shape, self.extents)
        if found is None:
            raise IllegalRewrite(f"an operand of shape {shape} is read at no affine index")
        return found

    def written_into(self, number: int, shape: Shape) -> tuple[Affine, ...]:
        """Where a result is written, as indices into a tensor of this shape."""
        written = self.nest.op.outputs[number]
        if written.type.shape == shape:
            return tuple(index for index in written.indices if isinstance(index, Affine))
        where = address(self.extents, written.type, written.indices, written.bounds)
        found = None if where is None else delinearize(where, shape, self.extents)
        if found is None:
            raise IllegalRewrite(f"a result is written at no affine index of a shape {shape}")
        return found

    def _reasons(self) -> Iterator[str]:
        op = self.nest.op
        if not self.rank <= len(op.extents) <= self.rank + 1:
            yield f"a nest of {len(op.extents)} axes does not go through rows of {self.rank}"
        if 0 in op.extents:
            yield "a nest without points"
        for instruction in self.nest.regions[0].entry.instructions[:-1]:
            if not stands_in_kernels(instruction.op):
                yield f"{instruction.op.name} stands in the body"
            if any(_is_narrow(value) for value in instruction.results):
                yield "floats narrower than f32"
        if any(map(_is_narrow, (*self.nest.operands, *self.nest.results))):
            yield "floats narrower than f32"
        for access in op.accesses:
            if access.bounds is not Bounds.INSIDE or not _is_affine(access):
                yield f"it reads at {access}"
        for written in op.outputs:
            if not self._is_written_by_rows(written):
                yield f"it writes {written}"

    def _is_written_by_rows(self, written: Output) -> bool:
        if (written.bounds, written.init, written.within) != (Bounds.INSIDE, None, None):
            return False
        extents, own = self.extents, self.extents
        if written.combinator is not None:
            if not self.length:
                return False
            own = self.rows
        where = address(extents, written.type, written.indices, written.bounds)
        row = _first_of_row(own, 1)
        whole = Affine(0, tuple(term for term in row.terms if extents[term[0]] != 1))
        return written.type.size == math.prod(own) and where == whole


def row_nest(instruction: Instruction, rank: int) -> RowNest | None:
    """The form by rows of an instruction; None when it has none."""
    if not is_nest(instruction) or not 0 <= len(instruction.op.extents) - rank <= 1:
        return None
    try:
        return RowNest(instruction, rank)
    except IllegalRewrite:
        return None


def is_constant(operand: Value) -> bool:
    """Whether an operand is one number, wherever it is read."""
    return operand.tensor.size > 0 and splat_literal(base_of(operand)) is not None


def _first_of_row(rows: Shape, size: int) -> Affine:
    """The position of the first element of a row, if each has so many."""
    position = Affine()
    for axis in reversed(range(len(rows))):
        if rows[axis] != 1:
            position = position + coordinate(axis) * size
        size *= rows[axis]
    return position


def _is_affine(access: Access) -> bool:
    return not any(isinstance(index, Loaded) for index in access.indices)


def _is_narrow(value: Value) -> bool:
    dtype = value.tensor.dtype
    return dtype.is_float and dtype.bits < F32.bits
