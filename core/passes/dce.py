"""Dead code elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Function, Instruction, Module, Region
from ..ir.surgery import walk_blocks
from .base import FunctionPass


@dataclass(frozen=True)
class DeadCode(FunctionPass):
    """Removes instructions that nothing returned depends on; no op of the language has an effect.

    Requires: nothing.
    Preserves: results; an index out of range goes unnoticed if nothing needs what it would read.
    Cost: linear.
    """

    name: ClassVar[str] = "dce"

    def run(self, function: Function, module: Module) -> bool:
        return remove_dead(function.body) if function.body else False


def remove_dead(region: Region) -> bool:
    """Remove what no terminator of `region` depends on; whether there was anything.

    Marks from the terminators backwards; the terminators inside a live instruction's regions are live.
    """
    live: set[Instruction] = set()
    pending = [block.terminator for block in region.blocks]
    while pending:
        instruction = pending.pop()
        if instruction in live:
            continue
        live.add(instruction)
        pending.extend(x.producer for x in instruction.operands if x.producer is not None)
        pending.extend(block.terminator for inner in instruction.regions for block in inner.blocks)
    changed = False
    for block in walk_blocks(region):
        kept = [instruction for instruction in block.instructions if instruction in live]
        if len(kept) < len(block.instructions):
            block.instructions[:] = kept
            changed = True
    return changed
