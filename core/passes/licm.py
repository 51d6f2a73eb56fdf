"""Loop-invariant code motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..analysis import Effects
from ..ir import Block, Effect, Function, Instruction, Module, Region, Value
from ..ir.surgery import replace_uses, walk, walk_blocks
from ..ops import For, While
from ..ops.control import carried_of
from ..ops.nest import Bounds
from .base import FunctionPass


@dataclass(frozen=True)
class LoopInvariants(FunctionPass):
    """Computes before a `while` or `for` what is the same in each of its iterations.

    Only what has no effect, ends and cannot fail is moved, since the loop might not run at all; a choice
    (`if`) is moved as a whole or not at all.

    Requires: structured control flow; loops between blocks are left alone.
    Preserves: results and effects; what is moved is computed once even if the loop runs zero times.
    Cost: linear, times the depth to which loops nest.
    Source: Aho, Lam, Sethi & Ullman 2006, Compilers, §9.5.
    """

    name: ClassVar[str] = "licm"

    def run(self, function: Function, module: Module) -> bool:
        if function.body is None:
            return False
        effects = Effects(module)
        changed = False
        # what leaves an inner loop may then leave the outer one too
        for block in reversed(list(walk_blocks(function.body))):
            changed = _visit(block, effects) or changed
        return changed


def _visit(block: Block, effects: Effects) -> bool:
    """Move what is invariant in the loops of `block` to where they stand."""
    if not any(isinstance(i.op, While | For) for i in block.instructions):
        return False
    moved = 0
    result: list[Instruction] = []
    for instruction in block.instructions:
        if isinstance(instruction.op, While | For):
            given = dict(_inputs(instruction))
            for region in instruction.regions:
                found = _invariant(region.entry, effects, given)
                # outside, what was given to the body is known by its own name
                replace_uses(Region([Block([], found)]), given)
                moved += len(found)
                result += found
        result.append(instruction)
    block.instructions[:] = result
    return moved > 0


def _inputs(loop: Instruction) -> Iterator[tuple[Value, Value]]:
    """The arguments of bodies that are the same in every iteration, with what they are."""
    given = loop.operands[carried_of(loop).stop :]
    for region in loop.regions:
        arguments = region.entry.arguments
        yield from zip(arguments[len(arguments) - len(given) :], given, strict=True)


def _invariant(body: Block, effects: Effects, given: dict[Value, Value]) -> list[Instruction]:
    """Take out of `body` what depends on nothing that is made in it."""
    inside = {argument for argument in body.arguments if argument not in given}
    found: list[Instruction] = []
    kept: list[Instruction] = []
    for instruction in body.instructions:
        if _can_move(instruction, effects) and inside.isdisjoint(_used(instruction)):
            found.append(instruction)
        else:
            kept.append(instruction)
            inside.update(instruction.results)
    body.instructions[:] = kept
    return found


def _can_move(instruction: Instruction, effects: Effects) -> bool:
    if instruction.op.is_terminator or not effects.is_pure(instruction):
        return False
    return not any(_can_fail(i) or _may_not_end(i) for i in (instruction, *_inner(instruction)))


def _can_fail(instruction: Instruction) -> bool:
    """Whether an index out of range would be an error."""
    return getattr(instruction.op, "bounds", None) is Bounds.CHECK


def _may_not_end(instruction: Instruction) -> bool:
    """Loops, and calls of what may loop or call itself; inlining shows what is inside of calls."""
    return isinstance(instruction.op, While) or bool(instruction.op.effect & Effect.CALL)


def _inner(instruction: Instruction) -> Iterator[Instruction]:
    for region in instruction.regions:
        yield from walk(region)


def _used(instruction: Instruction) -> set[Value]:
    """All values that `instruction` and what is inside it use; their own among them do no harm."""
    return {operand for i in (instruction, *_inner(instruction)) for operand in i.operands}
