"""Use counts, aliases and escaping values of a block, for fusion."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir import Block, Instruction, Value
from ..ops.nest import Nest
from .normalized_nest import NormalizedNest, is_alias, normalize_nest, source_of


@dataclass(frozen=True)
class BlockUses:
    """The nests of a block, its aliases, and the readers of each value."""

    nests: dict[Instruction, NormalizedNest] = field(
        default_factory=dict[Instruction, NormalizedNest]
    )
    alias_of: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """For the result of a nest that moves nothing: its operand."""
    demand: dict[Value, float] = field(default_factory=dict[Value, float])
    """How many elements of a value all its readers ask for together."""
    stored: set[Value] = field(default_factory=set[Value])
    """What must be in memory anyway: returned, or read by a library op or as another shape."""
    ending: list[Instruction] = field(default_factory=list[Instruction])
    """The return, and the aggregate before it."""

    def source(self, value: Value) -> Value:
        """The value that this one aliases."""
        return source_of(value, self.alias_of)


def collect_block_uses(block: Block) -> BlockUses:
    """Collect the nests, aliases and readers of a block."""
    found = BlockUses()
    for instruction in block.instructions:
        if isinstance(instruction.op, Nest):
            _add_nest(found, instruction, instruction.op)
        elif is_library(instruction) or not instruction.op.needs_no_code:
            found.stored.update(found.source(operand) for operand in instruction.operands)
            if not is_library(instruction):
                found.ending.append(instruction)
    return found


def is_library(instruction: Instruction) -> bool:
    """Whether this stays an instruction of its own that computes."""
    op = instruction.op
    return not (op.is_terminator or op.needs_no_code or isinstance(op, Nest))


def _add_nest(found: BlockUses, instruction: Instruction, nest: Nest) -> None:
    lifted = normalize_nest(instruction, nest, found.alias_of)
    if is_alias(lifted, nest):
        found.alias_of[instruction.result] = instruction.operands[0]
        return
    found.nests[instruction] = lifted
    for request in lifted.requests:
        source = found.source(request.source)
        if source is not request.source:
            found.stored.add(source)
        executions = lifted.executions(request)
        found.demand[source] = found.demand.get(source, 0.0) + executions
