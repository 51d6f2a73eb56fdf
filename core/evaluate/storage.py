"""What instructions do with memory, boxes and stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import TrapError
from ..ir import Instruction, Op
from ..ops.memory import (
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Copy,
    Deallocate,
    Load,
    ProjectBox,
    Release,
    Retain,
    Store,
)
from ..ops.stack import CreateStack, DestroyStack, Pop, Push
from ..types import Type
from .frame import Frame
from .memory import Box, Memory, Pointer, Stack, copy_values, existing

Action: TypeAlias = Callable[[Any, Frame, Instruction, Sequence[Any]], Sequence[Any]]
"""(op, frame, instruction, operands) to the results."""

HEAP = "heap memory"


def _allocate_stack(
    op: AllocateStack, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    memory = Memory("stack memory", op.type, op.count)
    frame.memory.append(memory)
    return (Pointer(memory),)


def _allocate_heap(
    op: AllocateHeap, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    count = int(operands[0])
    if count < 0:
        raise TrapError(f"allocateHeap of {count} values")
    return (Pointer(Memory(HEAP, op.type, count)),)


def _deallocate(
    op: Deallocate, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    pointer: Pointer = existing(operands[0], "deallocate")
    memory = pointer.memory
    pointer.check("deallocate")
    if memory.kind != HEAP:
        raise TrapError(f"deallocate {memory.kind}: only heap memory is given back")
    if not pointer.is_first:
        raise TrapError("deallocate a place inside heap memory: only its beginning is given back")
    memory.give_back("that was deallocated")
    return ()


def _load(
    op: Load, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    pointer: Pointer = existing(operands[0], "load from")
    return (pointer.load(),)


def _store(
    op: Store, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    value, target = operands
    pointer: Pointer = existing(target, "store to")
    pointer.store(value)
    return ()


def _copy(
    op: Copy, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    source, target, count = operands
    copy_values(existing(source, "copy from"), existing(target, "copy to"), int(count))
    return ()


def _allocate_box(
    op: AllocateBox, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    return (Box(Memory("a box", op.type, 1)),)


def _project_box(
    op: ProjectBox, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    [box] = operands
    return (None if box is None else Pointer(box.memory),)


def _retain(
    op: Retain, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    _owned(operands[0], "retain").owners += 1
    return ()


def _release(
    op: Release, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    box = _owned(operands[0], "release")
    box.owners -= 1
    if not box.owners:
        box.memory.give_back("that was released by its last owner")
    return ()


def _owned(given: Any, verb: str) -> Box:
    box: Box = existing(given, verb)
    Pointer(box.memory).check(verb)
    return box


def _create_stack(
    op: CreateStack, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    return (Stack(),)


def _push(
    op: Push, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    value, stack = operands
    _entries(stack, "push to").append((instruction.operands[0].type, value))
    return ()


def _pop(op: Pop, frame: Frame, instruction: Instruction, operands: Sequence[Any]) -> Sequence[Any]:
    entries = _entries(operands[0], "pop from")
    if not entries:
        raise TrapError(f"pop {op.type} from an empty stack")
    type, value = entries.pop()
    if type != op.type:
        raise TrapError(f"pop {op.type} from a stack with a {type} on top")
    return (value,)


def _destroy_stack(
    op: DestroyStack, frame: Frame, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    _entries(operands[0], "destroy")
    stack: Stack = operands[0]
    stack.entries = None
    return ()


def _entries(given: Any, verb: str) -> list[tuple[Type, Any]]:
    stack: Stack = existing(given, verb)
    return stack.used_by(verb)


ACTIONS: Mapping[type[Op], Action] = {
    AllocateStack: _allocate_stack,
    AllocateHeap: _allocate_heap,
    Deallocate: _deallocate,
    Load: _load,
    Store: _store,
    Copy: _copy,
    AllocateBox: _allocate_box,
    ProjectBox: _project_box,
    Retain: _retain,
    Release: _release,
    CreateStack: _create_stack,
    Push: _push,
    Pop: _pop,
    DestroyStack: _destroy_stack,
}
"""What the ops of `core.ops.memory` and `core.ops.stack` do to memory."""
