"""Inlining of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import Block, Builder, Function, Instruction, Module, Value
from ..ir.surgery import clone_instructions, replace_uses, walk, walk_blocks
from ..ops import Aggregate, AllocateStack, Apply, Return
from ..types import VOID
from .base import ModulePass
from .call_graph import call_sites, callees, cycles_callees_first

LARGEST = 50_000
"""Calls stay that would make a function longer than so many instructions."""


@dataclass(frozen=True)
class Inline(ModulePass):
    """Puts the bodies of functions where they are called; callees first, so one run suffices.

    `small` inlines functions of at most so many instructions and those called at one place only; without
    it every call goes.  Functions marked `inline` always do.  Stay do calls of functions that are part of a
    recursion, have branches (structurize first) or no body, or allocate memory that lasts until they return,
    and calls that would make the caller too long.  The callees stay for `dead-functions`.

    Requires: nothing.
    Preserves: results and effects; the instructions keep the locations of the callee.
    Cost: linear in the size of the result, in which no function grows beyond 50,000 instructions.
    """

    name: ClassVar[str] = "inline"
    small: int | None = None

    def run(self, module: Module) -> bool:
        sites = call_sites(module)
        wanted: dict[str, int] = {}
        changed = False
        for names in cycles_callees_first(module):
            for name in names:
                function = module.functions[name]
                changed = _inline_calls(function, module, wanted) or changed
            if len(names) == 1 and names[0] not in callees(module.functions[names[0]]):
                function = module.functions[names[0]]
                size = _size_to_inline(function)
                if size is not None and self._wants(function, size, sites[function.name]):
                    wanted[function.name] = size
        return changed

    def _wants(self, function: Function, size: int, sites: int) -> bool:
        if self.small is None or sites == 1 or "inline" in function.attributes:
            return True
        return size + 2 <= self.small


def _size_to_inline(function: Function) -> int | None:
    """By how much a call makes a function longer, void ones aside; None if it must stay a call."""
    body = function.body
    if body is None or len(body.blocks) != 1 or not isinstance(body.entry.terminator.op, Return):
        return None
    size = -2  # the call goes, and the return
    for instruction in walk(body):
        size += 1
        if isinstance(instruction.op, AllocateStack):
            return None
    return size


def _inline_calls(function: Function, module: Module, wanted: dict[str, int]) -> bool:
    if function.body is None or not wanted:
        return False
    size: int | None = None
    replaced: dict[Value, Value] = {}
    for block in list(walk_blocks(function.body)):
        if not any(_callee(i) in wanted for i in block.instructions):
            continue
        if size is None:
            size = sum(1 for _ in walk(function.body))
        old, block.instructions = block.instructions, []
        for instruction in old:
            callee = _callee(instruction)
            added = wanted.get(callee)
            if added is not None and size + added <= LARGEST:
                size += added
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
