"""Emits sorts: of short rows by counting, of long ones by the digits of keys.

A key is an unsigned integer in the order of the elements.

1. Short rows: for a vector of elements at a time, how many keys come before theirs, of all in the row.  That is where
   the number of each element goes.
2. Long rows: words are made of the elements, sorted, and the numbers in them written out.

       word = key << index bits | number

   Passes go over the digits of the keys, the lowest first.  Each counts how many words have each digit, and
   copies the words to where those of their digit go, in order; a digit that all words share takes no copy.
   Source: Knuth, The Art of Computer Programming 3, §5.2 (comparison counting), §5.2.5 (radix sorting).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...core.lazy_dataclass import dataclass
from ...core.schedule.ops import ScheduledArgSort
from ...core.schedule.sorting import SortLayout, sort_layout
from ...core.types import DType, TensorType
from .element_access import element_address, offset_bytes
from .fill import write_zeros
from .indices import multiply_constant
from .parallel import ParallelLoops
from .values import ZMM_BYTES, LLVMType, llvm_type
from .writer import I8, I32, I64, FunctionWriter, Register, constant, constants

_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
"""The bits of +∞: those of larger magnitudes are NaNs."""


def write_argsort(
    w: FunctionWriter,
    op: ScheduledArgSort,
    type: TensorType,
    bases: Sequence[Register],
    parallel: ParallelLoops | None = None,
    nanoseconds: float = 0.0,
) -> None:
    """Write the sort of an operand of `type`; `bases` are its address, the result's and that of the scratch buffer.

    It takes so long; threads share its rows by `parallel`.
    """
    if type.size == 0:
        return
    layout = sort_layout(op, type)
    rows = type.size // type.shape[op.axis]
    if parallel is None or not 0 < op.grain < rows:
        _write_rows(w, op, type, bases, constant(I64, 0), constant(I64, rows))
        return

    def block(
        w: FunctionWriter, given: Sequence[Register], number: Register, thread: Register
    ) -> None:
        source, target, scratch = given
        own = element_address(w, scratch, I8, multiply_constant(w, thread, layout.bytes))
        first = multiply_constant(w, number, op.grain)
        stop = w.smin(w.add(first, constant(I64, op.grain)), constant(I64, rows))
        _write_rows(w, op, type, (source, target, own), first, stop)

    blocks = -(-rows // op.grain)
    parallel.write(w, blocks, bases, block, nanoseconds=nanoseconds, threads=op.copies)


def _write_rows(
    w: FunctionWriter,
    op: ScheduledArgSort,
    type: TensorType,
    bases: Sequence[Register],
    begin: Register,
    end: Register,
) -> None:
    """The sorts of some rows: the elements of one lie as far apart as those behind the axis are many."""
    source, target, scratch = bases
    layout, inner = sort_layout(op, type), prod(type.shape[op.axis + 1 :])
    with w.loop(begin, end, constant(I64, 1), hint="sort") as rows:
        first = multiply_constant(w, rows.index, type.shape[op.axis])
        if inner > 1:
            outer = w.value(I64, f"udiv i64 {rows.index.text}, {inner}")
            column = w.sub(rows.index, multiply_constant(w, outer, inner))
            first = w.add(multiply_constant(w, outer, type.shape[op.axis] * inner), column)
        row = _Row(w, op, type, layout, inner, _word_type(layout), scratch)
        if op.digit:
            row.write_words(source, first)
            row.write_numbers(row.write_passes(), target, first)
        else:
            row.write_ranked(row.write_ranks(source, first), target, first)


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
        words, _ = self._buffers
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            key = _widened(w, self._key_at(source, first, loop.index), word)
            key = w.shl(key, constant(word, self.layout.index_bits))
            number = _widened(w, loop.index, word)
            w.store(w.or_(key, number), element_address(w, words, word, loop.index))

    def _key_at(self, source: Register, first: Register, index: Register) -> Register:
        """The key of an element of the row."""
        w, dtype = self.w, self.type.dtype
        bits = llvm_type(f"i{8 * dtype.bytes}")  # type: ignore[arg-type]  # a scalar's name
        place = w.add(first, multiply_constant(w, index, self.stride))
        key = _key(w, dtype, w.load(element_address(w, source, bits, place), bits))
        if not self.op.descending:
            return key
        return w.xor(key, constant(bits, 1 if dtype.kind == "boolean" else -1))

    def write_numbers(self, words: Register, target: Register, first: Register) -> None:
        """The numbers of the sorted words, to the row of the result."""
        w = self.w
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            word = w.load(element_address(w, words, self.word, loop.index), self.word)
            narrow = self.word == I64
            number = w.zext(w.trunc(word, "i32"), "i64") if narrow else w.trunc(word, "i64")
            place = w.add(first, multiply_constant(w, loop.index, self.stride))
            w.store(number, element_address(w, target, I64, place))

    # By counting.

    def write_ranks(self, source: Register, first: Register) -> Register:
        """For each element, how many come before it: those with a lesser key, and of its equals those before it."""
        w, vector = self.w, self._keys
        keys, ranks = self._buffers
        self._write_keys(source, first, keys)
        extent, zero, one = constant(I64, self.extent), constant(I64, 0), constant(I64, 1)
        with w.loop(zero, extent, constant(I64, vector.lanes)) as blocks:
            base = blocks.index
            own = w.load(self._at(keys, base), vector)
            end = w.add(base, constant(I64, vector.lanes))
            count = constant(vector, 0)
            with w.loop(zero, base, one, [count]) as loop:
                key = self._spread(keys, loop.index)
                loop.carry(self._counted(loop.values[0], w.icmp("ule", key, own)))
            lanes = constants(vector.scalar, range(vector.lanes))
            with w.loop(base, w.smin(end, extent), one, loop.results, guarded=False) as loop:
                key = self._spread(keys, loop.index)
                place = w.splat(w.trunc(w.sub(loop.index, base), "i32"), vector.lanes)
                if vector.bits > place.type.bits:
                    place = w.zext(place, vector.scalar)
                is_before = w.icmp("ult", place, lanes)
                equal = w.and_(w.icmp("eq", key, own), is_before)
                found = w.or_(w.icmp("ult", key, own), equal)
                loop.carry(self._counted(loop.values[0], found))
            with w.loop(end, extent, one, loop.results) as loop:
                key = self._spread(keys, loop.index)
                loop.carry(self._counted(loop.values[0], w.icmp("ult", key, own)))
            w.store(loop.results[0], self._at(ranks, base))
        return ranks

    def write_ranked(self, ranks: Register, target: Register, first: Register) -> None:
        """The numbers of the elements, each to its rank in the row of the result."""
        w = self.w
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            rank = w.load(self._at(ranks, loop.index), self._keys.with_lanes(1))
            place = w.add(first, multiply_constant(w, _widened(w, rank, I64), self.stride))
            w.store(loop.index, element_address(w, target, I64, place))

    @property
    def _keys(self) -> LLVMType:
        """A vector of keys."""
        scalar = llvm_type("i32" if self.layout.index_bits <= I32.bits else "i64")
        return scalar.with_lanes(ZMM_BYTES // scalar.size)

    def _at(self, base: Register, index: Register) -> Register:
        return element_address(self.w, base, self._keys.with_lanes(1), index)

    def _spread(self, keys: Register, index: Register) -> Register:
        """One key in all lanes."""
        w, vector = self.w, self._keys
        return w.splat(w.load(self._at(keys, index), vector.with_lanes(1)), vector.lanes)

    def _counted(self, count: Register, found: Register) -> Register:
        return self.w.sub(count, self.w.sext(found, count.type.scalar))

    def _write_keys(self, source: Register, first: Register, keys: Register) -> None:
        """The keys, and behind them the greatest to the end of a vector: it comes before nothing."""
        w, scalar, lanes = self.w, self._keys.with_lanes(1), self._keys.lanes
        last = (self.extent - 1) // lanes * lanes
        w.store(constant(self._keys, -1), self._at(keys, constant(I64, last)))
        with w.loop(constant(I64, 0), constant(I64, self.extent), constant(I64, 1)) as loop:
            key = self._key_at(source, first, loop.index)
            w.store(_widened(w, key, scalar), self._at(keys, loop.index))

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
