"""Builds blocks and functions instruction by instruction, each typed through its op's rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..lazy_dataclass import dataclass
from ..location import HasLocation
from ..types import FunctionType, Type
from .instruction import Block, Instruction, Op, Region, Value
from .module import Function
from .placement import NOT_PLACED, Placement


@dataclass
class Builder:
    """Appends to `block`; `location` is given to every instruction made."""

    block: Block = field(default_factory=Block)
    location: HasLocation | None = None

    def emit(self, op: Op, *operands: Value) -> Value:
        """Append `op` applied to `operands`; the one result."""
        return self.emit_many(op, operands)[0]

    def emit_many(
        self,
        op: Op,
        operands: Sequence[Value],
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        placement: Placement = NOT_PLACED,
    ) -> tuple[Value, ...]:
        """Append an instruction that may have regions, successors or any number of results."""
        inferred = op.infer(*[operand.type for operand in operands])
        instruction = Instruction(
            op, tuple(operands), (), tuple(regions), self.location, tuple(successors), placement
        )
        if isinstance(inferred, Type):  # nearly always
            instruction.results = (Value(inferred, None, instruction),)
        else:
            instruction.results = tuple(
                [Value(type, None, instruction, index) for index, type in enumerate(inferred)]
            )
        self.block.instructions.append(instruction)
        return instruction.results

    def argument(self, type: Type, name: str | None = None) -> Value:
        """Append an argument to the block."""
        value = Value(type, name)
        self.block.arguments.append(value)
        return value


def start_function(
    parameters: Sequence[Type], names: Sequence[str | None] | None = None
) -> Builder:
    """A builder at the entry of a new function; `finish_function` completes it."""
    builder = Builder(Block(name="entry"))
    for index, type in enumerate(parameters):
        builder.argument(type, names[index] if names else None)
    return builder


def finish_function(name: str, builder: Builder, result: Type) -> Function:
    """The function whose entry block `builder` has filled, terminator included."""
    parameters = tuple(argument.type for argument in builder.block.arguments)
    return Function(name, FunctionType(parameters, result), Region([builder.block]))
