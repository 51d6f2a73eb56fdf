"""Emits the outermost loop of nests as a job of the pool, where threads may share it.

1. The rounds of the loop are divided into blocks of whole rounds (or whole blocks of a sum), as many as the schedule
   wants; what is left behind the rounds is written by the thread that calls.
2. A block writes the nests anew, with addresses that it is given, over its span of the loop.
3. Totals that the loop carries begin afresh in each block, which stores what it came to on the stack of the thread
   that calls; that one joins them in the order of blocks, sums with compensation.  So the order of a sum depends on its
   length alone, not on threads, and its error does not grow with the number of blocks.

Iterations may run at the same time if each writes elements of its own: results are stored at indices that tell the
iterations apart, or carried as totals.  Buffers that two of them share are written at the element that is read, by the
same point (`buffer_assignment.may_overwrite`).  Checks leave the program from the thread that calls only, so that nests
with checks are not shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from ...core.compute.contracted import block_bytes_of
from ...core.compute.index_maps import axes_of, is_injective
from ...core.ir import ALIGNMENT
from ...core.lazy_dataclass import dataclass
from ...core.schedule.ops import is_float_sum
from ...core.schedule.shared_loops import blocks_of_job, nanoseconds_of, updates_apart
from .elements import add_compensated, combine, corrected
from .indices import add_constant, multiply_constant
from .loops import BlockRange
from .nest import NestWriter
from .nest_groups import carry_together, common_rounds
from .parallel import ParallelLoops
from .steps import IndexCheck, OutputPlan
from .values import ZMM_BYTES
from .writer import I8, I64, FunctionWriter, LLVMType, Register, constant

_MOST_ROOM: Final = 16 * ZMM_BYTES
"""Bytes that a block may come to: 128 blocks of so many take 128 KiB of the stack."""


@dataclass(frozen=True)
class SharedNests:
    """Writes the outermost loop of nests as jobs."""

    parallel: ParallelLoops

    def write(self, w: FunctionWriter, writers: Sequence[NestWriter]) -> bool:
        """See `nest.NestJobs`."""
        if not all(map(_is_independent, writers)):
            return False
        blocks, totals = _blocks_of(writers), _totals_of(writers)
        size = sum(_room(register.type) for x in writers for register in x.start_all(0))
        if blocks.count < 2 or size > _MOST_ROOM:
            return False
        partial = w.frame.share(max(size * (blocks.count + blocks.has_rest), 1), ALIGNMENT)
        types = self._write_job(w, writers, blocks, partial)
        if blocks.has_rest:
            rest = _carry(w, writers, BlockRange(stop=constant(I64, blocks.done)))
            _store(w, w.offset(partial, blocks.count * size), rest)
        if totals:
            joined = _join(w, totals, types, partial, blocks.count + blocks.has_rest)
            for writer in writers:
                own = [x for x, total in zip(joined, totals, strict=True) if total.writer is writer]
                writer.finish(0, [register for registers in own for register in registers])
        return True

    def _write_job(
        self,
        w: FunctionWriter,
        writers: Sequence[NestWriter],
        blocks: _Blocks,
        partial: Register,
    ) -> list[LLVMType]:
        """The job, and the types of what a block comes to."""
        types: list[LLVMType] = []

        def write(inner: FunctionWriter, given: Sequence[Register], number: Register) -> None:
            bases = iter(given)
            to = next(bases)
            room = _own_room(inner, writers)
            copies = [
                NestWriter(
                    inner, x.instruction, room(x, [next(bases) for _ in x.given]), x.checks, x.plan
                )
                for x in writers
            ]
            start = multiply_constant(inner, number, blocks.length)
            stop = add_constant(inner, start, blocks.length)
            if blocks.done % blocks.length:
                stop = inner.smin(stop, constant(I64, blocks.done))
            found = _carry(inner, copies, BlockRange(start, stop))
            types.extend(register.type for register in found)
            size = sum(_room(register.type) for register in found)
            _store(inner, inner.gep(to, I8, multiply_constant(inner, number, size)), found)

        captured = [base for writer in writers for base in writer.given]
        work = sum(nanoseconds_of(writer.instruction) for writer in writers)
        self.parallel.write(w, blocks.count, [partial, *captured], write, nanoseconds=work)
        return types


@dataclass(frozen=True)
class _Blocks:
    """The outermost loop: rounds that cover `done` points, in blocks of `length` points, and perhaps a rest."""

    done: int
    length: int
    has_rest: bool

    @property
    def count(self) -> int:
        return -(-self.done // self.length)


@dataclass(frozen=True)
class _Total:
    """A total that the loop carries, in one register or two."""

    writer: NestWriter
    target: OutputPlan
    registers: int

    @property
    def is_sum(self) -> bool:
        """Whether joining it rounds."""
        number = self.writer.plan.targets.index(self.target)
        return is_float_sum(self.writer.op.outputs[number])


def _totals_of(writers: Sequence[NestWriter]) -> list[_Total]:
    return [_Total(writer, *total) for writer in writers for total in writer.totals_at(0)]


def _is_independent(writer: NestWriter) -> bool:
    """Whether iterations of the outermost loop may run at the same time."""
    plan, op = writer.plan, writer.op
    if not plan.axes or plan.corrected:
        return False
    if any(isinstance(step, IndexCheck) for steps in plan.steps for step in steps):
        return False
    for written, target in zip(op.outputs, plan.targets, strict=True):
        if target.joins:
            return False
        is_total = target.begins == 0
        is_own = plan.axes[0] in axes_of(written.indices, op.extents)
        if not is_total and not (is_own and is_injective(written.indices, op.extents)):
            return False
    return updates_apart(op, plan.axes[0])


def _blocks_of(writers: Sequence[NestWriter]) -> _Blocks:
    """The outermost loop in blocks, of which there is one where it is not worth more."""
    outer = writers[0].plan.loops[0]
    loop = common_rounds(writer.plan.inner(0) for writer in writers) if outer.block else outer
    unit = outer.block or loop.lanes * loop.copies
    wanted = blocks_of_job([writer.instruction for writer in writers])
    length = -(-loop.in_rounds // max(wanted * unit, 1)) * unit
    return _Blocks(loop.in_rounds, max(length, 1), loop.in_rounds < loop.extent)


def _own_room(
    w: FunctionWriter, writers: Sequence[NestWriter]
) -> Callable[[NestWriter, list[Register]], list[Register]]:
    """Gives the addresses of a nest, with room of the thread's own for blocks of rows."""
    bytes = block_bytes_of(writer.instruction for writer in writers)
    room = w.allocate(I8, bytes) if bytes else None

    def given(writer: NestWriter, bases: list[Register]) -> list[Register]:
        for window in writer.windows:
            assert room is not None
            bases[window.number] = w.offset(room, window.place.offset)
        return bases

    return given


