"""Work on blocks inside blocks, without recursion: programs may nest to any depth.

A generator does the work on one block, and yields the work on each block inside when its turn has come.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

Nested: TypeAlias = "Generator[Nested, None, None]"


def run_nested(work: Nested) -> None:
    """Run `work` to its end, and what it hands out on the way."""
    stack = [work]
    while stack:
        try:
            stack.append(next(stack[-1]))
        except StopIteration:
            stack.pop()
