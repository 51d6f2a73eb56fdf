"""The blocks of a function that code is generated for, one by one: its own, and those of structured ops."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from ..errors import UnsupportedError
from ..ir import Block, Effect, Function, Instruction, Op, Region, Value
from ..location import HasLocation
from ..ops.control import For, If, Structured, While, carried_of
from ..types import written

_STAYS = Effect.WRITE | Effect.TRAP | Effect.CALL


@dataclass(frozen=True, eq=False)
class Body:
    """The body of a function (`owner` is None), or body `number` of a structured instruction."""

    region: Region
    owner: Instruction | None = None
    number: int = 0
    loops: int = 0
    """How many loops are around it."""

    @property
    def block(self) -> Block:
        return self.region.entry

    @property
    def is_condition(self) -> bool:
        """Whether this only says if a `while` goes on."""
        return self.owner is not None and isinstance(self.owner.op, While) and self.number == 0

    @property
    def replaced(self) -> Sequence[Value | None]:
        """For each yielded value the argument whose buffer its own may be, for those before the end.

        What a loop carries is replaced by the next one.  A result of an `if` may replace an input that one of the
        bodies yields as it is.
        """
        if self.owner is None or self.is_condition:
            return ()
        arguments = self.block.arguments
        if isinstance(self.owner.op, If):
            found = replaced_inputs(self.owner)
            return [None if number is None else arguments[number] for number in found]
        operands = carried_of(self.owner)
        first = 1 if isinstance(self.owner.op, For) else 0
        return arguments[first : first + operands.stop - operands.start]


def replaced_inputs(instruction: Instruction) -> Sequence[int | None]:
    """For each result of an `if`, the number of an input that a body yields there as it is."""
    found: list[int | None] = [None] * len(instruction.results)
    taken: set[int | None] = set()
    for region in instruction.regions:
        numbers = {argument: k for k, argument in enumerate(region.entry.arguments)}
        for k, value in enumerate(region.entry.terminator.operands):
            number = numbers.get(base_of(value))
            if found[k] is None and number not in taken:
                found[k] = number
                taken.add(number)
    return found


def base_of(value: Value) -> Value:
    """The value whose buffer this one is: follows views back."""
    while value.producer is not None and value.producer.op.is_view:
        value = value.producer.operands[0]
    return value


def needs_no_code(op: Op) -> bool:
    """Whether what it gives is there already: as data of the program, or as another value's."""
    return op.is_constant or op.is_view


def bodies_of(function: Function) -> list[Body]:
    """Every body, outer before inner; those of nests are part of their nest.

    Raises: UnsupportedError for a body of several blocks.
    """
    assert function.body is not None
    found = [Body(function.body)]
    for body in found:  # which grows
        if len(body.region.blocks) != 1:
            raise unsupported(f"{written('@', function.name)}, which branches", None)
        for instruction in body.block.instructions:
            if isinstance(instruction.op, Structured):
                loops = body.loops + isinstance(instruction.op, While | For)
                found += [Body(r, instruction, k, loops) for k, r in enumerate(instruction.regions)]
    return found


def effectful_regions(bodies: Sequence[Body]) -> set[Region]:
    """The bodies in which something happens that matters even if nobody uses the results."""
    found: set[Region] = set()
    for body in reversed(bodies):
        if any(happens(i, found) for i in body.block.instructions):
            found.add(body.region)
    return found


def happens(instruction: Instruction, effectful: Set[Region]) -> bool:
    """Whether an instruction stays even if nobody uses its results."""
    return bool(instruction.op.effect & _STAYS) or not effectful.isdisjoint(instruction.regions)


def live_instructions(block: Block, effectful: Set[Region]) -> list[Instruction]:
    """What happens, and what that and the terminator depend on, in order."""
    needed: set[Value] = set()
    kept: list[Instruction] = []
    for instruction in reversed(block.instructions):
        if (
            instruction.op.is_terminator
            or any(result in needed for result in instruction.results)
            or happens(instruction, effectful)
        ):
            needed.update(instruction.operands)
            kept.append(instruction)
    return kept[::-1]


def unsupported(what: str, location: HasLocation | None) -> UnsupportedError:
    """The error for what only the evaluator can do, with the user's line."""
    place = location.resolve() if location else None
    where = "\n  " + place.excerpt().replace("\n", "\n  ") if place else ""
    return UnsupportedError(f"cannot be compiled yet: {what}; the evaluator runs it{where}")
