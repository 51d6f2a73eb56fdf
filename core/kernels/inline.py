"""Computes a producer where it is read: each load of a buffer becomes what a nest makes of its operands there.

    %t = loadAt %p at d0, d1 lanes 16 …      →      %x = loadAt %a at d0, d1 lanes 16 …
                                                    %t = tanh %x

So what makes an operand of a matrix product, element by element (its *prologue*), is computed where the operand is
packed, and is never stored itself.

Source: `compute_inline` of Halide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..ir.instruction import Block, Instruction, Value
from ..ir.surgery import clone_instructions, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.forms import Pointwise
from ..ops.literal import Literal
from ..ops.nest import Affine, Nest
from ..ops.reduction import Broadcast
from ..types import PointerType, TensorType
from .access_ops import LoadAt
from .indices import BufferAccess, IndexSum, access_of, maps_of
from .loops import apply_op
from .ops import Kernel, body_nanoseconds, executed
from .products import is_epilogue

_MOST_AGAIN: Final = 0.03
"""The part of a kernel's time that elements may take which are computed again, instead of once and stored."""

_MOST_ALONE: Final = 0.125
"""The part of it that may be computed one by one, and not in vectors."""


def is_inlined(nest: Nest, body: Block) -> bool:
    """Whether a nest makes one tensor, element by element, of what its operands have side by side."""
    rank = len(nest.extents)
    return (
        len(nest.accesses) > 0
        and len(nest.outputs) == 1
        and is_epilogue(nest, nest.extents)
        and nest.outputs[0].type.shape == nest.extents
        and not any(argument.uses for argument in body.arguments[:rank])
        and all(isinstance(i.op, Pointwise | Literal) for i in body.instructions[:-1])
        and all(_is_side_by_side(access.indices, rank - 1) for access in nest.accesses)
    )


def _is_side_by_side(indices: Sequence[object], axis: int) -> bool:
    """Whether neighbours along an axis of the nest are neighbours in memory, or one element."""
    along = [dict(index.terms).get(axis, 0) for index in indices if isinstance(index, Affine)]
    return not any(along[:-1]) and (not along or along[-1] in (0, 1))


def inline_producer(kernel: Instruction[Kernel], position: int, nest: Instruction[Nest]) -> bool:
    """Compute what `nest` makes where a kernel loads it, and have the kernel read the nest's operands in its place.

    False, and nothing is changed, where much time would go into elements that are loaded more than once, or where many
    are not loaded as vectors.
    """
    block, operands = kernel.regions[0].entry, kernel.operands
    buffer = block.arguments[position]
    found = [
        (inner, access)
        for inner in walk_blocks(kernel.regions[0])
        for one in inner.instructions
        if (access := access_of(one)) is not None and access.buffer is buffer
    ]
    loads = [access for _, access in found]
    times = {one: count for count, one in executed(kernel)}
    computed = sum(times[access.instruction] * access.touched for access in loads)
    times_again = computed / operands[position].tensor.size - 1
    # a nest counts operations of elements, a kernel those of vectors
    lanes = max([1, *(access.lanes for access in loads)])
    again = times_again * nest.op.nanoseconds(nest) / lanes
    alone = sum(times[access.instruction] for access in loads if not access.lanes)
    if (
        len(loads) != len(buffer.uses)
        or again > _MOST_AGAIN * body_nanoseconds(kernel)
        or alone > _MOST_ALONE * computed
    ):
        return False
    read = [Value(PointerType(x.tensor), x.name) for x in nest.operands]
    for inner, access in found:
        _Inlined(access, nest, read).write(inner)
    first = len(operands)
    block.arguments[position : position + 1] = read[:1]
    block.arguments[first:first] = read[1:]
    kernel.set_operands(
        [*operands[:position], nest.operands[0], *operands[position + 1 :], *nest.operands[1:]]
    )
    kept = tuple((x, y) for x, y in kernel.op.overwriting if x != position)
    kernel.op = replace(kernel.op, overwriting=kept)
    return True


@dataclass(frozen=True)
class _Inlined:
    """What takes the place of one load, with the buffers that the nest's operands are in."""

    access: BufferAccess
    nest: Instruction[Nest]
    buffers: Sequence[Value]

    def write(self, block: Block) -> None:
        """Write it into the block of the load."""
        old, nest = self.access.instruction, self.nest
        rank, body = len(nest.op.extents), nest.regions[0].entry
        written = Block()
        values: dict[Value, Value] = {}
        for argument, access, buffer in zip(
            body.arguments[rank:], nest.op.accesses, self.buffers, strict=True
        ):
            if argument.uses:
                values[argument] = self._load(written, buffer, access.indices)
        for instruction in body.instructions[:-1]:
            clone_instructions(written, [instruction], values)
            self._widen(written.instructions[-1])
        (result,) = body.terminator.operands
        found = self._spread(written, values[result])
        position = block.instructions.index(old)
        block.instructions[position : position + 1] = written.instructions
        old.result.replace_with(found)
        old.drop_all_references()

    def _load(self, block: Block, buffer: Value, indices: Sequence[object]) -> Value:
        """An operand of the nest at the point that was loaded."""
        affine = [index for index in indices if isinstance(index, Affine)]
        maps, coordinates = maps_of([self._sum(index) for index in affine])
        steps = tuple(sum(c * self.access.steps[axis] for axis, c in one.terms) for one in affine)
        lanes, old = self.access.lanes, self.access.instruction.op
        assert isinstance(old, LoadAt)
        if lanes and any(steps):
            op = LoadAt(maps, lanes, steps, old.active)
        else:
            op = LoadAt(maps)
        made = apply_op(op, buffer, *coordinates)
        block.instructions.append(made)
        return made.result

    def _sum(self, index: Affine) -> IndexSum:
        found = IndexSum(index.constant, {})
        for axis, coefficient in index.terms:
            found = found.plus(self.access.indices[axis], coefficient)
        return found

    def _widen(self, instruction: Instruction) -> None:
        """Make a vector of what is computed of one; scalars count for each lane."""
        if any(x.tensor.rank for x in instruction.operands):
            for result in instruction.results:
                result.type = TensorType((self.access.lanes,), result.tensor.dtype)

    def _spread(self, block: Block, value: Value) -> Value:
        """A value in as many lanes as were loaded."""
        if value.tensor.rank or not self.access.lanes:
            return value
        block.instructions.append(apply_op(Broadcast((self.access.lanes,)), value))
        return block.instructions[-1].result
