"""Inlining of calls.

1. How much longer a call of each function makes its caller is counted, and how much longer the module may become.
2. Entries are done first, from the outside inwards: a callee is copied as it was written, and the calls in the
   copy are next.  What entries call afterwards is done in the same way.
3. Without entries, functions that nobody uses are; then come all others, callees first.

So a chain of calls is copied once for its entry, and what is left of the room goes to its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..analysis.call_graph import call_sites, check_names, cycles_callees_first, reachable, symbols
from ..ir import Block, Function, Instruction, Module, Value
from ..ir.loop_schedules import schedule_of
from ..ir.surgery import clone_instructions, walk, walk_blocks
from ..lazy_dataclass import dataclass
from .base import ModulePass

LARGEST = 50_000
"""Calls stay that would make a function longer than so many instructions: 10,000 take 1.1 s at -O2
(docs/decisions/0015)."""

GROWTH = 2
"""Calls stay that would add more than so many times the instructions there are, or `LARGEST` where that is more: the
program then has three times its instructions at most.

Functions that call each other twice would else grow as powers of two, and long chains with their square.
"""

SHORT = 8
"""Functions of at most so many instructions go however often they are called: a call takes some 10 ns, as they do."""

COPIES = 1_000
"""Functions stay whose copies would have more than so many instructions in all, which take 1 s to compile.

