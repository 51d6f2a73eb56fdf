"""Copies a primal's body into a derivative, which is grown on the copy: the primal itself is never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import UnsupportedError
from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import clone_instructions, make_instruction
from ..location import located
from .activity import Activity, Mask, check_flow, straight_line

Origin: TypeAlias = "Value | tuple[Value, str]"
"""What a value is a copy of: a value, or what the forward function of that name saved beside it."""


@dataclass
class PrimalCopy:
    """The body of `primal` in a new block, and which of its values are `active`: depend on what is wanted.

    `results` are the copies of the results.
    """

    primal: Function
    builder: Builder = field(default_factory=lambda: Builder(Block(name="entry")))
    origins: dict[Value, Origin] = field(default_factory=dict[Value, Origin])
    active: set[Value] = field(default_factory=set[Value])
    results: tuple[Value, ...] = ()

    @property
    def arguments(self) -> list[Value]:
        """The parameters."""
        return self.builder.block.arguments


def copy_primal(primal: Function, wanted: Mask, activity: Activity) -> PrimalCopy:
    """A copy whose active values are those that depend on the parameters in `wanted`.

    Raises: UnsupportedError for several blocks, and for control flow or memory that the derivative would have
        to pass through.
    """
    copy = PrimalCopy(primal)
    masks = activity.of_values(primal)

    def is_active(value: Value) -> bool:
        return bool(masks.get(value, 0) & wanted)

    values: dict[Value, Value] = {}
    block = straight_line(primal)
    for parameter in block.arguments:
        values[parameter] = copy.builder.argument(parameter.type, parameter.name)
    for instruction in block.instructions:
        operands = [values[operand] for operand in instruction.operands]
        if instruction.op.is_terminator:
            copy.results = tuple(operands)
        else:
            copy.builder.location = instruction.location
            check_flow(instruction, is_active)
            if instruction.op.is_structured and not any(map(is_active, instruction.results)):
                # no derivative passes through this control flow
                clone_instructions(copy.builder.block, [instruction], values)
                continue
            results = append_copy(copy.builder, instruction, operands)
            values.update(zip(instruction.results, results, strict=True))
    copy.builder.location = None
    copy.origins = {values[value]: value for value in masks if value in values}
    copy.active = {values[value] for value, mask in masks.items() if mask & wanted}
    return copy


_SPOKEN = {
    "if": "if (cond)",
    "while": "while (while_loop)",
    "for": "for (fori, scan, map, fold)",
}
"""Control flow in the words of the IR, and of the language that it may have been written in."""


def append_copy(
    builder: Builder, instruction: Instruction, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """Append `instruction` with other operands of the same types; its new results."""
    if instruction.regions:
        reason = (
            "the gradient of {} is not supported yet: unroll it, in the language with Python's own for, or choose "
            "with select"
            if instruction.op.is_structured
            else "{} has regions, which cannot be differentiated: differentiate before loop nests are made"
        )
        name = _SPOKEN.get(instruction.op.name, instruction.op.name)
        raise located(UnsupportedError(reason.format(name)), builder.location)
    new = make_instruction(instruction.op, operands, instruction.results, location=builder.location)
    builder.block.instructions.append(new)
    return new.results
