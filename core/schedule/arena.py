"""Best-fit allocation of offsets in the arena, with coalescing of free ranges.

Allocation and release cost O(log holes) comparisons, so planning stays near-linear in the program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import field

from ..ir import ALIGNMENT, HEADER_BYTES
from ..lazy_dataclass import dataclass


@dataclass
class Arena:
    """Gives out and takes back ranges; `end` is the size the arena has needed so far."""

    end: int = HEADER_BYTES
    _holes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(size, offset), sorted: the first that is large enough fits best."""
    _starts: dict[int, int] = field(default_factory=dict[int, int])
    _ends: dict[int, int] = field(default_factory=dict[int, int])

    def allocate(self, size: int) -> int:
        """The offset of `size` bytes (rounded up to the alignment) that nobody else has."""
        size = aligned(size)
        found = bisect_left(self._holes, (size, 0))
        if found == len(self._holes):
            return self._extend(size)
        hole, offset = self._holes[found]
        self._remove(offset, hole)
        if hole > size:
            self._add(offset + size, hole - size)
        return offset

    def release(self, offset: int, size: int) -> None:
        """Take back what `allocate(size)` gave."""
        size = aligned(size)
        following = self._starts.get(offset + size)
        if following is not None:
            self._remove(offset + size, following)
            size += following
        preceding = self._ends.get(offset)
        if preceding is not None:
            self._remove(preceding, offset - preceding)
            offset, size = preceding, size + offset - preceding
        self._add(offset, size)

    def _extend(self, size: int) -> int:
        last = self._ends.get(self.end)
        offset = self.end if last is None else last
        if last is not None:
            self._remove(last, self.end - last)
        self.end = offset + size
        return offset

    def _add(self, offset: int, size: int) -> None:
        insort(self._holes, (size, offset))
        self._starts[offset] = size
        self._ends[offset + size] = offset

    def _remove(self, offset: int, size: int) -> None:
        del self._holes[bisect_left(self._holes, (size, offset))]
        del self._starts[offset]
        del self._ends[offset + size]


def aligned(size: int) -> int:
    """`size` rounded up to the alignment; at least one unit, so that no two buffers share an offset."""
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)
