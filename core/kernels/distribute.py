"""Two loops in place of one: all that the first half of each iteration does is done before any of the second half.

    loop i from 0 upto 14 {            %t = allocateLocal <14 x 32 x f32>
        %t = allocateLocal <32 x f32>  loop i from 0 upto 14 { … storeAt %s to %t at (d0, d1) of %i, %j }
        … storeAt %s to %t at %j       loop i from 0 upto 14 { … loadAt %t at (d0, d1) of %i, %j }
        … loadAt %t at %j
    }

So each may be scheduled in its own way.  A local buffer that both use gets an axis for the iterations.

Source: Allen & Kennedy 2001, Optimizing Compilers, §2.4 (loop distribution, scalar expansion).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction
from ..ir.surgery import operands_inside
from ..types import TensorType
from .dependence import BufferAliases, accesses_in, conflict_of_order, range_of, shifted
from .errors import IllegalRewrite
from .indices import IndexSum, access_of, move_access
from .loops import (
    apply_op,
    body_of,
    copy_block,
    loop_op,
    make_loop,
    make_yield,
    position_of,
    replace_results,
    substitute,
    take_apart,
)
from .ops import AllocateLocal, Loop


class Distributed(NamedTuple):
    """The two loops that became of one."""

    first: Instruction
    second: Instruction


def distribute(
    block: Block, loop: Instruction, at: Instruction, *, aliases: BufferAliases = ()
) -> Distributed:
    """Divide a loop in front of an instruction of its body; the second loop carries what the loop did.

    What the second half needs of the first lies in local buffers, or is computed again.

    Raises: IllegalRewrite when it needs something else, the first half uses what is carried, or an element would be
        touched in another order.
    """
    op, body, position = loop_op(loop), body_of(loop), position_of(block, loop)
    cut = position_of(body, at)
    before, behind = body.instructions[:cut], body.instructions[cut:]
    if not before or at.op.is_terminator:
        raise IllegalRewrite("one of the two loops would have nothing to do")
    if not set(body.arguments[1:]).isdisjoint(operands_inside(before)):
        raise IllegalRewrite("the first half uses what the loop carries")
    needed = _needed(before, behind)
    rooms = [one for one in before if one in needed and isinstance(one.op, AllocateLocal)]
    for room in rooms:
        _require_expandable(room, op)
    _require_order(loop, before, behind, aliases)
    expanded = [_expanded(room, body, op) for room in rooms]
    again = [n for n, one in enumerate(body.instructions[: cut - len(rooms)]) if one in needed]
    second = _second(loop, cut - len(rooms), again)
    first = _first(loop, cut - len(rooms))
    old = substitute(block, position, [*expanded, first, second])
    replace_results(old, second.results)
    return Distributed(first, second)


def _needed(before: Sequence[Instruction], behind: Sequence[Instruction]) -> set[Instruction]:
    """What the second half uses of the first.  Raises: IllegalRewrite when that is more than sums of indices, literals
    and the like, and local buffers."""
    made = {result: one for one in before for result in one.results}
    needed: set[Instruction] = set()
    pending = [x for x in operands_inside(behind) if x in made]
    while pending:
        one = made[pending.pop()]
        if one in needed:
            continue
        if one.regions or one.op.effect not in (Effect.NONE, Effect.ALLOCATE):
            raise IllegalRewrite(f"the second half needs what a {one.op.name} gives")
        needed.add(one)
        pending += [x for x in one.operands if x in made]
    return needed


def _require_expandable(room: Instruction, op: Loop) -> None:
    """Raises: IllegalRewrite when a local buffer cannot have an axis for the iterations of a loop."""
    if (op.lower, op.step) != (0, 1) or op.grain or not op.count:
        raise IllegalRewrite("buffers are expanded for loops from 0 by 1 that one thread runs")
    if any(access_of(user) is None for user in room.result.uses):
        raise IllegalRewrite("a buffer of the loop is not only loaded and stored")


def _require_order(
    loop: Instruction,
    before: Sequence[Instruction],
    behind: Sequence[Instruction],
    aliases: BufferAliases,
) -> None:
    """Raises: IllegalRewrite when the second half of an iteration touches what the first half of a later one does."""
    loops = {body_of(loop).arguments[0]: shifted(range_of(loop), 1)}
    first, second = accesses_in(before), accesses_in(behind)
    if reason := conflict_of_order(second, first, loops, aliases):
        raise IllegalRewrite(f"this would change the order of {reason}")


def _expanded(room: Instruction, body: Block, op: Loop) -> Instruction:
    """The buffer with an axis more, for what loads and stores in the body."""
    assert isinstance(room.op, AllocateLocal)
    type = room.op.type
    wide = apply_op(AllocateLocal(TensorType((op.count, *type.shape), type.dtype)))
    own = IndexSum(0, {body.arguments[0]: 1})
    for user in list(room.result.uses):
        access = access_of(user)
        assert access is not None
        move_access(access, wide.result, [own, *access.indices], (0, *access.steps))
    wide.result.name = room.result.name
    body.instructions.remove(room)
    return wide


def _second(loop: Instruction, cut: int, again: Sequence[int]) -> Instruction:
    """The loop over the second half, and what of the first is computed again."""
    body = copy_block(body_of(loop))
    kept = [*(body.instructions[n] for n in again), *body.instructions[cut:]]
    left = [one for n, one in enumerate(body.instructions[:cut]) if n not in again]
    for one in reversed(left):
        one.drop_all_references()
    body.instructions[:] = kept
    return make_loop(loop_op(loop), loop.operands, body, loop.results)


def _first(loop: Instruction, cut: int) -> Instruction:
    """The loop over the first half, which carries nothing."""
    body = body_of(loop)
    instructions, _ = take_apart(body)
    for one in reversed(instructions[cut:]):
        one.drop_all_references()
    body.instructions[:] = [*instructions[:cut], make_yield()]
    body.arguments[1:] = []
    return make_loop(loop_op(loop), (), body)
