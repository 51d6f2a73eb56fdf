"""Lowering rules of pointers, loads, stores and allocations: addresses as i64.

A pointer is checked where something is read or written through it, unless it is known to lead somewhere.
`elementPointer` by a number that is out of range gives `OUTSIDE`, which the next check finds; null stays null.

Heap memory has a head of 16 bytes before it: a mark, by which `deallocate` knows what it can give back.
"""

from __future__ import annotations

from ...ir import Instruction, Value
from ...ops.arithmetic import Add
from ...ops.byte_memory import FIRST_ADDRESS, OUTSIDE, AddressOf, FunctionAddress, MoveBytes
from ...ops.comparison import And, Equal, GreaterThan, GreaterThanOrEqual, LessThan
from ...ops.memory import AllocateHeap, AllocateStack, ElementPointer, pointee_of
from ...ops.reference import Reference
from ...types import PointerType
from .context import LoweringContext, literal_number
from .data_layout import MOST_BYTES

ON_STACK = 1024
"""A piece of memory up to this size lies on the stack of the function that allocates it: a quarter of its room, so that
one piece does not take it from the others."""

_HEAD = 16
"""Bytes before heap memory: the mark takes 8, and what follows is aligned as `calloc` does."""

_HEAP_MARK = 0x6E6E6B69_68656170
"""`nnkiheap`: a word that memory of others is unlikely to have there."""


def allocate_stack(c: LoweringContext, at: Instruction[AllocateStack]) -> list[list[Value]]:
    op = at.op
    size = op.count * c.layout.extent(op.type).bytes
    if size > MOST_BYTES:
        c.stop("out of memory")
        return [[c.number(0)]]
    owner = "call"
    if not c.loops and size <= min(ON_STACK, c.room[0]):
        c.room[0] -= size
        owner = "frame"
    return [[c.allocate(max(size, 1), owner)]]


def allocate_heap(c: LoweringContext, at: Instruction[AllocateHeap]) -> list[list[Value]]:
    op = at.op
    count = c.word(at.operands[0])
    size = c.layout.extent(op.type).bytes
    most = (MOST_BYTES - _HEAD) // max(size, 1)
    known = literal_number(count)
    if known is None or not 0 <= known <= most:
        zero = c.number(0)
        c.stop_if(c.b.emit(LessThan(), count, zero), "allocateHeap of a negative number of values")
        c.stop_if(c.b.emit(GreaterThan(), count, c.number(most)), "out of memory")
    if not known:  # what is written through a pointer to no values must not hit those of others
        count = c.select(c.b.emit(Equal(), count, c.number(0)), c.number(1), count)
    block = c.allocate(c.add(c.scaled(count, size), _HEAD), "heap")
    c.write(c.number(_HEAP_MARK), block)
    return [[c.moved(block, _HEAD)]]


def deallocate(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    address = c.word(at.operands[0])
    c.check(address, "deallocate")
    block = c.moved(address, -_HEAD)
    mark = c.read(block)
    c.stop_unless_equal(
        mark, _HEAP_MARK, "deallocate of what is not the beginning of heap memory, or is given back"
    )
    c.write(c.number(0), block)
    c.free(block)
    return []


def load(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    (pointer,) = at.operands
    address = c.word(pointer)
    c.check(address, "load from")
    return [c.read_value(at.result.type, address)]


def store(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    value, pointer = at.operands
    address = c.word(pointer)
    c.check(address, "store to")
    c.write_value(value.type, c.leaves(value), address)
    return []


def copy(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    source, target, count = at.operands
    size = c.layout.extent(pointee_of(source)).bytes
    number = c.word(count)
    zero = c.number(0)
    c.stop_if(c.b.emit(LessThan(), number, zero), "copy of a negative number of values")
    is_empty = c.b.emit(Equal(), number, zero)
    for pointer, action in ((source, "copy from"), (target, "copy to")):
        address = c.word(pointer)
        if not c.is_valid(address):
            # a pointer to the outside is no mistake if nothing is copied; null is one
            is_null = c.b.emit(Equal(), address, zero)
            wanted = c.select(is_null, zero, c.number(FIRST_ADDRESS))
            c.check(c.select(is_empty, wanted, address), action)
    operands = [c.word(source), c.word(target), c.scaled(number, size)]
    c.b.emit_many(MoveBytes(), operands)
    return []


def element_pointer(c: LoweringContext, at: Instruction[ElementPointer]) -> list[list[Value]]:
    op = at.op
    pointer, *indices = at.operands
    start, strides = c.layout.path(pointee_of(pointer), op.keys)
    address = base = c.word(pointer)
    inside: Value | None = None
    for index, (count, size) in zip(map(c.word, indices), strides, strict=True):
        is_in = c.b.emit(
            And(),
            c.b.emit(GreaterThanOrEqual(), index, c.number(0)),
            c.b.emit(LessThan(), index, c.number(count)),
        )
        inside = is_in if inside is None else c.b.emit(And(), inside, is_in)
        address = c.b.emit(Add(), address, c.scaled(index, size))
    if inside is None:
        return [[c.moved(base, start)]]
    found = c.select(inside, c.add(address, start), c.number(OUTSIDE))
    return [[c.unless_nowhere(base, found)]]


def offset(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    pointer, count = at.operands
    base = c.word(pointer)
    distance = c.scaled(c.word(count), c.layout.extent(pointee_of(pointer)).bytes)
    known = literal_number(distance)
    if known is not None:
        return [[c.moved(base, known)]]
    moved = c.b.emit(Add(), base, distance)
    if c.is_valid(base):
        c.valid.add(moved)
    return [[c.unless_nowhere(base, moved)]]


def cast(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    """An address is an i64 already."""
    return [[c.word(at.operands[0])]]


def reference(c: LoweringContext, at: Instruction[Reference]) -> list[list[Value]]:
    op = at.op
    if isinstance(op.type, PointerType):
        address = c.b.emit(AddressOf(op.symbol, c.layout.extent(op.type.pointee).bytes))
    else:
        address = c.b.emit(FunctionAddress(op.symbol, c.layout.flat(op.type)))
    c.valid.add(address)
    return [[address]]
