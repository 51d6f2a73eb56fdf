"""Writes planned nests as loops.

Outside of all loops the results that need it are filled.  Each level runs its steps, starts the
reductions that begin there, writes the loop inside, and stores what the reductions came to.  Nests of a
group do so side by side in one outermost loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ...core.errors import InternalError
from ...core.ir.graph import Instruction
from ...core.schedule.ops import Loops
from .checks import Checks
from .elements import combine, horizontal, identity
from .fill import write_fill
from .loops import Inside, LoopStep, write_loop
from .plan import plan_nest
from .point import PointWriter
from .steps import LoopShape, Target
from .writer import FunctionWriter, Register


def write_nests(
    w: FunctionWriter,
    nests: Sequence[tuple[Instruction, Sequence[Register]]],
    checks: Checks,
) -> None:
    """Write consecutive `Loops`, each with the addresses of its operands and then of its results.

    Those of one group share their outermost loop if it has the same steps in all of them.
    """
    for group, members in groupby(nests, key=lambda nest: _group_of(nest[0])):
        writers = [NestWriter(w, instruction, bases, checks) for instruction, bases in members]
        shapes = {writer.outermost for writer in writers}
        if group >= 0 and len(shapes) == 1 and None not in shapes:
            _write_together(w, writers)
        else:
            for writer in writers:
                writer.begin()
                writer.write_level(0, [])


def _group_of(instruction: Instruction) -> int:
    if not isinstance(instruction.op, Loops):
        raise InternalError(f"{instruction.op.name} is no scheduled nest")
    return instruction.op.group


def _write_together(w: FunctionWriter, writers: Sequence[NestWriter]) -> None:
    totals: list[Register] = []
    for writer in writers:
        writer.begin()
        writer.run_steps(0)
        totals += writer.start_at(0)
    totals = write_loop(w, writers[0].plan.loops[0], _Together(writers), totals)
    for writer in writers:
        count = len(writer.begun(0))
        writer.finish(0, totals[:count])
        totals = totals[count:]


@dataclass(frozen=True, slots=True)
class _Together(Inside):
    """The inside of an outermost loop that several nests share."""

    writers: Sequence[NestWriter]

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for writer, part in self._parts(totals):
            result += _LoopInside(writer, 0).step(step, part)
        return result

    def start(self) -> list[Register]:
        return [total for writer in self.writers for total in writer.start_at(0)]

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        result: list[Register] = []
        for (writer, x), (_, y) in zip(self._parts(totals), self._parts(others), strict=True):
            result += writer.join(0, x, y)
        return result

    def _parts(self, totals: Sequence[Register]) -> list[tuple[NestWriter, Sequence[Register]]]:
        parts: list[tuple[NestWriter, Sequence[Register]]] = []
        first = 0
        for writer in self.writers:
            count = len(writer.begun(0))
            parts.append((writer, totals[first : first + count]))
            first += count
        return parts


@dataclass(frozen=True, slots=True)
class _LoopInside(Inside):
    """The inside of loop `level` of one nest."""

    writer: NestWriter
    level: int

    def step(self, step: LoopStep, totals: Sequence[Register]) -> list[Register]:
        return self.writer.write_step(self.level, step, totals)

    def start(self) -> list[Register]:
        return [total for level in range(self.level + 1) for total in self.writer.start_at(level)]

    def join(self, totals: Sequence[Register], others: Sequence[Register]) -> list[Register]:
        return self.writer.join(self.level, totals, others)


class NestWriter:
    """Writes one nest."""

    def __init__(
        self,
        w: FunctionWriter,
        instruction: Instruction,
        bases: Sequence[Register],
        checks: Checks,
    ) -> None:
        self.w = w
        self.instruction = instruction
        self.bases = bases
        self.plan = plan_nest(instruction, checks.sites)
        self.point = PointWriter(w, self.plan, bases, checks)

    @property
    def outermost(self) -> LoopShape | None:
        """The loop over the outermost axis; None when there is none, or that axis has one point."""
        op, plan = self.instruction.op, self.plan
        assert isinstance(op, Loops)
        return plan.loops[0] if plan.axes and plan.axes[0] == op.order[0] else None

    # Levels.

    def begin(self) -> None:
        """Fill the results that need it."""
        op = self.instruction.op
        assert isinstance(op, Loops)
        first = len(op.accesses)
        for number in self.plan.filled:
            write_fill(self.w, self.bases[first + number], op.outputs[number])

    def write_level(self, level: int, totals: Sequence[Register]) -> list[Register]:
        """Everything inside of `level` loops; the carried totals afterwards."""
        self.run_steps(level)
        if level == len(self.plan.axes):
            return self._accumulate(totals)
        carried = [*totals, *self.start_at(level)]
        carried = write_loop(self.w, self.plan.loops[level], _LoopInside(self, level), carried)
        self.finish(level, carried[len(totals) :])
        return carried[: len(totals)]

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

    # Reductions.

    def begun(self, level: int) -> list[Target]:
        """The reductions that begin at a level, in the order of their totals."""
        return [target for target in self.plan.targets if target.begins == level]

    def start_at(self, level: int) -> list[Register]:
        """The totals of nothing of the reductions that begin at a level."""
        return [self._start(target) for target in self.begun(level)]

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
        for target, total in zip(self.begun(level), totals, strict=True):
            assert target.combinator is not None
            if target.inside:
                total = horizontal(self.w, target.combinator, target.address.dtype, total)
            self.point.store(target, total)

    def _carried(self, level: int) -> list[Target]:
        return [target for inner in range(level + 1) for target in self.begun(inner)]

    def _start(self, target: Target) -> Register:
        assert target.combinator is not None
        lanes = self._total_lanes(target)
        return identity(target.combinator, target.address.dtype, lanes)

    def _total_lanes(self, target: Target) -> int:
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

    def _joined(self, target: Target, total: Register) -> Register:
        lanes = total.type.lanes
        if target.factors is not None:
            x, y = (self.point.register(factor, lanes) for factor in target.factors)
            return self.w.multiply_add(x, y, total)
        return _combine(self.w, target, total, self.point.register(target.value, lanes))


def _combine(w: FunctionWriter, target: Target, total: Register, value: Register) -> Register:
    assert target.combinator is not None
    return combine(w, target.combinator, target.address.dtype, total, value)
