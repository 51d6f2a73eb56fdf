"""Emits the loop over one axis: unrolled rounds of vector steps, then the remainder.

    extent 1000 by 16 lanes, 4 copies        rounds
    0 … 959      15 rounds of 4 steps        each copy has totals of its own, joined afterwards
    960 … 991    2 steps
    992 … 999    1 step of 8 lanes           (or of 16 lanes, 8 of them active)

In blocks of 320 points, the first line is three times 5 rounds; what is left is a block of its own:

    for block in 0 … 959 by 320:  for i in block … block + 319 by 64: …
    960 … 999

A loop of one round is no loop: its index is a constant, and so are the addresses made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...core.lazy_dataclass import dataclass
from .element_access import Lanes
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


@dataclass(frozen=True, slots=True)
class BlockRange:
    """A block of a loop's iterations: rounds from `start` to `stop`, or the remainder (None).

    A block of one round has no `stop`; that of the remainder begins at `stop`, if that is given.
    """

    start: Register | None = None
    stop: Register | None = None


class LoopBody(Protocol):
    """The body of a loop. `totals` are the accumulators carried from step to step.

    `start` and `join` are only called for loops of several copies.
    """

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        """Emit one step; the accumulators after it."""
        ...

    def start(self) -> list[Register]:
        """Accumulators at their identity, for further unrolled copies."""
        return []

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        """The accumulators of two copies, combined."""
        return list(totals)


def write_loop(
    w: FunctionWriter,
    shape: LoopShape,
    inside: LoopBody,
    totals: Sequence[Register],
    span: BlockRange | None = None,
) -> list[Register]:
    """Write the loop, or the part of it that is one block; the totals after it."""
    carried = list(totals)
    lanes = Lanes(shape.lanes, shape.lanes) if shape.is_vector else None
    done = shape.in_rounds
    if span is not None and span.start is None and span.stop is not None:
        done = int(span.stop.text)
    if done and (span is None or span.start is not None):
        carried = _write_rounds(w, shape, inside, carried, span, lanes)
    if span is not None and span.start is not None:
        return carried

    def single(index: Register, values: Sequence[Register]) -> list[Register]:
        return inside.step(LoopStep(index, lanes), values)

    left = constant(I64, done), constant(I64, shape.steps * shape.lanes)
    carried = _repeat(w, *left, shape.lanes, carried, single)
    if shape.tail:
        rest = Lanes(shape.tail_lanes, shape.tail)
        carried = inside.step(LoopStep(left[1], rest), carried)
    return carried


def write_blocks(
    w: FunctionWriter,
    shape: LoopShape,
    inner: LoopShape,
    block: Callable[[BlockRange, Sequence[Register]], list[Register]],
    totals: Sequence[Register],
    span: BlockRange | None = None,
) -> list[Register]:
    """Write the loop over the blocks that the loop `inner` goes through; `block` writes one of them.

    The blocks may be parts of a larger one, the `span`.
    """
    carried = list(totals)
    if span is not None and span.start is None:
        return block(span, carried)
    end = inner.in_rounds
    if end:
        start, stop = constant(I64, 0), constant(I64, end)
        if span is not None and span.start is not None and span.stop is not None:
            start, stop = span.start, span.stop

        def write(start: Register, values: Sequence[Register]) -> list[Register]:
            if start.is_constant:
                return block(BlockRange(start, stop), values)
            if shape.block == inner.lanes * inner.copies:
                return block(BlockRange(start), values)
            following = w.value(I64, f"add nsw i64 {start.text}, {shape.block}")
            is_whole = end % shape.block == 0
            return block(
                BlockRange(start, following if is_whole else w.smin(following, stop)), values
            )

        carried = _repeat(w, start, stop, shape.block, carried, write)
    if span is None and end < inner.extent:
        carried = block(BlockRange(stop=constant(I64, end)), carried)
    return carried


def _write_rounds(
    w: FunctionWriter,
    shape: LoopShape,
    inside: LoopBody,
    totals: Sequence[Register],
    span: BlockRange | None,
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

    points = shape.lanes * shape.copies
    if span is None or span.start is None:
        first = constant(I64, 0), constant(I64, shape.in_rounds)
        last = _repeat(w, *first, points, all_totals, round)
    elif span.stop is None:
        last = round(span.start, all_totals)
    else:
        last = _repeat(w, span.start, span.stop, points, all_totals, round)
    parts = [last[k * width : (k + 1) * width] for k in range(shape.copies)]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [inside.join(x, y) for x, y in pairs] + odd
    return parts[0]


def _repeat(
    w: FunctionWriter,
    start: Register,
    stop: Register,
    step: int,
    totals: Sequence[Register],
    body: Callable[[Register, Sequence[Register]], list[Register]],
) -> list[Register]:
    """Run the body from start to stop; where these are known while running, at least once."""
    if start.is_constant and stop.is_constant:
        rounds = -((int(start.text) - int(stop.text)) // step)
        if rounds == 0:
            return list(totals)
        if rounds == 1:
            return body(start, totals)
    with w.loop(start, stop, constant(I64, step), totals, guarded=False) as loop:
        loop.carry(*body(loop.index, loop.values))
    return list(loop.results)
