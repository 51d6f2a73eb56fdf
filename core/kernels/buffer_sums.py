"""Loops over the elements of buffers: sums in memory, with what rounding has cut off from them in a buffer beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, NamedTuple

from ..ir.instruction import Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..types import DType, TensorType
from .build import AnyIndex, KernelBuilder
from .indices import IndexSum
from .pairs import add_compensated, corrected

_REGISTER: Final = 64
"""Bytes of a vector, as wide as registers get: narrower machines take several."""


class AxisSpan(NamedTuple):
    """So many neighbours along an axis of a buffer."""

    start: IndexSum
    length: int


@dataclass(frozen=True)
class ElementVector:
    """Where some neighbouring elements lie, in each of several buffers of one type; one element without `steps`."""

    build: KernelBuilder
    at: tuple[AnyIndex, ...]
    lanes: int = 0
    steps: tuple[int, ...] = ()
    active: int = 0

    def in_row(self, row: AnyIndex) -> ElementVector:
        """The same in a row of larger buffers."""
        return replace(self, at=(row, *self.at), steps=(0, *self.steps) if self.steps else ())

    def load(self, buffer: Value) -> Value:
        """The elements there."""
        return self.build.load(
            buffer, *self.at, lanes=self.lanes, steps=self.steps, active=self.active
        )

    def store(self, value: Value, buffer: Value) -> None:
        """Write the elements there."""
        self.build.store(value, buffer, *self.at, steps=self.steps, active=self.active)


def fold_sums(
    build: KernelBuilder,
    dtype: DType,
    box: Sequence[AxisSpan],
    base: Value,
    total: Value,
    rest: Value,
) -> None:
    """Add what `base` has in a box, which becomes 0, to `total`, and what rounding cuts off to `rest`."""
    for vector in element_vectors(build, dtype, box):
        value, before, cut = (vector.load(buffer) for buffer in (base, total, rest))
        after, cut = add_compensated(build, before, cut, value)
        vector.store(build.emit(splat(value.tensor, 0)), base)
        vector.store(after, total)
        vector.store(cut, rest)


def correct_sums(
    build: KernelBuilder, type: TensorType, base: Value, total: Value, rest: Value
) -> None:
    """The elements of `base` become the sums of `total` with what rounding had cut off."""
    box = [AxisSpan(IndexSum(0, {}), extent) for extent in type.shape]
    for vector in element_vectors(build, type.dtype, box):
        vector.store(corrected(build, vector.load(total), vector.load(rest)), base)


def element_vectors(
    build: KernelBuilder, dtype: DType, box: Sequence[AxisSpan]
) -> Iterator[ElementVector]:
    """The bodies of loops over a box of elements; what is emitted for one stands in it."""
    if not all(span.length for span in box):
        return
    at: list[AnyIndex] = [span.start for span in box]
    *outer, last = [axis for axis, span in enumerate(box) if span.length > 1] or [-1]
    if last < 0:
        yield ElementVector(build, tuple(at))
        return
    start, count = box[last]
    lanes = min(_REGISTER // dtype.bytes, 1 << (count.bit_length() - 1))
    whole = count - count % lanes
    steps = tuple([int(axis == last) for axis in range(len(box))])
    with ExitStack() as loops:
        for axis in outer:
            index = loops.enter_context(build.loop(box[axis].length)).index
            at[axis] = box[axis].start.plus(IndexSum(0, {index: 1}))
        with build.loop(whole, step=lanes) as loop:
            at[last] = start.plus(IndexSum(0, {loop.index: 1}))
            yield ElementVector(build, tuple(at), lanes, steps)
        if whole < count:
            at[last] = start.plus(whole)
            rest = count - whole
            yield ElementVector(build, tuple(at), 1 << (rest - 1).bit_length(), steps, rest)
