"""Writes a nest whose loops are decided as explicit loops: what `Loops` says by numbers, as the body of a kernel.

    loops 1000 of %x, %b reading (d0), () … order 0 vector 0 by 16
    %b0 = loadAt %b at ()                                 level 0, outside of all loops
    %b1 = broadcast %b0 to <16 x f32>
    loop from 0 upto 992 by 16 { … }                      level 1: whole vectors
    … lanes 8 steps 1 …                                   and the rest, as narrow as can be

1. Every scalar of the body stands at the level of the deepest loop that it depends on.
2. What is the same along the vector axis is a scalar, and is copied to the lanes once, where it is made.
3. A result that joins what inner loops give is carried by them, in all lanes if the vector loop is one of them, and in
   several *accumulators* by the innermost one.
4. A loop that is cut is several, one after the other; in each, comparisons of coordinates that are the same in all of
   it are known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field

from ..compute.contracted import needs_fill
from ..ir import Value
from ..kernels.buffer_sums import AxisSpan
from ..kernels.indices import IndexSum
from ..kernels.ops import Fma
from ..kernels.pairs import add_compensated, corrected
from ..lazy_dataclass import dataclass
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.literal import Literal, splat
from ..ops.nest import Output
from ..types import scalar
from .combining import added_as, identity_of, type_of
from .cuts import is_short, parts_of
from .nest_body import NestBodyWriter
from .nest_levels import WrittenResult


@dataclass(frozen=True, slots=True)
class AxisBlock:
    """A block of an axis: so many points from `start` on; or, without it, all those from `length` on, in no round.

    A block that begins at a constant may have points that are in no round.
    """

    start: IndexSum | None
    length: int


@dataclass
class NestLoopWriter(NestBodyWriter):
    """Writes the loops of a nest."""

    grain: int = 0
    """Of the outermost loop, in points."""
    spans: dict[int, AxisBlock] = field(default_factory=dict[int, "AxisBlock"])
    """Where the loops over blocks are, by their axis."""
    is_short: bool = False
    """Whether a part of a cut axis is being written that is short: the loops inside of it are not cut."""

    def write(self) -> None:
        """All of the nest."""
        self.begin()
        if 0 not in self.levels.op.extents:
            self.write_level(0, [])
        self.end()

    def begin(self) -> None:
        """What stands before the loops: results that begin with an operand, or with one number."""
        levels, op = self.levels, self.levels.op
        for number, written in enumerate(op.own_outputs):
            dtype = written.type.dtype
            if written.init is not None:
                source = self.buffers[levels.instruction.operands[written.init]]
                if source is not self.result(number):
                    self.build.copy(source, self.result(number))
                if number in self.excesses:
                    self.build.fill(self.excesses[number], self.build.constant(dtype, 0))
            elif needs_fill(number, written, op) and number not in self.in_memory.shared:
                nothing = identity_of(written.combinator, dtype)
                self.build.fill(self.result(number), self.build.constant(dtype, nothing))
        self.in_memory.begin()
        for value, literal in levels.literals.items():
            if value in levels.uses and 0 not in op.extents:
                type = scalar(literal.type.dtype)
                self.values[value] = self.emit(Literal(type, literal.data), type)

    def end(self) -> None:
        """What stands behind the loops: the results of totals in memory."""
        self.in_memory.end()

    def _fold_memory_sums(self, level: int) -> None:
        """Add what a block of the loop at a level came to, where that is added up in memory by itself.

        Elements that other iterations of the loops around are for are not touched: threads may share these.
        """
        outputs = self.levels.op.outputs
        self.in_memory.fold(lambda number: self._elements_inside(outputs[number], level))

    def _elements_inside(self, written: Output, level: int) -> list[AxisSpan]:
        """The elements that the loops from a level on write, where those around it are: an index is of one axis."""
        axes = written.kept_axes
        assert axes is not None
        box: list[AxisSpan] = []
        for axis, extent in zip(axes, written.type.shape, strict=True):
            if self.levels.position.get(axis, -1) >= level:
                box.append(self._points_of_block(axis, extent))
            else:
                is_vector = axis == self.levels.op.vector
                box.append(AxisSpan(self.at[axis], self.active if is_vector else 1))
        return box

    def _points_of_block(self, axis: int, extent: int) -> AxisSpan:
        """Those of an axis, or of the block of it that the loops are at."""
        span = self.spans.get(axis)
        if span is None:
            return AxisSpan(IndexSum(0, {}), extent)
        if span.start is None:
            return AxisSpan(IndexSum(span.length, {}), extent - span.length)
        return AxisSpan(span.start, span.length)

    # Loops.

    def write_level(self, level: int, totals: Sequence[Value]) -> list[Value]:
        """Everything inside of `level` loops; the carried totals afterwards."""
        if level == self.levels.depth:
            self.write_steps(level)
            return self._accumulated(totals)
        carried = self.enter_level(level, totals)
        return self.leave_level(level, self.write_loops(level, carried), len(totals))

    def enter_level(self, level: int, totals: Sequence[Value]) -> list[Value]:
        """What stands around the loop at a level; what it carries, with the totals that begin there."""
        self.write_steps(level)
        return [*totals, *self.starts(level)]

    def starts(self, level: int) -> list[Value]:
        """The totals of nothing of the reductions that begin at a level."""
        return [self._start(t) for t in self.begun[level] for _ in range(self.width(t, level))]

    def leave_level(self, level: int, carried: Sequence[Value], count: int) -> list[Value]:
        """Store the totals that began at a level; the first `count`, which began outside."""
        found = iter(carried[count:])
        for target in self.begun[level]:
            self._finish(target, [next(found) for _ in range(self.width(target, level))])
        return list(carried[:count])

    def write_loops(self, level: int, carried: list[Value]) -> list[Value]:
        op, axis = self.levels.op, self.levels.axes[level]
        extent, cuts = op.extents[axis], self.levels.cuts_of(axis)
        if self.levels.blocks[level]:
            return self._write_blocks(level, carried)
        if axis in self.spans:
            return self._write_span(level, self.spans[axis], carried)
        if not cuts or self.is_short:
            return self._write_part(level, 0, extent, carried)
        for first, count in parts_of(extent, cuts):
            with self._within(axis, first, count):
                carried = self._write_part(level, first, count, carried)
        return carried

    @contextmanager
    def _within(self, axis: int, first: int, count: int) -> Generator[None]:
        """Inside of a part of the loop over an axis."""
        whole = self.ranges[axis]
        self.ranges[axis] = first, first + count - 1
        self.is_short = is_short(count, self.levels.op.extents[axis])
        yield
        self.ranges[axis] = whole
        self.is_short = False

    def _write_part(self, level: int, first: int, count: int, carried: list[Value]) -> list[Value]:
        """Rounds of several copies, what is left of them, and a part of a vector."""
        rounds = self.in_rounds(level, count)
        if rounds:
            copies = self._copies(level)
            carried = self._write_rounds(level, IndexSum(first, {}), rounds, copies, carried)
        return self._write_rest(level, first, rounds, count, carried)

    def _write_rest(
        self, level: int, first: int, rounds: int, count: int, carried: list[Value]
    ) -> list[Value]:
        lanes = self._step(level)
        whole = count - count % lanes
        if whole > rounds:
            at = IndexSum(first + rounds, {})
            carried = self._write_rounds(level, at, whole - rounds, 1, carried)
        if whole < count:
            at = IndexSum(first + whole, {})
            wide = lanes if self._reduces_lanes else 1 << (count - whole - 1).bit_length()
            carried = self.write_step(level, at, wide, count - whole, carried)
        return carried

    def round_of(self, level: int) -> int:
        """The points of a round of the loop at a level."""
        return self._step(level) * self._copies(level)

    def _step(self, level: int) -> int:
        return self.levels.op.lanes if level == self.levels.vector else 1

    def _copies(self, level: int) -> int:
        """Accumulators, which the innermost loop has."""
        is_innermost = level == self.levels.depth - 1 and any(self.begun)
        return self.levels.op.accumulators if is_innermost else 1

    def in_rounds(self, level: int, count: int) -> int:
        """How many of so many points whole rounds cover."""
        return count - count % self.round_of(level)

    def _write_rounds(
        self, level: int, start: IndexSum, count: int, copies: int, carried: list[Value]
    ) -> list[Value]:
        """So many points in rounds of several steps, each with its own totals, which are joined pairwise at the end."""
        lanes, width, targets = self._step(level), len(carried), self._carried(level)
        totals = [*carried, *[self._start(t) for _ in range(copies - 1) for t in targets]]

        def write_round(at: IndexSum, totals: Sequence[Value]) -> list[Value]:
            found: list[Value] = []
            for copy in range(copies):
                part = totals[copy * width : (copy + 1) * width]
                found += self.write_step(level, at.plus(copy * lanes), lanes, lanes, part)
            return found

        totals = self.repeat(level, start, count, lanes * copies, totals, write_round)
        parts = [totals[k * width : (k + 1) * width] for k in range(copies)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [self._joined(targets, x, y) for x, y in pairs] + odd
        return parts[0]

    def repeat(
        self,
        level: int,
        start: IndexSum,
        count: int,
        step: int,
        totals: list[Value],
        body: Callable[[IndexSum, Sequence[Value]], list[Value]],
    ) -> list[Value]:
        """A loop from `start` over so many points; none if it has one iteration."""
        if count == step:
            return body(start, totals)
        first = 0 if start.terms else start.constant
        grain = self.grain // step if level == 0 and not totals else 0
        with self.build.loop(
            first + count, lower=first, step=step, grain=grain, carrying=totals
        ) as loop:
            at = IndexSum(0, {loop.index: 1})
            loop.yields(*body(start.plus(at) if start.terms else at, loop.carried))
        return list(loop.results)

    def write_step(
        self, level: int, at: IndexSum, lanes: int, active: int, totals: Sequence[Value]
    ) -> list[Value]:
        outer = self.lanes, self.active
        self.at[self.levels.axes[level]] = at
        if level == self.levels.vector:
            self.lanes, self.active = lanes, active
        found = self.write_level(level + 1, totals)
        self.lanes, self.active = outer
        return found

    # Blocks.

    def _write_blocks(self, level: int, carried: list[Value]) -> list[Value]:
        """Block by block; what no round covers is a block of its own.  They may be those of a larger block."""
        levels = self.levels
        axis, block = levels.axes[level], levels.blocks[level]
        outer = self.spans.get(axis)
        if outer is not None and outer.start is None:
            return self._write_block(level, outer, carried)
        extent = levels.op.extents[axis]
        count = self.in_rounds(levels.position[axis], extent)
        start, length = (IndexSum(0, {}), count) if outer is None else (outer.start, outer.length)
        assert start is not None
        whole = length - length % block

        def write(at: IndexSum, totals: Sequence[Value]) -> list[Value]:
            return self._write_block(level, AxisBlock(at, block), totals)

        if whole:
            carried = self.repeat(level, start, whole, block, carried, write)
        if whole < length:
            carried = self._write_block(
                level, AxisBlock(start.plus(whole), length - whole), carried
            )
        if outer is None and count < extent:
            carried = self._write_block(level, AxisBlock(None, count), carried)
        return carried

    def _write_block(self, level: int, span: AxisBlock, totals: Sequence[Value]) -> list[Value]:
        """The totals with what a block comes to."""
        axis, outer = self.levels.axes[level], self.spans.get(self.levels.axes[level])
        inner = self.write_level(level + 1, self.enter_block(level, span, totals))
        found = self.leave_block(level, totals, inner)
        if outer is None:
            del self.spans[axis]
        else:
            self.spans[axis] = outer
        return found

    def enter_block(self, level: int, span: AxisBlock, totals: Sequence[Value]) -> list[Value]:
        """Go to a block of the loop at a level; the totals to begin it with."""
        self.spans[self.levels.axes[level]] = span
        if level not in self.levels.afresh:
            return list(totals)
        return [self._start(target) for target in self._carried(level)]

    def leave_block(
        self, level: int, totals: Sequence[Value], inner: Sequence[Value]
    ) -> list[Value]:
        """The totals with what a block came to, `inner`."""
        if level not in self.levels.afresh:
            return list(inner)
        self._fold_memory_sums(level)
        found: list[Value] = []
        before = iter(totals)
        for target, value in zip(self._carried(level), inner, strict=True):
            if self.width(target, level) == 2:
                found += add_compensated(self.build, next(before), next(before), value)
            else:
                found += self._joined([target], [next(before)], [value])
        return found

    def _write_span(self, level: int, span: AxisBlock, carried: list[Value]) -> list[Value]:
        """The points of a block, or those that no block has."""
        extent = self.levels.op.extents[self.levels.axes[level]]
        if span.start is None:
            return self._write_rest(level, 0, span.length, extent, carried)
        if self.in_rounds(level, span.length) < span.length:
            return self._write_part(level, span.start.constant, span.length, carried)
        return self._write_rounds(level, span.start, span.length, self._copies(level), carried)

    # Reductions.

    def width(self, target: WrittenResult, level: int) -> int:
        """Of how many numbers a total is while the loop at a level carries it."""
        return 2 if target.is_pair and level <= self.levels.afresh[0] else 1

    def _carried(self, level: int) -> list[WrittenResult]:
        return [target for inner in range(level + 1) for target in self.begun[inner]]

    def _combinator(self, target: WrittenResult) -> Combinator:
        combinator = self.levels.op.outputs[target.number].combinator
        assert combinator is not None
        return combinator

    def _start(self, target: WrittenResult) -> Value:
        """The total of nothing."""
        lanes = self.lanes if target.varies else 1
        if target.inside:
            lanes = self.levels.op.lanes
        dtype = target.value.tensor.dtype
        number = identity_of(self._combinator(target), dtype)
        return self.build.emit(splat(type_of(added_as(dtype), lanes), number))

    def _joined(
        self, targets: Sequence[WrittenResult], totals: Sequence[Value], others: Sequence[Value]
    ) -> list[Value]:
        return [
            self.combined(self._combinator(target), x, y)
            for target, x, y in zip(targets, totals, others, strict=True)
        ]

    def _accumulated(self, totals: Sequence[Value]) -> list[Value]:
        """The totals with what this point gives; lanes that are no points keep what they had."""
        found: list[Value] = []
        for target, total in zip(self._carried(self.levels.depth - 1), totals, strict=True):
            lanes = total.tensor.size
            if target.factors is not None:
                x, y = [self._value(factor, lanes) for factor in target.factors]
                joined = self.emit(Fma(), total.tensor, x, y, total)
            else:
                value = self.cast(self._value(target.value, lanes), total.tensor.dtype)
                joined = self.combined(self._combinator(target), total, value)
            if target.inside and self.active < self.lanes:
                chosen = self.emit_active(lanes)
                joined = self.emit(Select(), total.tensor, joined, total, chosen)
            found.append(joined)
        return found

    def _finish(self, target: WrittenResult, parts: Sequence[Value]) -> None:
        """Store what a reduction came to."""
        if target.inside:
            parts = [self.reduced(self._combinator(target), part) for part in parts]
        total = corrected(self.build, *parts) if len(parts) == 2 else parts[0]
        self.store(target, self.cast(total, target.value.tensor.dtype))
