"""How rows are sorted: short ones by counting, long ones by the digits of keys (`jit.emit.sorting`).

The sort of a long row is one of *words*, each a key and below it the number of the element: they are all different, and
their order is the stable one.  A key is an unsigned integer in the order of the elements.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..ir import Instruction
from ..ops.sorting import ArgSort
from ..types import BOOL, DType, TensorType
from .arena import aligned
from .ops import ScheduledArgSort
from .shared_loops import share_rows

_DIGIT, _WIDE_DIGIT = 8, 11
"""Bits of a digit of shorter and of longer rows: the places of 8 are made in no time, 11 have a pass less to go for f32
and two for f64.  10⁶ f32 take 16 and 11 ms, f64 80 and 62, 512 f32 3.3 and 5.7 µs (docs/decisions/0050)."""

_HALF: Final = 32
"""Bits of a key, and of an element's number, that make one machine word."""

_LONG, _LONG_OF_WIDE = 128, 256
"""Rows from here on go by digits, those of wide keys from the second: 127 f32 take 0.7 µs by counting and 128 by digits
1.0, 127 f64 1.3 and 256 either way 5."""

_LONGER: Final = 4096
"""Rows from here on go by wide digits."""


class SortLayout(NamedTuple):
    """The words of one row, and the bytes of the buffers that it is sorted in."""

    key_bits: int
    index_bits: int
    """Where the key begins: below it, the number of the element."""
    words: int
    """Bytes of one of two buffers: of words, or one of keys and one of ranks, filled up to whole vectors."""
    counts: int
    """Bytes of how many words have each digit."""

    @property
    def word_bits(self) -> int:
        return 2 * self.index_bits

    @property
    def bytes(self) -> int:
        """Of all that a row is sorted in."""
        return 2 * self.words + self.counts


def sort_layout(op: ScheduledArgSort, type: TensorType) -> SortLayout:
    """How rows along the axis of a tensor of `type` lie while they are sorted."""
    extent, key_bits = type.shape[op.axis], _key_bits(type.dtype)
    fits = key_bits <= _HALF and extent <= 1 << _HALF
    index_bits = _HALF if fits else 2 * _HALF
    bits = 2 * index_bits if op.digit else index_bits
    words = aligned(extent * bits // 8)
    return SortLayout(key_bits, index_bits, words, aligned(8 << op.digit) if op.digit else 0)


def digit_of(type: TensorType, axis: int) -> int:
    """Bits of the digits to sort rows along an axis by; 0 for counting."""
    extent, key_bits = type.shape[axis], _key_bits(type.dtype)
    if extent < (_LONG if key_bits <= _HALF else _LONG_OF_WIDE):
        return 0
    return min(_DIGIT if extent < _LONGER else _WIDE_DIGIT, key_bits)


def shared_rows(op: ArgSort, sort: Instruction, threads: int) -> tuple[int, int]:
    """How many rows a thread sorts at a time, 0 if one sorts all, and how many threads have room for a row."""
    type = sort.operands[0].tensor
    rows = type.size // max(type.shape[op.axis], 1)
    (grain,) = share_rows((rows,), op.nanoseconds(sort))
    return grain, max(1, min(threads, -(-rows // grain))) if grain else 1


def _key_bits(dtype: DType) -> int:
    return 1 if dtype is BOOL else dtype.bits
