"""Emits one planned nest as loops; several are in `nest_groups`.

Outside of all loops the results that need it are filled.  Each level runs its steps, starts the
reductions that begin there, writes the loop inside, and stores what the reductions came to.

In the innermost loop over blocks, and those around it over the same axis, totals start afresh in each block, and join
what the blocks before came to.  From the outermost of them on outwards, a compensated sum is a pair of registers: the
sum, and what rounding has cut off from it.  Sums that
are accumulated in memory have the second of the two in memory as well; the two are added at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.compute.bodies import base_of
from ...core.compute.contracted import bytes_of_row
from ...core.compute.footprint import footprint
from ...core.ir.instruction import Instruction
from ...core.ir.placement import ALIGNMENT, Place
from ...core.lazy_dataclass import dataclass
from ...core.ops.literal import splat
from ...core.schedule.arena import aligned
from ...core.schedule.nest_accesses import identity_of
from ...core.schedule.nest_kernels import selects_by_place
from ...core.schedule.ops import Loops, is_folded, row_block
from ...core.types import TensorType, scalar
from .checks import Checks
from .element_access import element_address, offset_bytes, opaque_address
from .elements import add_compensated, combine, corrected, identity, reduce_lanes
from .fill import write_copy, write_corrected, write_fill, write_folded, write_zeros
from .indices import add_constant, multiply_constant
from .loops import BlockRange, LoopBody, LoopStep, write_blocks, write_loop
from .nest_plan import NestPlan, plan_nest
from .point import PointWriter
from .steps import LoopShape, OutputPlan
from .writer import I8, I64, FunctionWriter, Register, constant


@dataclass(frozen=True, slots=True)
class NestLoopBody(LoopBody):
    """The inside of loop `level` of one nest."""

    writer: NestWriter
    level: int

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        return self.writer.write_step(self.level, step, totals)

    def start(self) -> list[Register]:
        return self.writer.start_all(self.level)

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        return self.writer.join(self.level, totals, others)


@dataclass(frozen=True, slots=True)
class Window:
    """A buffer with room for one block of rows: the number of its address, where it is, and the bytes of a row."""

    number: int
    place: Place
    row_bytes: int


class NestWriter:
    """Writes one nest."""

    def __init__(
        self,
        w: FunctionWriter,
        instruction: Instruction[Loops],
        bases: Sequence[Register],
        checks: Checks,
        plan: NestPlan | None = None,
    ) -> None:
        self.w = w
        self.checks = checks
        self.instruction = instruction
        self.op = instruction.op
        self.given = bases
        self.bases = bases = _with_opaque_addresses(w, instruction, bases)
        self.plan = plan_nest(instruction, checks.sites) if plan is None else plan
        self.point = PointWriter(w, self.plan, bases, checks)
        self.windows = _windows(instruction)
        self.spans: dict[int, BlockRange] = {}
        """The block that the loops have reached, by its axis."""

    @property
    def outermost(self) -> LoopShape | None:
        """The loop over the outermost axis; None when there is none, or that axis has one point."""
        plan = self.plan
        return plan.loops[0] if plan.axes and plan.axes[0] == self.op.order[0] else None

    def shape_at(self, level: int) -> LoopShape | None:
        """The loop at `level` if it goes through the blocks of the loop around it."""
        axes = self.plan.axes
        if axes[level] != axes[level - 1] or not self._sums_by_block:
            return None
        return self.plan.loops[level]

    @property
    def _sums_by_block(self) -> bool:
        """Whether blocks are those of sums; where rows are computed block by block, each nest has its own loop."""
        return self.op.compensated or sum(map(bool, self.op.blocks)) > 1

    def span_at(self, level: int) -> BlockRange | None:
        """The block that the loop at `level` goes through; None if it has none."""
        return self.spans.get(self.plan.axes[level])

    # Levels.

    def begin(self) -> None:
        """Fill the results that need it, those that begin with an operand unless they lie there."""
        op = self.op
        first = len(op.accesses)
        for number in self.plan.filled:
            written, target = op.outputs[number], self.bases[first + number]
            if written.init is None:
                dtype = written.type.dtype
                nothing = splat(scalar(dtype), identity_of(written.combinator, dtype))
                write_fill(self.w, target, written.type, nothing)
            else:
                # the same texts say that it lies there, and opaque addresses have texts of their own
                given = self.given[written.init], self.given[first + number]
                write_copy(self.w, *given, written.type)
        for number, correction in self._corrections():
            times = 2 if self._is_folded else 1
            write_zeros(self.w, correction, times * aligned(op.outputs[number].type.bytes))

    def end(self) -> None:
        """Add what rounding cut off to results that were accumulated in memory."""
        op = self.op
        for number, correction in self._corrections():
            base, type = self.bases[len(op.accesses) + number], op.outputs[number].type
            total, rest = self._pair(base, correction, type)
            write_corrected(self.w, base, total, rest, type)

    @property
    def _is_folded(self) -> bool:
        return is_folded(self.op.order, self.op.blocks)

    def _pair(
        self, base: Register, correction: Register, type: TensorType
    ) -> tuple[Register, Register]:
        """Where a sum in memory and what rounding cut off from it are."""
        if self._is_folded:
            return correction, offset_bytes(self.w, correction, aligned(type.bytes))
        return base, correction

    def _corrections(self) -> list[tuple[int, Register]]:
        """The sums over rows, and where their corrections are."""
        first = len(self.op.accesses) + len(self.op.outputs)
        return list(zip(self.plan.corrected, self.bases[first:], strict=True))

    def write_level(self, level: int, totals: Sequence[Register]) -> list[Register]:
        """Everything inside of `level` loops; the carried totals afterwards."""
        if level == len(self.plan.axes):
            self.run_steps(level)
            return self._accumulate(totals)
        carried = self.carry(level, totals)
        self.finish(level, carried[len(totals) :])
        return carried[: len(totals)]

    def carry(self, level: int, totals: Sequence[Register]) -> list[Register]:
        """The loop at `level`, or the span of it that this is at; the totals, with those that begin here."""
        if self.plan.loops[level].block:
            return self._carry_blocks(level, totals)
        self.run_steps(level)
        carried = [*totals, *self.start_at(level)]
        shape, span = self.plan.loops[level], self.span_at(level)
        return write_loop(self.w, shape, NestLoopBody(self, level), carried, span)

    def _carry_blocks(self, level: int, totals: Sequence[Register]) -> list[Register]:
        self.run_steps(level)

        def block(span: BlockRange, values: Sequence[Register]) -> list[Register]:
            inner = self.write_level(level + 1, self.enter_block(level, span, values))
            return self.leave_block(level, values, inner)

        plan, carried = self.plan, [*totals, *self.start_at(level)]
        outer = self.span_at(level)
        carried = write_blocks(self.w, plan.loops[level], plan.inner(level), block, carried, outer)
        self.spans.pop(plan.axes[level], None)
        if outer is not None:
            self.spans[plan.axes[level]] = outer
        return carried

    def write_step(self, level: int, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        """One step of the loop at `level`."""
        outer = self.point.lanes
        self.point.enter(self.plan.axes[level], step)
        result = self.write_level(level + 1, totals)
        self.point.lanes = outer
        return result

    def run_steps(self, level: int) -> None:
        """The steps of one level."""
        self.point.run(self.plan.steps[level])

    # Blocks.

    def enter_block(
        self, level: int, span: BlockRange, totals: Sequence[Register]
    ) -> list[Register]:
        """Go to one block of the loop at `level`; the totals to begin it with."""
        self.spans[self.plan.axes[level]] = span
        if level == 0:
            self._move_windows(span)
            self._fetch_ahead(span)
        if level not in self.plan.afresh:
            return list(totals)
        return [self._start(target) for target in self._carried(level)]

    def _move_windows(self, span: BlockRange) -> None:
        """Have the first row of a block lie where its room begins."""
        first = span.stop if span.start is None else span.start
        assert first is not None or not self.windows
        for window in self.windows:
            assert first is not None
            before = multiply_constant(self.w, first, -window.row_bytes)
            base = element_address(self.w, self.bases[window.number], I8, before)
            self.point.slots[1 + window.number] = base

    def _fetch_ahead(self, span: BlockRange) -> None:
        """Fetch the rows of the block after this one, which may be part of it, of outputs that are."""
        if span.start is None:
            return
        op, w = self.op, self.w
        rows, block = op.extents[op.order[0]], row_block(op)
        for number in op.ahead:
            written, base = op.outputs[number], self.bases[len(op.accesses) + number]
            found = footprint(written.type.shape, written, op.extents, op.order[0])
            assert found is not None and found.row is not None
            bytes = found.stride * written.type.dtype.bytes
            first = w.smin(add_constant(w, span.start, block), constant(I64, rows - block))
            first = multiply_constant(w, add_constant(w, first, found.row), bytes)
            at = element_address(w, base, I8, first)
            line, end = constant(I64, ALIGNMENT), constant(I64, bytes * block)
            with w.loop(constant(I64, 0), end, line, guarded=False) as loop:
                w.prefetch(w.gep(at, I8, loop.index))
                loop.carry()

    def leave_block(
        self, level: int, totals: Sequence[Register], inner: Sequence[Register]
    ) -> list[Register]:
        """The totals after a block that came to `inner`."""
        if level not in self.plan.afresh:
            return list(inner)
        if self._is_folded:
            self._fold()
        result: list[Register] = []
        before = iter(totals)
        for target, value in zip(self._carried(level), inner, strict=True):
            if self._registers(target, level) == 2:
                result += add_compensated(self.w, next(before), next(before), value)
            else:
                result.append(_combine(self.w, target, next(before), value))
        return result

    def _fold(self) -> None:
        """Move what a block came to in memory to the sums there."""
        op = self.op
        for number, correction in self._corrections():
            base, type = self.bases[len(op.accesses) + number], op.outputs[number].type
            write_folded(self.w, base, *self._pair(base, correction, type), type)

    # Reductions.

    def begun(self, level: int) -> list[OutputPlan]:
        """The reductions that begin at a level, in the order of their totals."""
        return self.plan.begun.get(level, [])

    def start_at(self, level: int) -> list[Register]:
        """The totals of nothing of the reductions that begin at a level, as the loop there carries them."""
        return [
            self._start(target)
            for target in self.begun(level)
            for _ in range(self._registers(target, level))
        ]

    def start_all(self, level: int) -> list[Register]:
        """The same of all that the loop at a level carries."""
        return [
            self._start(target)
            for target in self._carried(level)
            for _ in range(self._registers(target, level))
        ]

    def totals_at(self, level: int) -> list[tuple[OutputPlan, int]]:
        """The totals that the loop at a level carries, each with its number of registers."""
        return [(target, self._registers(target, level)) for target in self._carried(level)]

    def width(self, level: int) -> int:
        """How many registers the loop at a level carries."""
        return sum(self._registers(target, level) for target in self._carried(level))

    def join(
        self, level: int, totals: Sequence[Register], others: Sequence[Register]
    ) -> list[Register]:
        """The totals carried by the loop at `level`, of two copies joined."""
        return [
            _combine(self.w, target, x, y)
            for target, x, y in zip(self._carried(level), totals, others, strict=True)
        ]

    def finish(self, level: int, totals: Sequence[Register]) -> None:
        """Store what the reductions that begin at a level came to."""
        found = iter(totals)
        for target in self.begun(level):
            parts = [next(found) for _ in range(self._registers(target, level))]
            if target.inside:
                parts = [self._horizontal(target, part) for part in parts]
            total = corrected(self.w, *parts) if len(parts) == 2 else parts[0]
            self.point.store(target, total)

    def _horizontal(self, target: OutputPlan, total: Register) -> Register:
        assert target.combinator is not None
        return reduce_lanes(self.w, target.combinator, target.address.dtype, total)

    def _registers(self, target: OutputPlan, level: int) -> int:
        """How many registers a total is while the loop at `level` carries it."""
        return 2 if target.is_pair and level <= self.plan.afresh[0] else 1

    def _carried(self, level: int) -> list[OutputPlan]:
        return [target for inner in range(level + 1) for target in self.begun(inner)]

    def _start(self, target: OutputPlan) -> Register:
        assert target.combinator is not None
        lanes = self._total_lanes(target)
        return identity(target.combinator, target.address.dtype, lanes)

    def _total_lanes(self, target: OutputPlan) -> int:
        if target.inside:
            return next(loop.lanes for loop in self.plan.loops if loop.is_vector)
        return self.point.lanes.count if target.varies else 1

    def _accumulate(self, totals: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for target, total in zip(self._carried(len(self.plan.axes) - 1), totals, strict=True):
            joined = self._joined(target, total)
            mask = self.point.lanes.mask
            if target.inside and mask is not None:
                joined = self.w.select(mask, joined, total)
            result.append(joined)
        return result

    def _joined(self, target: OutputPlan, total: Register) -> Register:
        lanes = total.type.lanes
        if target.factors is not None:
            x, y = (self.point.register(factor, lanes) for factor in target.factors)
            return self.w.multiply_add(x, y, total)
        return _combine(self.w, target, total, self.point.register(target.value, lanes))


def _windows(instruction: Instruction[Loops]) -> list[Window]:
    """The buffers of a nest that have room for one block of rows."""
    found: list[Window] = []
    for number, value in enumerate((*instruction.operands, *instruction.results)):
        base = base_of(value)
        places = () if base.producer is None else base.producer.placement.results
        if places and places[base.index].space == "block":
            row_bytes = bytes_of_row(base, instruction.op)
            found.append(Window(number, places[base.index], row_bytes))
    return found


def _with_opaque_addresses(
    w: FunctionWriter, instruction: Instruction[Loops], bases: Sequence[Register]
) -> Sequence[Register]:
    """The addresses, those of results hidden that could be selected of what is there and of something truncated."""
    op = instruction.op
    if op.lanes == 1 or not selects_by_place(instruction.regions[0].entry, len(op.extents)):
        return bases
    first = len(op.accesses)
    operands = [
        (base, value.tensor.dtype) for base, value in zip(bases, instruction.operands, strict=False)
    ]
    found = list(bases)
    for number, written in enumerate(op.outputs, first):
        dtype, base = written.type.dtype, bases[number]
        same_place = any(
            dtype == other and (base == there or (_is_computed(base) and _is_computed(there)))
            for there, other in operands
        )
        if dtype.is_integer and dtype.bits < 64 and same_place:
            found[number] = opaque_address(w, base)
    return found


def _is_computed(base: Register) -> bool:
    """Whether an address is computed, neither a parameter nor a constant, so that it may be selected with another."""
    return not base.text.startswith(("%p", "@"))


def _combine(w: FunctionWriter, target: OutputPlan, total: Register, value: Register) -> Register:
    assert target.combinator is not None
    return combine(w, target.combinator, target.address.dtype, total, value)
