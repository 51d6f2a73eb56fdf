"""How large register tiles are: rows by vectors of columns, by what multiplying, loading and compiling take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..lazy_dataclass import dataclass
from .split import balanced


@dataclass(frozen=True)
class Registers:
    """The vector registers of a machine: how many, how many elements each holds, and whether sums are unrolled."""

    count: int
    lanes: int
    unrolls: bool = True


@dataclass(frozen=True)
class Tile:
    """Rows, and vectors of columns, of a product that are summed at a time; so many steps of a sum are `unrolled`."""

    rows: int
    vectors: int
    unrolled: int = 1


_SPARE: Final = 2
"""Registers beside the sums and the vectors of B: for an element of A, and one more that LLVM moves things through."""

_MOST_ROWS: Final = 16
"""Larger tiles are more code and no faster."""

_MOST_VECTORS: Final = 4
"""The same."""

_TOGETHER: Final = 2
"""Vectors from which something that takes long is computed side by side."""

_LATENCY: Final = 6
"""Steps until the sum that an instruction adds to is there, 4, with what it takes to keep all units busy meanwhile."""


@dataclass(frozen=True)
class _Loads:
    """What loads cost besides the multiplications that they run beside, of which one is the unit."""

    element: float
    """Of A."""
    vector: float
    """Of B."""


_LOADS: Final = _Loads(0.35, 1.6)
"""A vector lies in two cache lines where the matrix is not aligned to vectors."""

_PACKED: Final = _Loads(0.7, 1.0)
"""A large product: vectors are aligned, and elements of many rows come from the second cache."""

_LOOP: Final = 1.5
"""The same of counting and jumping, in each of k, or once for the steps that are unrolled.  Where another thread runs
on the same core, which then takes half as many instructions of each, it is more: tiles of 6 by 2 vectors took 1.1 to
1.3 times as long as a BLAS then, and 1.0 to 1.1 with 4 steps unrolled."""

_UNROLLED: Final = (1, 2, 4)
"""How many steps: from 4 on there is no difference."""

_MOST_UNROLLED: Final = 48
"""Multiply-adds one after the other: of 96, LLVM begins so many loads early that sums have to go to the stack."""

_PER_STEP: Final = 2
"""Multiplications and additions, or loads, that begin in one step."""

_STEP: Final = 0.3
"""Nanoseconds of a step, a cycle."""

_CODE: Final = 20.0
"""Nanoseconds that a sum of a kind of tile costs, besides being computed: four instructions, each of which takes 40 µs
to be scheduled, written and compiled, in a program that is called some 8,000 times."""


@lru_cache(maxsize=256)
def best_tile(
    rows: int,
    columns: int,
    depth: int,
    registers: Registers,
    *,
    is_packed: bool = False,
    reduces_rows: bool = False,
) -> Tile:
    """The tile for a product of so many rows and columns, as far as can be foreseen, compilation included.

    `depth` is how many products each element is a sum of, in all matrices of a batch together.
    """
    if rows == 1:  # a vector of B is part of the one instruction that it is used in
        return Tile(1, registers.count // 2)
    found = [
        Tile(count, vectors)
        for vectors in range(1, _MOST_VECTORS + 1)
        if not (reduces_rows and vectors & (vectors - 1))
        for count in range(1, _MOST_ROWS + 1)
        if count * vectors + vectors + _SPARE <= registers.count
    ]
    loads = _PACKED if is_packed else _LOADS

    def nanoseconds(tile: Tile) -> float:
        widths = _widths(columns, tile.vectors, registers.lanes, reduces_rows=reduces_rows)
        return _nanoseconds(tile, rows, widths, depth, loads)

    tile = min(found, key=nanoseconds)
    most = _MOST_UNROLLED // (tile.rows * tile.vectors) if registers.unrolls else 1
    return min([replace(tile, unrolled=f) for f in _UNROLLED if f <= max(most, 1)], key=nanoseconds)


def panels_of_rows(
    rows: int, columns: int, depth: int, registers: Registers, *, is_packed: bool
) -> Sequence[tuple[int, int]]:
    """The panels of a product whose rows are reduced, each of which they are reduced over first: (vectors, how many).

    The columns are whole vectors.
    """
    tile = best_tile(rows, columns, depth, registers, is_packed=is_packed, reduces_rows=True)
    return panels_of(columns // registers.lanes, tile.vectors, reduces_rows=True)


def panels_of_sums(count: int, *, reduces_rows: bool) -> Sequence[tuple[int, int]]:
    """The same of a row of so many vectors of sums that lie in memory, of which something is computed."""
    return panels_of(count, _MOST_VECTORS if reduces_rows else _TOGETHER, reduces_rows=True)


def _widths(columns: int, vectors: int, lanes: int, *, reduces_rows: bool) -> list[tuple[int, int]]:
    """The vectors of panels, and how many have so many."""
    whole, left = divmod(columns, lanes)
    return [*panels_of(whole, vectors, reduces_rows=reduces_rows), *([(1, 1)] if left else [])]


def panels_of(count: int, most: int, *, reduces_rows: bool) -> Sequence[tuple[int, int]]:
    """So many vectors of columns as panels of `most`: (vectors, how many), wider ones first.

    Of rows that are reduced, a panel is one vector, of twice as many lanes as a register, or four times, …
    """
    if not reduces_rows:
        return balanced(count, most)
    found: list[tuple[int, int]] = []
    while count:
        found.append((most, count // most))
        count, most = count % most, most // 2
    return [(size, panels) for size, panels in found if panels]


def _nanoseconds(
    tile: Tile, rows: int, widths: Sequence[tuple[int, int]], depth: int, loads: _Loads
) -> float:
    """What a product takes by tiles."""
    steps, code = 0.0, 0
    for vectors, panels in widths:
        for height, count in balanced(rows, tile.rows):
            sums = height * vectors
            jump = _LOOP / tile.unrolled
            work = (sums + loads.element * height + loads.vector * vectors + jump) / _PER_STEP
            steps += panels * count * max(work, _LATENCY)
            code += sums * tile.unrolled
    return _STEP * steps * depth + _CODE * code
