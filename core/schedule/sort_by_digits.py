"""Sorts a row by the digits of keys: words are made of the elements, sorted, and the numbers in them written out.

A word is a key and below it the number of its element: words are all different, and their order is the stable one.  A
wide key and its number are two integers side by side.

Passes go over the digits of the keys, the lowest first.  Each counts how many words have each digit, and copies the
words to where those of their digit go, in order; a digit that all words share takes no copy.

Source: Knuth, The Art of Computer Programming 3, §5.2.5 (radix sorting).
"""

from __future__ import annotations

from typing import Final

from ..ir import Value
from ..kernels.build import AnyIndex
from ..kernels.indices import IndexSum
from ..kernels.ops import LaneNumbers
from ..kernels.sort_keys import key_bits, unsigned_key
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.bitwise import BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight
from ..ops.casting import DataTypeCast
from ..ops.comparison import NotEqual
from ..types import BOOL, I64, TensorType
from .sorted_row import SortedRow

HALF: Final = 32
"""Bits of a key, and of an element's number, that make one word together."""

_LANES: Final = 8
"""Numbers that are made or written at a time: 64 bytes."""


def sort_by_digits(row: SortedRow, digit: int) -> None:
    """Write the loops that sort a row by digits of so many bits."""
    is_wide = key_bits(row.dtype) > HALF or row.extent > 1 << HALF
    pair = (2,) if is_wide else ()
    words = row.build.scratch(TensorType((2, row.extent, *pair), I64))
    counts = row.build.scratch(TensorType((1 << digit,), I64))
    always = row.build.constant(BOOL, True)
    writer = _Digits(row, words, counts, digit, is_wide, always)
    writer.write_words()
    writer.write_numbers(writer.write_passes())


@dataclass(frozen=True)
class _Digits:
    """The loops, with two rows of words and the counts of digits."""

    row: SortedRow
    words: Value
    counts: Value
    digit: int
    is_wide: bool
    """Whether a word is two integers, the key and the number."""
    always: Value
    """True: of the words' digits and places, and of which row they are in, loads and stores know nothing."""

    def write_words(self) -> None:
        """The words of the row, in the order of its elements, to the first of the two rows."""
        row, build = self.row, self.row.build
        for at, lanes, active in row.in_vectors(0 if self.is_wide else _LANES):
            number = build.index_value(at)
            key = self._unsigned(row.key(at, lanes, active))
            if self.is_wide:
                build.store(key, self.words, 0, at, 0)
                build.store(number, self.words, 0, at, 1)
                continue
            if lanes:
                number = build.emit(Add(), build.emit(LaneNumbers(lanes, 1)), number)
            key = build.emit(ShiftLeft(), key, build.constant(I64, HALF))
            word = build.emit(BitwiseOr(), key, number)
            build.store(word, self.words, 0, at, steps=(0, 1) if lanes else (), active=active)

    def _unsigned(self, key: Value) -> Value:
        """As an i64 whose lower bits, as many as the key has, are in order; those above are copies of the first."""
        build = self.row.build
        key = unsigned_key(build, key, self.row.dtype)
        return key if key.tensor.dtype is I64 else build.emit(DataTypeCast(I64), key)

    def write_passes(self) -> Value:
        """A pass for each digit; in which of the two rows the words are behind the last."""
        build, extent, digit = self.row.build, self.row.extent, self.digit
        passes = -(-key_bits(self.row.dtype) // digit)
        with build.loop(passes, carrying=[build.constant(I64, 0)]) as loop:
            (row,) = loop.carried
            shift = IndexSum(0 if self.is_wide else HALF, {loop.index: digit})
            shift_value = build.index_value(shift)
            self._write_counts(row, shift_value)
            first = self._digit(row, 0, shift_value)
            shared = self._count(first)
            differ = build.emit(NotEqual(), shared, build.constant(I64, extent))
            moves = build.emit(DataTypeCast(I64), differ)
            self._write_places(moves)
            self._write_copies(row, shift_value, moves)
            loop.yields(build.emit(BitwiseXor(), row, moves))
        return loop.results[0]

    def _digit(self, row: Value, at: AnyIndex, shift: Value) -> Value:
        """The digit of a word, or of the key of a wide one."""
        build = self.row.build
        part = (0,) if self.is_wide else ()
        word = build.load_where(self.always, self.words, row, at, *part)
        mask = build.constant(I64, (1 << self.digit) - 1)
        return build.emit(BitwiseAnd(), build.emit(ShiftRight(), word, shift), mask)

    def _count(self, digit: Value) -> Value:
        return self.row.build.load_where(self.always, self.counts, digit)

    def _set_count(self, digit: Value, count: Value) -> None:
        self.row.build.store_where(self.always, count, self.counts, digit)

    def _write_counts(self, row: Value, shift: Value) -> None:
        """How many words have each digit."""
        build = self.row.build
        build.fill(self.counts, build.constant(I64, 0))
        with build.loop(self.row.extent) as loop:
            digit = self._digit(row, loop.index, shift)
            self._set_count(digit, self._next(self._count(digit)))

    def _next(self, number: Value) -> Value:
        return self.row.build.index_value(IndexSum(1, {number: 1}))

    def _write_places(self, moves: Value) -> None:
        """Make of the counts where the first word with each digit goes, if words are to move."""
        build, size = self.row.build, 1 << self.digit
        zero = build.constant(I64, 0)
        stop = build.index_value(IndexSum(0, {moves: size}))
        with build.bounded_loop(zero, stop, size, carrying=[zero]) as loop:
            (place,) = loop.carried
            count = build.load(self.counts, loop.index)
            build.store(place, self.counts, loop.index)
            loop.yields(build.emit(Add(), place, count))

    def _write_copies(self, row: Value, shift: Value, moves: Value) -> None:
        """Copy each word behind the one with its digit that was copied last, to the other row, if words are to move."""
        build, extent = self.row.build, self.row.extent
        other = IndexSum(1, {row: -1})
        stop = build.index_value(IndexSum(0, {moves: extent}))
        with build.bounded_loop(build.constant(I64, 0), stop, extent) as loop:
            digit = self._digit(row, loop.index, shift)
            place = self._count(digit)
            words, always = self.words, self.always
            if self.is_wide:
                steps = (0, 0, 1)
                pair = build.load_where(always, words, row, loop.index, 0, lanes=2, steps=steps)
                build.store_where(always, pair, words, other, place, 0, steps=steps)
            else:
                word = build.load_where(always, words, row, loop.index)
                build.store_where(always, word, words, other, place)
            self._set_count(digit, self._next(place))

    def write_numbers(self, sorted: Value) -> None:
        """The numbers of the sorted words, to the result."""
        row, build = self.row, self.row.build
        always, words = self.always, self.words
        for at, lanes, active in row.in_vectors(0 if self.is_wide else _LANES):
            if self.is_wide:
                number = build.load_where(always, words, sorted, at, 1)
            else:
                steps = (0, 1) if lanes else ()
                word = build.load_where(
                    always, words, sorted, at, lanes=lanes, steps=steps, active=active
                )
                number = build.emit(BitwiseAnd(), word, build.constant(I64, (1 << HALF) - 1))
            row.write_numbers(number, at, active)
