"""Keeps elements of memory in registers while a loop runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..ir.instruction import Block, Instruction, Value
from ..ir.surgery import make_instruction
from ..lazy_dataclass import dataclass
from .dependence import (
    BufferAliases,
    LoopAccesses,
    accesses_in,
    key_of,
    may_meet,
    range_of,
    root_of,
)
from .errors import IllegalRewrite
from .indices import BufferAccess, access_of, set_indices
from .loops import (
    body_of,
    inside,
    loop_op,
    make_loop,
    position_of,
    replace_results,
    substitute,
)
from .ops import ReduceLanes, Shuffle


@dataclass
class _Element:
    """An element, or the elements of a vector, that a body loads and stores at an index that the loop leaves alone."""

    accesses: list[BufferAccess] = field(default_factory=list[BufferAccess])

    @property
    def is_updated(self) -> bool:
        """Whether it is read before it is written."""
        return not self.accesses[0].is_store and any(a.is_store for a in self.accesses)


def promote(block: Block, loop: Instruction, *, aliases: BufferAliases = ()) -> Instruction:
    """Carry what a loop loads, combines and stores at the same place in each iteration; the loop that does.

    It is loaded once before the loop, and stored once after it.

    Raises: IllegalRewrite when there is no such place, or something else in the loop may touch it.
    """
    position = position_of(block, loop)
    op = loop_op(loop)
    if op.grain or not op.count:
        raise IllegalRewrite("a loop that is parallel, or does not run, carries nothing")
    elements = _elements(loop, aliases)
    if not elements:
        raise IllegalRewrite("the loop updates no element that is the same in each iteration")
    _require_alone(loop, elements, aliases)
    before = [_moved(element.accesses[0], element.accesses[0].buffer) for element in elements]
    made = _carrying(loop, elements, [load.result for load in before])
    after: list[Instruction] = []
    for element, value in zip(elements, made.results[len(loop.results) :], strict=True):
        store = next(access for access in element.accesses if access.is_store)
        after.append(_moved(store, value, store.buffer))
    for element in elements:
        for access in element.accesses:
            access.instruction.drop_all_references()
    old = substitute(block, position, [*before, made, *after])
    replace_results(old, made.results[: len(old.results)])
    return made


def _elements(loop: Instruction, aliases: BufferAliases) -> list[_Element]:
    """What is read, and then written, at the top of the body."""
    body = body_of(loop)
    elements: dict[object, _Element] = {}
    made = set(body.arguments)
    for instruction in body.instructions:
        access = access_of(instruction)
        if access is not None:
            coordinates = [value for index in access.indices for value in index.terms]
            if made.isdisjoint(coordinates) and access.buffer not in made:
                key = (root_of(access.buffer, aliases), key_of(access))
                elements.setdefault(key, _Element()).accesses.append(access)
        made.update(instruction.results)
    return [element for element in elements.values() if element.is_updated]


def _require_alone(loop: Instruction, elements: Sequence[_Element], aliases: BufferAliases) -> None:
    """Raises: IllegalRewrite when other accesses in the loop may touch the elements."""
    body = body_of(loop)
    known = LoopAccesses(ranges={body.arguments[0]: range_of(loop)})
    own = {access.instruction for element in elements for access in element.accesses}
    others = accesses_in([i for i in body.instructions if i not in own])
    others.ranges.update(known.ranges)
    others.carried.update(body.arguments[1:])
    for number, element in enumerate(elements):
        one = element.accesses[0]
        if one.touched < one.lanes and any(
            isinstance(i.op, ReduceLanes | Shuffle) for i in inside(body)
        ):
            raise IllegalRewrite("lanes that are not active would be carried, and combined")
        root = root_of(one.buffer, aliases)
        near = [a for a in others.accesses if root_of(a.buffer, aliases) is root]
        near += [e.accesses[0] for e in elements[:number]]
        for other in near:
            is_near = root_of(other.buffer, aliases) is root
            if is_near and may_meet(one, other, known, others, {}):
                raise IllegalRewrite("something else in the loop may touch the same element")


def _carrying(
    loop: Instruction, elements: Sequence[_Element], starts: Sequence[Value]
) -> Instruction:
    """The loop that carries the elements instead of touching them."""
    body = body_of(loop)
    arguments = [Value(start.type, start.name) for start in starts]
    current = dict[int, Value](enumerate(arguments))
    owner = {access.instruction: k for k, e in enumerate(elements) for access in e.accesses}
    kept: list[Instruction] = []
    *instructions, end = body.instructions
    for instruction in instructions:
        number = owner.get(instruction)
        if number is None:
            kept.append(instruction)
        elif instruction.results:
            instruction.result.replace_all_uses_with(current[number])
        else:
            current[number] = instruction.operands[0]
    end.set_operands([*end.operands, *current.values()])
    carrying = Block([*body.arguments, *arguments], [*kept, end], body.name)
    like = [*loop.results, *starts]
    return make_loop(loop_op(loop), [*loop.operands, *starts], carrying, like)


def _moved(access: BufferAccess, *operands: Value) -> Instruction:
    """The same load or store, of these operands and at coordinates that are there outside of the loop."""
    like = access.instruction
    moved = make_instruction(like.op, operands, like.results)
    set_indices(moved, access.indices)
    return moved
