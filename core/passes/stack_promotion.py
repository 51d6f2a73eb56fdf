"""Stack promotion: heap memory that does not outlive its function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..ir import Block, Function, Instruction, Region
from ..ir.surgery import drop_operands, walk, with_bodies
from ..lazy_dataclass import dataclass
from ..ops import AllocateHeap, AllocateStack, Deallocate
from ..ops.literal import number_of
from ..ops.memory import pointee_of
from ..types import I64, Type, tensor_bytes
from .base import FunctionPass


@dataclass(frozen=True)
class StackPromotion(FunctionPass):
    """Takes memory from the stack that is allocated once, in a known amount, and used here only.

    The memory must be given back in the block that allocates it, after everything that uses it, or not at
    all; and the block must be the function's entry, so that no loop allocates it again and again.

    Requires: nothing.
    Preserves: results and effects.
    Cost: linear.
    """

    name: ClassVar[str] = "stack-promotion"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.ALIASES
    most: int = 1 << 19
    """Bytes that a function may have on the stack then: all of them last until it returns."""

    def run(self, function: Function, analyses: Analyses) -> bool:
        body = function.body
        if body is None or body.entry in _targets(body):
            return False
        on_the_heap = [i for i in body.entry.instructions if isinstance(i.op, AllocateHeap)]
        if not on_the_heap:
            return False
        aliases = analyses.aliases(function)
        positions = _positions(body.entry)
        top = set(body.entry.instructions)
        gone: set[Instruction] = set()
        changed = False
        room = self.most - sum(_taken(i) for i in walk(body))
        for instruction in on_the_heap:
            count = _count(instruction)
            if count is None or not aliases.is_private(instruction.result):
                continue
            users = _users(instruction)
            frees = _frees(instruction, users)
            if frees is not None and top.issuperset(frees) and _are_last(frees, users, positions):
                on_the_stack = AllocateStack(pointee_of(instruction.result), count)
                taken = _bytes(on_the_stack.type, count)
                if taken > room:
                    continue
                room -= taken
                instruction.op = on_the_stack
                instruction.set_operands(())
                gone.update(frees)
                changed = True
        drop_operands(gone)
        body.entry.instructions[:] = [i for i in body.entry.instructions if i not in gone]
        return changed


def _taken(instruction: Instruction) -> int:
    """How many bytes of the stack it takes."""
    count = instruction.op.stack_values()
    return _bytes(pointee_of(instruction.result), count) if count else 0


def _bytes(type: Type, count: int) -> int:
    """The bytes of so many values; what is no tensor is an address."""
    return count * max(tensor_bytes(type), I64.bytes)


def _count(instruction: Instruction) -> int | None:
    """How many values are allocated, if that is known."""
    count: int | None = number_of(instruction.operands[0])
    return count if count is not None and count >= 1 else None


def _targets(body: Region) -> set[Block]:
    return {target for block in body.blocks for target in block.terminator.successors}


def _frees(allocation: Instruction, users: Iterable[Instruction]) -> list[Instruction] | None:
    """The one `deallocate` of what was allocated, or none; None if there are several or of a part."""
    found = [user for user in users if isinstance(user.op, Deallocate)]
    if len(found) > 1 or any(i.operands[0] is not allocation.result for i in found):
        return None
    return found


def _users(allocation: Instruction) -> dict[Instruction, None]:
    """What uses the memory, through pointers into it too."""
    users: dict[Instruction, None] = {}
    pending = [allocation.result]
    while pending:
        for user in pending.pop().uses:
            if user not in users and user.op.is_pointer_step:
                pending.append(user.result)
            users[user] = None
    return users


def _positions(entry: Block) -> dict[Instruction, int]:
    """The place of each instruction of the entry; those in bodies have that of the instruction around them."""
    return {
        inner: position
        for position, instruction in enumerate(entry.instructions)
        for inner in with_bodies([instruction])
    }


def _are_last(
    frees: list[Instruction], users: Iterable[Instruction], positions: dict[Instruction, int]
) -> bool:
    """Whether nothing uses the memory after it is given back, in the entry."""
    if not frees:
        return True
    last = positions.get(frees[0], -1)
    return all(user is frees[0] or positions.get(user, last) < last for user in users)
