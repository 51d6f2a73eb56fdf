"""Outputs as room for other values, as long as their own have not been made.

The gradients of a network are made last to first, each where it is returned; what the forward pass saves for them is
dead by then, so it can lie there.

Source: XLA's buffer assignment, where temporaries share allocations with outputs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace
from typing import Final, Self

from ..ir import Place
from ..types import TensorType

LEAST_BYTES: Final = 16 * 1024
"""Of values that are put into outputs.  The arena begins at a cache line and NumPy's arrays behind one, so that each
vector there lies in two: smaller values are read from the nearest cache, where that counts, and take little room."""


LEAST_SCRATCH: Final = 512 * 1024
"""The same of the buffers that kernels work with: they are read often, so that vectors in two lines cost more than the
room of smaller ones."""


@dataclass(frozen=True, order=True)
class IdleOutput:
    """The room of an output, which is free before position `until`."""

    bytes: int
    until: int
    alignment: int
    number: int

    @classmethod
    def of(cls, type: TensorType, place: Place, until: int) -> Self:
        """That of a result, which lies in `place` from position `until` on."""
        return cls(type.bytes, until, type.dtype.bytes, place.offset)

    @property
    def place(self) -> Place:
        """The place of what lies there."""
        return Place("output", self.number)

    def may_hold(self, type: TensorType, end: int) -> bool:
        """Whether a value that is in use up to position `end` may lie there."""
        return end < self.until and type.bytes <= self.bytes and type.dtype.bytes <= self.alignment


@dataclass
class IdleOutputs:
    """Those that no value lies in now, the smallest first, and of one size the first to be needed."""

    _free: list[IdleOutput] = field(default_factory=list[IdleOutput])

    def free(self) -> list[IdleOutput]:
        """Those that are free."""
        return list(self._free)

    def give_back(self, output: IdleOutput) -> None:
        """Have it taken again, if it is large enough for anything."""
        if output.bytes >= LEAST_BYTES:
            insort(self._free, output)

    def take(self, type: TensorType, end: int) -> IdleOutput | None:
        """The smallest output for a value that is in use up to position `end`.

        Cost: O(outputs) at most.
        """
        if type.bytes < LEAST_BYTES:
            return None
        for index in range(bisect_left(self._free, (type.bytes,), key=_size), len(self._free)):
            if self._free[index].may_hold(type, end):
                return self._free.pop(index)
        return None


@dataclass
class ReservedOutputs:
    """Gives outputs to values from the last one to the first: so of x₁, …, xₙ in a row to xₙ₋₁, xₙ₋₃, …."""

    free: list[IdleOutput]
    """Each up to where it is free for values that come before."""

    def take(self, type: TensorType, start: int, end: int) -> IdleOutput | None:
        """The smallest output for a value in use from `start` up to `end`, of one size that which is free longest.

        Cost: O(outputs).
        """
        if type.bytes < LEAST_BYTES:
            return None
        fitting = (one for one in self.free if one.may_hold(type, end))
        found = min(fitting, key=lambda one: (one.bytes, -one.until), default=None)
        if found is not None:
            self.free.remove(found)
            self.free.append(replace(found, until=start))
        return found


def _size(output: IdleOutput) -> tuple[int]:
    return (output.bytes,)
