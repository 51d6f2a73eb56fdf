"""Evaluates memory operations, typed ones and the byte operations that they are lowered to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import TrapError
from ..ir import Instruction, Op
from ..ops.byte_memory import (
    FIRST_ADDRESS,
    OUTSIDE,
    AddressOf,
    AllocateBytes,
    CheckAddress,
    FreeBytes,
    FunctionAddress,
    MoveBytes,
    ReadBytes,
    StopIf,
    WriteBytes,
    stop_message,
)
from ..ops.memory import (
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Copy,
    Deallocate,
    ElementPointer,
    Load,
    Offset,
    PointerCast,
    Release,
    Retain,
    Store,
)
from ..ops.stack import CreateStack, DestroyStack, Pop, Push
from ..types import Array, PointerType
from .byte_memory import BOX, HEAP, STACK, VALUES, Allocation, OutOfBoundsAddress, moved
from .machine import Machine
from .runtime_values import FunctionValue

MachineRule: TypeAlias = Callable[..., Sequence[Any]]
"""(op, machine, instruction, *operands) to the results there are at once; pointers, boxes and stacks are addresses."""


def _allocate_stack(op: AllocateStack, machine: Machine, at: Instruction) -> Sequence[Any]:
    size = op.count * machine.memory.layout.extent(op.type).bytes
    return (_of_the_call(machine, size).address,)


def _of_the_call(machine: Machine, size: int) -> Allocation:
    """Memory that lasts until the function returns."""
    made = machine.memory.allocate(STACK, size)
    machine.frames[-1].memory.append(made)
    return made


def _allocate_heap(
    op: AllocateHeap, machine: Machine, at: Instruction, count: Array
) -> Sequence[Any]:
    if count < 0:
        raise TrapError(f"allocateHeap of {count} values")
    size = int(count) * machine.memory.layout.extent(op.type).bytes
    return (machine.memory.allocate(HEAP, size).address,)


def _deallocate(
    op: Deallocate | FreeBytes, machine: Machine, at: Instruction, address: int
) -> Sequence[Any]:
    found = machine.memory.allocation(int(address), "deallocate")
    if found.kind != HEAP:
        raise TrapError(f"deallocate {found.kind}: only heap memory is given back")
    if found.address != address:
        raise TrapError("deallocate a place inside heap memory: only its beginning is given back")
    found.give_back("that was deallocated")
    return ()


def _load(op: Load, machine: Machine, at: Instruction, pointer: int) -> Sequence[Any]:
    return (machine.memory.read(at.result.type, pointer),)


def _store(op: Store, machine: Machine, at: Instruction, value: Any, pointer: int) -> Sequence[Any]:
    machine.memory.write(at.operands[0].type, value, pointer)
    return ()


def _copy(
    op: Copy, machine: Machine, at: Instruction, source: int, target: int, count: Array
) -> Sequence[Any]:
    for pointer, verb in ((source, "copy from"), (target, "copy to")):
        if not pointer:
            raise TrapError(stop_message(verb, pointer))
    if count < 0:
        raise TrapError(f"copy of {count} values")
    machine.memory.move(source, target, int(count) * _pointee_bytes(machine, at))
    return ()


def _pointee_bytes(machine: Machine, at: Instruction) -> int:
    """The size of what the first operand leads to."""
    type = at.operands[0].type
    assert isinstance(type, PointerType)
    return machine.memory.layout.extent(type.pointee).bytes


def _offset(
    op: Offset, machine: Machine, at: Instruction, pointer: int, count: Array
) -> Sequence[Any]:
    return (moved(pointer, int(count) * _pointee_bytes(machine, at)),)


def _element_pointer(
    op: ElementPointer, machine: Machine, at: Instruction, pointer: int, *indices: Array
) -> Sequence[Any]:
    if at not in machine.paths:
        type = at.operands[0].type
        assert isinstance(type, PointerType)
        machine.paths[at] = machine.memory.layout.path(type.pointee, op.keys)
    distance, strides = machine.paths[at]
    for index, (count, size) in zip(map(int, indices), strides, strict=True):
        if not 0 <= index < count:
            outside = OutOfBoundsAddress(pointer if pointer < FIRST_ADDRESS else OUTSIDE)
            outside.place = f"element {index} of {count}"
            return (outside,)
        distance += index * size
    return (moved(pointer, distance),)


def _pointer_cast(op: PointerCast, machine: Machine, at: Instruction, data: Any) -> Sequence[Any]:
    return (int(data) if isinstance(op.type, PointerType) else np.asarray(data, np.int64),)


# Boxes.


def _allocate_box(op: AllocateBox, machine: Machine, at: Instruction) -> Sequence[Any]:
    return (machine.memory.allocate(BOX, machine.memory.layout.extent(op.type).bytes).address,)


def _retain(op: Retain, machine: Machine, at: Instruction, box: int) -> Sequence[Any]:
    _existing(machine, BOX, box, "retain").owners += 1
    return ()


def _release(op: Release, machine: Machine, at: Instruction, box: int) -> Sequence[Any]:
    found = _existing(machine, BOX, box, "release")
    found.owners -= 1
    if not found.owners:
        found.give_back("that was released by its last owner")
    return ()


def _existing(machine: Machine, kind: str, address: int, verb: str) -> Allocation:
    """The box or stack at an address.  Raises: TrapError."""
    found = machine.memory.allocation(address, verb)
    if found.kind != kind or found.address != address:
        raise TrapError(f"{verb} what is not {kind}")
    return found


# Stacks.


def _create_stack(op: CreateStack, machine: Machine, at: Instruction) -> Sequence[Any]:
    stack = machine.memory.allocate(VALUES, 0).address
    machine.memory.entries[stack] = []
    return (stack,)


def _push(op: Push, machine: Machine, at: Instruction, value: Any, stack: int) -> Sequence[Any]:
    _existing(machine, VALUES, stack, "push to")
    machine.memory.entries[stack].append((at.operands[0].type, value))
    return ()


def _pop(op: Pop, machine: Machine, at: Instruction, stack: int) -> Sequence[Any]:
    _existing(machine, VALUES, stack, "pop from")
    entries = machine.memory.entries[stack]
    if not entries:
        raise TrapError(f"pop {op.type} from an empty stack")
    type, value = entries.pop()
    if type != op.type:
        raise TrapError(f"pop {op.type} from a stack with a {type} on top")
    return (value,)


def _destroy_stack(
    op: DestroyStack, machine: Machine, at: Instruction, stack: int
) -> Sequence[Any]:
    _existing(machine, VALUES, stack, "destroy").give_back("that was destroyed")
    del machine.memory.entries[stack]
    return ()


# Bytes.


def _read(op: ReadBytes, machine: Machine, at: Instruction, address: Array) -> Sequence[Any]:
    return (machine.memory.read(op.type, int(address) + op.offset),)


def _write(
    op: WriteBytes, machine: Machine, at: Instruction, value: Any, address: Array
) -> Sequence[Any]:
    machine.memory.write(at.operands[0].type, value, int(address) + op.offset)
    return ()


def _move(op: MoveBytes, machine: Machine, at: Instruction, *operands: Array) -> Sequence[Any]:
    machine.memory.move(*map(int, operands))
    return ()


def _allocate(op: AllocateBytes, machine: Machine, at: Instruction, count: Array) -> Sequence[Any]:
    if op.owner in ("call", "frame"):
        return (np.asarray(_of_the_call(machine, int(count)).address),)
    kind = HEAP if op.owner == "heap" else "memory"
    return (np.asarray(machine.memory.allocate(kind, int(count)).address),)


def _free(op: FreeBytes, machine: Machine, at: Instruction, address: Array) -> Sequence[Any]:
    return _deallocate(op, machine, at, int(address)) if address else ()


def _address_of(op: AddressOf, machine: Machine, at: Instruction) -> Sequence[Any]:
    return (np.asarray(machine.variable(op.symbol)),)


def _function_address(op: FunctionAddress, machine: Machine, at: Instruction) -> Sequence[Any]:
    return (np.asarray(machine.memory.word(op.type, FunctionValue(op.symbol))),)


def _check_address(
    op: CheckAddress, machine: Machine, at: Instruction, address: Array
) -> Sequence[Any]:
    if address < FIRST_ADDRESS:
        raise TrapError(stop_message(op.action, int(address)))
    return ()


def _stop_if(op: StopIf, machine: Machine, at: Instruction, condition: Array) -> Sequence[Any]:
    if condition:
        raise TrapError(op.message)
    return ()


MEMORY: Mapping[type[Op], MachineRule] = {
    AllocateStack: _allocate_stack,
    AllocateHeap: _allocate_heap,
    Deallocate: _deallocate,
    Load: _load,
    Store: _store,
    Copy: _copy,
    Offset: _offset,
    ElementPointer: _element_pointer,
    PointerCast: _pointer_cast,
    AllocateBox: _allocate_box,
    Retain: _retain,
    Release: _release,
    CreateStack: _create_stack,
    Push: _push,
    Pop: _pop,
    DestroyStack: _destroy_stack,
    ReadBytes: _read,
    WriteBytes: _write,
    MoveBytes: _move,
    AllocateBytes: _allocate,
    FreeBytes: _free,
    AddressOf: _address_of,
    FunctionAddress: _function_address,
    CheckAddress: _check_address,
    StopIf: _stop_if,
}
"""What the ops of `core.ops.memory`, `core.ops.stack` and `core.ops.byte_memory` do to memory."""
