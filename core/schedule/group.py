"""Groups nests that share their outermost loop, so that a row stays in the nearest cache (Halide's compute_at).

Softmax is three nests over the rows of a matrix.  One after the other, each walks through all of memory;
in one loop over the rows, the second and third find their row where the first has left it.

1. A nest whose outermost loop is over the rows opens a group; later ones over as many rows join it when they
   touch one of its tensors, and read what the group makes only in the row that all are at.  What sums over
   the rows may join, but nobody in the group may read it; nor what is summed in memory with compensation, since its
   parts are added up behind the loops of the group.
2. Instructions in between that do not need the group go before it, others go after it and are looked at again.
3. A group that fits the caches anyway, or whose rows do not, is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import field, replace

from ..compute.bodies import base_of
from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.nest import Affine, Index
from ..types import TensorType
from .ops import Loops, compensated_outputs, is_scattered_sum
from .summation import plan_sums
from .switches import is_enabled
from .target import Target

MOST_MEMBERS = 12
"""Nests of a group: one whose rows do not fit the caches together is given up, so that it must not grow without end. 4
to 100 give the benchmarks the same code."""

_MOST_DEFERRED = 16
"""Instructions that wait behind an open group, and are looked at again: a bound keeps the time linear. 4 to 100 give
the benchmarks the same code."""

_LEAST_ROW = 32
"""Points per row below which a shared loop gains nothing: two vectors of AVX-512. 9 to 200 give the benchmarks the same
code; with 8, rows of 10 logits share loops, for no gain."""


@dataclass(frozen=True)
class GroupedInstruction:
    """An instruction in its final place, with its loops if it is a nest."""

    instruction: Instruction
    loops: Loops | None


def group_nests(steps: Sequence[GroupedInstruction], target: Target) -> list[GroupedInstruction]:
    """The same steps with groups, in an order that makes each group consecutive."""
    if not is_enabled("groups"):
        return [*steps]
    grouping = Grouping(target, deque(steps))
    while grouping.pending:
        grouping.take(grouping.pending.popleft())
    grouping.close()
    return grouping.done


@dataclass
class Grouping:
    """Steps that are done, and the group that is open, if `members` is not empty."""

    target: Target
    pending: deque[GroupedInstruction]
    done: list[GroupedInstruction] = field(default_factory=list[GroupedInstruction])
    rows: int = 0
    members: list[GroupedInstruction] = field(default_factory=list[GroupedInstruction])
    inside: list[GroupedInstruction] = field(default_factory=list[GroupedInstruction])
    """Members and the aliases between them."""
    deferred: list[GroupedInstruction] = field(default_factory=list[GroupedInstruction])
    touched: dict[Value, int] = field(default_factory=dict[Value, int])
    """Tensors that members touch, and by how many."""
    made: dict[Value, bool] = field(default_factory=dict[Value, bool])
    """What members make, and whether a row of it is there when the loop comes to the next member."""
    late: set[Value] = field(default_factory=set[Value])
    count: int = 0

    def take(self, step: GroupedInstruction) -> None:
        """Put one step where it belongs."""
        if self.members and self._ends_group(step):
            self.pending.appendleft(step)  # what has been deferred may read what it updates
            self.close()
            return
        bases = {base_of(operand) for operand in step.instruction.operands}
        is_alias = step.instruction.op.needs_no_code
        if not self.members:
            if self._may_open(step):
                self._join(step)
            else:
                self.done.append(step)
        elif not bases.isdisjoint(self.late):
            self._defer(step)
        elif self._may_join(step, bases):
            self._join(step)
        elif bases.isdisjoint(self.made):
            self.done.append(step)
        elif is_alias:
            self.inside.append(step)
        else:
            self._defer(step)

    def close(self) -> None:
        """Finish the open group; what it deferred comes next."""
        if len(self.members) > 1 and self._is_worthwhile():
            self._close_group()
            self.count += 1
        else:
            self.done.extend(self.inside)
        self.pending.extendleft(reversed(self.deferred))
        self.rows, self.members, self.inside, self.deferred = 0, [], [], []
        self.touched, self.made, self.late = {}, {}, set()
        while self.pending and not self._may_open(self.pending[0]):
            self.done.append(self.pending.popleft())

    def _close_group(self) -> None:
        block = _block_of_rows(self.members)
        for step in self.inside:
            loops = step.loops and replace(_shared(step.loops, block), group=self.count)
            self.done.append(replace(step, loops=loops))

    def _ends_group(self, step: GroupedInstruction) -> bool:
        """Whether an instruction can neither join nor be passed by."""
        return step.loops is not None and bool(step.loops.updates)

    def _may_open(self, step: GroupedInstruction) -> bool:
        loops = step.loops
        if loops is None or _outer_axis(loops) is None:
            return False
        outer = loops.order[0]
        return outer != loops.vector and loops.points >= _LEAST_ROW * loops.extents[outer]

    def _may_join(self, step: GroupedInstruction, bases: set[Value]) -> bool:
        loops = step.loops
        if loops is None or len(self.members) == MOST_MEMBERS:
            return False
        outer = _outer_axis(loops)
        if outer is None or loops.extents[outer] != self.rows:
            return False
        if bases.isdisjoint(self.touched):
            return False
        return all(
            base_of(operand) not in self.made
            or (
                self.made[base_of(operand)]
                and is_row(operand.tensor, access.indices, outer, self.rows)
            )
            for operand, access in zip(step.instruction.operands, loops.accesses, strict=True)
        )

    def _join(self, step: GroupedInstruction) -> None:
        loops = step.loops
        assert loops is not None
        outer = loops.order[0]
        self.rows = loops.extents[outer]
        self.members.append(step)
        self.inside.append(step)
        for base in {base_of(operand) for operand in step.instruction.operands}:
            self.touched[base] = self.touched.get(base, 0) + 1
        unfinished = compensated_outputs(loops)
        results = zip(step.instruction.results, loops.own_outputs, strict=True)
        for number, (result, written) in enumerate(results):
            self.touched[result] = 1
            by_rows = is_row(written.type, written.indices, outer, self.rows)
            self.made[result] = by_rows and number not in unfinished

    def _defer(self, step: GroupedInstruction) -> None:
        self.deferred.append(step)
        self.late.update(step.instruction.results)
        is_quick = step.instruction.op.is_view or step.loops is not None
        if not is_quick or len(self.deferred) > _MOST_DEFERRED:
            self.close()

    def _is_worthwhile(self) -> bool:
        """Whether the rows, but not all that the members share, fit the nearer caches."""
        shared = sum(v.tensor.bytes for v, count in self.touched.items() if count > 1)
        row = sum(v.tensor.bytes for v in self.touched) // self.rows
        return shared > self.target.l1_bytes and row <= self.target.l2_bytes // 2


def is_row(type: TensorType, indices: Sequence[Index], outer: int, rows: int) -> bool:
    """Whether the first index (of an axis longer than 1) is just the coordinate of axis `outer`.

    The tensor then falls into `rows` equal parts, and the access stays in the part the loop is at.
    """
    for index, extent in zip(indices, type.shape, strict=True):
        if extent != 1:
            return isinstance(index, Affine) and index.axis == outer and extent == rows
    return False


def _outer_axis(loops: Loops) -> int | None:
    """The axis of the outermost loop, when it is longer than 1 and can be without vectors.

    Sums at indices that are read are kernels of their own.
    """
    if any(map(is_scattered_sum, loops.outputs)):
        return None
    if not loops.order or 0 in loops.extents or loops.updates or loops.extents[loops.order[0]] == 1:
        return None
    outer = loops.order[0]
    return outer if outer != loops.vector or loops.points == loops.extents[outer] else None


def _block_of_rows(members: Sequence[GroupedInstruction]) -> int:
    """The rows that members which sum over them take up at a time; 0 when there is no such member."""
    found: list[int] = []
    for step in members:
        assert step.loops is not None
        loops = _single_rows(step.loops)
        if loops.blocks and loops.blocks[0]:
            sizes = zip(loops.order, loops.blocks, strict=True)
            found.append(min(size for axis, size in sizes if size and axis == loops.order[0]))
    return min(found, default=0)


def _single_rows(loops: Loops) -> Loops:
    """A nest of one axis takes single steps once that axis is the loop of the group."""
    if loops.points != loops.extents[loops.order[0]]:
        return loops
    axes = tuple(dict.fromkeys(loops.order))
    return plan_sums(Loops(loops.extents, loops.accesses, loops.outputs, axes))


def _shared(loops: Loops, block: int) -> Loops:
    """The loops of a member, when the loop of the group is over blocks of rows, or over rows if `block` is 0."""
    loops = _single_rows(loops)
    if not block:
        return loops
    outer, blocks = loops.order[0], loops.blocks or (0,) * len(loops.order)
    rest = [loop for loop in zip(loops.order, blocks, strict=True) if loop[0] != outer]
    has_own = any(size for _, size in rest)
    return replace(
        loops,
        order=(outer, outer, *(axis for axis, _ in rest)),
        blocks=(block, 0, *(size for _, size in rest)),
        compensated=loops.compensated or not has_own,
        accumulators=loops.accumulators if loops.order[-1] != outer else 1,
    )
