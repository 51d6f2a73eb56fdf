"""Chooses which loops threads share, and how many iterations one of them runs at a time.

Of nests that is the outermost loop, if there is enough work in all of it.

The loop of a matrix product is marked before the product is tiled, where independence is a question about one store;
splitting leaves the outer of two loops parallel, and its grain in tiles.  A loop that is run again and again inside of
another one is a job each time.  The outermost loop that has work for many threads is taken; where none has, the one
that has most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..ir import Block, Instruction
from ..kernels.loops import body_of, loop_op, loops_of
from ..kernels.ops import Kernel
from ..kernels.parallelise import multiplications, parallelise
from ..kernels.tiles import aliases_of
from ..lazy_dataclass import dataclass

LEAST_JOB: Final = 15_000.0
"""Nanoseconds of a loop from which it is shared: a job costs 1 µs where the workers are awake, 5 where they sleep, and
then they come 10 to 50 µs later."""

BLOCK: Final = 5_000.0
"""Nanoseconds of a block: taking one costs 0.05 µs, and at the end a thread waits for at most one of another."""

_MOST_BLOCKS: Final = 128
"""Blocks of a job, at most: a few for each core of a large machine."""

_MANY: Final = 8
"""Tiles from which a loop has work for many threads."""

_MULTIPLY: Final = 0.15
"""Nanoseconds of multiplying and adding two vectors: two begin per cycle, at 3.3 GHz."""

_LEAST_PACKED: Final = 256
"""Rows from which those of one packed panel are shared: it lies in the caches of the core that packs it, from where
another one fetches it at some 10 GB/s; with 64 rows two threads took twice the time of one, with 256 0.85 of it."""

_MOST_APART: Final = 32 << 20
"""Bytes of an operand whose packed panels lie apart, so that each thread packs its own: there is memory for all of
it twice."""

_TILE_ROWS: Final = 12
"""Rows that tiles usually have (`kernels.tiles`): 12 by 2 vectors fill 32 registers."""

_TILE_VECTORS: Final = 2
"""Vectors of columns that they have."""


_BYTE: Final = 0.04
"""Nanoseconds of a byte to or from memory, as in `safepoints`."""


def blocks_of_job(nests: Sequence[Instruction]) -> int:
    """Into how many blocks nests are divided that share their outermost loop; 1 where one thread is to run them."""
    work = sum(map(nanoseconds_of, nests))
    return 1 if work < LEAST_JOB else min(_MOST_BLOCKS, max(2, int(work / BLOCK)))


def is_job(nest: Instruction) -> bool:
    """Whether a nest may be a job, or be part of one: of a group of twelve, at most."""
    return nanoseconds_of(nest) >= LEAST_JOB / 12


def nanoseconds_of(nest: Instruction) -> float:
    """About how long a nest runs."""
    return max(nest.op.nanoseconds(nest) or 0.0, _BYTE * nest.op.bytes_moved(nest))


@dataclass(frozen=True)
class _Candidate:
    """A loop in a block, how many tiles it goes over, and the nanoseconds it takes each time that it is run."""

    block: Block
    loop: Instruction
    tiles: int
    nanoseconds: float


def share_product(
    kernel: Instruction[Kernel], lanes: int, batch: int, *, by_rows: bool, is_packed: bool
) -> None:
    """Mark a loop of a product, of those that `build_product` writes, as parallel if it has enough work.

    Packing has one buffer for all matrices of a batch: it is not shared then.  Where columns are outside, threads pack
    panels of their own; else, rows are shared if there are so many that fetching what one thread has packed is nothing.
    """
    work = _MULTIPLY * multiplications(kernel) / lanes
    if work < LEAST_JOB:
        return
    block, times, bytes = kernel.regions[0].entry, 1, kernel.operands[1].tensor.bytes
    found: list[_Candidate] = []
    for level in range(batch + 2):
        (loop,) = loops_of(block)
        count = loop_op(loop).count
        is_batch, is_rows = level < batch, (level == batch) == by_rows
        size = 1 if is_batch else _TILE_ROWS if is_rows else _TILE_VECTORS * lanes
        tiles = -(-count // size)
        is_apart = not is_batch and not is_rows and not by_rows and bytes <= _MOST_APART
        if not is_packed or is_apart or (is_rows and count >= _LEAST_PACKED):
            found.append(_Candidate(block, loop, tiles, work / times))
        block, times = body_of(loop), times * tiles
    worth = [one for one in found if one.nanoseconds >= LEAST_JOB and one.tiles > 1]
    best = next((one for one in worth if one.tiles >= _MANY), None)
    best = best or max(worth, key=lambda one: one.tiles, default=None)
    if best is None:
        return
    count = loop_op(best.loop).count
    grain = _grain(count, best.nanoseconds)
    if grain < count:
        parallelise(best.block, best.loop, grain, aliases=aliases_of(kernel))


def share_rows(rows: Sequence[int], nanoseconds: float) -> tuple[int, ...]:
    """The grains of loops over rows, outer ones first, that take so long together; 0 for those of one thread."""
    times, worth = 1, list[tuple[int, int, float]]()
    for level, count in enumerate(rows):
        if nanoseconds / times >= LEAST_JOB and count > 1:
            worth.append((level, count, nanoseconds / times))
        times *= count
    best = next((one for one in worth if one[1] >= _MANY), None)
    best = best or max(worth, key=lambda one: one[1], default=None)
    grains = [0] * len(rows)
    if best is not None:
        level, count, work = best
        grain = _grain(count, work)
        grains[level] = grain if grain < count else 0
    return tuple(grains)


def _grain(count: int, nanoseconds: float) -> int:
    """How many of so many iterations are a block, if they take so long together."""
    return math.ceil(count * max(BLOCK / nanoseconds, 1 / _MOST_BLOCKS))
