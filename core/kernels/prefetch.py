"""Fetching: what loads and stores of whole vectors come to so many elements later, or will read behind a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ..ir.instruction import Block, Instruction, Value
from .access_ops import PrefetchAt, buffer_of
from .guarded_ops import LoadWhere
from .indices import BufferAccess, access_of, maps_of
from .loops import is_loop

_LINE: Final = 64
"""Bytes that come at a time."""


def fetch_ahead(block: Block, ahead: Mapping[Value, int]) -> None:
    """Have the elements fetched that lie so many behind those that a block loads and stores of these buffers.

    What is left of a vector, some of whose lanes are not active, is next to what was fetched.  Where an index that was
    read says which part of a tensor it is, the load has a condition.
    """
    found: list[Instruction] = []
    for instruction in block.instructions:
        for region in instruction.regions:
            fetch_ahead(region.entry, ahead)
        access = access_of(instruction)
        if access is not None and access.lanes and access.touched == access.lanes:
            found += _fetched(access, ahead.get(access.buffer))
        elif isinstance(instruction.op, LoadWhere):
            found += _fetched_where(instruction, instruction.op, ahead)
        found.append(instruction)
    block.instructions = found


def fetch_before_loops(block: Block, buffers: Collection[Value]) -> None:
    """Have what a block loads of these buffers behind a loop fetched in front of it."""
    first = next((n for n, one in enumerate(block.instructions) if is_loop(one)), None)
    if first is None:
        return
    found: list[Instruction] = []
    later = {x for one in block.instructions[first:] for x in one.results}
    for instruction in block.instructions[first:]:
        for region in instruction.regions:
            fetch_before_loops(region.entry, buffers)
        access = access_of(instruction)
        is_read = access is not None and not access.is_store and access.buffer in buffers
        if access is not None and is_read and later.isdisjoint(instruction.operands):
            found += _fetched(access, 0)
    block.instructions[first:first] = found


def drop_fetches(block: Block, is_idle: Callable[[Instruction], bool]) -> None:
    """Leave out what a block fetches for nothing, and the loops that did nothing else."""
    kept: list[Instruction] = []
    for one in block.instructions:
        if one.regions:
            inner = one.regions[0].entry
            length = len(inner.instructions)
            drop_fetches(inner, is_idle)
            if length > len(inner.instructions) == 1 and not one.results:
                inner.instructions[0].set_operands(())
                continue
        elif isinstance(one.op, PrefetchAt) and is_idle(one):
            one.set_operands(())
            continue
        kept.append(one)
    block.instructions = kept


def _fetched(access: BufferAccess, distance: int | None) -> Iterator[Instruction]:
    """A fetch for each line of the vector."""
    if distance is None or not access.lanes or access.steps[-1] != 1:
        return
    *outer, last = access.indices
    for lane in _lines(access.buffer, access.lanes):
        maps, coordinates = maps_of([*outer, last.plus(distance + lane)])
        yield Instruction(PrefetchAt(maps), (access.buffer, *coordinates), ())


def _fetched_where(
    instruction: Instruction, op: LoadWhere, ahead: Mapping[Value, int]
) -> Iterator[Instruction]:
    """The same, where a vector is loaded from one place."""
    _, buffer, *coordinates = instruction.operands
    distance = ahead.get(buffer)
    if distance is None or not op.lanes or op.active or not op.steps or op.steps[-1] != 1:
        return
    if any(coordinate.tensor.rank for coordinate in coordinates):
        return
    *outer, last = op.indices
    for lane in _lines(buffer, op.lanes):
        there = replace(last, constant=last.constant + distance + lane)
        yield Instruction(PrefetchAt((*outer, there)), (buffer, *coordinates), ())


def _lines(buffer: Value, lanes: int) -> range:
    """The lanes at which the lines of a vector begin."""
    return range(0, lanes, _LINE // buffer_of(PrefetchAt.name, buffer.type).dtype.bytes)
