"""Sparse conditional constant propagation: what is the same constant on every way that can be taken.

1. Every value is first *open*: nothing that reaches it is known.  It can become a constant, and then *vary*:
   it never goes back, so that each is looked at three times at most.
2. Only blocks that can be reached give anything on.  The entry is reached; a branch on a known condition
   reaches one block, any other all that it names; likewise the bodies of `if`, `while` and `for`.
3. Arguments of blocks, what loops carry, and what bodies yield join what comes to them over ways that are
   taken.  So a loop that carries a constant around is seen through, where looking at each instruction in
   turn would find that it depends on itself.
4. At the end, uses of constants are replaced by literals, known branches are taken, and blocks that cannot
   be reached are removed.

Parameters are known where all calls can be seen: of functions that are not entries, no values, not primals
of declarations, and not recursive.  Callers come before callees; what a call returns is not followed.

Source: Wegman & Zadeck 1991, "Constant propagation with conditional branches".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from ..analysis import ControlFlow
from ..analysis.manager import Analyses
from ..ir import Block, Builder, Instruction, Module, Op, Region, Value
from ..ir.surgery import make_instruction, replace_uses, walk, walk_blocks
from ..ops import (
    Apply,
    Branch,
    BranchEnum,
    Conditional,
    EnumCase,
    For,
    If,
    Literal,
    Structured,
    While,
    Yield,
    arguments_of,
    splat,
)
from ..ops.control import carried_of
from .base import ModulePass
from .call_graph import callees, cycles_callees_first, references
from .control import choose_bodies
from .edges import branch_to
from .fold import fold
from .reshape import yields_of
from .rewrite import CONSTANTS

Known: TypeAlias = "Op | None"
"""An op without operands that computes the constant; None for what varies."""


@dataclass(frozen=True)
class ConstantPropagation(ModulePass):
    """Finds what is constant along the ways that can be taken, and takes the others out.

    With `entries`, other functions are called from inside only, and their parameters may be constants too.

    Requires: nothing.
    Preserves: every bit, as `fold` does, whose bounds on the size of constants hold here.
    Cost: linear, times the number of values that a branch or loop passes on together; once more where a
        structured op is left out.
    Source: Wegman & Zadeck 1991.
    """

    name: ClassVar[str] = "constant-propagation"
    entries: tuple[str, ...] = ()

    def run(self, module: Module) -> bool:
        return self.run_with(module, Analyses(module))

    def run_with(self, module: Module, analyses: Analyses) -> bool:
        """The same, with analyses that others have asked for before."""
        calls = _internal(module, self.entries)
        changed = False
        for names in reversed(list(cycles_callees_first(module))):
            for function in map(module.functions.__getitem__, names):
                if function.body is None:
                    continue
                given = calls.get(function.name) or [None] * len(function.parameters)
                while _propagate(function.body, given, analyses.uses(function)):
                    changed = True
                    analyses.forget(function)
                    if not choose_bodies(function.body):
                        break
                _collect(function.body, calls)
        return changed


def _internal(module: Module, entries: Sequence[str]) -> dict[str, list[Known]]:
    """The functions whose calls can all be seen; what they are given is yet to be collected."""
    if not entries:
        return {}
    hidden = references(module).union(entries)
    hidden.update(f.primal for f in module.functions.values() if f.primal is not None)
    for names in cycles_callees_first(module):
        if len(names) > 1 or names[0] in callees(module.functions[names[0]]):
            hidden.update(names)
    return {name: [] for name, f in module.functions.items() if f.body and name not in hidden}


def _collect(body: Region, calls: dict[str, list[Known]]) -> None:
    """Join the arguments of the calls in `body` with those of other calls."""
    for instruction in walk(body) if calls else ():
        op = instruction.op
        if not isinstance(op, Apply) or op.callee not in calls:
            continue
        given = [_constant(x.op, x.producer) for x in instruction.operands]
        before = calls[op.callee] or given
        calls[op.callee] = [a if a == b else None for a, b in zip(before, given, strict=True)]


def _constant(op: Op | None, instruction: Instruction | None) -> Known:
    """`op` if it is a constant by itself."""
    is_case = isinstance(op, EnumCase) and instruction is not None and not instruction.operands
    return op if op.__class__ in CONSTANTS or is_case else None


def _propagate(body: Region, given: Sequence[Known], uses: dict[Value, list[Instruction]]) -> bool:
    """Steps 1 to 4 for the body of a function whose parameters are `given`; whether it changed."""
    solution = _Solution(body, uses)
    solution.solve(given)
    return _Change(body, solution).apply()


@dataclass(eq=False)
class _Solution:
    """Steps 1 to 3."""

    body: Region
    uses: dict[Value, list[Instruction]]
    known: dict[Value, Known] = field(default_factory=dict[Value, Known])
    """What is not open any more."""
    reached: set[Block] = field(default_factory=set[Block])
    pending: deque[Instruction] = field(default_factory=deque[Instruction])
    waiting: set[Instruction] = field(default_factory=set[Instruction])
    """What is in `pending`."""
    homes: dict[Instruction, Block] = field(default_factory=dict[Instruction, Block])
    owners: dict[Block, Instruction] = field(default_factory=dict[Block, Instruction])

    def solve(self, given: Sequence[Known]) -> None:
        """Follow all ways from the entry until nothing new is found."""
        for block in walk_blocks(self.body):
            for instruction in block.instructions:
                self.homes[instruction] = block
                for region in instruction.regions:
                    self.owners.update(dict.fromkeys(region.blocks, instruction))
        for parameter, constant in zip(self.body.entry.arguments, given, strict=True):
            self.meet(parameter, constant)
        self.reach(self.body.entry)
        while self.pending:
            instruction = self.pending.popleft()
            self.waiting.discard(instruction)
            self.visit(instruction)

    def meet(self, value: Value, constant: Known) -> None:
        """`value` may be `constant`."""
        if value not in self.known:
            self.known[value] = constant
        elif self.known[value] is None or self.known[value] == constant:
            return
        else:
            self.known[value] = None
        for user in self.uses.get(value, ()):
            if self.homes[user] in self.reached:
                self.enqueue(user)

    def give(self, target: Value, source: Value) -> None:
        """`target` may be what `source` is."""
        if source in self.known:
            self.meet(target, self.known[source])

    def reach(self, block: Block) -> None:
        """`block` can be reached, by a way that this instruction is the first to find."""
        if block not in self.reached:
            self.reached.add(block)
            for instruction in block.instructions:
                self.enqueue(instruction)

    def enqueue(self, instruction: Instruction) -> None:
        if instruction not in self.waiting:
            self.waiting.add(instruction)
            self.pending.append(instruction)

    def visit(self, instruction: Instruction) -> None:
        """What follows from what is known of the operands."""
        match instruction.op:
            case Structured():
                self.structured(instruction)
            case Yield():
                owner = self.owners.get(self.homes[instruction])
                if owner is not None:
                    self.enqueue(owner)
            case Branch() | Conditional() | BranchEnum():
                self.branch(instruction)
            case _:
                self.compute(instruction)

    def compute(self, instruction: Instruction) -> None:
        op, results = instruction.op, instruction.results
        if len(results) != 1 or instruction.regions or op.effect:
            for result in results:
                self.meet(result, None)
            return
        if results[0] in self.known and self.known[results[0]] is None:
            return
        literals: list[Literal] = []
        for operand in instruction.operands:
            if operand not in self.known:
                return
            constant = self.known[operand]
            if not isinstance(constant, Literal):
                self.meet(results[0], None)
                return
            literals.append(constant)
        folded = _folded(instruction, literals) if literals else _constant(op, instruction)
        self.meet(results[0], folded)

    def branch(self, terminator: Instruction) -> None:
        for number in self.ways(terminator):
            target = terminator.successors[number]
            carried = self.carried(terminator)
            if carried is not None:
                given: Iterable[Value] = carried
            elif isinstance(terminator.op, BranchEnum):
                given = ()
                for argument in target.arguments:
                    self.meet(argument, None)
            else:
                given = arguments_of(terminator, number)
            for argument, value in zip(target.arguments, given, strict=False):
                self.give(argument, value)
            self.reach(target)

    def ways(self, terminator: Instruction) -> Sequence[int]:
        """The numbers of the successors that may be gone to."""
        every = range(len(terminator.successors))
        if isinstance(terminator.op, Branch):
            return every
        decider = terminator.operands[0]
        if isinstance(terminator.op, BranchEnum) and isinstance(decider.op, EnumCase):
            return [terminator.op.cases.index(decider.op.case)]
        if decider not in self.known:
            return []
        match terminator.op, self.known[decider]:
            case Conditional(), Literal() as truth:
                return [0 if truth.splat_value() else 1]
            case BranchEnum(cases=cases), EnumCase(case=case):
                return [cases.index(case)]
            case _:
                return every

    def carried(self, terminator: Instruction) -> Sequence[Value] | None:
        """What the case of a `branchEnum` carries, if that is known."""
        if not isinstance(terminator.op, BranchEnum):
            return None
        made = terminator.operands[0].producer
        return made.operands if made is not None and isinstance(made.op, EnumCase) else None

    def number(self, value: Value) -> int | bool | None:
        """The number that a scalar certainly is."""
        constant = self.known.get(value)
        return constant.splat_value() if isinstance(constant, Literal) else None

    def structured(self, instruction: Instruction) -> None:
        match instruction.op:
            case If():
                self.choice(instruction)
            case While():
                self.repetition(instruction)
            case For():
                self.count(instruction)
            case _:
                for result in instruction.results:
                    self.meet(result, None)

    def enter(self, region: Region, given: Sequence[Value], skipped: int = 0) -> bool:
        """Reach a body, whose arguments may be `given`; always true."""
        for argument, value in zip(region.entry.arguments[skipped:], given, strict=True):
            self.give(argument, value)
        self.reach(region.entry)
        return True

    def choice(self, instruction: Instruction) -> None:
        condition, *given = instruction.operands
        if condition not in self.known:
            return
        truth = self.number(condition)
        for region, when in zip(instruction.regions, (True, False), strict=True):
            if truth is None or truth is when:
                self.enter(region, given)
                for result, value in zip(instruction.results, yields_of(region), strict=True):
                    self.give(result, value)

    def repetition(self, loop: Instruction) -> None:
        test, body = loop.regions
        self.enter(test, loop.operands)
        (condition,) = yields_of(test)
        if condition not in self.known:
            return
        truth = self.number(condition)
        if truth is not False:
            # first what the body yields, as the condition and the body then take the same
            for argument, value in zip(test.entry.arguments, yields_of(body), strict=False):
                self.give(argument, value)
            self.enter(body, test.entry.arguments)
        if truth is not True:
            for result, value in zip(loop.results, test.entry.arguments, strict=False):
                self.give(result, value)

    def count(self, loop: Instruction) -> None:
        (body,) = loop.regions
        carried = loop.operands[carried_of(loop)]
        for stack in loop.results[len(carried) :]:
            self.meet(stack, None)
        if any(bound not in self.known for bound in loop.operands[:2]):
            return
        lower, upper = map(self.number, loop.operands[:2])
        is_known = lower is not None and upper is not None
        trips = upper - lower if lower is not None and upper is not None else 1
        if trips > 0:
            index = body.entry.arguments[0]
            once = is_known and trips == 1
            self.meet(index, splat(index.tensor, lower) if once else None)
            self.enter(body, loop.operands[2:], 1)
            for argument, result, value in zip(
                body.entry.arguments[1:],
                loop.results,
                yields_of(body)[: len(carried)],
                strict=False,
            ):
                self.give(argument, value)
                self.give(result, value)
        if trips <= 0 or not is_known:
            for result, value in zip(loop.results, carried, strict=False):
                self.give(result, value)


def _folded(instruction: Instruction, literals: Sequence[Literal]) -> Known:
    """What `fold` makes of the instruction on these operands."""
    b = Builder()
    operands = [b.emit(literal) for literal in literals]
    value = fold(b, make_instruction(instruction.op, operands, instruction.results))
    return value.op if value is not None else None


@dataclass(eq=False)
class _Change:
    """Step 4."""

    body: Region
    solution: _Solution
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])
    folded: set[Instruction] = field(default_factory=set[Instruction])
    """What a literal takes the place of."""

    def apply(self) -> bool:
        blocks = [block for block in walk_blocks(self.body) if block in self.solution.reached]
        self.folded.update(i for block in blocks for i in block.instructions if self.is_folded(i))
        decided = [block for block in blocks if self.decide(block)]
        for block in blocks:
            self.visit(block)
        replace_uses(self.body, self.replaced)
        if decided:
            gone = set(ControlFlow(self.body).unreachable)
            self.body.blocks[:] = [block for block in self.body.blocks if block not in gone]
        return bool(decided or self.replaced)

    def is_folded(self, instruction: Instruction) -> bool:
        if len(instruction.results) != 1 or instruction.regions:
            return False
        constant = self.solution.known.get(instruction.results[0])
        return constant is not None and constant is not instruction.op

    def decide(self, block: Block) -> bool:
        """Take the branch that is known to be taken."""
        terminator = block.terminator
        ways = self.solution.ways(terminator) if terminator.successors else ()
        if len(ways) != 1 or len(terminator.successors) == 1:
            return False
        (number,) = ways
        carried = self.solution.carried(terminator)
        given = arguments_of(terminator, number) if carried is None else carried
        target = terminator.successors[number]
        block.instructions[-1] = branch_to(target, given, terminator)
        return True

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
            literal = b.emit(constant)
            literal.name = instruction.result.name
            self.replaced[instruction.result] = literal

    def define(self, b: Builder, values: Iterable[Value]) -> None:
        """Literals for those of `values` that are constant, and used by what stays."""
        for value in values:
            constant = self.solution.known.get(value)
            if constant is not None and any(
                user not in self.folded for user in self.solution.uses.get(value, ())
            ):
                self.replaced[value] = b.emit(constant)
