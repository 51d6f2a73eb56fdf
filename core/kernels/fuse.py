"""One loop for two of the same bounds."""

from __future__ import annotations

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction
from ..ir.surgery import operands_inside
from .dependence import BufferAliases, accesses_in, conflict_of_order, range_of, shifted
from .errors import IllegalRewrite
from .loops import (
    body_of,
    loop_op,
    make_loop,
    make_yield,
    position_of,
    replace_results,
    take_apart,
)


def fuse(
    block: Block, first: Instruction, second: Instruction, *, aliases: BufferAliases = ()
) -> Instruction:
    """Have one loop do an iteration of `first` and then one of `second`; it carries the values of both.

    What stands between them moves before them, if it is no loop and no store.

    Raises: IllegalRewrite when the bounds differ, when `second` needs what `first` yields at its end, or when an
        element would be touched in another order.
    """
    start, stop = position_of(block, first), position_of(block, second)
    if stop <= start:
        raise IllegalRewrite("the second loop stands before the first")
    if loop_op(first) != loop_op(second):
        raise IllegalRewrite(f"{_described(first)} and {_described(second)} differ")
    between = block.instructions[start + 1 : stop]
    _require_movable(first, between, aliases)
    if not set(first.results).isdisjoint(operands_inside((second,))):
        raise IllegalRewrite("the second loop needs what the first yields at its end")
    _require_order(first, second, aliases)
    fused = _joined(first, second)
    block.instructions[start : stop + 1] = [*between, fused]
    replace_results(first, fused.results[: len(first.results)])
    replace_results(second, fused.results[len(first.results) :])
    return fused


def _joined(first: Instruction, second: Instruction) -> Instruction:
    body, other = body_of(first), body_of(second)
    index, *carried = body.arguments
    index_of_other, *carried_by_other = other.arguments
    index_of_other.replace_all_uses_with(index)
    instructions, yielded = take_apart(body)
    others, yielded_by_other = take_apart(other)
    end = make_yield([*yielded, *yielded_by_other])
    joined = Block([index, *carried, *carried_by_other], [*instructions, *others, end], body.name)
    operands = [*first.operands, *second.operands]
    fused = make_loop(loop_op(first), operands, joined, [*first.results, *second.results])
    first.set_operands(())
    second.set_operands(())
    return fused


def _require_movable(
    first: Instruction, between: list[Instruction], aliases: BufferAliases
) -> None:
    """Raises: IllegalRewrite when something between two loops cannot move before the first."""
    late = set(first.results)
    loads = accesses_in(between)
    for instruction in between:
        effect = instruction.op.effect
        if instruction.regions or Effect.WRITE in effect or Effect.TRAP in effect:
            raise IllegalRewrite(f"a {instruction.op.name} stands between the loops")
        if not late.isdisjoint(instruction.operands):
            raise IllegalRewrite(
                f"{instruction.op.name} between the loops needs what the first yields"
            )
    written = accesses_in((first,))
    if reason := conflict_of_order(written, loads, {}, aliases):
        raise IllegalRewrite(f"this would change the order of {reason}")


def _require_order(first: Instruction, second: Instruction, aliases: BufferAliases) -> None:
    """Raises: IllegalRewrite when an iteration of `second` touches what a later one of `first` does."""
    before = accesses_in(body_of(first).instructions)
    after = accesses_in(body_of(second).instructions)
    directions = (-1, 1) if loop_op(first).grain else (-1,)
    index, other = body_of(first).arguments[0], body_of(second).arguments[0]
    for direction in directions:
        loops = {index: shifted(range_of(first), direction)}
        renamed = after.renamed(other, index)
        if reason := conflict_of_order(before, renamed, loops, aliases):
            raise IllegalRewrite(f"this would change the order of {reason}")


def _described(loop: Instruction) -> str:
    op = loop_op(loop)
    grain = f" parallel {op.grain}" if op.grain else ""
    return f"from {op.lower} upto {op.upper} by {op.step}{grain}"
