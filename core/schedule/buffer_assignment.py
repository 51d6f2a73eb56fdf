"""Buffer assignment: a place for every buffer, with reuse and in-place updates.

1. What is returned lies in its output (`copy_aliased_results` has given each output a buffer of its own), unless a
   parameter that is donated to this output is read once it is made: then in the arena, and `return` copies it.
2. Everything else lies in the arena from the instruction that makes it to the last one that reads it or an
   alias of it; or, if it is large, in an output whose own value is made later (`idle_outputs`), as may what threads
   share of the buffers that a kernel works with.  Instructions of one group share a loop, so their buffers live as
   long as the group.
3. A nest may write over an operand that nobody reads later, when each point reads only the element that
   it writes.  So may a loop, over an operand that it carries.
4. What a body yields lies where it belongs at once (`BlockResults`), if that is free when it is made; else in the
   arena, and `yield` copies it.  What it yields as it was given to it takes its buffer along (`moved_buffers`).
5. The bodies of a structured op have a frame of their own in the arena, while it runs.
6. Scalars of functions with control flow are variables, not memory; `return` and `yield` copy them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from ..compute.bodies import base_of
from ..ir import Builder, Instruction, Place, Value
from ..ir.placement import arena, output, register
from ..lazy_dataclass import dataclass
from ..ops.movement import ShapeCast
from ..ops.nest import (
    Access,
    Output,
    build_nest,
    identity_access,
)
from ..types import TensorType
from .arena import Arena
from .idle_outputs import LEAST_SCRATCH, IdleOutput, IdleOutputs, ReservedOutputs
from .live_ranges import LiveRanges
from .ops import makes_buffers
from .switches import is_enabled


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
    b: Builder,
    yielded: Sequence[Value],
    replaced: Sequence[Value | None],
    moves: Sequence[int] = (),
) -> list[Value]:
    """The values to yield, with copies of arguments that others may replace (`Body.replaced`) first.

    `moves` are the buffers that values are in (`moved_buffers`): what stays in its own is not copied.
    """
    found = list(yielded)
    arguments = set(replaced)
    for number, value in enumerate(yielded):
        base, place = base_of(value), moves[number] if moves else number
        if base in arguments and not (place < len(replaced) and replaced[place] is base):
            found[number] = _copy(b, value)
    return found


@dataclass(frozen=True)
class BlockResults:
    """A block's results with their destination buffers, and the carried arguments that lie there until overwritten."""

    values: Sequence[Value]
    replaced: Sequence[Value | None] = ()
    moves: Sequence[int] = ()
    """For each value the buffer that it belongs in, its own unless a loop moves buffers (`moved_buffers`)."""


class Scratch(NamedTuple):
    """A buffer that an instruction works with: its bytes, and its type if it may lie in an output."""

    bytes: int
    type: TensorType | None = None


@dataclass(frozen=True)
class BufferAssignment:
    """Where results lie, where in the arena the frames of structured instructions begin, and scratch buffers."""

    places: Mapping[Value, Place]
    frames: Mapping[Instruction, int]
    scratch: Mapping[Instruction, tuple[Place, ...]]


def assign_buffers(
    instructions: Sequence[Instruction],
    returned: BlockResults,
    frames: Mapping[Instruction, int],
    scratch: Mapping[Instruction, Sequence[Scratch]],
    *,
    reserved: int,
    uses_registers: bool,
) -> BufferAssignment:
    """Where each result lies of each instruction that makes any.

    `frames` are the sizes of frames; the arena begins at `reserved`.  `scratch` are further buffers that an
    instruction needs while it runs.
    """
    lives = LiveRanges.of(instructions)

    def planned(*, from_the_end: bool) -> tuple[BufferAssignment, _Assigner]:
        plan = _Assigner(lives, returned.replaced, Arena(reserved), uses_registers=uses_registers)
        found = plan.assign(returned, frames, scratch, from_the_end=from_the_end)
        return found, plan

    found, plan = planned(from_the_end=False)
    if plan.has_lent:
        other, second = planned(from_the_end=True)
        if second.arena.end < plan.arena.end:
            return other
    return found


