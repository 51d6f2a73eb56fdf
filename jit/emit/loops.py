"""Loops over one axis: whole steps first, several at a time if asked, then what is left.

    extent 1000 by 16 lanes, 4 copies        rounds
    0 … 959      15 rounds of 4 steps        each copy has totals of its own, joined afterwards
    960 … 991    2 steps
    992 … 999    1 step of 8 lanes           (or of 16 lanes, 8 of them active)

A loop of one round is no loop: its index is a constant, and so are the addresses made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .memory import Lanes
from .steps import LoopShape
from .writer import I64, FunctionWriter, Register, constant


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One step of a loop: its first coordinate, its lanes (None if the loop is not the vector loop), and
    which of the round's copies it is, with the distance to the first copy."""

    index: Register
    lanes: Lanes | None
    copy: int = 0
    distance: int = 0


class Inside(Protocol):
    """What runs in the loop.  `totals` are the registers carried from step to step.

    `start` and `join` are only called for loops of several copies.
    """

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        """Write one step; the totals after it."""
        ...

    def start(self) -> list[Register]:
        """Totals of nothing, for further copies."""
        return []

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        """Totals of both."""
        return list(totals)


def write_loop(
    w: FunctionWriter, shape: LoopShape, inside: Inside, totals: Sequence[Register]
) -> list[Register]:
    """Write the loop; the totals after it."""
    carried = list(totals)
    lanes = Lanes(shape.lanes, shape.lanes) if shape.is_vector else None
    together = shape.steps // shape.copies if shape.copies > 1 else 0
    if together:
        carried = _write_copies(w, shape, inside, carried, together, lanes)
    done = together * shape.copies

    def single(index: Register, values: Sequence[Register]) -> list[Register]:
        return inside.step(LoopStep(index, lanes), values)

    carried = _repeat(w, done * shape.lanes, shape.steps - done, shape.lanes, carried, single)
    if shape.tail:
        rest = Lanes(shape.tail_lanes, shape.tail)
        carried = inside.step(LoopStep(constant(I64, shape.steps * shape.lanes), rest), carried)
    return carried


def _write_copies(
    w: FunctionWriter,
    shape: LoopShape,
    inside: Inside,
    totals: Sequence[Register],
    rounds: int,
    lanes: Lanes | None,
) -> list[Register]:
    """Rounds of several steps, each with its own totals, which are joined pairwise at the end."""
    width = len(totals)
    all_totals = [*totals, *(r for _ in range(shape.copies - 1) for r in inside.start())]

    def round(index: Register, values: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for copy in range(shape.copies):
            part = values[copy * width : (copy + 1) * width]
            result += inside.step(LoopStep(index, lanes, copy, copy * shape.lanes), part)
        return result

    last = _repeat(w, 0, rounds, shape.lanes * shape.copies, all_totals, round)
    parts = [last[k * width : (k + 1) * width] for k in range(shape.copies)]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [inside.join(x, y) for x, y in pairs] + odd
    return parts[0]


def _repeat(
    w: FunctionWriter,
    first: int,
    rounds: int,
    step: int,
    totals: Sequence[Register],
    body: Callable[[Register, Sequence[Register]], list[Register]],
) -> list[Register]:
    if rounds == 0:
        return list(totals)
    start = constant(I64, first)
    if rounds == 1:
        return body(start, totals)
    stop = constant(I64, first + rounds * step)
    with w.loop(start, stop, constant(I64, step), totals) as loop:
        loop.carry(*body(loop.index, loop.values))
    return list(loop.results)
