"""The rewrite driver: one walk that applies laws and eliminates common subexpressions.

1. Instructions are visited in order.  What replaces a value does so everywhere at once, so a law sees only
   finished operands.
2. The laws for the op's class are tried, those of its base classes too.  A law returns the value that
   the instruction equals: one that exists, or the last of new instructions.  New instructions are
   visited next, before anything that follows.
3. If no law applies and an equal instruction was met before that is visible here, its results are used:
   one in this block, in a block that dominates it, or around the body that it is part of.  Instructions
   with effects, and terminators, are never merged.

A law looks only at operands, and an operand never changes once visited: so one walk reaches the end,
and a second finds nothing.  Each law makes the program cheaper by the measure stated in `simplify`;
should a law break that promise, the walk still ends, since the number of rewrites is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from ..analysis import Analyses, ControlFlow, Effects
from ..errors import InternalError
from ..ir import Block, Builder, Effect, Function, Instruction, Op, Region, Value
from ..lazy_dataclass import dataclass

Law: TypeAlias = Callable[[Builder, Instruction[Any]], Value | Sequence[Value] | None]
"""The value that an instruction with one result equals, or None."""

Laws: TypeAlias = Mapping[type[object], Sequence[Law]]
"""Laws by class of op; those of a base class hold for all ops derived from it."""

REWRITES_PER_INSTRUCTION = 16
"""Far more than any program needs."""


def combine_laws(*books: Laws) -> Laws:
    """All laws of the books, those of the first tried first."""
    combined: dict[type[object], tuple[Law, ...]] = {}
    for book in books:
        for op_class, laws in book.items():
            combined[op_class] = (*combined.get(op_class, ()), *laws)
    return combined


def rewrite(function: Function, laws: Laws, analyses: Analyses, *, merge: bool = False) -> bool:
    """Apply `laws` everywhere in `function`, bodies included, and merge equal instructions if `merge`.

    The blocks of the function, and where they lead, stay.  Whether anything changed.
    """
    region = function.body
    if region is None:
        return False
    walk = _Rewriter(laws, merge, analyses.effects)
    walk.enter(region, _AvailableInstructions(), analyses.flow(function))
    while walk.stack:
        step = walk.stack.pop()
        if isinstance(step, _Visit):
            _visit(walk, step)
        else:
            step.scope.forget(step.count)
    return walk.changed


@dataclass(eq=False, slots=True)
class _AvailableInstructions:
    """The instructions that others may be merged with, and their keys in the order they came."""

    known: dict[object, Instruction] = field(default_factory=dict[object, Instruction])
    keys: list[object] = field(default_factory=list[object])

    def add(self, key: object, instruction: Instruction) -> Instruction:
        """The instruction known by `key`, which is this one if there was none."""
        twin = self.known.setdefault(key, instruction)
        if twin is instruction:
            self.keys.append(key)
        return twin

    def forget(self, count: int) -> None:
        """Leave only the first `count` keys."""
        for key in self.keys[count:]:
            del self.known[key]
        del self.keys[count:]


@dataclass(eq=False, slots=True)
class _ScopeEnd:
    """The end of what a block dominates, or of a body: what came after `count` is no longer visible."""

    scope: _AvailableInstructions
    count: int


@dataclass(eq=False, slots=True)
class _Visit:
    """A block on the way: what waits in it (last first), what is done, and which blocks dominate which."""

    block: Block
    scope: _AvailableInstructions
    dominated: Mapping[Block, Sequence[Block]]
    waiting: list[Instruction]
    rewrites_left: int
    done: list[Instruction] = field(default_factory=list[Instruction])
    builder: Builder = field(default_factory=Builder)


@dataclass(eq=False)
class _Rewriter:
    """What is known while walking; blocks and bodies wait on `stack`."""

    laws: Laws
    merge: bool
    effects: Effects
    changed: bool = False
    stack: list[_Visit | _ScopeEnd] = field(default_factory=list["_Visit | _ScopeEnd"])
    found: dict[type[Op], tuple[Law, ...]] = field(default_factory=dict[type[Op], tuple[Law, ...]])
    equal: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The constants that another, further outside, is equal to."""

    def laws_of(self, op_class: type[Op]) -> tuple[Law, ...]:
        """The laws of a class and of its bases, the most general first."""
        laws = tuple(law for base in reversed(op_class.__mro__) for law in self.laws.get(base, ()))
        self.found[op_class] = laws
        return laws

    def enter(
        self, region: Region, scope: _AvailableInstructions, flow: ControlFlow | None = None
    ) -> None:
        """Visit a region next: its blocks, each after those that dominate it."""
        if len(region.blocks) == 1:
            self.visit(region.entry, scope, {})
            return
        flow = flow or ControlFlow(region)
        dominated = {
            block: [region.blocks[child] for child in children]
            for block, children in zip(region.blocks, flow.dominators.children, strict=True)
        }
        for block in flow.unreachable:
            self.visit(block, _AvailableInstructions(), {})
        self.visit(region.entry, scope, dominated)

    def visit(
        self,
        block: Block,
        scope: _AvailableInstructions,
        dominated: Mapping[Block, Sequence[Block]],
    ) -> None:
        """Visit a block next."""
        waiting = block.instructions[::-1]
        rewrites = REWRITES_PER_INSTRUCTION * (len(waiting) + REWRITES_PER_INSTRUCTION)
        self.stack.append(_Visit(block, scope, dominated, waiting, rewrites))

    def is_mergeable(self, instruction: Instruction) -> bool:
        """Whether nothing but its results matters."""
        op = instruction.op
        if op.effect is Effect.NONE:
            return not op.is_terminator
        return self.effects.is_pure(instruction)

    def twin(self, instruction: Instruction, visit: _Visit) -> Instruction:
        """The first instruction that equals this one and is visible at it; perhaps itself."""
        op, scope = instruction.op, visit.scope
        op_class = op.__class__
        if op.is_constant:
            twin = scope.add((op, visit.block), instruction)
            outer = scope.add(op, instruction)
            if twin is instruction and outer is not instruction:
                self.equal[instruction.result] = outer.result
            return twin
        operands = tuple(instruction.operands)
        if self.equal:
            operands = tuple([self.equal.get(x, x) for x in operands])
        same = frozenset(operands) if op.commutes else operands
        return scope.add((op_class, op, same), instruction)


