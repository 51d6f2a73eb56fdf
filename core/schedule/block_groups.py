"""Groups nests over blocks of rows, so that a block stays in the second cache from one nest to the next.

Bundle adjustment is some nests over 31,843 observations, each of which writes a few of the 30 numbers of a row, or 31
arrays that the next one reads.  One after the other, each walks through all of memory; over blocks of some hundred
rows, the next one finds the block where the last has left it.  Inside of a block each nest has its own loops.

1. A member walks through its rows outermost, alone or with vectors along them, and sums over none of them.
2. Where two members touch one buffer and one of them writes it, they are in the same rows of it, or in parts that are
   apart: so the order of blocks does not matter.  Updates in place may join.
3. A group whose tensors fit the second cache anyway, or a block of which does not, is given up.
4. A group over rows (`group`) is one over blocks of one row, if that saves memory: what only it reads is contracted.

Source: strip-mining and fusing loops (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 5.9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from ..compute.address import is_inside
from ..compute.bodies import base_of
from ..compute.footprint import Footprint, footprint
from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.nest import Affine, Bounds, axes_in
from .group import MOST_MEMBERS, GroupedInstruction, Grouping
from .live_ranges import may_overwrite
from .ops import Loops, is_scattered_sum
from .switches import is_enabled
from .target import Target

_LEAST_BLOCK: Final = 32
"""Rows of a block, at least: two vectors of f32, and the heads of loops do not count much."""

LEAST_ROWS: Final = 2 * _LEAST_BLOCK
"""Rows that are worth blocks."""

_MOST_BLOCK: Final = 1024
"""Rows of a block, at most: of rows of a few bytes more would gain nothing, as the heads of loops are long paid for."""

_SHARE: Final = 32
"""A block is this part of the second cache: 64 KiB. The Jacobian of bundle adjustment takes 3.9, 4.4, 4.4 and 4.7 ms
with 64, 128, 256 and 512 rows, of 1 KiB."""

_MOST_SHARE: Final = 4
"""What the least block may take."""

LEAST_FOLDED: Final = 1 << 20
"""Bytes that need not be stored: with less, nobody asks for them."""

MOST_FOLDED_ROW: Final = 64 * 1024
"""Bytes of the rows that a group has on the stack."""


def group_in_blocks(
    steps: Sequence[GroupedInstruction], target: Target
) -> list[GroupedInstruction]:
    """The same steps with groups over blocks of rows as well, in an order that makes each group consecutive."""
    if not is_enabled("blocks"):
        return list(steps)
    numbers = [step.loops.group for step in steps if step.loops is not None]
    grouping = _BlockGrouping(target, deque(steps), count=1 + max(numbers, default=-1))
    while grouping.pending:
        grouping.take(grouping.pending.popleft())
    grouping.close()
    return grouping.done


@dataclass
class _BlockGrouping(Grouping):
    """The same, with blocks of rows; what is grouped already ends a group."""

    uses: dict[Value, list[tuple[Footprint | None, bool]]] = field(
        default_factory=dict[Value, list[tuple["Footprint | None", bool]]]
    )
    """What members touch of each buffer, and whether they write there."""
    roots: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The buffer that an update of it is in."""

    def _ends_group(self, step: GroupedInstruction) -> bool:
        if step.loops is None:
            return False
        bases = {base_of(operand) for operand in step.instruction.operands}
        is_late = not bases.isdisjoint(self.late)
        return step.loops.group >= 0 or (
            bool(step.loops.updates) and (is_late or not self._may_join(step, bases))
        )

    def _may_open(self, step: GroupedInstruction) -> bool:
        return _may_be_member(step)

    def _may_join(self, step: GroupedInstruction, bases: set[Value]) -> bool:
        loops = step.loops
        if loops is None or not _may_be_member(step) or len(self.members) == MOST_MEMBERS:
            return False
        if loops.extents[loops.order[0]] != self.rows or bases.isdisjoint(self.touched):
            return False
        if not all(self._stays_in_place(step.instruction, *pair) for pair in _updates(step)):
            return False
        return all(
            earlier is not None and found is not None and found.is_independent(earlier)
            for root, found, writes in self._touched_by(step)
            for earlier, wrote in self.uses.get(root, ())
            if writes or wrote
        )

    def _stays_in_place(self, instruction: Instruction, result: Value, updated: Value) -> bool:
        """Whether an update of what the group makes is in place: nothing can be copied before the group."""
        return base_of(updated) not in self.made or (
            base_of(updated) is updated
            and updated.has_one_use
            and may_overwrite(instruction, result, updated)
        )

    def _join(self, step: GroupedInstruction) -> None:
        loops = step.loops
        assert loops is not None
        self.rows = loops.extents[loops.order[0]]
        self.members.append(step)
        self.inside.append(step)
        touched = list(self._touched_by(step))
        for root, found, writes in touched:
            self.uses.setdefault(root, []).append((found, writes))
        for root in {root for root, _, _ in touched}:
            self.touched[root] = self.touched.get(root, 0) + 1
        for value in step.instruction.results:
            self.made[value] = True
            self.touched.setdefault(value, 0)
        for value, updated in _updates(step):
            base = base_of(updated)
            self.roots[value] = self.roots.get(base, base)

    def _touched_by(
        self, step: GroupedInstruction
    ) -> Iterator[tuple[Value, Footprint | None, bool]]:
        """The buffers of operands and results, what is touched of them, and whether it is written."""
        loops = step.loops
        assert loops is not None
        extents, outer = loops.extents, loops.order[0]
        bases = [base_of(operand) for operand in step.instruction.operands]
        for number, access in enumerate(loops.accesses):
            operand = step.instruction.operands[number]
            found = footprint(operand.tensor.shape, access, extents, outer)
            yield self.roots.get(bases[number], bases[number]), found, False
        for number, written in enumerate(loops.outputs):
            own = loops.outputs[number if written.within is None else written.within]
            root = step.instruction.results[number if written.within is None else written.within]
            if own.init is not None:
                root = self.roots.get(bases[own.init], bases[own.init])
            yield root, footprint(written.type.shape, written, extents, outer), True

    def _close_group(self) -> None:
        block = self._rows_of_block()
        for step in self.inside:
            loops = step.loops and _in_blocks(step.loops, block, self.count)
            self.done.append(replace(step, loops=loops))

    def close(self) -> None:
        super().close()
        self.uses, self.roots = {}, {}

    def _is_worthwhile(self) -> bool:
        shared = sum(v.tensor.bytes for v, count in self.touched.items() if count > 1)
        return shared > self.target.near_l2_bytes // 4 and self._rows_of_block() >= _LEAST_BLOCK

    def _rows_of_block(self) -> int:
        """A power of two of rows that fit a part of the second cache; the least block, if that fits a larger part."""
        row = max(1, sum(root.tensor.bytes for root in self.uses) // self.rows)
        fit = self.target.near_l2_bytes // _SHARE // row
        if fit < _LEAST_BLOCK <= self.target.near_l2_bytes // _MOST_SHARE // row:
            return _LEAST_BLOCK
        return min(1 << max(fit.bit_length() - 1, 0), _MOST_BLOCK)


def _updates(step: GroupedInstruction) -> Iterator[tuple[Value, Value]]:
    """The results of a nest that begin with an operand, and the operand."""
    assert step.loops is not None
    results = zip(step.instruction.results, step.loops.own_outputs, strict=True)
    for result, written in results:
        if written.init is not None:
            yield result, step.instruction.operands[written.init]


def _may_be_member(step: GroupedInstruction) -> bool:
    """Whether the outermost loop may be over blocks: it sums nothing, and has no edges to be cut at."""
    loops = step.loops
    if loops is None or not loops.order or 0 in loops.extents or loops.blocks or loops.group >= 0:
        return False
    outer, extents = loops.order[0], loops.extents
    if extents[outer] < LEAST_ROWS or loops.lanes > _LEAST_BLOCK // 2:
        return False
    for written in loops.outputs:
        if written.bounds is not Bounds.INSIDE or is_scattered_sum(written):
            return False
        if written.combinator and outer not in axes_in(written.indices):
            return False
    return not any(
        access.bounds is Bounds.ZERO
        and isinstance(index, Affine)
        and index.coefficient(outer)
        and not is_inside(index, extent, extents)
        for operand, access in zip(step.instruction.operands, loops.accesses, strict=True)
        for index, extent in zip(access.indices, operand.tensor.shape, strict=True)
    )


def _in_blocks(loops: Loops, block: int, group: int) -> Loops:
    outer, *rest = loops.order
    order, blocks = (outer, outer, *rest), (block, 0, *(0 for _ in rest))
    return replace(loops, order=order, blocks=blocks, group=group)


def fold_row_groups(steps: Sequence[GroupedInstruction]) -> list[GroupedInstruction]:
    """The same steps, with those groups over rows as groups over blocks of one row that make much for themselves alone.

    What such a group makes and reads is contracted (`contraction`) to one row.
    """
    if not is_enabled("contract"):
        return list(steps)
    groups: dict[int, list[GroupedInstruction]] = {}
    for step in steps:
        if step.loops is not None and step.loops.group >= 0:
            groups.setdefault(step.loops.group, []).append(step)
    folded = {number for number, members in groups.items() if _may_be_folded(members)}
    return [
        replace(step, loops=_in_blocks(step.loops, 1, step.loops.group))
        if step.loops is not None and step.loops.group in folded
        else step
        for step in steps
    ]


def _may_be_folded(members: Sequence[GroupedInstruction]) -> bool:
    """Whether members of a group over rows may be in one over blocks, and leave large tensors that only they read."""
    if not all(_may_be_member(_alone(step)) for step in members):
        return False
    instructions = {step.instruction for step in members}
    rows, saved = 1, 0
    for step in members:
        assert step.loops is not None
        rows = step.loops.extents[step.loops.order[0]]
        for result in step.instruction.results:
            users = list(result.uses)
            if users and instructions.issuperset(users):
                saved += result.tensor.bytes
    return saved >= LEAST_FOLDED and saved // rows <= MOST_FOLDED_ROW


def _alone(step: GroupedInstruction) -> GroupedInstruction:
    return replace(step, loops=step.loops and replace(step.loops, group=-1))
