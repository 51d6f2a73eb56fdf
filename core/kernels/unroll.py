"""Loops of few iterations written out: one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.instruction import Block, Instruction, Value
from .copies import BodyCopies
from .dependence import BufferAliases, require_independent
from .errors import IllegalRewrite
from .loops import (
    body_of,
    is_loop,
    loop_op,
    make_loop,
    make_yield,
    position_of,
    replace_results,
    require_known_bounds,
    substitute,
    take_apart,
)


def unroll(block: Block, loop: Instruction) -> None:
    """Put the iterations of a loop in its place, one after the other, with constants for the index."""
    position = position_of(block, loop)
    carried: Sequence[Value] = list(loop.operands)
    written: list[Instruction] = []
    for body in _iterations(loop):
        for argument, value in zip(body.arguments, carried, strict=True):
            argument.replace_all_uses_with(value)
        instructions, carried = take_apart(body)
        written += instructions
    replace_results(substitute(block, position, written), carried)


def unroll_and_jam(block: Block, loop: Instruction, *, aliases: BufferAliases = ()) -> None:
    """Put the iterations of a loop in its place side by side: loops in them become one that does the work of all.

    That one carries the values of all iterations.  What does not depend on the index is computed and loaded once.

    Raises: IllegalRewrite when the loop carries values, its iterations touch what others write, or the bounds of a loop
    inside are computed.
    """
    position = position_of(block, loop)
    if loop.operands:
        raise IllegalRewrite("iterations that carry values to each other cannot be jammed")
    require_known_bounds(body_of(loop))
    require_independent(loop, aliases)
    bodies = _iterations(loop, is_jammed=True)
    for body in bodies:
        body.instructions.pop().set_operands(())
    substitute(block, position, _jammed(bodies))


def _iterations(loop: Instruction, *, is_jammed: bool = False) -> list[Block]:
    """A body for each iteration, whose arguments are what is carried; that of the loop is not used any more."""
    op, body = loop_op(loop), body_of(loop)
    copies = BodyCopies(body, is_jammed)
    bodies = [copies.with_index(op.lower + number * op.step) for number in range(op.count)]
    for instruction in body.instructions:
        instruction.drop_all_references()
    return bodies


def _jammed(copies: Sequence[Block]) -> list[Instruction]:
    """The instructions of copies of a block, each beside its like."""
    result: list[Instruction] = []
    # an index that is a constant is computed at the start of each copy, or of none
    for alike in zip(*[copy.instructions for copy in copies], strict=True):
        if is_loop(alike[0]):
            result.append(_jammed_loop(alike))
        elif alike[0] is alike[-1]:
            result.append(alike[0])
        else:
            result += alike
    return result


def _jammed_loop(loops: Sequence[Instruction]) -> Instruction:
    """One loop for copies of a loop."""
    bodies = [body_of(loop) for loop in loops]
    index = bodies[0].arguments[0]  # that of all copies
    carried = [argument for body in bodies for argument in body.arguments[1:]]
    yielded: list[Value] = []
    for body in bodies:
        end = body.instructions.pop()
        yielded += end.operands
        end.set_operands(())
    jammed = Block([index, *carried], _jammed(bodies), bodies[0].name)
    jammed.instructions.append(make_yield(yielded))
    operands = [operand for loop in loops for operand in loop.operands]
    results = [result for loop in loops for result in loop.results]
    made = make_loop(loop_op(loops[0]), operands, jammed)
    for loop in loops:
        loop.set_operands(())
    made.results = tuple(results)
    for number, result in enumerate(results):  # which those that use them know already
        result.producer, result.index = made, number
    return made
