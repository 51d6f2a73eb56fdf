"""Inlining of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Block, Builder, Function, Instruction, Module, Value
from ..ir.surgery import clone_instructions, replace_uses, walk_blocks
from ..ops import Aggregate, Apply
from ..types import VOID
from .base import ModulePass
from .call_graph import call_sites, cycles_callees_first


@dataclass(frozen=True)
class Inline(ModulePass):
    """Puts the bodies of functions where they are called; callees first, so one run suffices.

    `small` inlines functions of at most so many instructions and those called at one place only; without
    it every call goes.  Functions marked `inline` always do.  Calls that are part of a recursion stay, as do
    those of declarations and of functions with branches.  The callees stay for `dead-functions`.

    Requires: nothing.
    Preserves: results; the instructions keep the locations of the callee.
    Cost: linear in the size of the result, which nested calls can make exponential in their depth.
    """

    name: ClassVar[str] = "inline"
    small: int | None = None

    def run(self, module: Module) -> bool:
        sites = call_sites(module)
        wanted: set[str] = set()
        changed = False
        for names in cycles_callees_first(module):
            for name in names:
                function = module.functions[name]
                changed = _inline_calls(function, module, wanted.difference(names)) or changed
            wanted.update(n for n in names if self._wants(module.functions[n], sites[n]))
        return changed

    def _wants(self, function: Function, sites: int) -> bool:
        if function.body is None or len(function.body.blocks) != 1:
            return False
        if self.small is None or sites == 1 or "inline" in function.attributes:
            return True
        return len(function.entry.instructions) <= self.small


def _inline_calls(function: Function, module: Module, wanted: set[str]) -> bool:
    if function.body is None or not wanted:
        return False
    replaced: dict[Value, Value] = {}
    for block in list(walk_blocks(function.body)):
        if not any(_callee(i) in wanted for i in block.instructions):
            continue
        old, block.instructions = block.instructions, []
        for instruction in old:
            callee = _callee(instruction)
            if callee in wanted:
                replaced[instruction.result] = _paste(block, instruction, module.functions[callee])
            else:
                block.instructions.append(instruction)
    replace_uses(function.body, replaced)
    return bool(replaced)


def _callee(instruction: Instruction) -> str:
    return instruction.op.callee if isinstance(instruction.op, Apply) else ""


def _paste(block: Block, call: Instruction, callee: Function) -> Value:
    """Append the body of `callee`; what it returns."""
    values = dict(zip(callee.parameters, call.operands, strict=True))
    clone_instructions(block, callee.entry.instructions[:-1], values)
    returned = callee.entry.terminator.operands
    if not returned:
        return Builder(block, call.location).emit(Aggregate(VOID))
    result = values.get(returned[0], returned[0])
    if result.producer is not None:
        result.name = call.result.name or result.name
    return result
