"""Buffer assignment: a place for every buffer, with reuse and in-place updates.

1. What is returned lies in its output (`copy_aliased_results` has given each output a buffer of its own), unless a
   parameter that is donated to this output is read once it is made: then in the arena, and `return` copies it.
2. Everything else lies in the arena from the instruction that makes it to the last one that reads it or an
   alias of it; or, if it is large, in an output whose own value is made later (`idle_outputs`).  Instructions of one
   group share a loop, so their buffers live as long as the group.
3. A nest may write over an operand that nobody reads later, when each point reads only the element that
   it writes.  So may a loop, over an operand that it carries.
4. What a body yields lies where it belongs at once (`BlockResults`), if that is free when it is made; else in the
   arena, and `yield` copies it.
5. The bodies of a structured op have a frame of their own in the arena, while it runs.
6. Scalars of functions with control flow are variables, not memory; `return` and `yield` copy them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from ..compute.address import address
from ..compute.bodies import base_of, in_place_flows
from ..errors import InternalError
from ..ir import Builder, Instruction, Place, Value
from ..ir.placement import arena, output, register
from ..kernels.ops import Kernel
from ..lazy_dataclass import dataclass
from ..ops.movement import ShapeCast
from ..ops.nest import (
    Access,
    Affine,
    Bounds,
    Nest,
    Output,
    build_nest,
    identity_access,
    is_nest,
)
from .arena import Arena
from .idle_outputs import IdleOutput, IdleOutputs
from .ops import makes_buffers


def copy_aliased_results(
    b: Builder, returned: Sequence[Value], donated: Sequence[Value | None]
) -> list[Value]:
    """The values to return, each in a buffer made for it alone: copies what would be shared.

    A parameter, a literal, and what is returned twice are copied; not a parameter that is donated to this result.
    """
    taken: set[Value] = set()
    owned: list[Value] = []
    for number, value in enumerate(returned):
        base = base_of(value)
        lies_there = number < len(donated) and donated[number] is base
        if not lies_there and (base.op is None or base.op.is_constant or base in taken):
            value = _copy(b, value)
            base = base_of(value)
        taken.add(base)
        owned.append(value)
    return owned


def copy_overwritten_arguments(
    b: Builder, yielded: Sequence[Value], replaced: Sequence[Value | None]
) -> list[Value]:
    """The values to yield, with copies of arguments that others may replace (`Body.replaced`) first."""
    found = list(yielded)
    arguments = set(replaced)
    for number, value in enumerate(yielded):
        base = base_of(value)
        if base in arguments and not (number < len(replaced) and replaced[number] is base):
            found[number] = _copy(b, value)
    return found


@dataclass(frozen=True)
class BlockResults:
    """A block's results with their destination buffers, and the carried arguments that lie there until overwritten."""

    values: Sequence[Value]
    replaced: Sequence[Value | None] = ()


@dataclass(frozen=True)
class BufferAssignment:
    """Where results lie, where in the arena the frames of structured instructions begin, and what rounding cuts off."""

    places: Mapping[Value, Place]
    frames: Mapping[Instruction, int]
    corrections: Mapping[Instruction, tuple[Place, ...]]


def assign_buffers(
    instructions: Sequence[Instruction],
    groups: Sequence[int],
    returned: BlockResults,
    frames: Mapping[Instruction, int],
    scratch: Mapping[Instruction, Sequence[int]],
    contracted: Mapping[Value, Place],
    *,
    reserved: int,
    uses_registers: bool,
) -> BufferAssignment:
    """Where each result lies of each instruction that makes any.

    `groups[i]` is −1 outside of groups; `frames` are the sizes of frames; the arena begins at `reserved`.
    `scratch` are sizes of further buffers that an instruction needs while it, or its group, runs; what is `contracted`
    has its place.
    """
    lives = _LiveRanges.of(instructions, groups)
    plan = _Assigner(lives, returned.replaced, Arena(reserved), uses_registers=uses_registers)
    plan.places.update(contracted)
    plan.place_outputs(returned.values)
    for position in reversed(range(len(instructions))):
        plan.share_outputs(position)
    plan.find_idle_outputs(returned.values)
    dying: dict[int, list[Value]] = {}
    for base, position in lives.last_reads.items():
        dying.setdefault(lives.ends[position], []).append(base)
    found: dict[Instruction, int] = {}
    corrections: dict[Instruction, tuple[Place, ...]] = {}
    held: dict[int, list[tuple[int, int]]] = {}
    for position, instruction in enumerate(instructions):
        if makes_buffers(instruction):
            for result in instruction.results:
                plan.place(position, result)
                if result not in lives.last_reads:
                    dying.setdefault(lives.ends[position], []).append(result)
        if frames.get(instruction):
            found[instruction] = plan.frame(frames[instruction])
        if scratch.get(instruction):
            rooms = [(plan.arena.allocate(size), size) for size in scratch[instruction]]
            corrections[instruction] = tuple(arena(offset) for offset, _ in rooms)
            held.setdefault(lives.ends[position], []).extend(rooms)
        for base in dying.get(position, ()):
            plan.release(base)
        for offset, size in held.get(position, ()):
            plan.arena.release(offset, size)
    for base in lives.made_at:
        updated = lives.updated_in_group(base)
        if updated is not None and plan.places[base] != plan.places[updated]:
            raise InternalError("what a group makes and updates is in two places")
    return BufferAssignment(plan.places, found, corrections)


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
class _LiveRanges:
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
    def of(cls, instructions: Sequence[Instruction], groups: Sequence[int]) -> _LiveRanges:
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


