"""Inlining of calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..ir import Block, Builder, Function, Instruction, Module, Value
from ..ir.surgery import clone_instructions, replace_uses, walk, walk_blocks
from ..ops import Aggregate, AllocateStack, Apply, Return
from ..types import VOID
from .base import ModulePass
from .call_graph import call_sites, callees, cycles_callees_first, symbols

LARGEST = 50_000
"""Calls stay that would make a function longer than so many instructions."""


@dataclass(frozen=True)
class Inline(ModulePass):
    """Puts the bodies of functions where they are called.

    `small` inlines functions of at most so many instructions and those called at one place only; without
    it every call goes.  Functions marked `inline` always do.  Stay do calls of functions that are part of a
    recursion, have branches (structurize first) or no body, or allocate memory that lasts until they return,
    and calls that would make the caller too long.  The callees stay for `dead-functions`.

    With `entries`, calls go only from these and from what they still need afterwards.  Else all functions
    are done, callees first, and a chain of calls is copied once for each of its members.

    Requires: nothing.
    Preserves: results and effects; the instructions keep the locations of the callee.
    Cost: linear in the size of the result, in which no function grows beyond 50,000 instructions.
    """

    name: ClassVar[str] = "inline"
    small: int | None = None
    entries: tuple[str, ...] = ()

    def run(self, module: Module) -> bool:
        sites = call_sites(module)
        wanted: dict[str, int] = {}
        changed = False
        for names in cycles_callees_first(module):
            if not self.entries:
                for name in names:
                    changed = _inline_calls(module.functions[name], module, wanted) or changed
            if len(names) == 1 and names[0] not in callees(module.functions[names[0]]):
                function = module.functions[names[0]]
                size = _size_to_inline(function)
                if size is not None and self._wants(function, size, sites[function.name]):
                    wanted[function.name] = size
        done: set[str] = set()
        pending = [name for name in self.entries if name in module.functions]
        while pending:
            name = pending.pop()
            if name not in done:
                done.add(name)
                changed = _inline_calls(module.functions[name], module, wanted) or changed
                pending.extend(n for n in symbols(module.functions[name]) if n in module.functions)
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
    blocks = list(walk_blocks(function.body))
    if not any(_callee(i) in wanted for block in blocks for i in block.instructions):
        return False
    expansion = _Expansion(module, wanted, sum(len(block.instructions) for block in blocks))
    while blocks:
        blocks.extend(expansion.expand(blocks.pop()))
    replace_uses(function.body, expansion.replaced)
    return bool(expansion.replaced)


@dataclass
class _Pasted:
    """A callee that is being put in place of `call`: what is left of it, and what its values are here."""

    call: Instruction
    callee: Function
    rest: Iterator[Instruction]
    values: dict[Value, Value]


class _Expansion:
    """Replaces the calls of one function, and those that come with what is put in their place."""

    def __init__(self, module: Module, wanted: dict[str, int], size: int) -> None:
        self.module, self.wanted, self.size = module, wanted, size
        self.replaced: dict[Value, Value] = {}

    def expand(self, block: Block) -> list[Block]:
        """Replace the calls of `block`; the blocks inside of what came new, which are not done yet."""
        old, block.instructions = block.instructions, []
        inside: list[Block] = []
        for instruction in old:
            if not self._fits(instruction):
                block.instructions.append(instruction)
                continue
            stack = [self._enter(instruction, instruction.operands)]
            while stack:
                self._advance(block, stack, inside)
        return inside

    def _advance(self, block: Block, stack: list[_Pasted], inside: list[Block]) -> None:
        """Copy the next instruction of the innermost callee, or go into it, or leave the callee."""
        pasted = stack[-1]
        instruction = next(pasted.rest)
        if instruction.op.is_terminator:
            stack.pop()
            values = stack[-1].values if stack else self.replaced
            values[pasted.call.result] = _returned(block, pasted)
        elif self._fits(instruction):
            operands = [pasted.values.get(x, x) for x in instruction.operands]
            stack.append(self._enter(instruction, operands))
        else:
            clone_instructions(block, [instruction], pasted.values)
            for region in block.instructions[-1].regions:
                inside.extend(walk_blocks(region))

    def _fits(self, instruction: Instruction) -> bool:
        callee = _callee(instruction)
        added = None if callee is None else self.wanted.get(callee)
        return added is not None and self.size + added <= LARGEST

    def _enter(self, call: Instruction, operands: Iterable[Value]) -> _Pasted:
        assert isinstance(call.op, Apply)
        callee = self.module.functions[call.op.callee]
        self.size += self.wanted[callee.name]
        values = dict(zip(callee.parameters, operands, strict=True))
        return _Pasted(call, callee, iter(callee.entry.instructions), values)


def _callee(instruction: Instruction) -> str | None:
    return instruction.op.callee if isinstance(instruction.op, Apply) else None


def _returned(block: Block, pasted: _Pasted) -> Value:
    """What the callee returns; with the name that the call's result has."""
    returned = pasted.callee.entry.terminator.operands
    if not returned:
        return Builder(block, pasted.call.location).emit(Aggregate(VOID))
    result = pasted.values.get(returned[0], returned[0])
    if result.producer is not None:
        result.name = pasted.call.result.name or result.name
    return result
