"""Totals of a loop that threads share: each block of it stores what it came to, and a loop behind joins these.

    using <65 x 16 x f32>                                       a row for each block
    loop from 0 upto 64 by 1 parallel 1 { …  storeAt %sum … }
    …                                                           what is left, a block of the thread that calls
    loop from 1 upto 65 by 1 carrying … { loadAt …  add … }     joined in the order of blocks

Totals that are kept in memory (`memory_totals`) have a row for each block as well.

Totals begin afresh in each block, and sums are joined with compensation.  So the order of a sum depends on its length
alone, not on threads, and its error does not grow with the number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from ..ir import Value
from ..kernels.access_ops import buffer_of
from ..kernels.build import AnyIndex, KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.pairs import add_compensated, corrected
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.combinator import Combinator
from ..ops.literal import splat
from ..ops.nest import Bounds
from ..types import TensorType
from .combining import joined
from .nest_levels import NestLevels
from .nest_writer import AxisBlock, NestLoopWriter
from .ops import compensated_outputs, is_float_sum
from .shared_loops import blocks_of_work, is_parallel

_STORED: Final = 4
"""Blocks of a sum that each store what they came to, for one that is wanted: such a one takes 1 µs or more, and joining
what it came to 13 ns."""

LEAST_ROWS: Final = 128
"""Rows of a part that has totals in memory: setting these to zero and joining them takes what two rows take."""


@dataclass(frozen=True)
class LoopBlocks:
    """A loop of `extent` points, the first `rounds` of which are done in rounds: blocks of `length` points of these.

    What they leave is run by the thread that calls, at the end.
    """

    extent: int
    rounds: int
    count: int
    length: int
    grain: int = 1
    """How many of them a thread takes at a time."""

    @classmethod
    def of_sums(cls, extent: int, rounds: int, unit: int, wanted: int) -> LoopBlocks | None:
        """The blocks of a sum, which are whole units, or some of them together; None if there is but one."""
        units = rounds // unit
        if min(wanted, units) < 2:
            return None
        least = -(-units // (_STORED * wanted))
        together = min(range(least, 2 * least), key=lambda together: units % together)
        count = units // together
        return cls(extent, rounds, count, together * unit, -(-count // wanted))

    @classmethod
    def of(cls, extent: int, rounds: int, unit: int, wanted: int) -> LoopBlocks | None:
        """Blocks of whole units, at most as many as are wanted, that leave little; None if there is but one."""
        units = rounds // unit
        most = min(wanted, units)
        if most < 2:
            return None
        count = min(range(most, most // 2, -1), key=lambda count: units % count)
        return cls(extent, rounds, count, units // count * unit) if count > 1 else None

    @property
    def parts(self) -> int:
        """How many there are, with what they leave."""
        return self.count + sum(1 for _ in self.rest)

    @property
    def rest(self) -> Iterator[AxisBlock]:
        """What the blocks leave: other rounds, and what is in none."""
        done = self.count * self.length
        if done < self.rounds:
            yield AxisBlock(IndexSum(done, {}), self.rounds - done)
        if self.rounds < self.extent:
            yield AxisBlock(None, self.rounds)


def has_independent_blocks(levels: NestLevels) -> bool:
    """Whether blocks of the outermost loop may run at the same time, each with totals of its own."""
    return bool(levels.axes) and is_parallel(levels.op, levels.axes[0], own_totals(levels))


def carries_own_totals(levels: NestLevels) -> bool:
    """The same of a loop that carries totals, or joins them in memory."""
    return bool(own_totals(levels)) and has_independent_blocks(levels)


def own_totals(levels: NestLevels) -> set[int]:
    """The results that the outermost loop carries, or joins in memory."""
    carried = {target.number for target in levels.targets if target.begins == 0}
    return carried.union(totals_in_memory(levels))


def totals_in_memory(levels: NestLevels) -> list[int]:
    """The results that the outermost loop joins in memory, and that parts of it may each have to themselves.

    Those of rounded sums without compensation are not among them, as more parts would round differently.
    """
    op = levels.op
    if not levels.axes:
        return []
    outer, compensated = levels.axes[0], compensated_outputs(op)
    within = {written.within for written in op.outputs}
    return [
        target.number
        for target in levels.targets
        if target.joins and target.begins != 0 and not target.is_scattered
        for written in (op.outputs[target.number],)
        if written.bounds is Bounds.INSIDE
        and written.init is written.within is None
        and target.number not in within
        and written.kept_axes is not None
        and outer not in written.kept_axes
        and (target.number in compensated or not is_float_sum(written))
    ]


def wanted_blocks(nests: Sequence[NestLevels], extent: int, nanoseconds: float) -> int:
    """Into how many blocks a loop over so many points is divided at most, if nests in it take so long together."""
    wanted = blocks_of_work(nanoseconds)
    return min(wanted, extent // LEAST_ROWS) if any(map(totals_in_memory, nests)) else wanted


def blocks_of(writer: NestLoopWriter, nanoseconds: float) -> LoopBlocks | None:
    """The blocks of the outermost loop of a nest that takes so long; one that reduces nothing has none."""
    levels = writer.levels
    if not levels.axes or 0 in levels.op.extents:
        return None
    axis = levels.axes[0]
    extent, level = levels.op.extents[axis], levels.position[axis]
    rounds = writer.in_rounds(level, extent)
    wanted = wanted_blocks([levels], extent, nanoseconds)
    if 0 in levels.afresh and not totals_in_memory(levels):
        return LoopBlocks.of_sums(extent, rounds, levels.blocks[0], wanted)
    return LoopBlocks.of(extent, rounds, levels.blocks[0] or writer.round_of(level), wanted)


def write_in_blocks(writer: NestLoopWriter, blocks: LoopBlocks) -> None:
    """Write a nest, the outermost loop in blocks that threads share."""
    levels = writer.levels
    writer.in_memory.share(totals_in_memory(levels), blocks.parts)
    writer.begin()
    writer.write_steps(0)
    totals = totals_of(writer)
    is_block = 0 in levels.afresh and blocks.length == levels.blocks[0]
    is_one = is_block and not writer.in_memory.shared
    if is_one:  # of the sum: nothing has been cut off yet
        totals = [replace(total, stored=1) for total in totals]

    def write(part: IndexSum, block: AxisBlock) -> list[Value]:
        writer.in_memory.enter(part)
        writer.spans[levels.axes[0]] = block
        if is_one:
            found = writer.write_level(1, writer.enter_block(0, block, []))
        else:
            found = writer.write_loops(0, writer.starts(0))
        del writer.spans[levels.axes[0]]
        return found

    joined = write_shared(writer.build, blocks, totals, write)
    writer.leave_level(0, [part for parts in joined for part in parts], 0)
    writer.end()


def totals_of(writer: NestLoopWriter) -> list[CarriedTotal]:
    """What the outermost loop of a nest carries."""
    outputs = [(target, writer.levels.op.outputs[target.number]) for target in writer.begun[0]]
    return [
        CarriedTotal(written.combinator, is_float_sum(written), width, stored=width)
        for target, written in outputs
        if written.combinator is not None
        for width in (writer.width(target, 0),)
    ]


def write_shared(
    build: KernelBuilder,
    blocks: LoopBlocks,
    totals: Sequence[CarriedTotal],
    write: Callable[[IndexSum, AxisBlock], Sequence[Value]],
) -> list[list[Value]]:
    """Append a parallel loop over blocks, and what joins them; `write` appends one, and gives what it carries."""
    shared = _BlockTotals(build, blocks.parts, totals)
    with build.loop(blocks.count, grain=blocks.grain) as loop:
        part, start = (IndexSum(0, {loop.index: times}) for times in (1, blocks.length))
        shared.store(loop.index, write(part, AxisBlock(start, blocks.length)))
    for number, block in enumerate(blocks.rest, blocks.count):
        shared.store(number, write(IndexSum(number, {}), block))
    return shared.join() if totals else []


@dataclass(frozen=True)
class CarriedTotal:
    """A total that a loop carries: one number or vector, or two, the second of which is what rounding has cut off."""

    combinator: Combinator
    is_sum: bool
    """Whether joining rounds."""
    width: int
    stored: int
    """How many of them a block stores."""


@dataclass
class _BlockTotals:
    """What so many blocks come to; all totals of a block are stored one after the other."""

    build: KernelBuilder
    blocks: int
    totals: Sequence[CarriedTotal]
    buffers: list[Value] = field(default_factory=list[Value])
    """One for each number that a block stores."""

    def store(self, block: AnyIndex, values: Sequence[Value]) -> None:
        """Append that a block came to these."""
        if not self.buffers:
            for value in values:
                type = value.tensor
                row = TensorType((self.blocks, *type.shape), type.dtype)
                self.buffers.append(self.build.scratch(row))
        for value, buffer in zip(values, self.buffers, strict=True):
            if value.tensor.rank:
                self.build.store(value, buffer, block, 0, steps=(0, 1))
            else:
                self.build.store(value, buffer, block)

    def join(self) -> list[list[Value]]:
        """Append the loop that joins all blocks; what each total is."""
        before = self._loaded(0)
        carried = [value for parts in before for value in parts]
        with self.build.loop(self.blocks, lower=1, carrying=carried) as loop:
            given = iter(loop.carried)
            after: list[Value] = []
            for total, parts in zip(self.totals, self._loaded(loop.index), strict=True):
                after += self._joined(total, [next(given) for _ in parts], parts)
            loop.yields(*after)
        results = iter(loop.results)
        found: list[list[Value]] = []
        for total, parts in zip(self.totals, before, strict=True):
            joined = [next(results) for _ in parts]
            is_one = total.width < len(joined)
            found.append([corrected(self.build, *joined)] if is_one else joined)
        return found

    def _loaded(self, block: AnyIndex) -> list[list[Value]]:
        """The totals of a block, with a second number for sums."""
        buffers = iter(self.buffers)
        found: list[list[Value]] = []
        for total in self.totals:
            parts = [self._load(next(buffers), block) for _ in range(total.stored)]
            if total.is_sum and total.stored == 1:
                parts.append(self.build.emit(splat(parts[0].tensor, 0)))
            found.append(parts)
        return found

    def _load(self, buffer: Value, block: AnyIndex) -> Value:
        shape = buffer_of("loadAt", buffer.type).shape
        if len(shape) == 1:
            return self.build.load(buffer, block)
        return self.build.load(buffer, block, 0, lanes=shape[1], steps=(0, 1))

    def _joined(
        self, total: CarriedTotal, before: Sequence[Value], parts: Sequence[Value]
    ) -> list[Value]:
        """A total with what a further block came to."""
        if not total.is_sum:
            return [joined(self.build, total.combinator, *before, *parts)]
        found, rest = add_compensated(self.build, before[0], before[1], parts[0])
        return [found, self.build.emit(Add(), rest, parts[1])]
