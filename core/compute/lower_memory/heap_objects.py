"""Lowering rules of boxes, stacks and enums: reference-counted and heap-allocated memory.

box      the address of [owners, mark, value]; with the last owner the memory is given back
stack    the address of [address of the top entry, whether it is destroyed]; an entry is
         [address of the one below, number of its type, value]
enum     the number of the case, for cases that carry nothing; else the address of [number of the case, values],
         which never change.  The case that `undefined` means has the number 0, so that memory of zeros holds it.

Values of enums and the heads of stacks are not given back one by one: they last as long as the run.
"""

from __future__ import annotations

from ...ir import Block, Builder, Instruction, Region, Value
from ...ops.arithmetic import Subtract
from ...ops.byte_memory import ADDRESS, FIRST_ADDRESS, FreeBytes, ReadBytes
from ...ops.comparison import And, Equal, NotEqual
from ...ops.enums import EnumCase, IsCase, Payload
from ...ops.literal import constant
from ...ops.memory import AllocateBox
from ...ops.nest import Yield
from ...ops.stack import Pop
from ...ops.structured import While
from ...types import I64, BoxType, EnumType, scalar
from .context import LoweringContext
from .data_layout import WORD_BYTES

_SECOND = WORD_BYTES
"""The offset of the second word of each object: a box's mark, whether a stack is destroyed, the type of an entry."""

_CONTENT = 2 * WORD_BYTES
"""The offset of the value behind two words, at which any tensor is aligned."""

_BOX_MARK = 0x6E6E6B69_74626F78
"""`nnkitbox`: a word that memory which is no box is unlikely to have there, as the number of owners before it."""
_RELEASED = "a box that was released by its last owner"


# Boxes.


def allocate_box(c: LoweringContext, at: Instruction[AllocateBox]) -> list[list[Value]]:
    op = at.op
    box = c.allocate(_CONTENT + c.layout.extent(op.type).bytes, "heap")
    c.write(c.number(1), box)
    c.write(c.number(_BOX_MARK), box, _SECOND)
    return [[box]]


def project_box(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    box = c.word(at.operands[0])
    assert isinstance(at.operands[0].type, BoxType)
    return [[c.moved(box, _CONTENT)]]


def retain(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    box = _owned(c, at, "retain")
    c.write(c.add(c.read(box), 1), box)
    return []


def release(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    box = _owned(c, at, "release")
    owners = c.b.emit(Subtract(), c.read(box), c.number(1))
    c.write(owners, box)
    is_last = c.b.emit(Equal(), owners, c.number(0))
    c.write(c.select(is_last, c.number(0), c.number(_BOX_MARK)), box, _SECOND)
    c.free(c.select(is_last, box, c.number(0)))
    return []


def _owned(c: LoweringContext, at: Instruction, action: str) -> Value:
    box = c.word(at.operands[0])
    c.check(box, action)
    c.stop_unless_equal(c.read(box, _SECOND), _BOX_MARK, f"{action} {_RELEASED}")
    return box


# Stacks.


def create_stack(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    stack = c.allocate(2 * WORD_BYTES, c.program.cells)
    c.write(c.number(0), stack)
    c.write(c.number(0), stack, _SECOND)
    return [[stack]]


def push(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    value, _ = at.operands
    stack = _existing(c, at.operands[1], "push to")
    entry = c.allocate(_CONTENT + c.layout.extent(value.type).bytes, "heap")
    c.write(c.read(stack), entry)
    c.write(c.number(c.program.number(value.type)), entry, _SECOND)
    c.write_value(value.type, c.leaves(value), entry, _CONTENT)
    c.write(entry, stack)
    return []


def pop(c: LoweringContext, at: Instruction[Pop]) -> list[list[Value]]:
    op = at.op
    stack = _existing(c, at.operands[0], "pop from")
    entry = c.read(stack)
    is_empty = c.b.emit(Equal(), entry, c.number(0))
    c.stop_if(is_empty, f"pop {op.type} from an empty stack")
    c.stop_unless_equal(
        c.read(entry, _SECOND),
        c.program.number(op.type),
        f"pop {op.type} from a stack with another type on top",
    )
    leaves = c.read_value(op.type, entry, _CONTENT)
    c.write(c.read(entry), stack)
    c.free(entry)
    return [leaves]


def destroy_stack(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    stack = _existing(c, at.operands[0], "destroy")
    c.write(c.number(1), stack, _SECOND)
    condition = Builder(Block(name="condition"))
    entry = condition.argument(ADDRESS)
    is_there = condition.emit(NotEqual(), entry, constant(condition, scalar(I64), 0))
    condition.emit_many(Yield(), [is_there])
    body = Builder(Block(name="body"))
    entry = body.argument(ADDRESS)
    below = body.emit(ReadBytes(0, ADDRESS), entry)
    body.emit_many(FreeBytes(), [entry])
    body.emit_many(Yield(), [below])
    regions = [Region([condition.block]), Region([body.block])]
    c.b.emit_many(While(), [c.read(stack)], regions)
    return []


def _existing(c: LoweringContext, value: Value, action: str) -> Value:
    stack = c.word(value)
    c.check(stack, action)
    c.stop_unless_equal(c.read(stack, _SECOND), 0, f"{action} a stack that was destroyed")
    return stack


# Enums.


def enum_case(c: LoweringContext, at: Instruction[EnumCase]) -> list[list[Value]]:
    op = at.op
    tag = c.layout.case_numbers(op.type)[op.case]
    if not at.operands and tag < FIRST_ADDRESS:
        return [[c.number(tag)]]
    type = c.program.cell(op.type, op.case)
    cell = c.allocate(c.layout.extent(type).bytes, c.program.cells)
    c.write_value(type, [c.number(tag), *c.all_leaves(at.operands)], cell)
    c.tags[cell] = c.number(tag)
    return [[cell]]


def is_case(c: LoweringContext, at: Instruction[IsCase]) -> list[list[Value]]:
    op, (value,) = at.op, at.operands
    assert isinstance(value.type, EnumType)
    tag = c.layout.case_numbers(value.type)[op.case]
    return [[c.b.emit(Equal(), _tag(c, c.word(value)), c.number(tag))]]


def payload(c: LoweringContext, at: Instruction[Payload]) -> list[list[Value]]:
    op, (value,) = at.op, at.operands
    assert isinstance(value.type, EnumType)
    word = c.word(value)
    tag = c.number(c.layout.case_numbers(value.type)[op.case])
    is_cell = c.b.emit(NotEqual(), word, tag)
    is_there = c.b.emit(And(), is_cell, c.b.emit(Equal(), _tag(c, word), tag))
    address = c.select(is_there, word, c.b.emit(c.program.nothing()))
    type = c.program.cell(value.type, op.case)
    start, part = c.layout.offset(type, 1 + op.index)
    return [c.read_value(part, address, start)]


def _tag(c: LoweringContext, word: Value) -> Value:
    """The number of an enum's case; values of enums never change."""
    if word not in c.tags:
        is_number = c.leads_nowhere(word)
        address = c.select(is_number, c.b.emit(c.program.nothing()), word)
        c.tags[word] = c.select(is_number, word, c.read(address))
    return c.tags[word]
