"""Splitting loops: in two, one after the other, and in runs, one loop in another."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..ir.instruction import Block, Instruction
from .errors import IllegalRewrite
from .indices import IndexSum, replace_index
from .loops import (
    body_of,
    copies_like,
    copy_block,
    loop_op,
    make_index,
    make_loop,
    make_yield,
    position_of,
    replace_results,
    substitute,
)
from .ops import Loop


class Peeled(NamedTuple):
    """The two loops that became of one."""

    first: Instruction
    rest: Instruction


class SplitLoop(NamedTuple):
    """A loop over runs, the loop over one run in it, and that over the iterations that are left, if there are some."""

    outer: Instruction
    inner: Instruction
    rest: Instruction | None


def peel(block: Block, loop: Instruction, count: int) -> Peeled:
    """The first `count` iterations as a loop of their own, before that over the rest.

    Raises: IllegalRewrite when one of the two would have no iteration.
    """
    op = loop_op(loop)
    if not 0 < count < op.count:
        raise IllegalRewrite(f"a loop of {op.count} iterations cannot be cut after {count}")
    position = position_of(block, loop)
    middle = op.lower + count * op.step
    rest_body = copy_block(body_of(loop))
    first = make_loop(replace(op, upper=middle), loop.operands, body_of(loop), loop.results)
    rest = make_loop(replace(op, lower=middle), first.results, rest_body, loop.results)
    replace_results(substitute(block, position, (first, rest)), rest.results)
    return Peeled(first, rest)


def split(block: Block, loop: Instruction, factor: int) -> SplitLoop:
    """The iterations in runs of `factor`: an outer loop over runs, an inner one from 0 within a run.

    What does not fill a run is a loop of its own behind them.  A parallel loop leaves the outer one parallel.

    Raises: IllegalRewrite when there is not one run.
    """
    op = loop_op(loop)
    if factor < 1 or factor > op.count:
        raise IllegalRewrite(f"a loop of {op.count} iterations has no run of {factor}")
    whole = op.count - op.count % factor
    if whole == op.count:
        return SplitLoop(*_in_runs(block, loop, factor), None)
    first, rest = peel(block, loop, whole)
    return SplitLoop(*_in_runs(block, first, factor), rest)


def split_balanced(block: Block, loop: Instruction, most: int) -> tuple[SplitLoop, ...]:
    """Runs of at most `most` iterations, as equal as they can be: one split, or two of lengths that differ by one."""
    sizes = balanced(loop_op(loop).count, most)
    if not sizes:
        raise IllegalRewrite("a loop of 0 iterations has no runs")
    if len(sizes) == 1:
        return (split(block, loop, sizes[0][0]),)
    (size, count), (smaller, _) = sizes
    first, rest = peel(block, loop, size * count)
    return split(block, first, size), split(block, rest, smaller)


def balanced(extent: int, most: int) -> tuple[tuple[int, int], ...]:
    """`extent` as a sum of the fewest sizes up to `most`, which differ by one at most: (size, how many), larger first.

    >>> balanced(64, 6)
    ((6, 9), (5, 2))
    """
    if most < 1:
        raise IllegalRewrite(f"no run has at most {most} iterations")
    if not extent:
        return ()
    parts = -(-extent // most)
    size, larger = divmod(extent, parts)
    sizes = ((size + 1, larger), (size, parts - larger))
    return tuple((size, count) for size, count in sizes if count)


def _in_runs(block: Block, loop: Instruction, factor: int) -> tuple[Instruction, Instruction]:
    """The same of a loop that has whole runs only."""
    op, body = loop_op(loop), body_of(loop)
    position = position_of(block, loop)
    old, *carried = body.arguments
    runs, run = make_index(old.name), make_index(old.name)
    body.arguments[0] = run
    replace_index(body, old, IndexSum(0, {runs: 1, run: 1}))
    given = copies_like(carried)
    inner = make_loop(Loop(0, factor * op.step, op.step), given, body, loop.results)
    outer_body = Block([runs, *given], [inner, make_yield(inner.results)], "loop")
    grain = -(-op.grain // factor) if op.grain else 0
    stepped = replace(op, step=op.step * factor, grain=grain)
    outer = make_loop(stepped, loop.operands, outer_body, loop.results)
    replace_results(substitute(block, position, (outer,)), outer.results)
    return outer, inner
