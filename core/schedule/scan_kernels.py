"""Writes scans as kernels: loops over what comes before the axis, vectors over what comes behind it, a total along it.

    loop outer { loop columns by 16 {
        loop along carrying total { total = total ∘ loadAt …; storeAt total … } } }

1. Running sums of floats go in blocks (`summation.scan_block`): yᵢ = (sum of the blocks before) + (sum of the block's
   elements up to i).  The next block need not wait for the last element of this one, only for its sum.
2. What rounding cuts off from the sum of the blocks is kept beside it.  After every 64 blocks the sum takes over what
   fits it: their corrections lose 64² · u² at most, which is nothing beside u, and taking over waits for 40 cycles.
   16 to 256 take the same time (docs/decisions/0019).
3. Narrow floats are combined in f32, and rounded where they are stored.
4. Rows that are combined element by element go four at a time.
5. Threads share rows, or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, TypeGuard

from ..ir import Block, Builder, Instruction, Value
from ..kernels.build import KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.loops import body_of, loops_of
from ..kernels.pairs import corrected, normalized, two_sum
from ..kernels.split import split
from ..kernels.unroll import unroll_and_jam
from ..lazy_dataclass import dataclass
from ..ops.casting import DataTypeCast
from ..ops.literal import splat
from ..ops.scan import Scan
from ..types import BF16, F16, F32, TensorType
from .combining import joined
from .replace_each import replace_each
from .shared_loops import share_rows
from .summation import scan_block
from .target import Target

_BATCH: Final = 64
"""Blocks of a running sum before the total takes over what fits it."""


_TOGETHER: Final = 4
"""Rows whose totals go along the axis side by side: each step of a row waits for the one before."""


def write_scan_kernels(block: Block, target: Target) -> None:
    """Replace the scans of a block by kernels."""
    replace_each(block, lambda b, one: _write(b, one, target) if _is_scan(one) else None)


def _is_scan(instruction: Instruction) -> TypeGuard[Instruction[Scan]]:
    return isinstance(instruction.op, Scan)


def _write(b: Builder, scan: Instruction[Scan], target: Target) -> Value:
    (x,) = scan.operands
    type, axis = x.tensor, scan.op.axis
    shape = prod(type.shape[:axis]), type.shape[axis], prod(type.shape[axis + 1 :])
    build = KernelBuilder([type], [type])
    if type.size:
        seen = type.with_shape(shape)
        (source,), (result,) = build.operands, build.outputs
        buffers = build.reshape(source, seen), build.reshape(result, seen)
        work = scan.op.nanoseconds(scan)
        _ScanWriter(build, scan.op, seen, *buffers).write(target.lanes(type.dtype.bytes), work)
    (made,) = build.kernel(b, x, overwriting=((0, 0),))
    return made


@dataclass(frozen=True)
class _ScanWriter:
    """Writes the loops over a tensor seen as (outer, extent, inner), along the axis in the middle."""

    build: KernelBuilder
    op: Scan
    type: TensorType
    source: Value
    result: Value

    def write(self, lanes: int, nanoseconds: float) -> None:
        """All loops, which take so long."""
        outer, _, inner = self.type.shape
        lanes = min(lanes, 1 << (inner.bit_length() - 1))
        whole = inner - inner % lanes
        grains = share_rows((outer, whole // lanes), nanoseconds)

        def write_row(row: IndexSum) -> None:
            self._repeat(
                whole, lanes, grains[1], lambda first: _Column(self, row, first, lanes).write()
            )
            if whole < inner:
                left = inner - whole
                width = 1 << (left - 1).bit_length()
                _Column(self, row, IndexSum(whole, {}), width, left % width).write()

        self._repeat(outer, 1, grains[0], write_row)
        if (
            inner == 1
            and outer >= _TOGETHER
            and not scan_block(self.op.combinator, self.type.dtype)
        ):
            self._jam_rows()

    def _jam_rows(self) -> None:
        """Several rows in the loop along the axis, so that none waits for itself alone."""
        block = self.build.block
        (rows,) = loops_of(block)
        made = split(block, rows, _TOGETHER)
        aliases = [(self.source, self.result)]
        unroll_and_jam(body_of(made.outer), made.inner, aliases=aliases)

    def _repeat(
        self, extent: int, step: int, grain: int, write: Callable[[IndexSum], None]
    ) -> None:
        """A loop, if it runs more than once."""
        if extent == step:
            write(IndexSum(0, {}))
            return
        with self.build.loop(extent, step=step, grain=grain) as loop:
            write(IndexSum(0, {loop.index: 1}))


@dataclass(frozen=True)
class _Column:
    """Writes what runs along the axis, for elements side by side: `lanes` of them, or the first `active` ones."""

    scan: _ScanWriter
    row: IndexSum
    first: IndexSum
    lanes: int
    active: int = 0

    def write(self) -> None:
        """The loop, or those over blocks."""
        scan, extent = self.scan, self.scan.type.shape[1]
        block = scan_block(scan.op.combinator, scan.type.dtype)
        if not block:
            self._write_steps(extent)
            return
        whole = extent - extent % block
        batches = whole - whole % (block * _BATCH)
        pair: Sequence[Value] = [self._constant(0)] * 2
        if batches:
            with scan.build.loop(batches, step=block * _BATCH, carrying=pair) as loop:
                start = IndexSum(0, {loop.index: 1})
                sums = self._write_blocks(start, block * _BATCH, block, loop.carried)
                loop.yields(*normalized(scan.build, *sums))
            pair = loop.results
        if batches < whole:
            start = IndexSum(batches, {})
            pair = self._write_blocks(start, whole - batches, block, pair)
            pair = normalized(scan.build, *pair)
        if whole < extent:
            self._write_block(IndexSum(whole, {}), extent - whole, pair)

    def _write_steps(self, extent: int) -> None:
        """One element after the other."""
        scan = self.scan
        identity = self._constant(scan.op.combinator.identity(scan.type.dtype))
        with scan.build.loop(extent, carrying=[identity]) as loop:
            (total,) = loop.carried
            at = IndexSum(0, {loop.index: 1})
            following = self._combined(total, self._load(at))
            self._store(total if scan.op.exclusive else following, at)
            loop.yields(following)

    def _write_blocks(
        self, start: IndexSum, count: int, block: int, pair: Sequence[Value]
    ) -> Sequence[Value]:
        """Whole blocks of `count` elements."""
        with self.scan.build.loop(count, step=block, carrying=pair) as loop:
            at = start.plus(IndexSum(0, {loop.index: 1}))
            loop.yields(*self._write_block(at, block, loop.carried))
        return loop.results

    def _write_block(self, start: IndexSum, count: int, pair: Sequence[Value]) -> Sequence[Value]:
        """Sums of `count` elements; the sum so far, and what rounding has cut off from it."""
        scan, (total, rest) = self.scan, pair
        before = corrected(scan.build, total, rest)
        inner: Value | None = None
        for number in range(count):
            at = start.plus(number)
            value = self._load(at)
            following = value if inner is None else self._combined(inner, value)
            shown = inner if scan.op.exclusive else following
            self._store(before if shown is None else self._combined(before, shown), at)
            inner = following
        assert inner is not None
        total, cut = two_sum(scan.build, total, inner)
        return total, self._combined(rest, cut)

    def _combined(self, x: Value, y: Value) -> Value:
        return joined(self.scan.build, self.scan.op.combinator, x, y)

    @property
    def _type(self) -> TensorType:
        """What is combined."""
        dtype = self.scan.type.dtype
        return TensorType(self._shape, F32 if dtype in (F16, BF16) else dtype)

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.lanes,) if self.lanes > 1 else ()

    def _constant(self, number: object) -> Value:
        return self.scan.build.emit(splat(self._type, number))

    def _indices(self, at: IndexSum) -> tuple[IndexSum, IndexSum, IndexSum]:
        """Those of an element so far along the axis."""
        along = at
        if self.scan.op.reverse:
            along = IndexSum(self.scan.type.shape[1] - 1, {}).plus(at, -1)
        return self.row, along, self.first

    def _load(self, at: IndexSum) -> Value:
        scan = self.scan
        lanes, steps = (self.lanes, (0, 0, 1)) if self.lanes > 1 else (0, ())
        indices = self._indices(at)
        value = scan.build.load(scan.source, *indices, lanes=lanes, steps=steps, active=self.active)
        return self._cast(value, self._type)

    def _store(self, value: Value, at: IndexSum) -> None:
        scan = self.scan
        steps = (0, 0, 1) if self.lanes > 1 else ()
        value = self._cast(value, TensorType(self._shape, scan.type.dtype))
        scan.build.store(value, scan.result, *self._indices(at), steps=steps, active=self.active)

    def _cast(self, value: Value, type: TensorType) -> Value:
        if value.tensor == type:
            return value
        return self.scan.build.emit_typed(DataTypeCast(type.dtype), type, value)