@dataclass
class _Assigner:
    """Assigns places, with the arena that they come from."""

    lives: LiveRanges
    replaced: Sequence[Value | None]
    arena: Arena
    uses_registers: bool
    places: dict[Value, Place] = field(default_factory=dict[Value, Place])
    held: dict[Value, tuple[int, int]] = field(default_factory=dict[Value, tuple[int, int]])
    """Offset and size of the arena range that a base owns until it is released."""
    lent: dict[Value, IdleOutput] = field(default_factory=dict[Value, IdleOutput])
    """The output that a base which is no result lies in until it is released."""
    idle: IdleOutputs = field(default_factory=IdleOutputs)
    reserved: dict[Value, Place] = field(default_factory=dict[Value, Place])
    """The outputs that are given away beforehand."""
    has_lent: bool = False
    """Whether outputs have been free."""
    registers: int = 0

    def assign(
        self,
        returned: BlockResults,
        frames: Mapping[Instruction, int],
        scratch: Mapping[Instruction, Sequence[Scratch]],
        *,
        from_the_end: bool,
    ) -> BufferAssignment:
        """Find all places; outputs are given away from the first value on, or from the last one."""
        lives = self.lives
        self.place_outputs(returned)
        for position in reversed(range(len(lives.instructions))):
            self.share_outputs(position)
        self.find_idle_outputs(returned.values)
        if from_the_end:
            self.reserve_outputs()
        dying: dict[int, list[Value]] = {}
        for base, position in lives.last_reads.items():
            dying.setdefault(position, []).append(base)
        found: dict[Instruction, int] = {}
        rooms: dict[Instruction, tuple[Place, ...]] = {}
        for position, instruction in enumerate(lives.instructions):
            if makes_buffers(instruction):
                for result in instruction.results:
                    self.place(position, result)
                    if result not in lives.last_reads:
                        dying.setdefault(position, []).append(result)
            if frames.get(instruction):
                found[instruction] = self.frame(frames[instruction])
            taken = [self.room(position, buffer) for buffer in scratch.get(instruction, ())]
            rooms[instruction] = tuple(
                one.place if isinstance(one, IdleOutput) else arena(one[0]) for one in taken
            )
            for base in dying.get(position, ()):
                self.release(base)
            for one in taken:
                if isinstance(one, IdleOutput):
                    self.idle.give_back(one)
                else:
                    self.arena.release(*one)
        return BufferAssignment(self.places, found, rooms)

    def place_outputs(self, returned: BlockResults) -> None:
        """Let what is returned lie in its output, where that is free."""
        for number, value in enumerate(returned.values):
            base = base_of(value)
            is_made = base in self.lives.made_at and not (base.op and base.op.is_constant)
            if is_made and not self._is_variable(base):
                self._place_output(
                    base, output(returned.moves[number] if returned.moves else number)
                )

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
        if not is_enabled("idle-outputs"):
            return
        begins: dict[Place, int] = {}
        for base, place in self.places.items():
            begin = self.lives.made_at[base]
            begins[place] = min(begin, begins.get(place, begin))
        for number, value in enumerate(returned):
            place = output(number)
            if place in begins and not any(self.replaced[number : number + 1]):
                self.idle.give_back(IdleOutput.of(value.tensor, place, begins[place]))
        self.has_lent = bool(self.idle.free())

    def reserve_outputs(self) -> None:
        """Give outputs away beforehand, to the values that are made last before those of the outputs themselves."""
        outputs, self.idle = ReservedOutputs(self.idle.free()), IdleOutputs()
        buffers: list[list[Value]] = []  # values that lie in each other's place
        there: dict[Value, list[Value]] = {}
        for position, instruction in enumerate(self.lives.instructions):
            for result in instruction.results if makes_buffers(instruction) else ():
                if result in self.places or self._is_variable(result):
                    continue
                bases = self.lives.overwritten(position, result)
                before = next((base for base in bases if base in there), None)
                there[result] = [] if before is None else there.pop(before)
                if before is None:
                    buffers.append(there[result])
                there[result].append(result)
        for values in reversed(buffers):
            first, last = values[0], values[-1]
            start = self.lives.made_at[first]
            found = outputs.take(first.tensor, start, self.lives.end(last))
            if found is not None:
                self.reserved.update((value, found.place) for value in values)

    def place(self, position: int, result: Value) -> None:
        """Find room for `result`."""
        if result in self.places:
            return
        if result in self.reserved:
            self.places[result] = self.reserved[result]
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

    def room(self, position: int, buffer: Scratch) -> IdleOutput | tuple[int, int]:
        """Room for a scratch buffer while one instruction runs: an output, or offset and size in the arena."""
        lent = None
        if buffer.type is not None and buffer.bytes >= LEAST_SCRATCH:
            lent = self.idle.take(buffer.type, position)
        return lent or (self.arena.allocate(buffer.bytes), buffer.bytes)

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
