"""The driver: one walk that applies laws and merges equal instructions.

1. Instructions are visited in order; operands that were replaced before are redirected first, so a law
   sees only finished operands.
2. The laws for the op's class are tried, those of its base classes too.  A law returns the value that
   the instruction equals: one that exists, or the last of new instructions.  New instructions are
   visited next, before anything that follows.
3. If no law applies and an equal instruction was met before in this block, its results are used.

A law looks only at operands, and an operand never changes once visited: so one walk reaches the end,
and a second finds nothing.  Each law makes the program cheaper by the measure stated in `simplify`;
should a law break that promise, the walk still ends, since the number of rewrites is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import InternalError
from ..ir import Block, Builder, Instruction, Op, Region, Value
from ..ir.surgery import replace_uses, resolve
from ..ops import Add, And, Equal, Multiply, NotEqual, Or

Law: TypeAlias = Callable[[Builder, Instruction], Value | None]
"""The value that an instruction with one result equals, or None."""

Laws: TypeAlias = Mapping[type[object], Sequence[Law]]
"""Laws by class of op; those of a base class hold for all ops derived from it."""

COMMUTATIVE: frozenset[type[Op]] = frozenset({Add, Multiply, And, Or, Equal, NotEqual})
"""Where the order of operands makes no difference to any bit; min and max choose between −0 and +0."""

REWRITES_PER_INSTRUCTION = 16
"""Far more than any program needs."""


def combine_laws(*books: Laws) -> Laws:
    """All laws of the books, those of the first tried first."""
    combined: dict[type[object], tuple[Law, ...]] = {}
    for book in books:
        for op_class, laws in book.items():
            combined[op_class] = (*combined.get(op_class, ()), *laws)
    return combined


def rewrite(region: Region, laws: Laws, *, merge: bool = False) -> bool:
    """Apply `laws` everywhere in `region`, and merge equal instructions of a block if `merge`.

    Whether anything changed.
    """
    walk = _Walk(laws, merge)
    walk.pending.append(region)
    while walk.pending:
        current = walk.pending.pop()
        for block in current.blocks:
            _visit_block(walk, block)
        walk.has_branches = walk.has_branches or len(current.blocks) > 1
    if walk.has_branches:
        replace_uses(region, walk.replaced)
    return bool(walk.replaced)


@dataclass(eq=False)
class _Walk:
    """What is known while walking; regions inside wait in `pending`."""

    laws: Laws
    merge: bool
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])
    pending: list[Region] = field(default_factory=list[Region])
    found: dict[type[Op], tuple[Law, ...]] = field(default_factory=dict[type[Op], tuple[Law, ...]])
    has_branches: bool = False

    def laws_of(self, op_class: type[Op]) -> tuple[Law, ...]:
        """The laws of a class and of its bases, the most general first."""
        laws = tuple(law for base in reversed(op_class.__mro__) for law in self.laws.get(base, ()))
        self.found[op_class] = laws
        return laws


def _visit_block(walk: _Walk, block: Block) -> None:
    """Steps 1 to 3; written in one piece because every instruction of every program passes here."""
    replaced, found, merge = walk.replaced, walk.found, walk.merge
    builder, known = Builder(), dict[object, Instruction]()
    fresh = builder.block.instructions
    done: list[Instruction] = []
    waiting = block.instructions[::-1]
    rewrites_left = REWRITES_PER_INSTRUCTION * (len(waiting) + REWRITES_PER_INSTRUCTION)
    while waiting:
        instruction = waiting.pop()
        if replaced:
            _redirect(instruction, replaced)
        op_class = instruction.op.__class__
        laws = found.get(op_class)
        if laws is None:
            laws = walk.laws_of(op_class)
        if laws and rewrites_left > 0:
            builder.location = instruction.location
            value = _first(laws, builder, instruction)
            if value is not None:
                rewrites_left -= 1
                _replace(replaced, instruction, value)
                waiting.extend(reversed(fresh))
                fresh.clear()
                continue
        if instruction.regions:
            walk.pending.extend(instruction.regions)
        elif merge and not instruction.op.is_terminator:
            operands = instruction.operands
            same = frozenset(operands) if op_class in COMMUTATIVE else operands
            key = (op_class, instruction.op, same)
            twin = known.setdefault(key, instruction)
            if twin is not instruction:
                _merge(replaced, instruction, twin)
                continue
        done.append(instruction)
    block.instructions[:] = done


def _first(laws: tuple[Law, ...], builder: Builder, instruction: Instruction) -> Value | None:
    for law in laws:
        value = law(builder, instruction)
        if value is not None:
            return value
        if builder.block.instructions:
            raise InternalError(f"a law of {instruction.op.name} made instructions for nothing")
    return None


def _redirect(instruction: Instruction, replaced: dict[Value, Value]) -> None:
    for operand in instruction.operands:
        if operand in replaced:
            instruction.operands = tuple(resolve(replaced, x) for x in instruction.operands)
            return


def _replace(replaced: dict[Value, Value], instruction: Instruction, value: Value) -> None:
    old = instruction.result
    if value.type != old.type:
        raise InternalError(f"a law turned {old.type} of {instruction.op.name} into {value.type}")
    if value.producer is not None and value.name is None:
        value.name = old.name
    replaced[old] = resolve(replaced, value)


def _merge(replaced: dict[Value, Value], instruction: Instruction, twin: Instruction) -> None:
    for old, kept in zip(instruction.results, twin.results, strict=True):
        kept.name = kept.name or old.name
        replaced[old] = kept