def _visit(walk: _Rewriter, visit: _Visit) -> None:
    """Steps 1 to 3 until the block ends or has a body, which is then visited before the rest.

    Written in one piece because every instruction of every program passes here.
    """
    found, merge = walk.found, walk.merge
    builder, waiting, done, scope = visit.builder, visit.waiting, visit.done, visit.scope
    fresh = builder.block.instructions
    while waiting:
        instruction = waiting.pop()
        op_class = instruction.op.__class__
        laws = found.get(op_class)
        if laws is None:
            laws = walk.laws_of(op_class)
        if laws and visit.rewrites_left > 0:
            builder.location = instruction.location
            value = _first(laws, builder, instruction)
            if value is not None:
                visit.rewrites_left -= 1
                walk.changed = True
                _replace(instruction, value)
                waiting.extend(reversed(fresh))
                fresh.clear()
                continue
        if instruction.regions:
            done.append(instruction)
            walk.stack.append(visit)
            for region in reversed(instruction.regions):
                inner = scope if instruction.op.is_structured else _AvailableInstructions()
                walk.stack.append(_ScopeEnd(inner, len(inner.keys)))
                walk.enter(region, inner)
            return
        if merge and walk.is_mergeable(instruction):
            twin = walk.twin(instruction, visit)
            if twin is not instruction:
                walk.changed = True
                instruction.replace_with(*twin.results)
                continue
        done.append(instruction)
    visit.block.instructions[:] = done
    for block in visit.dominated.get(visit.block, ()):
        walk.stack.append(_ScopeEnd(scope, len(scope.keys)))
        walk.visit(block, scope, visit.dominated)


def _first(
    laws: tuple[Law, ...], builder: Builder, instruction: Instruction
) -> Value | Sequence[Value] | None:
    for law in laws:
        value = law(builder, instruction)
        if value is not None:
            return value
        if builder.block.instructions:
            raise InternalError(f"a law of {instruction.op.name} made instructions for nothing")
    return None


def _replace(instruction: Instruction, found: Value | Sequence[Value]) -> None:
    values = (found,) if isinstance(found, Value) else found
    for old, value in zip(instruction.results, values, strict=True):
        if value.type != old.type:
            name = instruction.op.name
            raise InternalError(f"a law turned {old.type} of {name} into {value.type}")
    instruction.replace_with(*values)
