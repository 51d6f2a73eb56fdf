"""Fetching ahead: before each load and store of whole vectors of some buffers, what comes so many elements later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..ir.instruction import Block, Instruction, Value
from .indices import BufferAccess, access_of, maps_of
from .ops import PrefetchAt, buffer_of

_LINE: Final = 64
"""Bytes that come at a time."""


def fetch_ahead(block: Block, ahead: Mapping[Value, int]) -> None:
    """Have the elements fetched that lie so many behind those that a block loads and stores of these buffers.

    What is left of a vector, some of whose lanes are not active, is next to what was fetched.
    """
    found: list[Instruction] = []
    for instruction in block.instructions:
        for region in instruction.regions:
            fetch_ahead(region.entry, ahead)
        access = access_of(instruction)
        if access is not None and access.lanes and access.touched == access.lanes:
            found += _fetched(access, ahead.get(access.buffer))
        found.append(instruction)
    block.instructions = found


def _fetched(access: BufferAccess, distance: int | None) -> Iterator[Instruction]:
    """A fetch for each line of the vector."""
    if distance is None or access.steps[-1] != 1:
        return
    *outer, last = access.indices
    per_line = _LINE // buffer_of(PrefetchAt.name, access.buffer.type).dtype.bytes
    for lane in range(0, access.lanes, per_line):
        maps, coordinates = maps_of([*outer, last.plus(distance + lane)])
        yield Instruction(PrefetchAt(maps), (access.buffer, *coordinates), ())