@dataclass
class _Assigner:
    """Assigns places, with the arena that they come from."""

    lives: _LiveRanges
    replaced: Sequence[Value | None]
    arena: Arena
    uses_registers: bool
    places: dict[Value, Place] = field(default_factory=dict[Value, Place])
    held: dict[Value, tuple[int, int]] = field(default_factory=dict[Value, tuple[int, int]])
    """Offset and size of the arena range that a base owns until it is released."""
    lent: dict[Value, IdleOutput] = field(default_factory=dict[Value, IdleOutput])
    """The output that a base which is no result lies in until it is released."""
    idle: IdleOutputs = field(default_factory=IdleOutputs)
    registers: int = 0

    def place_outputs(self, returned: Sequence[Value]) -> None:
        """Let what is returned lie in its output, where that is free."""
        for number, value in enumerate(returned):
            base = base_of(value)
            is_made = base in self.lives.made_at and not (base.op and base.op.is_constant)
            if is_made and not self._is_variable(base):
                self._place_output(base, output(number))

    def share_outputs(self, position: int) -> None:
        """Let an operand that an output would overwrite lie in the output from the start."""
        for result in self.lives.instructions[position].results:
            if result not in self.places or self.places[result].space != "output":
                continue
            for base in self.lives.overwritten(position, result):
                maker = base.producer
                if maker is not None and makes_buffers(maker) and base not in self.places:
                    self._place_output(base, self.places[result])
                    if base in self.places:
                        break

    def _place_output(self, base: Value, place: Place) -> None:
        """Let `base` lie in an output, unless the argument that lies there is read once `base` is made."""
        lies_there = self.replaced[place.offset : place.offset + 1]
        if base not in self.places and all(
            x is None or self.lives.is_dead(x, base) for x in lies_there
        ):
            self.places[base] = place

    def find_idle_outputs(self, returned: Sequence[Value]) -> None:
        """Find the outputs that are free until their own values are made; none where a donated argument lies."""
        begins: dict[Place, int] = {}
        for base, place in self.places.items():
            begin = self.lives.starts[self.lives.made_at[base]]
            begins[place] = min(begin, begins.get(place, begin))
        for number, value in enumerate(returned):
            place = output(number)
            if place in begins and not any(self.replaced[number : number + 1]):
                self.idle.give_back(IdleOutput.of(value.tensor, place, begins[place]))

    def place(self, position: int, result: Value) -> None:
        """Find room for `result`."""
        if result in self.places:
            return
        if self._is_variable(result):
            self.places[result] = register(self.registers)
            self.registers += 1
            return
        for base in self.lives.overwritten(position, result):
            if base in self.held:
                self.held[result] = self.held.pop(base)
                break
            if base in self.lent and self.lent[base].may_hold(
                result.tensor, self.lives.end(result)
            ):
                self.lent[result] = self.lent.pop(base)
                break
        else:
            found = self.idle.take(result.tensor, self.lives.end(result))
            if found is not None:
                self.lent[result] = found
            else:
                size = result.tensor.bytes
                self.held[result] = (self.arena.allocate(size), size)
        lent = self.lent.get(result)
        self.places[result] = lent.place if lent is not None else arena(self.held[result][0])

    def _is_variable(self, result: Value) -> bool:
        return self.uses_registers and not result.tensor.rank

    def frame(self, size: int) -> int:
        """Room that is free again at once: nothing else is made while the instruction runs."""
        offset = self.arena.allocate(size)
        self.arena.release(offset, size)
        return offset

    def release(self, base: Value) -> None:
        """Give the room of `base` back, if it has any (an output or a parameter has none)."""
        if base in self.held:
            self.arena.release(*self.held.pop(base))
        if base in self.lent:
            self.idle.give_back(self.lent.pop(base))


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


def _copy(b: Builder, value: Value) -> Value:
    shape = value.tensor.shape
    flat = value if len(shape) <= 1 else b.emit(ShapeCast((value.tensor.size,)), value)
    point = identity_access(flat.tensor.shape)
    copied = build_nest(
        b,
        flat.tensor.shape,
        [(flat, Access(point))],
        [Output(flat.tensor, point)],
        lambda _, __, scalars: scalars,
    )[0]
    return copied if len(shape) <= 1 else b.emit(ShapeCast(shape), copied)
