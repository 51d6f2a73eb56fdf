"""Proof that what a kernel loads and stores lies inside of its buffers.

Source: Banerjee 1988, Dependence Analysis for Supercomputing: affine indices over boxes are smallest and largest at
corners, so the intervals found here are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from .access_ops import StreamInto, buffer_of
from .dependence import Range, range_of
from .indices import BufferAccess, IndexSum, access_of, accesses_of
from .loops import body_of, counted_op


@dataclass(frozen=True)
class OutOfBounds:
    """A load or store that may touch what is not in its buffer, and why."""

    instruction: Instruction
    reason: str


def accesses_outside(block: Block) -> Iterator[OutOfBounds]:
    """The loads and stores of a kernel's body, and of the loops in it that run, that are not proved to be inside."""
    ranges: dict[Value, Range] = {}
    pending = [block]
    while pending:
        for instruction in pending.pop().instructions:
            if instruction.regions and counted_op(instruction).count:
                body = body_of(instruction)
                ranges[body.arguments[0]] = range_of(instruction)
                pending.append(body)
            elif (access := access_of(instruction)) is not None:
                for reason in _reasons(access, ranges):
                    yield OutOfBounds(instruction, reason)
            elif isinstance(instruction.op, StreamInto):
                for access in accesses_of(instruction):
                    for reason in _reasons(access, ranges):
                        yield OutOfBounds(instruction, reason)


def _reasons(access: BufferAccess, ranges: Mapping[Value, Range]) -> Iterator[str]:
    tensor = buffer_of(access.instruction.op.name, access.buffer.type)
    for axis, (index, extent) in enumerate(zip(access.indices, tensor.shape, strict=True)):
        found = interval_of(index, ranges)
        if found is None:
            yield f"the index along axis {axis} is computed from what is not known"
            continue
        last = access.steps[axis] * (access.touched - 1)
        low, high = found[0] + min(0, last), found[1] + max(0, last)
        if low < 0 or high >= extent:
            yield f"indices {low} to {high} along axis {axis}, which has {extent} elements"


def interval_of(index: IndexSum, ranges: Mapping[Value, Range]) -> tuple[int, int] | None:
    """The smallest and the largest value of a sum; None where a value in it may be anything."""
    low = high = index.constant
    for value, coefficient in index.terms.items():
        whole = ranges.get(value)
        if whole is None:
            return None
        first = coefficient * whole.lower
        last = first + coefficient * whole.step * (whole.extent - 1)
        low, high = low + min(first, last), high + max(first, last)
    return low, high
