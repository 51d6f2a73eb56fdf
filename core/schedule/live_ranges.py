"""Live ranges of buffers, and which buffers a result may be written over.

A buffer is in use from the instruction that makes it to the last one that reads it or an alias of it; inside of a group
of nests, which share a loop, as long as the group runs.
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
from ..ops.nest import Access, Affine, Bounds, Nest, Output, is_nest


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
    groups: Sequence[int]
    ends: Sequence[int]
    """For every position, the last position of its group; itself outside of groups."""
    starts: Sequence[int]
    """For every position, the first one of its group."""
    last_reads: dict[Value, int] = field(default_factory=dict[Value, int])
    readers: dict[tuple[int, Value], int] = field(default_factory=dict[tuple[int, Value], int])
    """How many members of a group read a base."""
    makers: dict[Value, int] = field(default_factory=dict[Value, int])
    """For every base, the group that makes it."""
    made_at: dict[Value, int] = field(default_factory=dict[Value, int])
    """The position of what makes a base."""
    replaced: dict[Instruction, list[Value | None]] = field(
        default_factory=dict[Instruction, list["Value | None"]]
    )
    """What `replaced_operands` has found."""

    @classmethod
    def of(cls, instructions: Sequence[Instruction], groups: Sequence[int]) -> LiveRanges:
        lives = cls(instructions, groups, _group_ends(groups), _group_starts(groups))
        for position, (instruction, group) in enumerate(zip(instructions, groups, strict=True)):
            lives.makers.update((result, group) for result in instruction.results)
            lives.made_at.update((result, position) for result in instruction.results)
            for base in {base_of(operand) for operand in instruction.operands}:
                lives.readers[group, base] = lives.readers.get((group, base), 0) + 1
                lives.last_reads[base] = position
        return lives

    def end(self, base: Value) -> int:
        """The last position where the buffer of `base` is in use, by updates of it in its group, too.

        These must be in place: before the loop of the group, there is nothing to be copied yet.
        """
        updated = self.updated_in_group(base)
        if updated is not None:
            return self.end(updated)
        return self.ends[self.last_reads.get(base, self.made_at[base])]

    def updated_in_group(self, base: Value) -> Value | None:
        """What a nest of the group that makes `base` makes of it by an update."""
        group, last = self.groups[self.made_at[base]], self.last_reads.get(base, -1)
        if group < 0 or last < 0 or self.groups[last] != group:
            return None
        instruction = self.instructions[last]
        for result in instruction.results:
            if _is_updated(instruction, result, base) and base in self.overwritten(last, result):
                return result
        return None

    def is_dead(self, base: Value, result: Value) -> bool:
        """Whether nobody reads `base` any more when `result` is made, or is made element by element from it."""
        position = self.made_at[result]
        last, group = self.last_reads.get(base, -1), self.groups[position]
        if last == position:
            return base in self.overwritten(position, result)
        return last < position and (group < 0 or self.groups[last] != group)

    def overwritten(self, position: int, result: Value) -> list[Value]:
        """Operand buffers that `result` may be written over: none of them is read again.

        Inside a group, where other members may be a row ahead or behind, only a buffer that the group has
        made row by row, or that no other member reads.
        """
        instruction, group = self.instructions[position], self.groups[position]
        if instruction.op.is_structured:
            if instruction not in self.replaced:
                self.replaced[instruction] = replaced_operands(instruction)
            base = self.replaced[instruction][result.index]
            return [base] if base is not None and self.last_reads[base] == position else []
        return [
            base
            for base in dict.fromkeys(base_of(operand) for operand in instruction.operands)
            if self.last_reads[base] == position
            and may_overwrite(instruction, result, base)
            and (group < 0 or self.makers.get(base) == group or self.readers[group, base] == 1)
        ]


def _is_updated(instruction: Instruction, result: Value, base: Value) -> bool:
    """Whether the result of a nest begins with `base`."""
    if not is_nest(instruction):
        return False
    init = instruction.op.outputs[result.index].init
    return init is not None and base_of(instruction.operands[init]) is base


def _group_ends(groups: Sequence[int]) -> list[int]:
    """Aliases and literals may stand between the members of a group; they do not end it."""
    last = {group: position for position, group in enumerate(groups)}
    return [last[group] if group >= 0 else position for position, group in enumerate(groups)]


def _group_starts(groups: Sequence[int]) -> list[int]:
    first: dict[int, int] = {}
    for position, group in enumerate(groups):
        first.setdefault(group, position)
    return [first[group] if group >= 0 else position for position, group in enumerate(groups)]


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
