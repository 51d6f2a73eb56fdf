"""What the writer of rows knows while it is at a row: indices, what has been computed, and where rows lie."""

from __future__ import annotations

from dataclasses import field

from ..compute.bodies import base_of
from ..ir.instruction import Value
from ..lazy_dataclass import dataclass
from ..ops.literal import Literal, splat_literal
from ..ops.nest import Affine, coordinate
from ..types import Shape, scalar
from .build import KernelBuilder
from .indices import IndexSum
from .row_nests import RowNest


@dataclass(frozen=True)
class Rows:
    """Where a row lies: in a buffer, behind the indices of rows if it has all of them, else behind those in `first`."""

    buffer: Value
    shape: Shape
    is_whole: bool
    first: tuple[IndexSum, ...] = ()


@dataclass(frozen=True)
class RowElement:
    """An element of a row in a buffer: the last indices are in the coordinates of a nest."""

    buffer: Value
    first: tuple[IndexSum, ...]
    indices: tuple[Affine, ...]


@dataclass
class RowWriter:
    """Writes what is done at a row."""

    build: KernelBuilder
    vector_bytes: int
    has_fma: bool
    buffers: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Of the operands."""
    indices: list[IndexSum] = field(default_factory=list[IndexSum])
    """Of the row."""
    scalars: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """What has one element per row, and has been computed."""
    rows: dict[Value, Rows] = field(default_factory=dict[Value, Rows])
    """Where results with rows lie."""

    def at(self, index: Affine, inside: IndexSum | None = None) -> IndexSum:
        """An index of a nest, at the row, and at an element of it."""
        found = IndexSum(index.constant, {})
        for axis, coefficient in index.terms:
            if axis < len(self.indices):
                found = found.plus(self.indices[axis], coefficient)
            elif inside is not None:
                found = found.plus(inside, coefficient)
        return found

    def indices_at(self, element: RowElement, inside: IndexSum | None = None) -> list[IndexSum]:
        """Where an element lies, at the row, and at an element of it."""
        return [*element.first, *(self.at(index, inside) for index in element.indices)]

    def location(self, one: RowNest, number: int) -> RowElement:
        """Where an operand is read."""
        operand = one.nest.operands[number]
        rows = self.rows.get(base_of(operand))
        if rows is None:
            shape = operand.tensor.shape
            return RowElement(self.buffers[operand], (), one.indices_into(number, shape))
        if rows.is_whole:
            return RowElement(rows.buffer, (), one.indices_into(number, rows.shape))
        position = one.reads_each_row(number)
        assert position is not None
        return RowElement(rows.buffer, rows.first, (position,))

    def target(self, one: RowNest, number: int) -> RowElement | None:
        """Where a result with rows is written; None if it lies in registers only."""
        rows = self.rows.get(one.nest.results[number])
        if rows is None or not one.has_rows(number):
            return None
        if rows.is_whole:
            return RowElement(rows.buffer, (), one.written_into(number, rows.shape))
        return RowElement(rows.buffer, rows.first, (coordinate(one.rank),))

    def store(self, one: RowNest, number: int, value: Value) -> None:
        """What a nest gives for a row, as a number: known, and stored if it is an output."""
        result = one.nest.results[number]
        self.scalars[result] = value
        rows = self.rows.get(result)
        if rows is not None:
            at = [self.at(index) for index in one.written_into(number, rows.shape)]
            self.build.store(value, rows.buffer, *at)

    def read_scalar(self, one: RowNest, number: int) -> Value:
        """An operand that is the same for all of a row."""
        operand = one.nest.operands[number]
        known = self.scalars.get(base_of(operand))
        if known is not None:
            return known
        literal = splat_literal(base_of(operand))
        if literal is not None:
            return self.build.emit(Literal(scalar(literal.type.dtype), literal.data))
        element = self.location(one, number)
        return self.build.load(element.buffer, *self.indices_at(element))

    def write_scalars(self, one: RowNest) -> None:
        """A nest that has one element per row."""
        body = one.nest.regions[0].entry
        values: dict[Value, Value] = {}
        for axis in range(one.rank):
            if body.arguments[axis].uses:
                values[body.arguments[axis]] = self.build.index_value(self.indices[axis])
        for number, argument in enumerate(body.arguments[one.rank :]):
            values[argument] = self.read_scalar(one, number)
        for instruction in body.instructions[:-1]:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction.result] = self.build.emit(instruction.op, *operands)
        for number, value in enumerate(body.terminator.operands):
            self.store(one, number, values[value])
