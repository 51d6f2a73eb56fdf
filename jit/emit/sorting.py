"""Emits sorts: for each row, words are made of its elements, sorted, and the numbers in them written out.

    word = key << index bits | number       key: an unsigned integer in the order of the elements

1. Short rows: runs of 1, 2, 4, … words are merged, without branches on data.
2. Long rows: passes over the digits of the keys, the lowest first.  Each counts how many words have each digit, and
   copies the words to where those of their digit go, in order; a digit that all words share takes no copy.
   Source: Knuth, The Art of Computer Programming 3, §5.2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...core.schedule.ops import ScheduledArgSort
from ...core.schedule.sorting import SortLayout, sort_layout
from ...core.types import DType, TensorType
from .element_access import element_address, offset_bytes
from .fill import write_zeros
from .indices import multiply_constant
from .values import LLVMType, llvm_type
from .writer import I64, FunctionWriter, Register, constant

_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
"""The bits of +∞: those of larger magnitudes are NaNs."""


def write_argsort(
    w: FunctionWriter, op: ScheduledArgSort, type: TensorType, bases: Sequence[Register]
) -> None:
    """Write the sort of an operand of `type`; `bases` are its address, the result's and that of the scratch buffer."""
    if type.size == 0:
        return
    source, target, scratch = bases
    layout = sort_layout(op, type)
    outer, inner = prod(type.shape[: op.axis]), prod(type.shape[op.axis + 1 :])
    zero, one = constant(I64, 0), constant(I64, 1)
    with (
        w.loop(zero, constant(I64, outer), one, hint="sort") as rows,
        w.loop(zero, constant(I64, inner), one) as columns,
    ):
        first = w.add(multiply_constant(w, rows.index, type.shape[op.axis] * inner), columns.index)
        row = _Row(w, op, type, layout, inner, _word_type(layout), scratch)
        row.write_words(source, first)
        found = row.write_passes() if op.digit else row.write_merges()
        row.write_numbers(found, target, first)


def _word_type(layout: SortLayout) -> LLVMType:
    return llvm_type("i64" if layout.word_bits == 64 else "i128")


