"""What lives inside of a block group alone, and so has room for one block of its rows (`schedule.contraction`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..ir import Instruction, Value
from ..ops.nest import Access, Output
from ..schedule.ops import Loops, row_block
from .footprint import footprint
from .index_maps import axes_of, covers

LoopsOf: TypeAlias = Callable[[Instruction], Loops | None]
"""The loops of an instruction, if it is a nest."""


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


def needs_fill(number: int, written: Output, op: Loops) -> bool:
    """Elements that nobody writes, or that are joined in memory, start as the identity."""
    if written.init is not None or not covers(written, op.extents):
        return True
    if any(other.within == number for other in op.outputs):
        return True
    if written.combinator is None:
        return False
    kept = axes_of(written.indices, op.extents)
    order = [axis for axis in op.order if op.extents[axis] > 1]
    deepest = max((n for n, axis in enumerate(order) if axis in kept), default=0)
    return any(axis not in kept for axis in order[:deepest])
