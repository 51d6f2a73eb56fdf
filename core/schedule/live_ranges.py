"""Live ranges of buffers, and which buffers a result may be written over.

A buffer is in use from the instruction that makes it to the last one that reads it or an alias of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from ..compute.address import address
from ..compute.bodies import base_of, in_place_flows
from ..ir import Instruction, Value
from ..kernels.ops import Kernel
from ..lazy_dataclass import dataclass
from ..ops.nest import Access, Affine, Bounds, Nest, Output
from .switches import is_enabled


def may_overwrite(instruction: Instruction, result: Value, operand: Value) -> bool:
    """Whether the buffer of base `operand`, dead afterwards, can hold `result` from the start.

    Only when every point of the nest writes an element of its own and reads no other of the operand; when the result
    begins with the operand, which is read nowhere else; or when the bodies of a structured op have been planned for
    that (`Body.replaced`); or when a kernel says so.
    """
    op = instruction.op
    if op.is_structured:
        return replaced_operands(instruction)[result.index] is operand
    if isinstance(op, Kernel):
        uses = [n for n, x in enumerate(instruction.operands) if base_of(x) is operand]
        return bool(uses) and all((n, result.index) in op.overwriting for n in uses)
    if not isinstance(op, Nest) or operand.tensor.dtype.bytes != result.tensor.dtype.bytes:
        return False
    written = op.outputs[result.index]
    if written.init is not None:
        return base_of(instruction.operands[written.init]) is operand and _updates_in_place(
            instruction, op, written.init
        )
    if any(base_of(instruction.operands[number]) is operand for number in op.updates):
        return False
    if any(other.within == result.index for other in op.outputs):
        return False
    if operand.tensor.size != written.type.size or not _writes_each_once(op, written):
        return False
    target = address(op.extents, written.type, written.indices, written.bounds)
    return target is not None and all(
        address(op.extents, value.tensor, access.indices, access.bounds) == target
        for value, access in zip(instruction.operands, op.accesses, strict=True)
        if base_of(value) is operand
    )


def replaced_operands(instruction: Instruction) -> list[Value | None]:
    """For each result of a structured instruction, the base in whose buffer it may lie, if that is dead afterwards.

    The base of what a loop carries, or of the input that a body of an `if` yields there; and it is no other operand.
    """
    bases = [base_of(x) for x in instruction.operands]
    counts = Counter(bases)
    found = [None if f is None else bases[f.operands[0]] for f in in_place_flows(instruction)]
    return [base if base is not None and counts[base] == 1 else None for base in found]


@dataclass(frozen=True)
class LiveRanges:
    """Live ranges of buffers."""

    instructions: Sequence[Instruction]
    last_reads: dict[Value, int] = field(default_factory=dict[Value, int])
    made_at: dict[Value, int] = field(default_factory=dict[Value, int])
    """The position of what makes a base."""
    replaced: dict[Instruction, list[Value | None]] = field(
        default_factory=dict[Instruction, list["Value | None"]]
    )
    """What `replaced_operands` has found."""
    in_place: bool = True
    """Whether what one instruction makes may lie where its operands lay."""

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> LiveRanges:
        lives = cls(instructions, in_place=is_enabled("in-place"))
        for position, instruction in enumerate(instructions):
            lives.made_at.update((result, position) for result in instruction.results)
            for operand in instruction.operands:
                lives.last_reads[base_of(operand)] = position
        return lives

    def end(self, base: Value) -> int:
        """The last position where the buffer of `base` is in use."""
        return self.last_reads.get(base, self.made_at[base])

    def is_dead(self, base: Value, result: Value) -> bool:
        """Whether nobody reads `base` any more when `result` is made, or is made element by element from it."""
        position = self.made_at[result]
        last = self.last_reads.get(base, -1)
        return last < position or (last == position and base in self.overwritten(position, result))

    def overwritten(self, position: int, result: Value) -> list[Value]:
        """Operand buffers that `result` may be written over: none of them is read again."""
        instruction = self.instructions[position]
        if instruction.op.is_structured:
            if instruction not in self.replaced:
                self.replaced[instruction] = replaced_operands(instruction)
            base = self.replaced[instruction][result.index]
            return [base] if base is not None and self.last_reads[base] == position else []
        if not self.in_place:
            return []
        return [
            base
            for base in dict.fromkeys(base_of(operand) for operand in instruction.operands)
            if self.last_reads[base] == position and may_overwrite(instruction, result, base)
        ]


def _updates_in_place(instruction: Instruction, nest: Nest, init: int) -> bool:
    """Whether operand `init` is read only where it is written, by a point that no other writes to, if at all."""
    base, place = base_of(instruction.operands[init]), nest.accesses[init]
    others = (
        (value, access)
        for number, (value, access) in enumerate(
            zip(instruction.operands, nest.accesses, strict=True)
        )
        if number != init and base_of(value) is base
    )
    if any(
        value.tensor != instruction.operands[init].tensor or access != place
        for value, access in others
    ):
        return False
    rank = len(nest.extents)
    is_read = any(
        argument.uses
        for argument, value in zip(
            instruction.regions[0].entry.arguments[rank:], instruction.operands, strict=True
        )
        if base_of(value) is base
    )
    own = len(nest.own_outputs) == len(nest.outputs) and _writes_own_elements(nest, place)
    return not is_read or own


def _writes_own_elements(nest: Nest, place: Access) -> bool:
    """Whether different points are at different elements of `place`: each axis is an index, or has one point."""
    affine = [index for index in place.indices if isinstance(index, Affine)]
    named = [index.terms[0][0] for index in affine if len(index.terms) == 1]
    used = [axis for axis, extent in enumerate(nest.extents) if extent > 1]
    return place.bounds is not Bounds.CLIP and set(used) <= set(named)


def _writes_each_once(nest: Nest, written: Output) -> bool:
    kept = written.kept_axes
    return (
        written.combinator is None
        and kept is not None
        and all(axis in kept or extent == 1 for axis, extent in enumerate(nest.extents))
        and tuple(nest.extents[axis] for axis in kept) == written.type.shape
    )
