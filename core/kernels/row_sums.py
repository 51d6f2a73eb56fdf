"""The loops that a long sum is cut into, so that rounding errors stay within the promise of docs/semantics.md.

A number is rounded whenever something is added to a sum that it is in.  Loops in each other, each of which adds up
what the loop inside of it came to, starting at zero, round each number as often as their iterations add up to, and not
as often as they multiply to.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

SLACK: Final = 8
"""A sum of n numbers may round each of them SLACK + log₂ n times (`schedule.summation`)."""


class SumLoops(NamedTuple):
    """Iterations of the loops around each other, outer ones first, and how many are left for a loop behind them."""

    counts: tuple[int, ...]
    rest: int


def most_roundings(length: int) -> int:
    """How often each of so many numbers may be rounded in their sum."""
    return math.floor(SLACK + math.log2(max(length, 1)))


@cache
def sum_loops(count: int, most: int) -> SumLoops | None:
    """Loops of `count` iterations in all that round no number more than `most` times; None if none were found.

    As few in each other as can be, and the innermost as long as can be.
    """
    for depth in range(1, _DEEPEST + 1):
        for rest in range(min(count, max(most, 0) + 1)):
            counts = _factors(count - rest, most - (rest > 0), depth, count)
            if counts is not None:
                return SumLoops(counts, rest)
    return None


_DEEPEST: Final = 8
"""Loops in each other: enough for 2¹⁷ vectors."""


def _factors(count: int, most: int, depth: int, largest: int) -> tuple[int, ...] | None:
    """So many factors of a number, ascending, up to `largest`, which less one each come to `most` at most."""
    if depth == 1:
        return (count,) if count <= largest and count - 1 <= most else None
    for factor in range(min(most + 1, largest, count // 2), 1, -1):
        if count % factor == 0:
            inner = _factors(count // factor, most - factor + 1, depth - 1, factor)
            if inner is not None:
                return (*inner, factor)
    return None