@dataclass(frozen=True, slots=True)
class _Row:
    """The sort of one row, whose elements lie `stride` apart."""

    w: FunctionWriter
    op: ScheduledArgSort
    type: TensorType
    layout: SortLayout
    stride: int
    word: LLVMType
    scratch: Register

    @property
    def extent(self) -> int:
        return self.type.shape[self.op.axis]

    @property
    def _buffers(self) -> tuple[Register, Register]:
        return self.scratch, offset_bytes(self.w, self.scratch, self.layout.words)

    def write_words(self, source: Register, first: Register) -> None:
        """The words of the row, in the order of its elements, to the first buffer."""
        w, word = self.w, self.word
        bits = llvm_type(f"i{8 * self.type.dtype.bytes}")  # type: ignore[arg-type]  # a scalar's name
        words, _ = self._buffers
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            place = w.add(first, multiply_constant(w, loop.index, self.stride))
            key = _key(w, self.type.dtype, w.load(element_address(w, source, bits, place), bits))
            if self.op.descending:
                flip = 1 if self.type.dtype.kind == "boolean" else -1
                key = w.xor(key, constant(key.type, flip))
            key = w.shl(_widened(w, key, word), constant(word, self.layout.index_bits))
            number = _widened(w, loop.index, word)
            w.store(w.or_(key, number), element_address(w, words, word, loop.index))

    def write_numbers(self, words: Register, target: Register, first: Register) -> None:
        """The numbers of the sorted words, to the row of the result."""
        w = self.w
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            word = w.load(element_address(w, words, self.word, loop.index), self.word)
            narrow = self.word == I64
            number = w.zext(w.trunc(word, "i32"), "i64") if narrow else w.trunc(word, "i64")
            place = w.add(first, multiply_constant(w, loop.index, self.stride))
            w.store(number, element_address(w, target, I64, place))

    # By merging.

    def write_merges(self) -> Register:
        """Merge runs until there is one; the buffer that it is in."""
        w, extent = self.w, constant(I64, self.extent)
        passes = (self.extent - 1).bit_length()
        source, target = self._buffers
        with w.loop(
            constant(I64, 0), constant(I64, passes), constant(I64, 1), [source, target]
        ) as loop:
            source, target = loop.values
            run = w.shl(constant(I64, 1), loop.index)
            both = w.shl(run, constant(I64, 1))
            with w.loop(constant(I64, 0), extent, both) as pairs:
                middle = w.smin(w.add(pairs.index, run), extent)
                stop = w.smin(w.add(pairs.index, both), extent)
                self._write_merge(source, target, pairs.index, middle, stop)
            loop.carry(target, source)
        return loop.results[0]

    def _write_merge(
        self, source: Register, target: Register, first: Register, middle: Register, stop: Register
    ) -> None:
        """Merge the runs from `first` to `middle` and on to `stop`.

        Where one is used up, the word behind it is read, though not taken: the buffer has one more than the row.
        """
        w, word = self.w, self.word
        with w.loop(first, stop, constant(I64, 1), [first, middle], guarded=False) as loop:
            left, right = loop.values
            x = w.load(element_address(w, source, word, left), word)
            y = w.load(element_address(w, source, word, right), word)
            is_less = w.or_(w.icmp("sge", right, stop), w.icmp("ult", x, y))
            is_left = w.and_(w.icmp("slt", left, middle), is_less)
            w.store(w.select(is_left, x, y), element_address(w, target, word, loop.index))
            step = w.zext(is_left, "i64")
            loop.carry(w.add(left, step), w.sub(w.add(right, constant(I64, 1)), step))

    # By digits.

    def write_passes(self) -> Register:
        """A pass for each digit; the buffer that the words are in behind the last."""
        w, digit = self.w, self.op.digit
        passes = -(-self.layout.key_bits // digit)
        source, target = self._buffers
        counts = offset_bytes(w, self.scratch, 2 * self.layout.words)
        with w.loop(
            constant(I64, 0), constant(I64, passes), constant(I64, 1), [source, target]
        ) as loop:
            source, target = loop.values
            shift = w.add(
                multiply_constant(w, loop.index, digit), constant(I64, self.layout.index_bits)
            )
            wide = _widened(w, shift, self.word)
            self._write_counts(source, counts, wide)
            first = w.load(source, self.word)
            shared = w.load(element_address(w, counts, I64, self._digit(first, wide)), I64)
            differ = w.icmp("ne", shared, constant(I64, self.extent))
            with w.when(differ, hint="pass"):
                self._write_places(counts)
                self._write_copies(source, target, counts, wide)
            loop.carry(w.select(differ, target, source), w.select(differ, source, target))
        return loop.results[0]

    def _digit(self, word: Register, shift: Register) -> Register:
        w = self.w
        found = w.trunc(w.lshr(word, shift), "i64") if self.word != I64 else w.lshr(word, shift)
        return w.and_(found, constant(I64, (1 << self.op.digit) - 1))

    def _write_counts(self, source: Register, counts: Register, shift: Register) -> None:
        """How many words have each digit."""
        w = self.w
        write_zeros(w, counts, 8 << self.op.digit)
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            word = w.load(element_address(w, source, self.word, loop.index), self.word)
            place = element_address(w, counts, I64, self._digit(word, shift))
            w.store(w.add(w.load(place, I64), constant(I64, 1)), place)

    def _write_places(self, counts: Register) -> None:
        """Make of the counts where the first word with each digit goes."""
        w, size = self.w, 1 << self.op.digit
        with w.loop(
            constant(I64, 0), constant(I64, size), constant(I64, 1), [constant(I64, 0)]
        ) as loop:
            place = element_address(w, counts, I64, loop.index)
            count = w.load(place, I64)
            w.store(loop.values[0], place)
            loop.carry(w.add(loop.values[0], count))

    def _write_copies(
        self, source: Register, target: Register, counts: Register, shift: Register
    ) -> None:
        """Copy each word behind the one with its digit that was copied last."""
        w = self.w
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            word = w.load(element_address(w, source, self.word, loop.index), self.word)
            counted = element_address(w, counts, I64, self._digit(word, shift))
            place = w.load(counted, I64)
            w.store(word, element_address(w, target, self.word, place))
            w.store(w.add(place, constant(I64, 1)), counted)


def _key(w: FunctionWriter, dtype: DType, bits: Register) -> Register:
    """The unsigned integer for an element with these bits: one for both zeros, and the greatest for all NaNs."""
    if dtype.kind == "boolean":
        return bits
    width = dtype.bits
    sign = constant(bits.type, 1 << (width - 1))
    if not dtype.is_float:
        return w.xor(bits, sign)
    magnitude = w.and_(bits, constant(bits.type, (1 << (width - 1)) - 1))
    infinity = constant(bits.type, _INFINITY[dtype.name])
    zero = constant(bits.type, 0)
    signed = w.select(w.icmp("eq", magnitude, zero), zero, bits)
    turned = w.ashr(signed, constant(bits.type, width - 1))  # all bits of what is negative
    key = w.xor(signed, w.or_(turned, sign))
    return w.select(w.icmp("ugt", magnitude, infinity), constant(bits.type, -1), key)


def _widened(w: FunctionWriter, x: Register, type: LLVMType) -> Register:
    return x if x.type == type else w.zext(x, type.scalar)