def _carry(w: FunctionWriter, writers: Sequence[NestWriter], span: BlockRange) -> list[Register]:
    """The outermost loop over a span; what it carries."""
    for writer in writers:
        writer.spans[writer.plan.axes[0]] = span
    return carry_together(w, writers, 0, [[] for _ in writers])


def _store(w: FunctionWriter, at: Register, registers: Sequence[Register]) -> None:
    places = accumulate((_room(register.type) for register in registers), initial=0)
    for place, register in zip(places, registers, strict=False):
        w.store(register, w.offset(at, place))


def _room(type: LLVMType) -> int:
    """Bytes for a register that is stored: whole cache lines."""
    return -(-type.size // ZMM_BYTES) * ZMM_BYTES


def _join(
    w: FunctionWriter,
    totals: Sequence[_Total],
    types: Sequence[LLVMType],
    partial: Register,
    count: int,
) -> list[list[Register]]:
    """What all blocks came to, in the order of blocks: the registers of each total."""

    def load(number: Register) -> list[list[Register]]:
        """Those of a block; a sum and what rounding has cut off from it."""
        places = [0, *accumulate(map(_room, types))]
        at = w.gep(partial, I8, multiply_constant(w, number, places.pop()))
        loaded = [w.load(w.offset(at, n), type) for n, type in zip(places, types, strict=True)]
        found: list[list[Register]] = []
        for total in totals:
            own, loaded = loaded[: total.registers], loaded[total.registers :]
            if total.is_sum and len(own) == 1:
                own.append(constant(own[0].type, 0))
            found.append(own)
        return found

    before = load(constant(I64, 0))
    flat = [register for own in before for register in own]
    with w.loop(constant(I64, 1), constant(I64, count), constant(I64, 1), flat) as loop:
        carried = iter(loop.values)
        after: list[Register] = []
        for total, own in zip(totals, load(loop.index), strict=True):
            after += _joined(w, total, [next(carried) for _ in own], own)
        loop.carry(*after)
    results = iter(loop.results)
    joined = [[next(results) for _ in own] for own in before]
    return [
        [corrected(w, *own)] if total.registers < len(own) else own
        for total, own in zip(totals, joined, strict=True)
    ]


def _joined(
    w: FunctionWriter, total: _Total, before: Sequence[Register], own: Sequence[Register]
) -> list[Register]:
    """A total with what a further block came to."""
    if total.is_sum:
        found, rest = add_compensated(w, before[0], before[1], own[0])
        return [found, w.fadd(rest, own[1])]
    assert total.target.combinator is not None
    return [combine(w, total.target.combinator, total.target.address.dtype, before[0], own[0])]
