"""Loops over all elements of buffers: sums in memory, with what rounding has cut off from them in a buffer beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from ..ir.instruction import Value
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from ..types import TensorType
from .build import AnyIndex, KernelBuilder
from .pairs import add_compensated, corrected

_REGISTER: Final = 64
"""Bytes of a vector, as wide as registers get: narrower machines take several."""


@dataclass(frozen=True)
class ElementVector:
    """Where some neighbouring elements lie, in each of several buffers of one type; one element without `steps`."""

    build: KernelBuilder
    at: tuple[AnyIndex, ...]
    lanes: int = 0
    steps: tuple[int, ...] = ()
    active: int = 0

    def load(self, buffer: Value) -> Value:
        """The elements there."""
        return self.build.load(
            buffer, *self.at, lanes=self.lanes, steps=self.steps, active=self.active
        )

    def store(self, value: Value, buffer: Value) -> None:
        """Write the elements there."""
        self.build.store(value, buffer, *self.at, steps=self.steps, active=self.active)


def fold_sums(
    build: KernelBuilder, type: TensorType, base: Value, total: Value, rest: Value
) -> None:
    """Add the elements of `base`, which become 0, to those of `total`, and what rounding cuts off to `rest`."""
    for vector in element_vectors(build, type):
        value, before, cut = (vector.load(buffer) for buffer in (base, total, rest))
        after, cut = add_compensated(build, before, cut, value)
        vector.store(build.emit(splat(value.tensor, 0)), base)
        vector.store(after, total)
        vector.store(cut, rest)


def correct_sums(
    build: KernelBuilder, type: TensorType, base: Value, total: Value, rest: Value
) -> None:
    """The elements of `base` become the sums of `total` with what rounding had cut off."""
    for vector in element_vectors(build, type):
        vector.store(corrected(build, vector.load(total), vector.load(rest)), base)


def element_vectors(build: KernelBuilder, type: TensorType) -> Iterator[ElementVector]:
    """The bodies of loops over all elements of a type; what is emitted for one stands in it."""
    if not type.size:
        return
    at: list[AnyIndex] = [0] * type.rank
    *outer, last = [axis for axis, extent in enumerate(type.shape) if extent > 1] or [-1]
    if last < 0:
        yield ElementVector(build, tuple(at))
        return
    extent = type.shape[last]
    lanes = min(_REGISTER // type.dtype.bytes, 1 << (extent.bit_length() - 1))
    whole = extent - extent % lanes
    steps = tuple([int(axis == last) for axis in range(type.rank)])
    with ExitStack() as loops:
        for axis in outer:
            at[axis] = loops.enter_context(build.loop(type.shape[axis])).index
        with build.loop(whole, step=lanes) as loop:
            at[last] = loop.index
            yield ElementVector(build, tuple(at), lanes, steps)
        if whole < extent:
            at[last] = whole
            rest = extent - whole
            yield ElementVector(build, tuple(at), 1 << (rest - 1).bit_length(), steps, rest)
