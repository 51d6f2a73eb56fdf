"""Chooses which loops threads share, and how many iterations one of them runs at a time.

Of nests that is the outermost loop, if there is enough work in all of it.

A loop that is run again and again inside of another one is a job each time.  The outermost loop that has work for many
threads is taken; where none has, the one that has most.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from ..compute.footprint import Footprint, footprint
from ..compute.index_maps import axes_of, is_injective
from ..ir import Instruction, Op
from ..ops.nest import Bounds
from .ops import Loops

LEAST_JOB: Final = 15_000.0
"""Nanoseconds of a loop from which it is shared: a job costs 1 µs where the workers are awake, 5 where they sleep, and
then they come 10 to 50 µs later."""

BLOCK: Final = 5_000.0
"""Nanoseconds of a block: taking one costs 0.05 µs, and at the end a thread waits for at most one of another."""

_MOST_BLOCKS: Final = 128
"""Blocks of a job, at most: a few for each core of a large machine."""

MANY: Final = 8
"""Tiles from which a loop has work for many threads."""

_BYTE: Final = 0.04
"""Nanoseconds of a byte to or from memory, as in `safepoints`."""


def blocks_of_work(work: float) -> int:
    """Into how many blocks nests are divided that take so many nanoseconds; 1 where one thread is to run them."""
    return 1 if work < LEAST_JOB else min(_MOST_BLOCKS, max(2, int(work / BLOCK)))


def nanoseconds_of(nest: Instruction, op: Op | None = None) -> float:
    """About how long a nest runs, or will when this is its op."""
    op = op or nest.op
    return max(op.nanoseconds(nest) or 0.0, _BYTE * op.bytes_moved(nest))


def share_rows(rows: Sequence[int], nanoseconds: float) -> tuple[int, ...]:
    """The grains of loops over rows, outer ones first, that take so long together; 0 for those of one thread."""
    times, worth = 1, list[tuple[int, int, float]]()
    for level, count in enumerate(rows):
        if nanoseconds / times >= LEAST_JOB and count > 1:
            worth.append((level, count, nanoseconds / times))
        times *= count
    best = next((one for one in worth if one[1] >= MANY), None)
    best = best or max(worth, key=lambda one: one[1], default=None)
    grains = [0] * len(rows)
    if best is not None:
        level, count, work = best
        grain = grain_of(count, work)
        grains[level] = grain if grain < count else 0
    return tuple(grains)


def grain_of(count: int, nanoseconds: float) -> int:
    """How many of so many iterations are a block, if they take so long together."""
    return math.ceil(count * max(BLOCK / nanoseconds, 1 / _MOST_BLOCKS))


def points_of_block(extent: int, unit: int, nanoseconds: float) -> int:
    """Whole units, where a loop over so many points takes so long; 0 if it is too short to be shared."""
    blocks = blocks_of_work(nanoseconds)
    return -(-(extent - extent % unit) // (blocks * unit)) * unit if blocks > 1 else 0


def is_parallel(loops: Loops, outer: int, carried: Collection[int] = ()) -> bool:
    """Whether iterations of the loop over an axis may run at the same time: each writes elements of its own.

    Totals that the loop is said to carry do not count, as blocks of it store these elsewhere.
    """
    own = all(
        outer in axes_of(written.indices, loops.extents)
        and is_injective(written.indices, loops.extents)
        and written.bounds is not Bounds.CLIP
        for number, written in enumerate(loops.outputs)
        if number not in carried
    )
    return own and updates_apart(loops, outer)


def updates_apart(loops: Loops, outer: int) -> bool:
    """Whether iterations write apart from each other to what several outputs write, or begins with an operand."""
    shared = {output.within for output in loops.outputs}
    written: dict[int, list[Footprint | None]] = {}
    for number, output in enumerate(loops.outputs):
        whole = number if output.within is None else output.within
        if whole in shared or loops.outputs[whole].init is not None:
            found = footprint(output.type.shape, output, loops.extents, outer)
            written.setdefault(whole, []).append(found)
    return all(
        one is not None and other is not None and one.is_independent(other)
        for found in written.values()
        for one in found
        for other in found
    )
