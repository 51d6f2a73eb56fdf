"""Copies a primal's body into a derivative, mapping aggregates to their leaves.

A derivative is grown on a copy: the primal itself is never changed.  Every value of the primal has a
copy, and the copy has *leaves*, tensors which stand for the same data however often it is packed
into aggregates and taken out.  Differentiation speaks of leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import UnsupportedError
from ..ir import Block, Builder, Function, Instruction, Value
from ..ir.surgery import clone_instructions, make_instruction
from ..location import located
from ..ops.aggregate import Aggregate, Extract
from ..types import TensorType
from .activity import Activity, check_flow, straight_line
from .leaves import Spans, split

Origin: TypeAlias = "tuple[Value, int | str]"
"""What a leaf is a copy of: a leaf of a value, or what the forward function of that name saved there."""


@dataclass
class PrimalCopy:
    """The body of `primal` in a new block, and which of its leaves depend on what is `wanted`.

    `returned` are the copies of the results.
    """

    primal: Function
    builder: Builder = field(default_factory=lambda: Builder(Block(name="entry")))
    leaves: dict[Value, tuple[Value, ...]] = field(default_factory=dict[Value, tuple[Value, ...]])
    origins: dict[Value, Origin] = field(default_factory=dict[Value, Origin])
    active: set[Value] = field(default_factory=set[Value])
    returned: tuple[Value, ...] = ()
    spans: Spans = field(default_factory=Spans)

    @property
    def arguments(self) -> list[Value]:
        """The leaves of all parameters."""
        return [leaf for argument in self.builder.block.arguments for leaf in self.leaves[argument]]

    @property
    def results(self) -> list[Value]:
        """The leaves of the results."""
        return self.leaves_of_all(self.returned)

    def leaves_of_all(self, values: Iterable[Value]) -> list[Value]:
        """The leaves of several copied values, one after the other."""
        return [leaf for value in values for leaf in self.leaves[value]]


def copy_primal(primal: Function, wanted: int, activity: Activity) -> PrimalCopy:
    """A copy whose active leaves are those that depend on the parameter leaves in `wanted`.

    Raises: UnsupportedError for several blocks, and for control flow or memory that the derivative would have
        to pass through.
    """
    copy = PrimalCopy(primal)
    masks = activity.of_values(primal)

    def is_active(value: Value) -> bool:
        return any(mask & wanted for mask in masks.get(value, ()))

    values: dict[Value, Value] = {}
    block = straight_line(primal)
    for parameter in block.arguments:
        values[parameter] = copy.builder.argument(parameter.type, parameter.name)
        copy.leaves[values[parameter]] = split(copy.builder, values[parameter])
    for instruction in block.instructions:
        operands = [values[operand] for operand in instruction.operands]
        if instruction.op.is_terminator:
            copy.returned = tuple(operands)
        else:
            copy.builder.location = instruction.location
            check_flow(instruction, is_active)
            if instruction.op.is_structured and not any(map(is_active, instruction.results)):
                _copy_closed(copy, instruction, values)
                continue
            values.update(zip(instruction.results, _copy(copy, instruction, operands), strict=True))
    copy.builder.location = None
    for value, found in masks.items():
        leaves = copy.leaves.get(values[value], ())
        for position, (leaf, mask) in enumerate(zip(leaves, found, strict=False)):
            copy.origins.setdefault(leaf, (value, position))
            if mask & wanted:
                copy.active.add(leaf)
    return copy


def _copy_closed(copy: PrimalCopy, instruction: Instruction, values: dict[Value, Value]) -> None:
    """Copy control flow that no derivative passes through, as it is."""
    clone_instructions(copy.builder.block, [instruction], values)
    for result in instruction.results:
        copy.leaves[values[result]] = split(copy.builder, values[result])


def _copy(
    copy: PrimalCopy, instruction: Instruction, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """The results of the copied instruction, whose leaves are made known."""
    match instruction.op:
        case Extract() as op:
            leaves = copy.leaves[operands[0]][copy.spans.of(op, operands[0])]
            is_tensor = isinstance(instruction.result.type, TensorType)
            results = leaves if is_tensor else append_copy(copy.builder, instruction, operands)
        case Aggregate():
            leaves = tuple(copy.leaves_of_all(operands))
            results = append_copy(copy.builder, instruction, operands)
        case _:
            results = append_copy(copy.builder, instruction, operands)
            for result in results:
                copy.leaves[result] = split(copy.builder, result)
            return results
    copy.leaves[results[0]] = leaves
    return results


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
