"""The blocks that code is generated for: a function's body, and the regions of its structured ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import UnsupportedError
from ..ir import Block, Function, Instruction, Region, Value
from ..ir.donation import donated_parameters
from ..kernels.guarded_ops import copied_operands
from ..kernels.ops import is_kernel
from ..lazy_dataclass import dataclass
from ..location import HasLocation
from ..ops.flows import (
    Flow,
    Role,
    arguments_of_bodies,
    flows_in,
    flows_of,
    is_condition,
    yields_of_bodies,
)
from ..ops.nest import Nest
from ..types import written


@dataclass(frozen=True, eq=False)
class Body:
    """The body of a function (`owner` is None), or body `number` of a structured instruction."""

    region: Region
    owner: Instruction | None = None
    number: int = 0
    loops: int = 0
    """How many loops are around it."""
    donated: Sequence[Value | None] = ()
    """For each result of a function the parameter that is donated to it."""

    @property
    def block(self) -> Block:
        return self.region.entry

    @property
    def is_condition(self) -> bool:
        """Whether this is the condition of a `while`."""
        return self.owner is not None and is_condition(self.owner, self.number)

    @property
    def replaced(self) -> Sequence[Value | None]:
        """For each yielded value the carried argument whose buffer it may take over.

        What a loop carries is replaced by the next one.  A result of an `if` may replace an input that one of the
        bodies yields as it is; a result of a function, the parameter that is donated to it.
        """
        if self.owner is None:
            return self.donated
        if self.is_condition:
            return ()
        found = in_place_flows(self.owner)
        return [
            None if flow is None else arguments_of_bodies(self.owner, flow)[self.number]
            for flow in found[: len(flows_in(self.owner, Role.CARRIED, Role.CHOSEN))]
        ]


_DEPTH: Final = 8
"""How many choices inside each other are looked through for what they update: a bound, as each is looked at once for
each that it is in."""


def in_place_flows(instruction: Instruction, depth: int = _DEPTH) -> list[Flow | None]:
    """For each result the flow whose buffer it may reuse: its own, or an input that a body yields unchanged or updated.

    `depth` is how many choices inside each other are looked through.
    """
    flows = flows_of(instruction)
    found = [f if f.role is Role.CARRIED else None for f in flows if f.result is not None]
    inputs = {
        argument: flow
        for flow in flows_in(instruction, Role.INPUT)
        for argument in arguments_of_bodies(instruction, flow)
    }
    taken: set[int] = set()
    chosen = flows_in(instruction, Role.CHOSEN)
    for body in range(len(instruction.regions)):
        for flow in chosen:
            source = inputs.get(_updated(yields_of_bodies(instruction, flow)[body], depth))
            assert flow.result is not None
            if found[flow.result] is None and source is not None and source.number not in taken:
                found[flow.result] = source
                taken.add(source.number)
    return found


def _updated(value: Value, depth: int) -> Value:
    """The base whose buffer `value` has, if all that it is made of by updates is dead by then."""
    while True:
        value = base_of(value)
        made = value.producer
        if made is None:
            return value
        if isinstance(made.op, Nest):
            init = made.op.outputs[value.index].init
            if init is None:
                return value
            value = made.operands[init]
        elif is_kernel(made):
            copied = copied_operands(made).get(value.index)
            if copied is None:
                return value
            value = made.operands[copied]
        elif made.op.is_structured and depth:
            flow = in_place_flows(made, depth - 1)[value.index]
            if flow is None:
                return value
            value = made.operands[flow.operands[0]]
        else:
            return value


def base_of(value: Value) -> Value:
    """The value whose buffer this one views."""
    while value.producer is not None and value.producer.op.is_view:
        value = value.producer.operands[0]
    return value


def bodies_of(function: Function) -> list[Body]:
    """Every body, outer before inner; those of nests are part of their nest.

    Raises: UnsupportedError for a body of several blocks.
    """
    assert function.body is not None
    found = [Body(function.body, donated=donated_parameters(function))]
    for body in found:  # which grows
        if len(body.region.blocks) != 1:
            raise unsupported(f"{written('@', function.name)}, which branches", None)
        for instruction in body.block.instructions:
            if instruction.op.is_structured:
                loops = body.loops + instruction.op.is_loop
                found += [Body(r, instruction, k, loops) for k, r in enumerate(instruction.regions)]
    return found


def unsupported(what: str, location: HasLocation | None) -> UnsupportedError:
    """The error for what only the evaluator can do, with the user's line."""
    place = location.resolve() if location else None
    where = "\n  " + place.excerpt().replace("\n", "\n  ") if place else ""
    return UnsupportedError(f"cannot be compiled yet: {what}; the evaluator runs it{where}")
