"""Sparse conditional constant analysis: which values are constant on all executable paths.

1. Every value is first *open* (⊤): nothing that reaches it is known.  It can become a constant, and then *vary* (⊥):
   it never goes back, so that its users are enqueued twice at most.
2. Only blocks that can be reached pass anything on.  The entry is reached; a branch on a known condition
   reaches one block, any other all that it names; likewise the bodies of `if`, `while` and `for`.
3. Arguments of blocks, what loops carry, and what bodies yield meet what comes to them over executable edges.
   So a loop that carries a constant around is seen through, where looking at each instruction in
   turn would find that it depends on itself.

An edge becomes executable once.  From then on each value that it passes propagates to its targets, and to nothing else:
how many values a branch passes together, and how deep loops lie in each other, is no factor.

Source: Wegman & Zadeck 1991, "Constant propagation with conditional branches".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from ..ir import Block, Builder, Instruction, Op, Region, Value
from ..ir.surgery import make_instruction, walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import EnumCase
from ..ops.flows import (
    Role,
    arguments_of_bodies,
    flows_in,
    passed_along,
    possible_paths,
    structured,
)
from ..ops.literal import number_in
from ..ops.terminators import decider_of, successor_taken, values_passed
from .fold import fold

LatticeValue: TypeAlias = "Op | None"
"""An op without operands that computes the constant; None for what varies."""


def constant_of(op: Op | None, instruction: Instruction | None) -> LatticeValue:
    """`op` if it is a constant by itself."""
    is_case = isinstance(op, EnumCase) and instruction is not None and not instruction.operands
    return op if op is not None and (op.is_constant or is_case) else None


@dataclass(eq=False)
class ConstantAnalysis:
    """What is known in `body`."""

    body: Region
    known: dict[Value, LatticeValue] = field(default_factory=dict[Value, LatticeValue])
    """What is not open any more."""
    reached: set[Block] = field(default_factory=set[Block])
    opened: set[tuple[Instruction, Hashable]] = field(
        default_factory=set[tuple[Instruction, Hashable]]
    )
    """The ways that may be taken: numbers of successors, or paths of structured instructions."""
    targets: dict[Value, list[Value]] = field(default_factory=dict[Value, list[Value]])
    """What a value is given on to, over these ways."""
    changed: list[Value] = field(default_factory=list[Value])
    """Values of which more is known than those that depend on them have been told."""
    pending: deque[Instruction] = field(default_factory=deque[Instruction])
    waiting: set[Instruction] = field(default_factory=set[Instruction])
    """What is in `pending`."""
    homes: dict[Instruction, Block] = field(default_factory=dict[Instruction, Block])
    owners: dict[Block, Instruction] = field(default_factory=dict[Block, Instruction])

    def solve(self, given: Sequence[LatticeValue]) -> None:
        """Follow all ways from the entry, whose arguments are `given`, until nothing new is found."""
        for block in walk_blocks(self.body):
            for instruction in block.instructions:
                self.homes[instruction] = block
                for region in instruction.regions:
                    self.owners.update(dict.fromkeys(region.blocks, instruction))
        for parameter, constant in zip(self.body.entry.arguments, given, strict=True):
            self.meet(parameter, constant)
        self.reach(self.body.entry)
        while self.changed or self.pending:
            if self.changed:
                self.propagate(self.changed.pop())
            else:
                instruction = self.pending.popleft()
                self.waiting.discard(instruction)
                self.visit(instruction)

    def meet(self, value: Value, constant: LatticeValue) -> None:
        """Meet the lattice value of `value` with `constant`."""
        if value in self.known:
            before = self.known[value]
            if before is None or before is constant or before == constant:
                return
            constant = None
        self.known[value] = constant
        self.changed.append(value)

    def propagate(self, value: Value) -> None:
        """Enqueue the users of `value`."""
        for target in self.targets.get(value, ()):
            self.meet(target, self.known[value])
        for user in value.uses:
            if self.homes[user] in self.reached:
                self.enqueue(user)

    def connect(self, sources: Iterable[Value], targets: Iterable[Value]) -> None:
        """Each target may be, from now on, what its source is; those without one are left."""
        for source, target in zip(sources, targets, strict=False):
            self.targets.setdefault(source, []).append(target)
            if source in self.known:
                self.meet(target, self.known[source])

    def is_new_edge(self, instruction: Instruction, edge: Hashable) -> bool:
        """Whether this edge of `instruction` is found only now."""
        is_new = (instruction, edge) not in self.opened
        self.opened.add((instruction, edge))
        return is_new

    def reach(self, block: Block) -> None:
        """Mark `block` executable."""
        if block not in self.reached:
            self.reached.add(block)
            for instruction in block.instructions:
                self.enqueue(instruction)

    def enqueue(self, instruction: Instruction) -> None:
        """Add it to the worklist."""
        if instruction not in self.waiting:
            self.waiting.add(instruction)
            self.pending.append(instruction)

    def visit(self, instruction: Instruction) -> None:
        """What follows from what is known of the operands."""
        op = instruction.op
        if op.is_structured:
            self.enter(instruction)
        elif not op.is_terminator:
            self.compute(instruction)
        elif (owner := self.owners.get(self.homes[instruction])) is None:
            self.branch(instruction)
        elif owner.op.is_structured:
            self.enqueue(owner)  # which it may decide about

    def compute(self, instruction: Instruction) -> None:
        """An instruction without bodies: folded where its operands are literals."""
        op, results = instruction.op, instruction.results
        if results and results[-1] in self.known and self.known[results[-1]] is None:
            return
        if len(results) != 1 or instruction.regions or op.effect:
            for result in results:
                self.meet(result, None)
            return
        constants: list[Op] = []
        for operand in instruction.operands:
            if operand not in self.known:
                return
            constant = self.known[operand]
            if constant is None:
                self.meet(results[0], None)
                return
            constants.append(constant)
        known = _folded(instruction, constants) if constants else constant_of(op, instruction)
        self.meet(results[0], known)

    def branch(self, terminator: Instruction) -> None:
        """The end of a block: its successors are reached, and given their arguments."""
        for number in self.ways(terminator):
            if not self.is_new_edge(terminator, number):
                continue
            target = terminator.successors[number]
            passed = values_passed(terminator, number)
            if passed is not None:
                self.connect(passed, target.arguments)
            else:
                for argument in target.arguments:
                    self.meet(argument, None)
            self.reach(target)

    def ways(self, terminator: Instruction) -> Sequence[int]:
        """The numbers of the successors that may be gone to."""
        decider = decider_of(terminator)
        known = None if decider is None else self.known.get(decider)
        number = successor_taken(terminator, known)
        if number is not None:
            return [number]
        is_open = decider is not None and decider not in self.known
        return [] if is_open else range(len(terminator.successors))

    def number(self, value: Value) -> int | bool | None:
        """The number that a scalar certainly is."""
        number: int | bool | None = number_in(self.known.get(value))
        return number

    def enter(self, instruction: Instruction) -> None:
        """A structured instruction: the bodies that its deciders allow, and what becomes what on the way."""
        op = structured(instruction)
        are_known = all(decider in self.known for decider in op.deciders(instruction))
        for path in possible_paths(instruction, self.number) if are_known else op.certain:
            if not self.is_new_edge(instruction, path):
                continue
            for source, target in passed_along(instruction, path):
                self.connect([source], [target])
            start, end = path
            if end is not None:
                self.reach(instruction.regions[end].entry)
            for flow in (
                flows_in(instruction, Role.INDEX) if start is not None and end is not None else ()
            ):
                for index in arguments_of_bodies(instruction, flow):
                    self.meet(index, None)  # another one in each iteration
        if self.is_new_edge(instruction, Role.STACKED):
            for flow in flows_in(instruction, Role.STACKED):
                self.meet(instruction.results[flow.result or 0], None)


def _folded(instruction: Instruction, constants: Sequence[Op]) -> LatticeValue:
    """What `fold` makes of the instruction on these operands."""
    b = Builder()
    operands = [b.emit(constant) for constant in constants]
    value = fold(b, make_instruction(instruction.op, operands, instruction.results))
    return value.op if value is not None else None
