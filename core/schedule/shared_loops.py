"""Chooses which loops threads share, and how many iterations one of them runs at a time.

Of nests that is the outermost loop, if there is enough work in all of it.

A loop that is run again and again inside of another one is a job each time.  The outermost loop that has work for many
threads is taken; where none has, the one that has most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..ir import Instruction, Op

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


def blocks_of_job(nests: Sequence[Instruction]) -> int:
    """Into how many blocks nests are divided that share their outermost loop; 1 where one thread is to run them."""
    return blocks_of_work(sum(map(nanoseconds_of, nests)))


def blocks_of_work(work: float) -> int:
    """The same of nests that take so many nanoseconds."""
    return 1 if work < LEAST_JOB else min(_MOST_BLOCKS, max(2, int(work / BLOCK)))


def is_job(nest: Instruction) -> bool:
    """Whether a nest may be a job, or be part of one: of a group of twelve, at most."""
    return nanoseconds_of(nest) >= LEAST_JOB / 12


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
