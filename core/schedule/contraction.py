"""Array contraction: what lives inside of a block group alone has room for one block of its rows.

    %1 = loops 31843 of %0 … order (0, 0) group 0 blocks (128, 0) into block 0
    %2 = loops 31843 of %1 … order (0, 0) group 0 blocks (128, 0) into output 0

1. All of a row of it is written in the round of that row, by one nest, and read in no other, by nests of that group.
2. Row r lies where row r mod 128 would, in room on the stack: so it stays in the nearest caches, is never written
   back to memory, and each thread has its own.
3. Members run one after the other in each block: what has been read by then gives its room to the next.

Source: array contraction (Gao, Olsen, Sarkar and Thekkath 1992), Halide's `fold_storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from ..compute.bodies import base_of
from ..ir import Instruction, Place, Value
from ..ir.placement import in_block
from ..ops.nest import Access, Output
from .arena import Arena, aligned
from .footprint import footprint
from .group import GroupedInstruction
from .ops import Loops, is_loops, needs_fill, row_block
from .switches import is_enabled

LoopsOf: TypeAlias = Callable[[Instruction], Loops | None]
"""The loops of an instruction, if it is a nest."""


def contract(steps: Sequence[GroupedInstruction]) -> dict[Value, Place]:
    """The places of what is contracted."""
    if not is_enabled("contract"):
        return {}
    loops = {step.instruction: step.loops for step in steps}
    last: dict[Value, Instruction] = {}
    for step in steps:
        last.update((base_of(operand), step.instruction) for operand in step.instruction.operands)
    places: dict[Value, Place] = {}
    rooms: dict[int, Arena] = {}
    for instruction, own in loops.items():
        if own is None or not row_block(own):
            continue
        room = rooms.setdefault(own.group, Arena(0))
        for result in instruction.results:
            if is_contracted(result, loops.get):
                places[result] = in_block(room.allocate(bytes_of_block(result, own)))
        for base in dict.fromkeys(base_of(operand) for operand in instruction.operands):
            if base in places and last[base] is instruction:
                room.release(places[base].offset, bytes_of_block(base, own))
    return places


def is_contracted(value: Value, loops_of: LoopsOf) -> bool:
    """Whether only the group of the nest that makes a value touches it, each round the row that is its own."""
    maker = value.producer
    loops = None if maker is None else loops_of(maker)
    if loops is None or not row_block(loops):
        return False
    written = loops.own_outputs[value.index]
    if written.init is not None or needs_fill(value.index, written, loops):
        return False
    readers = list(_readers(value))
    return (
        bool(readers)
        and _is_row(value, value, written, loops)
        and all(_reads_rows(value, *reader, loops, loops_of) for reader in readers)
    )


def block_bytes_of(instructions: Iterable[Instruction]) -> int:
    """The room on the stack for what is contracted: groups run one after the other."""
    return max(
        (
            place.offset + bytes_of_block(result, instruction.op)
            for instruction in instructions
            if is_loops(instruction)
            for result, place in zip(
                instruction.results, instruction.placement.results, strict=False
            )
            if place.space == "block"
        ),
        default=0,
    )


def bytes_of_row(value: Value, loops: Loops) -> int:
    """The bytes of what a nest over blocks of rows makes in a round of its outermost loop."""
    return value.tensor.bytes // loops.extents[loops.order[0]]


def bytes_of_block(value: Value, loops: Loops) -> int:
    """The same in a block."""
    return aligned(bytes_of_row(value, loops) * row_block(loops))


def _readers(value: Value) -> Iterator[tuple[Instruction, Value]]:
    """What reads a buffer, and which view of it."""
    views = [value]
    for view in views:  # which grows
        for user in view.uses:
            if user.op.is_view:
                views += user.results
            else:
                yield user, view


def _reads_rows(
    value: Value, user: Instruction, view: Value, loops: Loops, loops_of: LoopsOf
) -> bool:
    reader = loops_of(user)
    if reader is None or reader.group != loops.group or row_block(reader) != row_block(loops):
        return False
    read = [number for number, operand in enumerate(user.operands) if operand is view]
    begun = {written.init for written in reader.outputs}
    return begun.isdisjoint(read) and all(
        _is_row(value, view, reader.accesses[number], reader) for number in read
    )


def _is_row(value: Value, view: Value, use: Access | Output, loops: Loops) -> bool:
    """Whether round r of the outermost loop touches row r alone, of as many as there are rounds."""
    found = footprint(view.tensor.shape, use, loops.extents, loops.order[0])
    return (
        found is not None
        and found.row == 0
        and found.stride * found.rows == value.tensor.size
        and view.tensor.dtype == value.tensor.dtype
    )
