"""Memory plan: a place for every buffer that the program makes.

1. What is returned lies in its output (`own_outputs` has given each output a buffer of its own).
2. Everything else lies in the arena from the instruction that makes it to the last one that reads it or an
   alias of it.  Instructions of one group share a loop, so their buffers live as long as the group.
3. A nest may write over an operand that nobody reads later, when each point reads only the element that
   it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..compute.address import address
from ..ir import Builder, Instruction, Value
from ..ops.literal import Literal
from ..ops.movement import ShapeCast
from ..ops.nest import (
    Access,
    Nest,
    Output,
    build_nest,
    identity_access,
)
from ..types import TensorType
from .arena import Arena
from .ops import Place, arena, output


def own_outputs(b: Builder, returned: Sequence[Value]) -> list[Value]:
    """The values to return, each in a buffer made for it alone: copies what would be shared.

    A parameter, a literal, and what is returned twice are copied.
    """
    taken: set[Value] = set()
    owned: list[Value] = []
    for value in returned:
        base = base_of(value)
        if base.producer is None or isinstance(base.op, Literal) or base in taken:
            value = _copy(b, value)
            base = base_of(value)
        taken.add(base)
        owned.append(value)
    return owned


def base_of(value: Value) -> Value:
    """The value whose buffer this one is: follows `shapeCast` back."""
    while value.producer is not None and isinstance(value.producer.op, ShapeCast):
        value = value.producer.operands[0]
    return value


def plan_memory(
    instructions: Sequence[Instruction], groups: Sequence[int], returned: Sequence[Value]
) -> dict[Value, Place]:
    """Where each result of each nest and library op lies; `groups[i]` is −1 outside of groups."""
    lives = _Lives.of(instructions, groups)
    plan = _Plan({base_of(value): output(k) for k, value in enumerate(returned)})
    for position in reversed(range(len(instructions))):
        plan.share_outputs(lives, position)
    dying: dict[int, list[Value]] = {}
    for base, position in lives.last_reads.items():
        dying.setdefault(lives.ends[position], []).append(base)
    for position, instruction in enumerate(instructions):
        if makes_buffers(instruction):
            for result in instruction.results:
                plan.place(lives, position, result)
                if result not in lives.last_reads:
                    dying.setdefault(lives.ends[position], []).append(result)
        for base in dying.get(position, ()):
            plan.release(base)
    return plan.places


def makes_buffers(instruction: Instruction) -> bool:
    """Whether the results of the instruction need memory of their own."""
    op = instruction.op
    return not (op.is_terminator or isinstance(op, Literal | ShapeCast)) and all(
        isinstance(result.type, TensorType) for result in instruction.results
    )


def may_overwrite(instruction: Instruction, result: Value, operand: Value) -> bool:
    """Whether the buffer of base `operand`, dead afterwards, can hold `result` from the start.

    Only when every point of the nest writes an element of its own and reads no other of the operand.
    """
    op = instruction.op
    if not isinstance(op, Nest) or operand.tensor.dtype.bytes != result.tensor.dtype.bytes:
        return False
    written = op.outputs[result.index]
    if operand.tensor.size != written.type.size or not _writes_each_once(op, written):
        return False
    target = address(op.extents, written.type, written.indices, written.bounds)
    return target is not None and all(
        address(op.extents, value.tensor, access.indices, access.bounds) == target
        for value, access in zip(instruction.operands, op.accesses, strict=True)
        if base_of(value) is operand
    )


@dataclass(frozen=True)
class _Lives:
    """Who reads what when."""

    instructions: Sequence[Instruction]
    groups: Sequence[int]
    ends: Sequence[int]
    """For every position, the last position of its group; itself outside of groups."""
    last_reads: dict[Value, int] = field(default_factory=dict[Value, int])
    readers: dict[tuple[int, Value], int] = field(default_factory=dict[tuple[int, Value], int])
    """How many members of a group read a base."""
    makers: dict[Value, int] = field(default_factory=dict[Value, int])
    """For every base, the group that makes it."""

    @classmethod
    def of(cls, instructions: Sequence[Instruction], groups: Sequence[int]) -> _Lives:
        lives = cls(instructions, groups, _group_ends(groups))
        for position, (instruction, group) in enumerate(zip(instructions, groups, strict=True)):
            lives.makers.update((result, group) for result in instruction.results)
            for base in {base_of(operand) for operand in instruction.operands}:
                lives.readers[group, base] = lives.readers.get((group, base), 0) + 1
                lives.last_reads[base] = position
        return lives

    def overwritten(self, position: int, result: Value) -> list[Value]:
        """Operand buffers that `result` may be written over: none of them is read again.

        Inside a group, where other members may be a row ahead or behind, only a buffer that the group has
        made row by row, or that no other member reads.
        """
        instruction, group = self.instructions[position], self.groups[position]
        return [
            base
            for base in dict.fromkeys(base_of(operand) for operand in instruction.operands)
            if self.last_reads[base] == position
            and may_overwrite(instruction, result, base)
            and (group < 0 or self.makers.get(base) == group or self.readers[group, base] == 1)
        ]


@dataclass
class _Plan:
    """Places so far, and the arena they come from."""

    places: dict[Value, Place]
    arena: Arena = field(default_factory=Arena)
    held: dict[Value, tuple[int, int]] = field(default_factory=dict[Value, tuple[int, int]])
    """Offset and size of the arena range that a base owns until it is released."""

    def share_outputs(self, lives: _Lives, position: int) -> None:
        """Let an operand that an output would overwrite lie in the output from the start."""
        for result in lives.instructions[position].results:
            if result not in self.places:
                continue
            for base in lives.overwritten(position, result):
                maker = base.producer
                if base not in self.places and maker is not None and makes_buffers(maker):
                    self.places[base] = self.places[result]
                    break

    def place(self, lives: _Lives, position: int, result: Value) -> None:
        """Find room for `result`."""
        if result in self.places:
            return
        for base in lives.overwritten(position, result):
            if base in self.held:
                self.held[result] = self.held.pop(base)
                break
        else:
            size = result.tensor.bytes
            self.held[result] = (self.arena.allocate(size), size)
        self.places[result] = arena(self.held[result][0])

    def release(self, base: Value) -> None:
        """Give the room of `base` back, if it has any (an output or a parameter has none)."""
        if base in self.held:
            self.arena.release(*self.held.pop(base))


def _group_ends(groups: Sequence[int]) -> list[int]:
    """Aliases and literals may stand between the members of a group; they do not end it."""
    last = {group: position for position, group in enumerate(groups)}
    return [last[group] if group >= 0 else position for position, group in enumerate(groups)]


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
    flat = value if len(shape) == 1 else b.emit(ShapeCast((value.tensor.size,)), value)
    point = identity_access(flat.tensor.shape)
    copied = build_nest(
        b,
        flat.tensor.shape,
        [(flat, Access(point))],
        [Output(flat.tensor, point)],
        lambda _, __, scalars: scalars,
    )[0]
    return copied if len(shape) == 1 else b.emit(ShapeCast(shape), copied)
