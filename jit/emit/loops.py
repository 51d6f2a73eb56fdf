"""Emits the loop over one axis: steps of whole vectors, then the remainder.

    extent 1000 by 16 lanes
    0 … 991      62 steps
    992 … 999    1 step of 8 lanes           (or of 16 lanes, 8 of them active)

A loop of one step is no loop: its index is a constant, and so are the addresses made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...core.lazy_dataclass import dataclass
from .element_access import Lanes
from .writer import I64, FunctionWriter, Register, constant


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A loop of `extent` points in steps of `lanes`.

    The points that are left at the end are one step of `tail_lanes` lanes, not all of them active.
    """

    extent: int
    lanes: int = 1
    tail_lanes: int = 1
    is_vector: bool = False


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One step of a loop: its first coordinate, and its lanes (None if the loop is not the vector loop)."""

    index: Register
    lanes: Lanes | None


class LoopBody(Protocol):
    """The body of a loop.  `totals` are the accumulators carried from step to step."""

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        """Emit one step; the accumulators after it."""
        ...


def write_loop(
    w: FunctionWriter, shape: LoopShape, inside: LoopBody, totals: Sequence[Register]
) -> list[Register]:
    """Write the loop; the totals after it."""
    carried = list(totals)
    lanes = Lanes(shape.lanes, shape.lanes) if shape.is_vector else None
    left = shape.extent % shape.lanes
    stop = shape.extent - left
    if stop == shape.lanes:
        carried = inside.step(LoopStep(constant(I64, 0), lanes), carried)
    elif stop:
        ends = constant(I64, 0), constant(I64, stop), constant(I64, shape.lanes)
        with w.loop(*ends, carried, guarded=False) as loop:
            loop.carry(*inside.step(LoopStep(loop.index, lanes), loop.values))
        carried = list(loop.results)
    if left:
        rest = Lanes(shape.tail_lanes, left)
        carried = inside.step(LoopStep(constant(I64, stop), rest), carried)
    return carried
