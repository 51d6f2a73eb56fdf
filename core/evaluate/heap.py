"""Memory of bytes at addresses: what the ops of `core.ops.bytes` do.

Every allocation has its addresses to itself, with a gap behind it; variables and functions get theirs when they are
first asked for.  So whatever leads outside is found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ..errors import TrapError
from ..ir import Instruction, Op
from ..ops.bytes import (
    FIRST_ADDRESS,
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
from ..ops.random import RANDOM_SEED
from ..types import Array, TensorType

_GAP = 64
_MOST_BYTES = 1 << 40


@dataclass(eq=False, slots=True)
class Block:
    """`size` bytes, which come to be when they are first used; `data` is None once they are given back."""

    address: int
    size: int
    is_heap: bool = False
    data: bytearray | None = field(default_factory=bytearray)

    def bytes_to(self, end: int) -> bytearray:
        """The bytes, of which at least the first `end` are there."""
        assert self.data is not None
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        return self.data


@dataclass(eq=False)
class Heap:
    """All memory of one run, by address."""

    blocks: list[Block] = field(default_factory=list[Block])
    starts: list[int] = field(default_factory=list[int])
    symbols: dict[str, Block] = field(default_factory=dict[str, Block])
    names: dict[int, str] = field(default_factory=dict[int, str])
    end: int = 1 << 20

    def allocate(self, size: int, *, is_heap: bool = False) -> Block:
        """New memory, all zero.  Raises: TrapError."""
        if not 0 <= size <= _MOST_BYTES:
            raise TrapError("out of memory")
        block = Block(self.end, size, is_heap)
        self.blocks.append(block)
        self.starts.append(self.end)
        self.end += -(-(size + _GAP) // _GAP) * _GAP
        return block

    def symbol(self, name: str, size: int) -> Block:
        """The memory of a variable, or what stands for a function."""
        if name not in self.symbols:
            self.symbols[name] = self.allocate(size)
            self.names[self.symbols[name].address] = name
        return self.symbols[name]

    def find(self, address: int, size: int, verb: str) -> tuple[bytearray, int]:
        """The bytes of a block, and where in them the address is.  Raises: TrapError."""
        if address < FIRST_ADDRESS:
            raise TrapError(stop_message(verb, address))
        number = bisect_right(self.starts, address) - 1
        block = self.blocks[max(number, 0)]
        first = address - block.address
        if number < 0 or first + size > block.size:
            raise TrapError(f"{verb} memory out of bounds")
        if block.data is None:
            raise TrapError(f"{verb} memory that was given back")
        return block.bytes_to(first + size), first

    def read(self, type: TensorType, address: int) -> Array:
        """The tensor that lies there."""
        data, first = self.find(address, type.bytes, "load from")
        stored = np.frombuffer(bytes(data[first : first + type.bytes]), type.dtype.storage)
        return type.dtype.load(stored).reshape(type.shape)

    def write(self, type: TensorType, value: Any, address: int) -> None:
        """Put a tensor there."""
        data, first = self.find(address, type.bytes, "store to")
        data[first : first + type.bytes] = type.dtype.store(np.asarray(value)).tobytes()

    def move(self, source: int, target: int, count: int) -> None:
        """Copy bytes, all read before the first is written."""
        if count:
            data, first = self.find(source, count, "copy from")
            moved = bytes(data[first : first + count])
            data, first = self.find(target, count, "copy to")
            data[first : first + count] = moved

    def free(self, address: int) -> None:
        """Give memory back; nothing for address 0."""
        if address:
            number = bisect_right(self.starts, address) - 1
            block = self.blocks[max(number, 0)]
            if block.address != address or not block.is_heap or block.data is None:
                raise TrapError("memory is given back that is not the heap's, or not any more")
            block.data = None


Action: TypeAlias = Callable[[Any, Heap, Instruction, Sequence[Any]], Sequence[Any]]
"""(op, heap, instruction, operands) to the results."""


def _read(
    op: ReadBytes, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    return (heap.read(op.type, int(operands[0]) + op.offset),)


def _write(
    op: WriteBytes, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    value, address = operands
    heap.write(instruction.operands[0].tensor, value, int(address) + op.offset)
    return ()


def _move(
    op: MoveBytes, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    heap.move(*map(int, operands))
    return ()


def _allocate(
    op: AllocateBytes, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    block = heap.allocate(int(operands[0]), is_heap=op.owner == "heap")
    return (np.asarray(block.address),)


def _free(
    op: FreeBytes, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    heap.free(int(operands[0]))
    return ()


def _address_of(
    op: AddressOf, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    return (np.asarray(heap.symbol(op.symbol, op.bytes).address),)


def _function_address(
    op: FunctionAddress, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    return (np.asarray(heap.symbol(op.symbol, 0).address),)


def _check_address(
    op: CheckAddress, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    address = int(operands[0])
    if address < FIRST_ADDRESS:
        raise TrapError(stop_message(op.action, address))
    return ()


def _stop_if(
    op: StopIf, heap: Heap, instruction: Instruction, operands: Sequence[Any]
) -> Sequence[Any]:
    if operands[0]:
        raise TrapError(op.message)
    return ()


def set_seed(heap: Heap, size: int, seed: int) -> None:
    """Start the generator of random numbers, whose seed is a global variable of `size` bytes."""
    block = heap.symbol(RANDOM_SEED, size)
    block.bytes_to(size)[:] = np.int64(seed).tobytes()


HEAP_ACTIONS: Mapping[type[Op], Action] = {
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
"""What each op of `core.ops.bytes` does."""


@cache
def action_of(op: type[Op]) -> Action:
    """What an op, or the one it schedules, does."""
    return next(HEAP_ACTIONS[base] for base in op.__mro__ if base in HEAP_ACTIONS)
