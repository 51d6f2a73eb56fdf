"""Alias analysis: which pointers may refer to the same memory.

1. A pointer has a *base*, from which `elementPointer` and `offset` lead on, and a path: the number of the
   value counted from the base, then the keys inwards.  A step that only the running program knows is None.
   `offset` counts in bytes: where it may leave the row of an array or tensor, or a field, it leads anywhere.
2. Bases that are allocations or global variables are *identified*: different ones never overlap.  Any other
   base (an argument, what was loaded, the content of a box) may be anything that has *escaped*.
3. An allocation escapes when its pointer goes anywhere but to loads, stores and copies through it: when it
   is stored itself, passed, returned, yielded or put into an aggregate.
4. Two paths from one base are apart if they differ at a step that both know.

Answers are remembered; they hold until instructions change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from ..ir import Effect, Instruction, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.literal import number_of
from ..ops.memory import ElementPointer, pointee_at
from ..types import ArrayType, PointerType, TensorType, Type

PathElement: TypeAlias = "int | str | None"
"""A number or key, or unknown."""


class MemoryLocation(NamedTuple):
    """The base of a pointer and the path from it, as far as they are known statically."""

    base: Value
    path: tuple[PathElement, ...]


@dataclass(frozen=True, eq=False)
class Aliases:
    """What is known about the pointers of a function's `region`."""

    region: Region

    @cached_property
    def _places(self) -> dict[Value, MemoryLocation]:
        return {}

    @cached_property
    def _escaped(self) -> dict[Value, bool]:
        return {}

    def place(self, pointer: Value) -> MemoryLocation:
        """The base of a pointer, and the steps from there."""
        if pointer not in self._places:
            chain = [pointer]
            while (step := chain[-1].producer) is not None and step.op.is_pointer_step:
                chain.append(step.operands[0])
            self._places[pointer] = MemoryLocation(chain[-1], _path(chain[-2::-1]))
        return self._places[pointer]

    def is_same(self, a: Value, b: Value) -> bool:
        """Whether two pointers must alias."""
        if a is b:
            return True
        first, second = self.place(a), self.place(b)
        return (
            self._is_one(first.base, second.base)
            and first.path == second.path
            and None not in first.path
            and a.type == b.type
        )

    def may_overlap(self, a: Value, b: Value) -> bool:
        """Whether the values that two pointers refer to may overlap."""
        first, second = self.place(a), self.place(b)
        if self._is_one(first.base, second.base):
            return not _are_apart(first.path, second.path)
        return self.may_be_neighbours(a, b)

    def may_be_neighbours(self, a: Value, b: Value) -> bool:
        """Whether two pointers may refer to one allocation, perhaps at different offsets."""
        first, second = self.place(a).base, self.place(b).base
        if self._is_one(first, second):
            return True
        if self.is_identified(first) and self.is_identified(second):
            return False
        return not (self.is_private(first) or self.is_private(second))

    def is_identified(self, base: Value) -> bool:
        """Whether `base` is memory of its own: an allocation or a global variable."""
        return is_allocation(base) or (base.op is not None and base.op.referred is not None)

    def is_private(self, pointer: Value) -> bool:
        """Whether the memory does not escape."""
        base = self.place(pointer).base
        if not is_allocation(base):
            return False
        if base not in self._escaped:
            self._escaped[base] = self._escapes(base)
        return not self._escaped[base]

    def _escapes(self, base: Value) -> bool:
        pending, seen = [base], {base}
        while pending:
            pointer = pending.pop()
            for user in pointer.uses:
                if user.op.is_pointer_step:
                    if user.result not in seen:
                        seen.add(user.result)
                        pending.append(user.result)
                elif is_kept(pointer, user):
                    return True
        return False

    def _is_one(self, a: Value, b: Value) -> bool:
        """Whether two bases are one: a global variable can be named at several places."""
        return a is b or (a.op is not None and a.op.referred is not None and a.op == b.op)


def is_allocation(base: Value) -> bool:
    """Whether `base` is the memory that its instruction makes."""
    return base.op is not None and bool(base.op.effect & Effect.ALLOCATE)


def is_kept(pointer: Value, user: Instruction) -> bool:
    """Whether `user` may do more with a pointer than use what it leads to: store it itself, pass it on, return it."""
    used = [use.pointer for use in user.op.memory_uses(user)]
    return user.operands.count(pointer) > used.count(pointer)


def _path(steps: Sequence[Value]) -> tuple[PathElement, ...]:
    """Where `elementPointer` and `offset` lead, one after the other."""
    path: list[PathElement] = [0]
    row = 0
    """How many neighbours the last step chose from, in an array or tensor."""
    for step in steps:
        assert step.producer is not None
        op, operands = step.producer.op, step.producer.operands
        last = path[-1]
        if isinstance(op, ElementPointer):
            path.extend(op.keys)
            row = _row(operands[0].type, op.keys) if op.keys else row
            continue
        count: int | None = number_of(operands[1])
        following = last + count if isinstance(last, int) and count is not None else None
        if len(path) > 1 and count != 0 and (following is None or not 0 <= following < row):
            return (None,)
        path[-1] = last if count == 0 else following
    return tuple(path)


def _row(pointer: Type, keys: Sequence[PathElement]) -> int:
    """Of how many elements that lie side by side the last key chooses; 0 for a field."""
    assert isinstance(pointer, PointerType)
    x = pointer.pointee
    for key in keys[:-1]:
        x = pointee_at(x, key)
    return x.count if isinstance(x, ArrayType) else x.shape[0] if isinstance(x, TensorType) else 0


def _are_apart(first: Sequence[PathElement], second: Sequence[PathElement]) -> bool:
    """Whether the paths differ in a constant index."""
    steps = zip(first, second, strict=False)
    return any(a is not None and b is not None and a != b for a, b in steps)
