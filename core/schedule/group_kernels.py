"""Writes a group of nests as one kernel: the loop that they share once, what is inside of it nest after nest.

    loop from 0 upto 31744 by 128 {           blocks of rows, or rows
        %rows = allocateLocal <256 x f32>     what lives inside of the group alone: room for one block
        loop from 0 upto 128 by 16 { … }      a member
        loop from 0 upto 128 by 16 { … }      the next, which finds the block in the cache
    }

1. Where what members make lies is decided first (`group_buffers`).
2. All members begin in front of the loop, with what fills their results.
3. Where blocks are those of sums, neighbours with the same loop over the rows of a block share that, too.

Source: loop fusion without fusing bodies, as Halide's `compute_at`; `nest_writer` writes what is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from itertools import groupby

from ..compute.bodies import base_of
from ..compute.footprint import footprint
from ..errors import InternalError
from ..ir import ALIGNMENT, Block, Builder, Instruction, Value
from ..kernels.access_ops import buffer_of
from ..kernels.build import KernelBuilder
from ..kernels.indices import IndexSum
from ..lazy_dataclass import dataclass
from ..types import TensorType
from .group import GroupedInstruction
from .group_buffers import GroupBuffers, Member
from .nest_levels import NestLevels
from .nest_writer import AxisBlock, NestLoopWriter
from .ops import Loops
from .shared_loops import nanoseconds_of, points_of_block
from .shared_totals import (
    LoopBlocks,
    has_independent_blocks,
    own_totals,
    totals_in_memory,
    totals_of,
    wanted_blocks,
    write_shared,
)
from .switches import is_enabled


def write_group(
    steps: Sequence[GroupedInstruction],
    contracted: AbstractSet[Value],
    far: Mapping[Instruction, Sequence[int]],
    *,
    has_fma: bool,
) -> list[GroupedInstruction]:
    """The steps of a group, from the first member to the last, with a kernel in place of the members."""
    members = [Member(step.instruction, step.loops) for step in steps if step.loops is not None]
    group = GroupBuffers(members, contracted)
    levels = [NestLevels(member.nest, member.loops, has_fma=has_fma) for member in members]
    operands = list(dict.fromkeys(x for one in levels for x in _read_outside(one, group.made)))
    build = KernelBuilder([x.tensor for x in operands], [x.tensor for x in group.results])
    buffers = dict(zip(operands, build.operands, strict=True))
    work = sum(nanoseconds_of(member.nest, member.loops) for member in members)
    GroupWriter(build, group, levels, far, work, buffers).write()
    b = Builder(Block(), members[0].nest.location)
    found = build.kernel(b, *operands, overwriting=tuple(group.overwriting(operands)))
    for value, result in zip(group.results, found, strict=True):
        value.replace_with(result)
    for member in members:
        member.nest.drop_all_references()
    (kernel,) = b.block.instructions
    between = [step for step in steps if step.loops is None]
    made = {*group.made, *found}
    behind = [step for step in between if made & {base_of(x) for x in step.instruction.operands}]
    before = [step for step in between if step not in behind]
    return [*before, GroupedInstruction(kernel, None), *_used(behind)]


def _used(views: Sequence[GroupedInstruction]) -> list[GroupedInstruction]:
    """Those views that anybody still reads."""
    found: list[GroupedInstruction] = []
    for step in reversed(views):
        if any(result.uses for result in step.instruction.results):
            found.insert(0, step)
        else:
            step.instruction.drop_all_references()
    return found


def _read_outside(levels: NestLevels, made: Iterable[Value]) -> Iterator[Value]:
    """The operands of a nest that the group does not make, and that have to be in memory."""
    group = {*made}
    for number, operand in enumerate(levels.instruction.operands):
        is_read = levels.scalars[number] not in levels.literals or number in levels.op.updates
        if is_read and base_of(operand) not in group:
            yield operand


@dataclass
class GroupWriter:
    """Writes the loops of a group."""

    build: KernelBuilder
    group: GroupBuffers
    levels: Sequence[NestLevels]
    far: Mapping[Instruction, Sequence[int]]
    nanoseconds: float
    """About how long all of it runs."""
    buffers: dict[Value, Value]
    """Those of operands and results of all members."""
    windows: dict[Value, int] = field(default_factory=dict[Value, int])
    """Buffers with room for one block, and the elements of a row."""
    grain: int = 0
    """Of the shared loop, in rows; 0 if one thread runs them all."""

    def __post_init__(self) -> None:
        places = dict(zip(self.group.results, self.build.outputs, strict=True))
        for value in self.group.made:
            place = self.group.place(value)
            if place not in self.group.rooms:
                self.buffers[value] = self.build.reshape(places[place], value.tensor)
        for operand in self._read_inside():
            base = base_of(operand)
            if base is not operand and base in self.buffers:
                self.buffers[operand] = self.build.reshape(self.buffers[base], operand.tensor)
        self.writers = [
            NestLoopWriter(self.build, levels, self.buffers, windows=self.windows)
            for levels in self.levels
        ]

    def write(self) -> None:
        """All of the group."""
        is_one = _have_one_loop(self.writers)
        if not is_one and self.group.rooms:
            raise InternalError("a group with room for one block of rows has no loop in common")
        is_shared = is_one and all(has_independent_blocks(levels) for levels in self.levels)
        blocks: LoopBlocks | None = None
        if is_shared and any(own_totals(levels) for levels in self.levels):
            blocks = self._blocks()
        elif is_shared:
            self.grain = points_of_block(self.rows, self.block or 1, self.nanoseconds)
        if not self.grain and blocks is None:
            self._make_rooms()
        for writer in self.writers:
            if blocks is not None:
                writer.in_memory.share(totals_in_memory(writer.levels), blocks.parts)
            writer.begin()
        if not is_one:
            for writer in self.writers:
                writer.write_level(0, [])
        elif blocks is not None:
            self._write_in_blocks(blocks)
        else:
            carried = [writer.enter_level(0, []) for writer in self.writers]
            self._finish(self._write_all(carried))
        for writer in self.writers:
            writer.end()

    def _finish(self, carried: Sequence[Sequence[Value]]) -> None:
        for writer, totals in zip(self.writers, carried, strict=True):
            writer.leave_level(0, totals, 0)

    @property
    def rows(self) -> int:
        """Those that the shared loop is over."""
        op = self.levels[0].op
        return op.extents[op.order[0]]

    @property
    def block(self) -> int:
        """The rows of a block; 0 without blocks."""
        return self.levels[0].blocks[0]

    @property
    def covered(self) -> int:
        """How many rows are in rounds of all members."""
        if not self.block:
            return self.rows
        rounds = [one.round_of(one.levels.position[one.levels.axes[0]]) for one in self.writers]
        return self.rows - self.rows % max(rounds)

    def _blocks(self) -> LoopBlocks | None:
        """The shared loop in blocks of threads, if it is long."""
        wanted = wanted_blocks(self.levels, self.rows, self.nanoseconds)
        return LoopBlocks.of(self.rows, self.covered, self.block or 1, wanted)

    def _write_in_blocks(self, blocks: LoopBlocks) -> None:
        """The shared loop in blocks, each of which has totals of its own."""
        for writer in self.writers:
            writer.write_steps(0)
        totals = [total for writer in self.writers for total in totals_of(writer)]

        def write(part: IndexSum, span: AxisBlock) -> list[Value]:
            self._make_rooms()
            for writer in self.writers:
                writer.in_memory.enter(part)
            carried = self._write_span(span, [writer.starts(0) for writer in self.writers])
            return [value for part in carried for value in part]

        joined = write_shared(self.build, blocks, totals, write)
        flat = [value for parts in joined for value in parts]
        widths = [sum(one.width(x, 0) for x in one.begun[0]) for one in self.writers]
        self._finish(_parts(flat, list(map(range, widths))))

    def _read_inside(self) -> list[Value]:
        """What members read of each other."""
        made = {*self.group.made}
        operands = [x for member in self.group.members for x in member.nest.operands]
        return [x for x in dict.fromkeys(operands) if base_of(x) in made]

    # Loops over rows.

    def _write_rows(
        self,
        writers: Sequence[NestLoopWriter],
        level: int,
        start: IndexSum,
        count: int,
        carried: Sequence[Sequence[Value]],
    ) -> list[list[Value]]:
        """One loop over so many rows, all members in each."""

        def write(at: IndexSum, values: Sequence[Value]) -> list[Value]:
            parts = zip(writers, _parts(values, carried), strict=True)
            return [x for one, part in parts for x in one.write_step(level, at, 1, 1, part)]

        return self._repeat(writers[0], level, start, count, 1, carried, write)

    def _repeat(
        self,
        lead: NestLoopWriter,
        level: int,
        start: IndexSum,
        count: int,
        step: int,
        carried: Sequence[Sequence[Value]],
        body: Callable[[IndexSum, Sequence[Value]], list[Value]],
    ) -> list[list[Value]]:
        """A loop that carries what all members do."""
        lead.grain = self.grain
        flat = [value for part in carried for value in part]
        return _parts(lead.repeat(level, start, count, step, flat, body), carried)

    # Loops over blocks of rows.

    def _write_all(self, carried: Sequence[Sequence[Value]]) -> Sequence[Sequence[Value]]:
        """All rows.  Those that no round covers are a block of their own for sums, part of the last one for others."""
        end = self.covered if _sums_by_block(self.levels[0].op) else self.rows
        carried = self._write_span(AxisBlock(IndexSum(0, {}), end), carried)
        return self._write_span(AxisBlock(None, end), carried) if end < self.rows else carried

    def _write_span(
        self, span: AxisBlock, carried: Sequence[Sequence[Value]]
    ) -> Sequence[Sequence[Value]]:
        """Some of the rows, block by block where there are blocks."""
        if span.start is None:
            return self._write_block(span, IndexSum(span.length, {}), carried)
        if not self.block:
            return self._write_rows(self.writers, 0, span.start, span.length, carried)
        block, whole = self.block, span.length - span.length % self.block

        def write(at: IndexSum, values: Sequence[Value]) -> list[Value]:
            if self.grain:
                self._make_rooms()
            self._fetch_ahead(at, block)
            found = self._write_block(AxisBlock(at, block), at, _parts(values, carried))
            return [value for part in found for value in part]

        if whole:
            carried = self._repeat(self.writers[0], 0, span.start, whole, block, carried, write)
        if whole < span.length:
            if self.grain:
                self._make_rooms()
            start = span.start.plus(whole)
            carried = self._write_block(AxisBlock(start, span.length - whole), start, carried)
        return carried

    def _write_block(
        self, span: AxisBlock, first_row: IndexSum, carried: Sequence[Sequence[Value]]
    ) -> list[list[Value]]:
        """One block: neighbours that sum over it in the same loop share that as well."""
        found: list[list[Value]] = []
        pairs = zip(self.writers, carried, strict=True)
        for can_share, run in groupby(pairs, key=lambda pair: _has_rows(pair[0])):
            members = list(run)
            for batch in [members] if can_share else [[member] for member in members]:
                entered: list[list[Value]] = []
                for writer, totals in batch:
                    writer.first_row = first_row
                    entered.append(writer.enter_block(0, span, totals))
                writers = [writer for writer, _ in batch]
                inner = self._write_inside(writers, span, entered)
                for (writer, totals), values in zip(batch, inner, strict=True):
                    found.append(writer.leave_block(0, totals, values))
                    writer.spans.clear()
        return found

    def _write_inside(
        self, writers: Sequence[NestLoopWriter], span: AxisBlock, totals: Sequence[list[Value]]
    ) -> list[list[Value]]:
        """The inside of a block."""
        if len(writers) == 1:
            return [writers[0].write_level(1, totals[0])]
        op = writers[0].levels.op
        start = IndexSum(span.length, {}) if span.start is None else span.start
        count = op.extents[op.order[0]] - span.length if span.start is None else span.length
        carried = [one.enter_level(1, part) for one, part in zip(writers, totals, strict=True)]
        after = self._write_rows(writers, 1, start, count, carried)
        return [
            one.leave_level(1, values, len(part))
            for one, values, part in zip(writers, after, totals, strict=True)
        ]

    # Blocks of rows in memory.

    def _make_rooms(self) -> None:
        """Buffers with room for one block, of the thread that comes by."""
        made: dict[int, Value] = {}
        for value, (number, type) in self.group.rooms.items():
            if number not in made:
                made[number] = self.build.local(type)
            self.buffers[value] = made[number]
            self.windows[made[number]] = self.group.elements_of_row(value)
        for operand in self._read_inside():
            if base_of(operand) in self.group.rooms:
                self.buffers[operand] = self.buffers[base_of(operand)]

    def _fetch_ahead(self, start: IndexSum, block: int) -> None:
        """Fetch the rows of far outputs that the next block writes."""
        if not is_enabled("prefetch"):
            return
        for writer in self.writers:
            op = writer.levels.op
            for number in self.far.get(writer.levels.instruction, ()):
                buffer, written = writer.result(number), op.outputs[number]
                rows = footprint(written.type.shape, written, op.extents, op.order[0])
                assert rows is not None and rows.row is not None
                tensor = buffer_of("prefetchAt", buffer.type)
                flat = self.build.reshape(buffer, TensorType((tensor.size,), tensor.dtype))
                line = ALIGNMENT // tensor.dtype.bytes
                with self.build.loop(rows.stride * block, step=line) as loop:
                    first = IndexSum(rows.row * rows.stride, {loop.index: 1})
                    self.build.prefetch(flat, first.plus(start.plus(block), rows.stride))


def _parts(values: Sequence[Value], like: Sequence[Sequence[object]]) -> list[list[Value]]:
    """What each member carries, of what all of them do."""
    rest = iter(values)
    return [[next(rest) for _ in part] for part in like]


def _sums_by_block(op: Loops) -> bool:
    """Whether blocks are those of sums; where rows are computed block by block, each nest has its own loop."""
    return op.compensated or sum(map(bool, op.blocks)) > 1


def _has_rows(writer: NestLoopWriter) -> bool:
    """Whether the next loop is over the rows of a block of sums, one by one."""
    levels = writer.levels
    is_inner = len(levels.axes) > 1 and levels.axes[1] == levels.axes[0] and not levels.blocks[1]
    return is_inner and _sums_by_block(levels.op) and writer.round_of(1) == 1


def _have_one_loop(writers: Sequence[NestLoopWriter]) -> bool:
    """Whether the outermost loops are the same: over all rows one by one, or over blocks of as many."""
    if any(not one.levels.axes or one.levels.axes[0] != one.levels.op.order[0] for one in writers):
        return False
    shapes = {(one.levels.op.extents[one.levels.axes[0]], one.levels.blocks[0]) for one in writers}
    return len(shapes) == 1 and all(one.levels.blocks[0] or one.round_of(0) == 1 for one in writers)
