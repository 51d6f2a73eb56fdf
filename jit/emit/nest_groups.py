"""Emits nests one after the other, and those of a group side by side in one outermost loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Protocol

from ...core.errors import InternalError
from ...core.ir.instruction import Instruction
from ...core.lazy_dataclass import dataclass
from ...core.schedule.ops import Loops
from .checks import Checks
from .loops import BlockRange, LoopBody, LoopStep, write_blocks, write_loop
from .nest import NestLoopBody, NestWriter
from .steps import LoopShape
from .writer import FunctionWriter, Register


def write_nests(
    w: FunctionWriter,
    nests: Sequence[Instruction[Loops]],
    bases: Callable[[Instruction[Loops]], Sequence[Register]],
    checks: Checks,
    jobs: NestJobs | None = None,
) -> None:
    """Write consecutive `Loops`.

    `bases` writes the addresses of the operands of one, of its outputs and of their corrections: in front of it, so
    that they are not alive through all that comes before.
    Those of one group share their outermost loop if it has the same steps in all of them.  Threads share that loop,
    too, where `jobs` say so.
    """
    for group, members in groupby(nests, key=lambda nest: nest.op.group):
        if group < 0:
            for nest in members:
                _write_together(w, [NestWriter(w, nest, bases(nest), checks)], jobs)
            continue
        writers = [NestWriter(w, nest, bases(nest), checks) for nest in members]
        shapes = {writer.outermost for writer in writers}
        together = len(shapes) == 1 and None not in shapes
        if not together and any(writer.windows for writer in writers):
            raise InternalError("a group with room for one block of rows has no loop in common")
        for part in [writers] if together else [[writer] for writer in writers]:
            _write_together(w, part, jobs)


class NestJobs(Protocol):
    """How threads share outermost loops."""

    def write(self, w: FunctionWriter, writers: Sequence[NestWriter]) -> bool:
        """Write the outermost loop of some nests, all of it; False, and nothing, where one thread is to run it."""
        ...


def _write_together(
    w: FunctionWriter, writers: Sequence[NestWriter], jobs: NestJobs | None
) -> None:
    for writer in writers:
        writer.begin()
    if jobs is None or not jobs.write(w, writers):
        _write_shared(w, writers, 0, [[] for _ in writers])
    for writer in writers:
        writer.end()


def _write_shared(
    w: FunctionWriter,
    writers: Sequence[NestWriter],
    level: int,
    totals: Sequence[Sequence[Register]],
) -> list[list[Register]]:
    """Emit everything inside of `level` loops of nests that share the loop at that level; their accumulators."""
    if len(writers) == 1:
        return [writers[0].write_level(level, totals[0])]
    after = carry_together(w, writers, level, totals)
    result: list[list[Register]] = []
    for writer, part, given in zip(writers, _parts(writers, level, after), totals, strict=True):
        writer.finish(level, part[len(given) :])
        result.append(list(part[: len(given)]))
    return result


def carry_together(
    w: FunctionWriter,
    writers: Sequence[NestWriter],
    level: int,
    totals: Sequence[Sequence[Register]],
) -> list[Register]:
    """Emit the loop at `level`, or the span of it that they are at; what it carries, one nest after the other."""
    if len(writers) == 1:
        return writers[0].carry(level, totals[0])
    shape = writers[0].plan.loops[level]
    carried: list[Register] = []
    for writer, part in zip(writers, totals, strict=True):
        writer.run_steps(level)
        carried += [*part, *writer.start_at(level)]
    if shape.block:
        inner = common_rounds(writer.plan.inner(level) for writer in writers)

        def block(span: BlockRange, values: Sequence[Register]) -> list[Register]:
            return _write_block(w, writers, level, span, values)

        outer = writers[0].span_at(level) if level == 0 else None
        after = write_blocks(w, shape, inner, block, carried, outer)
        for writer in writers:
            writer.spans.clear()
        return after
    span = writers[0].span_at(level)
    return write_loop(w, shape, _SharedLoopBody(writers, level), carried, span)


def common_rounds(shapes: Iterable[LoopShape]) -> LoopShape:
    """A loop whose rounds are rounds of all of these, which are powers of two."""
    return max(shapes, key=lambda shape: shape.lanes * shape.copies)


def _write_block(
    w: FunctionWriter,
    writers: Sequence[NestWriter],
    level: int,
    span: BlockRange,
    totals: Sequence[Register],
) -> list[Register]:
    """One block: neighbours whose next loop is the same share that as well."""
    parts = _parts(writers, level, totals)
    result: list[Register] = []
    runs = groupby(zip(writers, parts, strict=True), key=lambda pair: pair[0].shape_at(level + 1))
    for shape, run in runs:
        members = list(run)
        for batch in [members] if shape is not None else [[member] for member in members]:
            entered = [writer.enter_block(level, span, part) for writer, part in batch]
            after = _write_shared(w, [writer for writer, _ in batch], level + 1, entered)
            for (writer, part), inner in zip(batch, after, strict=True):
                result += writer.leave_block(level, part, inner)
    return result


def _parts(
    writers: Sequence[NestWriter], level: int, totals: Sequence[Register]
) -> list[Sequence[Register]]:
    """The accumulators of each nest that the loop at `level` carries."""
    parts: list[Sequence[Register]] = []
    first = 0
    for writer in writers:
        count = writer.width(level)
        parts.append(totals[first : first + count])
        first += count
    return parts


@dataclass(frozen=True, slots=True)
class _SharedLoopBody(LoopBody):
    """The inside of the loop at `level` that several nests share."""

    writers: Sequence[NestWriter]
    level: int

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for writer, part in self._parts(totals):
            result += NestLoopBody(writer, self.level).step(step, part)
        return result

    def start(self) -> list[Register]:
        return [total for writer in self.writers for total in writer.start_all(self.level)]

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for (writer, x), (_, y) in zip(self._parts(totals), self._parts(others), strict=True):
            result += writer.join(self.level, x, y)
        return result

    def _parts(self, totals: Sequence[Register]) -> list[tuple[NestWriter, Sequence[Register]]]:
        return list(zip(self.writers, _parts(self.writers, self.level, totals), strict=True))
