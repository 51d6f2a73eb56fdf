"""Use counts and escaping values of a block, for fusion."""

from __future__ import annotations

from dataclasses import field

from ..ir import Block, Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.movement import reshaped
from ..ops.nest import Nest
from .bodies import base_of
from .normalized_nest import NormalizedNest, is_copy, normalize_nest


@dataclass(frozen=True)
class BlockUses:
    """The nests of a block, and the readers of each value."""

    nests: dict[Instruction, NormalizedNest] = field(
        default_factory=dict[Instruction, NormalizedNest]
    )
    demand: dict[Value, float] = field(default_factory=dict[Value, float])
    """How many elements of a value all its readers ask for together."""
    stored: set[Value] = field(default_factory=set[Value])
    """What must be in memory anyway: returned, or read by a library op or as another shape."""
    ending: list[Instruction] = field(default_factory=list[Instruction])
    """The return, and the aggregate before it."""


def collect_block_uses(block: Block) -> BlockUses:
    """Collect the nests and readers of a block, in which nests that only copy become views of what they copy."""
    found = BlockUses()
    old, block.instructions = block.instructions, []
    for instruction in old:
        if isinstance(instruction.op, Nest):
            normalized = normalize_nest(instruction, instruction.op)
            if is_copy(normalized, instruction.op):
                b, (x,) = Builder(block, instruction.location), instruction.operands
                instruction.replace_with(reshaped(b, x, instruction.result.tensor.shape))
                continue
            _add_nest(found, normalized)
        elif is_library(instruction) or not instruction.op.needs_no_code:
            found.stored.update(map(base_of, instruction.operands))
            if not is_library(instruction):
                found.ending.append(instruction)
        block.instructions.append(instruction)
    return found


def is_library(instruction: Instruction) -> bool:
    """Whether this stays an instruction of its own that computes."""
    op = instruction.op
    return not (op.is_terminator or op.needs_no_code or isinstance(op, Nest))


def _add_nest(found: BlockUses, nest: NormalizedNest) -> None:
    found.nests[nest.instruction] = nest
    for request in nest.requests:
        source = base_of(request.source)
        if source is not request.source:
            found.stored.add(source)
        executions = nest.executions(request)
        found.demand[source] = found.demand.get(source, 0.0) + executions
