"""Lets threads share the iterations of a loop."""

from __future__ import annotations

from dataclasses import replace

from ..ir.instruction import Block, Instruction
from .dependence import BufferAliases, require_independent
from .errors import IllegalRewrite
from .loops import body_of, inside, is_loop, loop_op, position_of
from .ops import Kernel, executed


def parallelise(
    block: Block, loop: Instruction, grain: int, *, aliases: BufferAliases = ()
) -> None:
    """Have one thread at a time run up to `grain` iterations of a loop, others those that follow.

    Raises: IllegalRewrite when the iterations depend on each other, or a loop inside is parallel.
    """
    position_of(block, loop)
    if grain < 1:
        raise IllegalRewrite(f"a thread runs at least one iteration, not {grain}")
    if loop.operands:
        raise IllegalRewrite("iterations that carry values to each other are not parallel")
    if any(is_loop(i) and loop_op(i).grain for i in inside(body_of(loop))):
        raise IllegalRewrite("a loop inside is parallel already")
    require_independent(loop, aliases)
    loop.op = replace(loop_op(loop), grain=grain)


def has_parallel_loops(kernel: Instruction[Kernel]) -> bool:
    """Whether threads share any loop of a kernel."""
    return any(is_loop(one) and loop_op(one).grain for _, one in executed(kernel))