120 steps of a Runge-Kutta method and their gradient, 2 · 120 calls, compile in 0.75 s, not 5.7 s, and run in 1.04 of
the time; 12 layers of a perceptron in 1.01 to 1.04, 100 calls of nine operations on 64 numbers in 0.6 (medians of
pairs).
"""


def stays(function: Function) -> bool:
    """Whether calls of it stay calls."""
    attributes = function.attributes
    return not _STAYS.isdisjoint(attributes) or schedule_of(attributes) is not None


_STAYS = frozenset({"noinline", "checkpoint"})


@dataclass(frozen=True)
class Inline(ModulePass):
    """Puts the bodies of functions where they are called.

    `small` inlines functions of at most so many instructions and those called at one place only; without it those,
    too, whose copies are not too long in all.  Functions marked `inline` always go.  Stay do calls of functions that
    are part of a recursion, have branches (structurize first) or no body, or allocate memory that lasts until they
    return, and calls that would make the caller too long.  The callees stay for `dead-functions`.

    With `entries`, calls go only from these and from what they still need afterwards.  Else functions that
    nobody uses come first, and all others after them.

    Where calls stay because too much would be added to the module, another run may go on from there.

    Requires: nothing.
    Preserves: results and effects; the instructions keep the locations of the callee.
    Cost: linear: no function grows beyond 50,000 instructions, and all together become at most three times as
        long, or 50,000 instructions longer where that is more.
    """

    name: ClassVar[str] = "inline"
    # a value that is called may become known, and with it the effects
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW
    small: int | None = None
    entries: tuple[str, ...] = ()

    def run(self, module: Module, analyses: Analyses) -> bool:
        check_names(module, self.entries)
        functions = module.functions
        components = list(cycles_callees_first(module))
        sizes = {
            name: size_to_inline(functions[name]) for name, *others in components if not others
        }
        sites = call_sites(module)
        wanted = {
            name: size
            for name, size in sizes.items()
            if size is not None and self._wants(functions[name], size, sites[name])
        }
        inlining = Inlining(module, wanted, room_for(module, self.entries))
        inlining.go_down(self.entries or _unused(module))
        if not self.entries:
            for names in components:
                for name in names:
                    inlining.inline_into(name)
        return inlining.changed

    def _wants(self, function: Function, size: int, sites: int) -> bool:
        if sites == 1 or "inline" in function.attributes:
            return True
        if self.small is None:
            return size <= SHORT or size * sites <= COPIES
        return size + 2 <= self.small


def size_to_inline(function: Function) -> int | None:
    """By how much a call makes a function longer; None if it must stay a call."""
    body = function.body
    if body is None or len(body.blocks) != 1 or stays(function):
        return None  # what is computed again must not be found to be known
    if function.rules:
        return None  # its derivatives are not those of its body; differentiated, it has no rules any more
    size = -2  # the call goes, and the return
    for instruction in walk(body):
        size += 1
        if instruction.op.stack_values() or instruction.op.called == function.name:
            return None
    return size


def room_for(module: Module, entries: Sequence[str]) -> int:
    """How many instructions may be added to what the entries need, or to the whole module."""
    names = reachable(module, entries) if entries else module.functions
    bodies = [body for name in names if (body := module.functions[name].body) is not None]
    return max(
        LARGEST, GROWTH * sum(len(block.instructions) for x in bodies for block in walk_blocks(x))
    )


def _unused(module: Module) -> list[str]:
    """The functions that no other function calls, takes as a value, or is the derivative of."""
    used = {
        name
        for function in module.functions.values()
        for name in symbols(function)
        if name != function.name
    }
    return [name for name in module.functions if name not in used]


@dataclass
class Inlining:
    """What is known while functions are done one by one; `room` is by how much they may still grow.

    `wanted` are the functions whose calls go, with `size_to_inline`.
    """

    module: Module
    wanted: dict[str, int]
    room: int
    done: set[str] = field(default_factory=set[str])
    changed: bool = False

    def go_down(self, entries: Iterable[str]) -> None:
        """Do these functions, and what they need once they are done."""
        pending = [*entries][::-1]
        while pending:
            name = pending.pop()
            if name not in self.done:
                self.inline_into(name)
                needed = symbols(self.module.functions[name])
                pending.extend(n for n in needed if n in self.module.functions)

    def inline_into(self, name: str) -> None:
        """Replace the calls of one function, unless that has been done."""
        function = self.module.functions[name]
        if name in self.done:
            return
        self.done.add(name)
        if function.body is None:
            return
        blocks = list(walk_blocks(function.body))
        if not any(i.op.called in self.wanted for block in blocks for i in block.instructions):
            return
        size = sum(len(block.instructions) for block in blocks)
        expansion = _Expansion(self.module, self.wanted, size, min(LARGEST, size + self.room))
        while blocks:
            blocks.extend(expansion.expand(blocks.pop()))
        self.changed = self.changed or expansion.changed
        self.room -= expansion.size - size
        if name in self.wanted:
            self.wanted[name] += expansion.size - size


@dataclass
class _Pasted:
    """A callee that is being put in place of `call`: what is left of it, and what its values are here."""

    call: Instruction
    callee: Function
    rest: Iterator[Instruction]
    values: dict[Value, Value]


class _Expansion:
    """Replaces the calls of one function, and those that come with what is put in their place.

    `size` is how long the function is, `largest` how long it may become.
    """

    def __init__(self, module: Module, wanted: Mapping[str, int], size: int, largest: int) -> None:
        self.module, self.wanted, self.size, self.largest = module, wanted, size, largest
        self.changed = False

    def expand(self, block: Block) -> list[Block]:
        """Replace the calls of `block`; the blocks inside of what came new, which are not done yet."""
        old, block.instructions = block.instructions, []
        inside: list[Block] = []
        for instruction in old:
            if not self._fits(instruction):
                block.instructions.append(instruction)
                continue
            self.changed = True
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
            for result, returned in zip(pasted.call.results, instruction.operands, strict=True):
                value = pasted.values.get(returned, returned)
                if value.producer is not None:  # with the name that the call's result has
                    value.name = result.name or value.name
                if stack:
                    stack[-1].values[result] = value
                else:
                    result.replace_all_uses_with(value)
            if not stack:
                pasted.call.erase()
        elif self._fits(instruction):
            operands = [pasted.values.get(x, x) for x in instruction.operands]
            stack.append(self._enter(instruction, operands))
        else:
            clone_instructions(block, [instruction], pasted.values)
            for region in block.instructions[-1].regions:
                inside.extend(walk_blocks(region))

    def _fits(self, instruction: Instruction) -> bool:
        callee = instruction.op.called
        added = None if callee is None else self.wanted.get(callee)
        return added is not None and (added <= 0 or self.size + added <= self.largest)

    def _enter(self, call: Instruction, operands: Iterable[Value]) -> _Pasted:
        assert call.op.called is not None
        callee = self.module.functions[call.op.called]
        self.size += self.wanted[callee.name]
        values = dict(zip(callee.parameters, operands, strict=True))
        return _Pasted(call, callee, iter(callee.entry.instructions), values)
