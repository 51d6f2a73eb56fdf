"""Sorts a row by counting, for a vector of elements at a time, the keys that come before theirs.

    lesser keys, and equal ones of elements before

That is where the number of each element goes.  Loads of keys, one by one, are for all lanes, and nothing branches on
data.  Source: Knuth, The Art of Computer Programming 3, §5.2 (comparison counting).
"""

from __future__ import annotations

from typing import Final

from ..ir import Value
from ..kernels.indices import IndexSum
from ..kernels.ops import LaneNumbers
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.casting import DataTypeCast
from ..ops.comparison import And, Equal, LessThan, LessThanOrEqual, Or
from ..ops.literal import splat
from ..types import I32, I64, TensorType
from .sorted_row import SortedRow

_VECTOR: Final = 64
"""Bytes of keys that are counted for at a time; narrow registers take several of them, which need not wait for each
other."""


def sort_by_counting(row: SortedRow) -> None:
    """Write the loops that sort a row."""
    dtype = I32 if row.dtype.bits <= I32.bits else I64
    vector = TensorType((_VECTOR // dtype.bytes,), dtype)
    padded = TensorType((-(-row.extent // vector.size) * vector.size,), dtype)
    keys, ranks = row.build.scratch(padded), row.build.scratch(padded)
    _Counting(row, keys, ranks, vector).write()


@dataclass(frozen=True)
class _Counting:
    """The loops, with the buffers of keys and of ranks, both filled up to whole vectors."""

    row: SortedRow
    keys: Value
    ranks: Value
    vector: TensorType

    def write(self) -> None:
        row, build, lanes = self.row, self.row.build, self.vector.size
        self._write_keys()
        extent = row.extent
        with build.loop(extent, step=lanes) as vectors:
            own = build.load(self.keys, vectors.index, lanes=lanes, steps=(1,))
            self._write_ranks(vectors.index, own)
        with build.loop(extent) as loop:
            rank = build.load(self.ranks, loop.index)
            place = rank if self.vector.dtype is I64 else build.emit(DataTypeCast(I64), rank)
            row.write_number_to(loop.index, place)

    def _write_keys(self) -> None:
        """The keys, and behind them the greatest to the end of a vector: it comes before nothing."""
        row, build, lanes = self.row, self.row.build, self.vector.size
        last = (row.extent - 1) // lanes * lanes
        greatest = build.emit(splat(self.vector, (1 << (self.vector.dtype.bits - 1)) - 1))
        build.store(greatest, self.keys, last, steps=(1,))
        for at, width, active in row.in_vectors(lanes):
            key = row.key(at, width, active)
            if key.tensor.dtype is not self.vector.dtype:
                key = build.emit(DataTypeCast(self.vector.dtype), key)
            build.store(key, self.keys, at, steps=(1,) if width else (), active=active)

    def _write_ranks(self, base: Value, own: Value) -> None:
        """For a vector of elements, how many come before each: of those before all of them, among them, and behind."""
        build, lanes, extent = self.row.build, self.vector.size, self.row.extent
        at = IndexSum(0, {base: 1})
        count = build.emit(splat(self.vector, 0))
        if extent > lanes:
            zero = build.constant(I64, 0)
            with build.bounded_loop(zero, base, extent, carrying=[count]) as loop:
                found = self._is_before(loop.index, own, equal=True)
                loop.yields(self._counted(loop.carried[0], found))
            (count,) = loop.results
        count = self._write_ranks_among(at, own, count)
        if extent > lanes:
            behind, end = build.index_value(at.plus(lanes)), build.constant(I64, extent)
            with build.bounded_loop(behind, end, extent, carrying=[count]) as loop:
                found = self._is_before(loop.index, own, equal=False)
                loop.yields(self._counted(loop.carried[0], found))
            (count,) = loop.results
        build.store(count, self.ranks, base, steps=(1,))

    def _write_ranks_among(self, at: IndexSum, own: Value, count: Value) -> Value:
        """The same with those counted that come before each among the elements of the vector itself."""
        build, dtype, lanes = self.row.build, self.vector.dtype, self.vector.size
        lane_numbers = build.emit(DataTypeCast(dtype), build.emit(LaneNumbers(lanes, 1)))
        with build.loop(min(lanes, self.row.extent), carrying=[count]) as loop:
            key = build.load(self.keys, at.plus(IndexSum(0, {loop.index: 1})))
            number = loop.index if dtype is I64 else build.emit(DataTypeCast(dtype), loop.index)
            stands_before = build.emit(LessThan(), number, lane_numbers)
            equal = build.emit(And(), build.emit(Equal(), key, own), stands_before)
            found = build.emit(Or(), build.emit(LessThan(), key, own), equal)
            loop.yields(self._counted(loop.carried[0], found))
        return loop.results[0]

    def _is_before(self, index: Value, own: Value, *, equal: bool) -> Value:
        build = self.row.build
        key = build.load(self.keys, index)
        return build.emit(LessThanOrEqual() if equal else LessThan(), key, own)

    def _counted(self, count: Value, found: Value) -> Value:
        build = self.row.build
        return build.emit(Add(), count, build.emit(DataTypeCast(self.vector.dtype), found))
