"""Sparse conditional constant propagation: rewrites the program by the results of `constant_analysis`.

1. Uses of constants are replaced by literals, known branches are taken, and blocks that cannot be reached are
   removed.
2. A body that is known to run once takes the place of its instruction.  That may show which case of an enum a
   branch is given, so that all is looked at again.

Parameters are known where all calls can be seen: of functions that are not entries, no values, not primals
of declarations, and not recursive.  Callers come before callees; what a call returns is not followed.

Source: Wegman & Zadeck 1991, "Constant propagation with conditional branches".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import ClassVar

from ..analysis import Analyses
from ..analysis.call_graph import callees, check_names, cycles_callees_first, references
from ..ir import Block, Builder, Function, Instruction, Module, Region, Value
from ..ir.surgery import walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops.terminators import values_passed
from .base import ModulePass
from .constant_analysis import ConstantAnalysis, LatticeValue, constant_of
from .dce import remove_unreachable
from .edges import branch_to
from .simplify_structured import inline_known_bodies


@dataclass(frozen=True)
class ConstantPropagation(ModulePass):
    """Finds what is constant along the ways that can be taken, and takes the others out.

    With `entries`, other functions are called from inside only, and their parameters may be constants too.

    Requires: nothing.
    Preserves: every bit, as `fold` does, whose bounds on the size of constants hold here.
    Cost: linear in instructions and operands; once more where a structured op is left out.
    Source: Wegman & Zadeck 1991.
    """

    name: ClassVar[str] = "constant-propagation"
    forgets: ClassVar[bool] = True
    entries: tuple[str, ...] = ()

    def run(self, module: Module, analyses: Analyses) -> bool:
        check_names(module, self.entries)
        calls = _internal(module, self.entries)
        changed = False
        for names in reversed(list(cycles_callees_first(module))):
            for function in map(module.functions.__getitem__, names):
                if function.body is None:
                    continue
                given = calls.get(function.name) or [None] * len(function.parameters)
                while _propagate(function, function.body, given, analyses):
                    changed = True
                    if not inline_known_bodies(function.body):
                        break
                _collect(function.body, calls)
        return changed


def _internal(module: Module, entries: Sequence[str]) -> dict[str, list[LatticeValue]]:
    """The functions whose calls can all be seen; what they are given is yet to be collected."""
    if not entries:
        return {}
    hidden = references(module).union(entries)
    hidden.update(f.primal for f in module.functions.values() if f.primal is not None)
    hidden.update(rule for f in module.functions.values() for rule in f.rules.names)
    for names in cycles_callees_first(module):
        if len(names) > 1 or names[0] in callees(module.functions[names[0]]):
            hidden.update(names)
    return {name: [] for name, f in module.functions.items() if f.body and name not in hidden}


def _collect(body: Region, calls: dict[str, list[LatticeValue]]) -> None:
    """Join the arguments of the calls in `body` with those of other calls."""
    for instruction in walk(body) if calls else ():
        callee = instruction.op.called
        if callee is None or callee not in calls:
            continue
        given = [constant_of(x.op, x.producer) for x in instruction.operands]
        before = calls[callee] or given
        calls[callee] = [a if a == b else None for a, b in zip(before, given, strict=True)]


def _propagate(
    function: Function, body: Region, given: Sequence[LatticeValue], analyses: Analyses
) -> bool:
    """Step 1 for a function whose parameters are `given`; whether it changed, and is forgotten."""
    solution = ConstantAnalysis(body)
    solution.solve(given)
    changed = _Change(body, solution).apply()
    if changed:
        analyses.forget(function)
        remove_unreachable(function, analyses)
    return changed


@dataclass(eq=False)
class _Change:
    """Step 1, of what the solution knows."""

    body: Region
    solution: ConstantAnalysis
    changed: bool = False
    folded: set[Instruction] = field(default_factory=set[Instruction])
    """What a literal takes the place of."""

    def apply(self) -> bool:
        blocks = [block for block in walk_blocks(self.body) if block in self.solution.reached]
        self.folded.update(i for block in blocks for i in block.instructions if self.is_folded(i))
        for block in blocks:
            self.decide(block)
        for block in blocks:
            self.visit(block)
        return self.changed

    def is_folded(self, instruction: Instruction) -> bool:
        if len(instruction.results) != 1 or instruction.regions:
            return False
        constant = self.solution.known.get(instruction.results[0])
        return constant is not None and constant is not instruction.op

    def decide(self, block: Block) -> None:
        """Take the branch that is known to be taken."""
        terminator = block.terminator
        ways = self.solution.ways(terminator) if terminator.successors else ()
        if len(ways) != 1 or len(terminator.successors) == 1:
            return
        (number,) = ways
        # a constant case carries nothing
        given = values_passed(terminator, number) or ()
        block.instructions[-1] = branch_to(terminator.successors[number], given, terminator)
        terminator.erase()
        self.changed = True

    def visit(self, block: Block) -> None:
        """Put literals where constants come to be."""
        old, block.instructions = block.instructions, []
        b = Builder(block)
        self.define(b, block.arguments)
        for instruction in old:
            b.location = instruction.location
            if instruction not in self.folded:
                block.instructions.append(instruction)
                if instruction.regions:
                    self.define(b, instruction.results)
                continue
            constant = self.solution.known[instruction.result]
            assert constant is not None
            instruction.replace_with(b.emit(constant))
            self.changed = True

    def define(self, b: Builder, values: Iterable[Value]) -> None:
        """Literals for those of `values` that are constant, and used by what stays."""
        for value in values:
            constant = self.solution.known.get(value)
            if constant is not None and any(user not in self.folded for user in value.uses):
                value.replace_all_uses_with(b.emit(constant))
                self.changed = True
