"""Chooses how the loops of a matrix product are divided: what is packed, in which blocks, and what threads share.

A panel of columns of the second operand that lies side by side is read at full speed however far apart the rows of
the matrix are; so what does not stay in the second cache is packed, and what stays there is read where it lies.  As
many columns make a block as fill a quarter of the second cache: the first operand passes once for each block, from the
third cache where it is large, while the rows of a tile and the block's panels stay nearer.

Threads share groups of blocks of columns, and each packs its blocks in a place of its own, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..compute.ops import MatrixProduct
from ..ir import Block, Instruction
from ..kernels.loops import loop_op, loops_of
from ..kernels.ops import Kernel
from ..kernels.pack import SummedRange
from ..kernels.parallelise import parallelise
from ..kernels.tiles import Packing, aliases_of
from ..kernels.turned import TurnedRows
from ..lazy_dataclass import dataclass
from ..types import TensorType
from . import shared_loops
from .ops import sizes_of
from .switches import is_enabled
from .target import Target

_MULTIPLY: Final = 0.15
"""Nanoseconds of multiplying and adding two vectors: two begin per cycle, at 3.3 GHz."""

_BYTE: Final = 0.01
"""Nanoseconds of a byte of a matrix that comes from behind the second cache, where one row alone uses it."""

LEAST_ROWS: Final = 4
"""Rows from which it pays to turn the columns of the other matrix."""

_LEAST_REUSED: Final = 96
"""Rows, or columns, that use what is packed from which much of the second cache is spent on it."""

_LEAST_PACKED: Final = 256
"""Rows from which those of one packed block are shared: it lies in the caches of the core that packs it, from where
another one fetches it at some 10 GB/s; with 64 rows two threads took twice the time of one, with 256 0.85 of it."""

_LEAST_TURNED: Final = 128
"""Products in a sum from which the first operand is turned: a tile reads so many cache lines of it for few elements
of each."""

_MOST_TURNS: Final = 4
"""Blocks of rows of a first operand that is turned, each of `_LEAST_PACKED` at least."""

_REPACKED: Final = 768
"""Rows of a block for which the second operand is packed again: 1 % of the time, 2 to 4 with 512."""

_MOST_APART: Final = 32 << 20
"""Bytes that are packed in all places of one kernel."""

_TILE_ROWS: Final = 12
"""Rows that tiles usually have (`kernels.tile_sizes`): 12 by 2 vectors fill 32 registers."""

_TILE_VECTORS: Final = 2
"""Vectors of columns that they have."""

_WIDEST_TILE: Final = 4
"""Vectors that the tiles of packed panels have where the block has them."""

_NARROW: Final = 0.3
"""What a vector that a tile is less wide costs, as a part of one that is in no block."""

_GROUPS: Final = 4
"""Threads for which columns are divided, at least; packing into as many places takes 1.03 of the time that one does,
and into a place for each block 1.2 of it with 256 rows."""

_MOST_GROUPS: Final = 8
"""The same where all places together stay in the second cache, because the operand does, or each has many tiles."""

_LEAST_TILES: Final = 4
"""Tiles, side by side, of a group that has many."""

_BEYOND_NEAREST: Final = 4
"""First caches that a matrix is larger than before turning it pays: of a smaller one enough stays there as it is."""

_LONGEST: Final = 10_000_000.0
"""Nanoseconds of a group: a program polls for signals between a few of them."""


@dataclass(frozen=True)
class ProductPlan:
    """How a product is divided; `level` is the loop, outer ones first, of which threads run `grain` iterations."""

    packed: Packing | None
    block_columns: int
    """In blocks of so many columns, whose panels of the second operand are packed together; 0 for no blocks."""
    turned: TurnedRows | None
    """Of the first operand."""
    level: int = 0
    grain: int = 0

    def share(self, kernel: Instruction[Kernel]) -> None:
        """Mark the loop that threads share, before the product is tiled: independence is a question about one store.

        Splitting leaves the outer of two loops parallel, and its grain in tiles.
        """
        if not self.grain:
            return
        block: Block = kernel.regions[0].entry
        for _ in range(self.level):
            block = loops_of(block)[0].regions[0].entry
        (loop,) = loops_of(block)
        if self.grain < loop_op(loop).count:
            parallelise(block, loop, self.grain, aliases=aliases_of(kernel))


class _Level(NamedTuple):
    """A loop: its iterations, how many tiles or blocks they are at most, and whether threads may share it."""

    extent: int
    tiles: int
    is_free: bool


def product_nanoseconds(product: Instruction[MatrixProduct], target: Target) -> float:
    """About how long a matrix product takes."""
    _, _, k = sizes_of(product.op, *(operand.tensor for operand in product.operands))
    result = product.result.tensor
    return _MULTIPLY * k * result.size / target.lanes(result.dtype.bytes)


def plan_product(
    op: MatrixProduct, a: TensorType, b: TensorType, target: Target, *, whole_rows: bool = False
) -> ProductPlan:
    """The plan for op(a) · op(b) on a machine; that for `whole_rows` has no blocks of columns but where it has to."""
    result = op.infer(a, b)
    batch = [extent for extent in result.shape[:-2] if extent > 1]
    (m, n), k = result.shape[-2:], op.summed(a)
    lanes, matrix = target.lanes(b.dtype.bytes), k * n * b.dtype.bytes
    summed = SummedRange(k, op.first, has_parts=op.parts > 1)
    packed = _packing(op, b, summed) if op.transpose_b or _is_far(m, matrix, target) else None
    is_large = m > 1 and matrix > target.near_l2_bytes // 2
    vectors, row = n // lanes, k * lanes * b.dtype.bytes
    near = target.near_l2_bytes // (2 if m >= _LEAST_REUSED else 4)
    count = _least_blocks(vectors, row, near) if packed or is_large else 1
    by_columns = count > 1 or (packed is not None and vectors >= 2 * _GROUPS and not whole_rows)
    levels = [
        _Level(extent, extent, packed is None or extent * n * k < _MOST_APART // b.dtype.bytes)
        for extent in batch
    ]
    rows = _Level(m, -(-m // _TILE_ROWS), packed is None or m >= _LEAST_PACKED)
    columns = _Level(n, -(-vectors // _TILE_VECTORS), True)
    levels += [columns] if by_columns else [rows] if packed or whole_rows else [rows, columns]
    work = _MULTIPLY * math.prod(batch) * m * k * -(-n // lanes)
    if m == 1 and matrix > target.near_l2_bytes:
        work = max(work, _BYTE * math.prod(batch) * matrix)
    level, grain = _shared(levels, work)
    block_columns = 0
    if grain and level == len(batch) and by_columns:
        is_long = columns.tiles >= _LEAST_TILES * _MOST_GROUPS and m >= _LEAST_PACKED
        groups = _MOST_GROUPS if is_long or matrix <= target.near_l2_bytes // 2 else _GROUPS
        one = work / math.prod(batch)
        groups = min(max(groups, math.ceil(one / _LONGEST)), columns.tiles)
        block_columns, together = _blocks(vectors, max(count, groups), groups, lanes)
        grain = block_columns * together
    elif count > 1:
        block_columns, _ = _blocks(vectors, count, 1, lanes)
    turned = None
    if len(batch) <= (op.parts > 1) and _is_turned(op, a, n, target):
        height = _turned_rows(m, is_packed=packed is not None)
        turned = TurnedRows(height, lanes, not block_columns, summed)
    return ProductPlan(packed, block_columns, turned, level, grain)


def _packing(op: MatrixProduct, b: TensorType, summed: SummedRange) -> Packing:
    """How the second operand is packed."""
    row_axis = b.rank - (1 if op.transpose_b else 2)
    return Packing(summed, row_axis, 2 * b.rank - 3 - row_axis)


def _is_far(m: int, matrix: int, target: Target) -> bool:
    """Whether rows read a second operand of so many bytes again and again that does not stay in the caches."""
    return m > 1 and matrix >= target.near_l2_bytes and is_enabled("packing")


def _is_turned(op: MatrixProduct, a: TensorType, n: int, target: Target) -> bool:
    """Whether the first operand is packed as rows."""
    k = op.summed(a)
    return (
        op.transpose_a
        and is_enabled("packing")
        and k >= _LEAST_TURNED
        and k * a.shape[-1] * a.dtype.bytes >= _BEYOND_NEAREST * target.near_l1_bytes
        and n >= _LEAST_REUSED
    )


def _turned_rows(m: int, *, is_packed: bool) -> int:
    """How many of m rows of a first operand are turned at a time, a divisor, if the second one `is_packed`, or not."""
    least = max(_REPACKED if is_packed else _LEAST_PACKED, -(-m // _MOST_TURNS))
    return next((rows for rows in range(least, m // 2 + 1) if m % rows == 0), m)


def _least_blocks(vectors: int, row: int, near: int) -> int:
    """Into how many blocks of so many bytes columns are divided of which a vector takes `row`."""
    most = max(near // max(row, 1), 2 * _TILE_VECTORS if 2 * row <= near else _TILE_VECTORS)
    return max(1, min(-(-vectors // most), vectors // _TILE_VECTORS))


def _blocks(vectors: int, least: int, groups: int, lanes: int) -> tuple[int, int]:
    """The columns of a block, and the blocks of a group: about so many, of nearly all columns and whole tiles."""

    def left_over(count: int) -> float:
        size = vectors // count
        return vectors % count + _NARROW * count * (-size % _WIDEST_TILE)

    counts = range(max(groups, 3 * least // 4), min(2 * least, vectors // _TILE_VECTORS + 1))
    count = min(counts, key=left_over, default=least)
    sizes = [size for size in range(1, count // min(groups, _GROUPS) + 1) if count % size == 0]
    together = max(size for size in sizes if size <= count // groups)
    if count // together > 2 * groups:  # 49 blocks for 8 are 7 times 7, and not 49 places
        together = max(sizes)
    return vectors // count * lanes, together


def _shared(levels: Sequence[_Level], work: float) -> tuple[int, int]:
    """The loop that threads share, and its grain; a grain of 0 if one thread runs them all."""
    times = 1
    worth: list[tuple[int, _Level, float]] = []
    for number, level in enumerate(levels):
        nanoseconds = work / times
        if level.is_free and level.tiles > 1 and nanoseconds >= shared_loops.LEAST_JOB:
            worth.append((number, level, nanoseconds))
        times *= level.tiles
    best = next((one for one in worth if one[1].tiles >= shared_loops.MANY), None)
    best = best or max(worth, key=lambda one: one[1].tiles, default=None)
    if best is None:
        return 0, 0
    number, level, nanoseconds = best
    return number, shared_loops.grain_of(level.extent, nanoseconds)
