"""Totals that a nest keeps in memory, where a loop that is reduced runs outside of one that is kept.

A sum of floats is a pair: what was summed, and what rounding has cut off.  What is added up within a block of rows, and
then folded into that, has a buffer of its own.

Where threads share the reduced loop, each *part* of it has totals of its own, the rows of larger buffers, and these are
joined behind the loop in the order of the parts:

    using <8 x 512 x f32>, <8 x 512 x f32>
    loop from 0 upto 8 by 1 parallel 1 { 0 to row …; for rows of the part, for columns: add to row … }
    loop from 1 upto 8 by 1 { for columns: add this row to row 0 }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

from ..ir import Value
from ..kernels.buffer_sums import AxisSpan, correct_sums, element_vectors, fold_sums
from ..kernels.build import KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.pairs import add_compensated, corrected
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.reduction import Broadcast
from ..types import TensorType
from .combining import identity_of, joined
from .ops import Loops, compensated_outputs, is_folded

_FIRST: Final = IndexSum(0, {})


class MemoryTotal(NamedTuple):
    """The buffers of a total: what points are joined with, and of a sum the pair, whose first may be that."""

    base: Value
    total: Value
    rest: Value | None

    @property
    def buffers(self) -> tuple[Value, ...]:
        """Each once."""
        return tuple(dict.fromkeys(x for x in self if x is not None))


@dataclass
class MemoryTotals:
    """Writes the totals of one nest; `result` gives the buffer of an output."""

    build: KernelBuilder
    op: Loops
    result: Callable[[int], Value]
    totals: dict[int, MemoryTotal] = field(default_factory=lambda: dict[int, MemoryTotal]())
    """By the number of the output."""
    shared: Sequence[int] = ()
    """The outputs whose totals parts of the outermost loop have of their own."""
    parts: int = 0
    """How many parts there are."""
    part: IndexSum = _FIRST
    """The one that is being written."""

    def share(self, outputs: Sequence[int], parts: int) -> None:
        """Before `begin`: have so many parts of the outermost loop have totals of their own of these outputs."""
        self.shared, self.parts = outputs, parts

    def begin(self) -> None:
        """Make the buffers."""
        sums = compensated_outputs(self.op)
        folds = is_folded(self.op.order, self.op.blocks)
        for number in dict.fromkeys((*sums, *self.shared)):
            type, result = self.op.outputs[number].type, self.result(number)
            is_shared = number in self.shared
            if is_shared:
                type = type.with_shape((self.parts, *type.shape))
            base = self.build.scratch(type) if is_shared else result
            total = self.build.scratch(type) if folds and number in sums else base
            rest = self.build.scratch(type) if number in sums else None
            self.totals[number] = MemoryTotal(base, total, rest)
            if not is_shared:
                for buffer in self.totals[number].buffers:
                    if buffer is not result:
                        self.build.fill(buffer, self.build.constant(type.dtype, 0))

    def enter(self, part: IndexSum) -> None:
        """Begin a part of the loop: nothing is joined there yet."""
        self.part = part
        for number in self.shared:
            written, total = self.op.outputs[number], self.totals[number]
            dtype = written.type.dtype
            nothing = self.build.constant(dtype, identity_of(written.combinator, dtype))
            box = self._box(number, _whole(written.type))
            for vector in element_vectors(self.build, dtype, box):
                value = nothing
                if vector.lanes:
                    value = self.build.emit(Broadcast((vector.lanes,)), nothing)
                for buffer in total.buffers:
                    vector.store(value, buffer)

    def place(
        self, number: int, at: tuple[IndexSum, ...], steps: tuple[int, ...]
    ) -> tuple[tuple[IndexSum, ...], tuple[int, ...]]:
        """Where an element of an output is in the buffers of its total, and how far it is from lane to lane."""
        if number not in self.shared:
            return at, steps
        return (self.part, *at), (0, *steps) if steps else ()

    def _box(self, number: int, box: list[AxisSpan]) -> list[AxisSpan]:
        """Elements of an output in the buffers of its total."""
        return [AxisSpan(self.part, 1), *box] if number in self.shared else box

    def fold(self, box: Callable[[int], list[AxisSpan]]) -> None:
        """Add what a block of rows came to, in the elements that `box` gives for an output."""
        for number, (base, total, rest) in self.totals.items():
            if base is not total:
                assert rest is not None
                dtype = self.op.outputs[number].type.dtype
                fold_sums(self.build, dtype, self._box(number, box(number)), base, total, rest)

    def end(self) -> None:
        """Write the results: sums with what rounding had cut off from them, and what all parts came to."""
        for number, (_, total, rest) in self.totals.items():
            if number in self.shared:
                self._join(number)
            elif rest is not None:
                type = self.op.outputs[number].type
                correct_sums(self.build, type, self.result(number), total, rest)

    def _join(self, number: int) -> None:
        """Join what the parts of a total came to, in their order, to the first of them, and write the result.

        It goes by rows, as what a sum is joined with next waits for it.
        """
        written, (_, total, rest) = self.op.outputs[number], self.totals[number]
        assert written.combinator is not None
        dtype, box = written.type.dtype, _whole(written.type)
        buffers = [total] if rest is None else [total, rest]
        with self.build.loop(self.parts, lower=1) as loop:
            for vector in element_vectors(self.build, dtype, box):
                first, other = vector.in_row(0), vector.in_row(loop.index)
                before, found = ([row.load(x) for x in buffers] for row in (first, other))
                if rest is None:
                    after = [joined(self.build, written.combinator, before[0], found[0])]
                else:
                    after = add_compensated(self.build, before[0], before[1], found[0])
                    after[1] = self.build.emit(Add(), after[1], found[1])
                for value, buffer in zip(after, buffers, strict=True):
                    first.store(value, buffer)
        for vector in element_vectors(self.build, dtype, box):
            values = [vector.in_row(0).load(x) for x in buffers]
            value = values[0] if rest is None else corrected(self.build, *values)
            vector.store(value, self.result(number))


def _whole(type: TensorType) -> list[AxisSpan]:
    return [AxisSpan(_FIRST, extent) for extent in type.shape]
