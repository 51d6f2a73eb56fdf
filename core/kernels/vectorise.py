"""The iterations of a loop as lanes of vectors, and reductions as vectors of partial results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from ..ir.instruction import Block, Instruction, Value
from ..ops.arithmetic import Add, Maximum, Minimum, Multiply, Subtract
from ..ops.combinator import Combinator
from ..ops.comparison import And, Or
from ..ops.forms import Elementwise
from ..ops.literal import splat
from .dependence import BufferAliases, require_independent
from .errors import IllegalRewrite
from .indices import IndexSum
from .lanes import LaneForm
from .loops import (
    apply_op,
    body_of,
    is_loop,
    loop_op,
    make_index,
    make_loop,
    position_of,
    replace_results,
    substitute,
    take_apart,
)
from .ops import Fma, ReduceLanes
from .split import peel
from .unroll import unroll


class Vectorised(NamedTuple):
    """What is left of a loop: that over vectors of a reduction, and that over the iterations that fill no vector."""

    loop: Instruction | None = None
    rest: Instruction | None = None


def vectorise(
    block: Block,
    loop: Instruction,
    lanes: int,
    *,
    reassociate: bool = False,
    aliases: BufferAliases = (),
) -> Vectorised:
    """Put the iterations of a loop in its place as the lanes of vectors; loops inside stay.

    With fewer iterations than lanes only so many lanes are active.  A loop that carries values has to be a reduction,
    x ∘ y ∘ …, of at least so many iterations, and `reassociate` says that it may be computed in another order: by one
    partial result per lane, combined at the end.

    Raises: IllegalRewrite when iterations depend on each other, or something has no form for vectors.
    """
    op = loop_op(loop)
    if loop.operands:
        return _vectorise_reduction(block, loop, lanes, reassociate=reassociate, aliases=aliases)
    if op.count > lanes:
        raise IllegalRewrite(f"{op.count} iterations are no vector of {lanes} lanes: split them")
    if op.count < 2:
        unroll(block, loop)
        return Vectorised()
    position = position_of(block, loop)
    require_independent(loop, aliases)
    body = body_of(loop)
    plan = LaneForm(body, lanes, op.count % lanes)
    plan.apply(IndexSum(op.lower, {}), op.step)
    substitute(block, position, take_apart(body)[0])
    return Vectorised()


def _vectorise_reduction(
    block: Block, loop: Instruction, lanes: int, *, reassociate: bool, aliases: BufferAliases
) -> Vectorised:
    op, body = loop_op(loop), body_of(loop)
    if not reassociate:
        raise IllegalRewrite("a loop that carries values is vectorised only with `reassociate`")
    if lanes < 2 or lanes & (lanes - 1) or op.count < lanes:
        raise IllegalRewrite(f"{op.count} iterations have no vector of {lanes} lanes, 2, 4, 8, …")
    combinators = [_combinator_of(body, k) for k in range(len(loop.operands))]
    position_of(block, loop)
    require_independent(loop, aliases)
    plan = LaneForm(body, lanes, accumulators=body.arguments[1:])
    left, rest = op.count % lanes, None
    if left:
        loop, rest = peel(block, loop, op.count - left)
    position = position_of(block, loop)
    old = body.arguments[0]
    index = body.arguments[0] = make_index(old.name)
    plan.apply(IndexSum(0, {index: 1}), op.step)
    starts = [
        apply_op(splat(plan.vector_type(x.tensor.dtype), c.identity(x.tensor.dtype)))
        for x, c in zip(loop.operands, combinators, strict=True)
    ]
    for argument in body.arguments[1:]:
        argument.type = plan.vector_type(argument.tensor.dtype)
    stepped = replace(loop_op(loop), step=op.step * lanes)
    partial = [start.result for start in starts]
    main = make_loop(stepped, partial, body, partial)
    written, results = [*starts, main], list[Value]()
    for start, vector, combinator in zip(loop.operands, main.results, combinators, strict=True):
        reduced = apply_op(ReduceLanes(combinator), vector)
        written += [reduced, apply_op(COMBINING[combinator], start, reduced.result)]
        results.append(written[-1].result)
    replace_results(substitute(block, position, written), results)
    return Vectorised(main, rest)


def _combinator_of(body: Block, number: int) -> Combinator:
    """What an iteration combines carried value `number` with others by, and does nothing else with it."""
    found: set[Combinator] = set()
    pending = [(body, number)]
    while pending:
        block, position = pending.pop()
        value, end = block.arguments[1 + position], block.instructions[-1]
        while value.has_one_use and (user := next(iter(value.uses))) is not end:
            place = user.operands.index(value)
            if is_loop(user):
                pending.append((body_of(user), place))
                value = user.results[place]
            elif (combinator := _combinator(user, place)) is not None:
                found.add(combinator)
                value = user.result
            else:
                break
        if not value.has_one_use or end.operands[position] is not value:
            raise IllegalRewrite("a carried value is not only combined with others")
    if len(found) != 1:
        raise IllegalRewrite("a carried value is not combined by one associative operation")
    return found.pop()


def _combinator(instruction: Instruction, place: int) -> Combinator | None:
    """What the operand at a place is combined by with the others."""
    if isinstance(instruction.op, Fma):
        return Combinator.ADD if place == 2 else None
    if isinstance(instruction.op, Subtract):
        return Combinator.ADD if place == 0 else None
    return next((c for c, op in COMBINING.items() if op == instruction.op), None)


COMBINING: Final[Mapping[Combinator, Elementwise]] = MappingProxyType(
    {
        Combinator.ADD: Add(),
        Combinator.MULTIPLY: Multiply(),
        Combinator.MIN: Minimum(),
        Combinator.MAX: Maximum(),
        Combinator.AND: And(),
        Combinator.OR: Or(),
    }
)
"""What each combinator does to two values."""
