"""Where the results of an instruction lie: what stage schedule says beside it.

`… into arena 64, output 0 scratch arena 128 frame 640`
"""

from __future__ import annotations

from ..lazy_dataclass import dataclass

ALIGNMENT = 64
"""Buffers begin at multiples of this: a cache line, and the widest vector, so that no vector lies in two lines."""

HEADER_BYTES = 64
"""The head of the arena, where a running program leaves what its caller reads: the eight words of
`jit.emit.arena_header`. A multiple of the alignment, as buffers follow."""


@dataclass(frozen=True)
class Place:
    """Where a buffer lies: `offset` bytes into the arena, in result number `output`, or in a variable.

    `arena 4096`, `output 0` or `register 2`; offsets are multiples of 64.  In a body, the arena is the
    frame that the structured op gives it, and `output k` is where its k-th yielded value belongs: the buffer of
    result k, or an element of a stacked result.  Registers hold scalars; their numbers are those of one block.
    """

    space: str
    offset: int

    def __str__(self) -> str:
        return f"{self.space} {self.offset}"


def arena(offset: int) -> Place:
    """`offset` bytes into the program's arena."""
    return Place("arena", offset)


def output(number: int) -> Place:
    """The buffer of result `number`."""
    return Place("output", number)


def register(number: int) -> Place:
    """Variable `number` of the block."""
    return Place("register", number)


@dataclass(frozen=True)
class Placement:
    """The places of an instruction's results, of the buffers it works with, and of the frame of its bodies.

    `frame` is an offset in the arena around: the arena of the bodies.
    """

    results: tuple[Place, ...] = ()
    scratch: tuple[Place, ...] = ()
    frame: int = 0

    def __str__(self) -> str:
        parts: list[str] = []
        if self.results:
            parts.append(f"into {', '.join(map(str, self.results))}")
        if self.scratch:
            parts.append(f"scratch {', '.join(map(str, self.scratch))}")
        if self.frame:
            parts.append(f"frame {self.frame}")
        return " ".join(parts)


NOT_PLACED = Placement()
"""That of every instruction before stage schedule, and of those that need no memory."""
