"""Where what the members of a group of nests make lies, while the group is a kernel.

1. What only members read may have room for one block of its rows (`contraction`), or lie where a result does that is
   made of it element by element, or updates it.
2. All else is a result of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from ..compute.bodies import base_of
from ..compute.footprint import footprint
from ..errors import InternalError
from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.nest import Access, Output
from ..types import TensorType
from .live_ranges import may_overwrite
from .ops import Loops, row_block


@dataclass(frozen=True)
class Member:
    """A nest of a group, and its loops."""

    nest: Instruction
    loops: Loops

    def reads(self, base: Value) -> bool:
        """Whether it reads a buffer, or a view of it."""
        return any(base_of(operand) is base for operand in self.nest.operands)


@dataclass
class GroupBuffers:
    """Where what the members of a group make lies."""

    members: Sequence[Member]
    contracted: AbstractSet[Value]
    results: list[Value] = field(default_factory=list[Value])
    """What is a result of the kernel, though perhaps nobody reads it: all that has a buffer of its own."""
    homes: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """What lies where something else will, which is made of it."""
    hosts: set[Value] = field(default_factory=set[Value])
    """Where something else has lain."""
    rooms: dict[Value, tuple[int, TensorType]] = field(
        default_factory=dict[Value, tuple[int, TensorType]]
    )
    """The buffer for one block of what is contracted, by its number: one after the other has the same."""

    def __post_init__(self) -> None:
        self.made = [result for member in self.members for result in member.nest.results]
        self._find_rooms()
        for value in reversed(self.made):
            if value in self.contracted:
                continue
            home = None if self._is_read_outside(value) else self._home(value)
            if home is None:
                self.results.append(value)
            else:
                self.homes[value] = home
                self.hosts.add(home)
        self.results.reverse()

    def place(self, value: Value) -> Value:
        """What lies where `value` does, in the end."""
        while value in self.homes:
            value = self.homes[value]
        return value

    def elements_of_row(self, value: Value) -> int:
        """How many elements a round of the shared loop makes of what is contracted."""
        op = self.members[0].loops
        return value.tensor.size // op.extents[op.order[0]]

    def overwriting(self, operands: Sequence[Value]) -> Iterator[tuple[int, int]]:
        """The operands that only one member reads, which may write over them, and where in the kernel's results."""
        for number, operand in enumerate(operands):
            base = base_of(operand)
            readers = [member for member in self.members if member.reads(base)]
            if len(readers) > 1:
                continue
            for result in readers[0].nest.results:
                place = self.place(result)
                if (
                    result not in self.hosts
                    and place in self.results
                    and place.tensor == operand.tensor
                    and may_overwrite(readers[0].nest, result, base)
                ):
                    yield number, self.results.index(place)

    def _is_read_outside(self, value: Value) -> bool:
        nests = {member.nest for member in self.members}
        return any(not user.op.is_view and user not in nests for user in _users(value))

    def _last_reader(self, value: Value) -> int:
        return max((n for n, member in enumerate(self.members) if member.reads(value)), default=-1)

    def _home(self, value: Value) -> Value | None:
        """A result of the last nest that reads `value`, which may be written over it."""
        last = self._last_reader(value)
        if last < 0:
            return None
        nest, op = self.members[last].nest, self.members[last].loops
        for result, written in zip(nest.results, op.own_outputs, strict=True):
            is_updated = written.init is not None and base_of(nest.operands[written.init]) is value
            if (
                result not in self.hosts
                and result not in self.contracted
                and result.tensor.dtype == value.tensor.dtype
                and (is_updated or self._stays_in_rows(value))
                and may_overwrite(nest, result, value)
            ):
                return result
            if is_updated:
                raise InternalError("what a group makes and updates is in two places")
        return None

    def _stays_in_rows(self, value: Value) -> bool:
        """Whether each round of the shared loop touches one row of it alone, so that another may be overwritten."""
        for member in self.members:
            op = member.loops
            uses: list[tuple[Value, Access | Output]] = [
                *zip(member.nest.operands, op.accesses, strict=True),
                *zip(member.nest.results, op.own_outputs, strict=True),
            ]
            for touched, use in uses:
                if base_of(touched) is value:
                    found = footprint(touched.tensor.shape, use, op.extents, op.order[0])
                    if found is None or found.row != 0:
                        return False
        return True

    def _find_rooms(self) -> None:
        free: list[tuple[int, TensorType]] = []
        ends: dict[int, list[tuple[int, TensorType]]] = {}
        count = 0
        for position, member in enumerate(self.members):
            for value in member.nest.results:
                if value not in self.contracted:
                    continue
                size = self.elements_of_row(value) * row_block(member.loops)
                type = TensorType((size,), value.tensor.dtype)
                room = next((one for one in free if one[1] == type), (count, type))
                if room in free:
                    free.remove(room)
                else:
                    count += 1
                self.rooms[value] = room
                ends.setdefault(self._last_reader(value), []).append(room)
            free += ends.get(position, [])


def _users(value: Value) -> Iterator[Instruction]:
    """What reads a buffer, and its views."""
    views = [value]
    for view in views:  # which grows
        for user in view.uses:
            yield user
            if user.op.is_view:
                views += user.results
