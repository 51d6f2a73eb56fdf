"""Chooses which nests are computed together, in one visit of each row, by a kernel (`kernels.rows`).

Softmax is a maximum of each row, exponentials with their sum, and quotients: three nests, that walk through a matrix
one after the other.  As a kernel they are one loop over rows, which stay in the nearest cache meanwhile; what has one
element per row is a number in a register, and what has a row is not stored unless somebody else reads it.

1. A reduction of rows opens a group, with the nests before it that make what it reads.
2. Nests behind it join that go through the same rows, touch one of its tensors, and read what the group makes only in
   the row that all are at.  What does not need the group goes before it, what does and cannot join, behind it.
3. Each nest is in the first pass over the row in which all that it reads is known.
4. Rows that later passes read lie in the place of a result that is written later, or in a small buffer, one after the
   other in the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final, TypeGuard

from ..compute.bodies import base_of
from ..ir import Block, Builder, Effect, Instruction, Value
from ..kernels.errors import IllegalRewrite
from ..kernels.row_nests import RowNest, is_constant, row_nest
from ..kernels.row_passes import PassForm
from ..kernels.rows import RowPlan, build_rows
from ..lazy_dataclass import dataclass
from ..ops.nest import Nest, is_nest
from ..types import Shape
from .row_gathers import separate_row_gathers
from .shared_loops import share_rows
from .switches import is_enabled
from .target import Target

_MOST_MEMBERS: Final = 16
"""Nests of a group: code that is run together has to stay in the caches of instructions and decoded ones."""

_WINDOW: Final = 64
"""Instructions behind the first nest that are looked at: a bound keeps the time linear."""

_LEAST_ROW: Final = 32
"""Elements of a row: shorter ones fill no vectors (`group`)."""

_LOCAL_BYTES: Final = 8 * 1024
"""Of a kernel's own buffers, which lie on the stack: a quarter of the nearest cache, and little for a small stack."""

_STACK_BYTES: Final = 32 * 1024
"""The same of all kernels of a block, which may be one function."""


_AHEAD: Final = 4 * 1024
"""Bytes of each tensor between what is computed and what is fetched: some µs of work, a part of the nearest cache."""


_STEP: Final = 0.3
"""Nanoseconds of an instruction on a vector: a cycle, as two begin in each but some wait for memory and divisions."""


def write_row_kernels(block: Block, target: Target) -> None:
    """Replace groups of nests of a block by kernels."""
    if not is_enabled("rows"):
        return
    forms = RowForms()
    seeds = {i.op.extents[:-1] for i in block.instructions if is_reduction_of_rows(i, forms)}
    if not seeds:
        return
    separate_row_gathers(block, seeds)
    forms = RowForms()
    position, room = 0, _STACK_BYTES
    while position < len(block.instructions):
        instruction = block.instructions[position]
        group = None
        if is_reduction_of_rows(instruction, forms):
            group = group_of_rows(block.instructions, position, forms, target)
        if group is None or len(group.members) == 1:  # which shares nothing
            position += 1
            continue
        plan = group.plan(target, min(room, _LOCAL_BYTES))
        try:
            position = group.write(block, plan, target)
            room -= group.local_bytes(plan)
        except IllegalRewrite:  # a sum of so many numbers is in no loops that bound its rounding
            position += 1


@dataclass
class RowForms:
    """The forms by rows of nests, each found once."""

    known: dict[tuple[Instruction, int], RowNest | None] = field(
        default_factory=dict[tuple[Instruction, int], "RowNest | None"]
    )

    def of(self, instruction: Instruction, rows: Shape) -> RowNest | None:
        """The form by such rows, if it has one, and vectors are filled."""
        key = instruction, len(rows)
        if key not in self.known:
            one = row_nest(instruction, len(rows))
            self.known[key] = one if one is not None and _fills_vectors(one) else None
        one = self.known[key]
        return one if one is not None and one.rows == rows else None


def is_reduction_of_rows(nest: Instruction, forms: RowForms) -> TypeGuard[Instruction[Nest]]:
    """Whether this is a nest that reduces rows."""
    if not is_nest(nest):
        return False
    op = nest.op
    if len(op.extents) < 2 or op.extents[-1] < _LEAST_ROW:
        return False
    if math.prod(op.extents[:-1]) < 2 or all(w.combinator is None for w in op.outputs):
        return False
    one = forms.of(nest, op.extents[:-1])
    return one is not None and any(one.is_reduced(k) for k in range(len(op.outputs)))


@dataclass
class RowGroup:
    """Nests over the same rows, in the instructions of a block from `start` up to `stop`."""

    rows: Shape
    forms: RowForms
    start: int
    stop: int = 0
    members: list[RowNest] = field(default_factory=list[RowNest])
    behind: list[Instruction] = field(default_factory=list[Instruction])
    """What needs the group."""
    before: list[Instruction] = field(default_factory=list[Instruction])
    touched: set[Value] = field(default_factory=set[Value])
    made: dict[Value, tuple[RowNest, int]] = field(
        default_factory=dict[Value, "tuple[RowNest, int]"]
    )
    late: set[Value] = field(default_factory=set[Value])
    passes: list[list[RowNest]] = field(default_factory=list[list[RowNest]])
    pass_of: dict[Instruction, int] = field(default_factory=dict[Instruction, int])

    def take(self, instruction: Instruction, *, is_needed: bool = False) -> None:
        """Put one instruction where it belongs."""
        bases = {base_of(operand) for operand in instruction.operands}
        one = None if len(self.members) == _MOST_MEMBERS else self._joining(instruction)
        if not bases.isdisjoint(self.late):
            self._defer(instruction)
        elif one is not None and (is_needed or not bases.isdisjoint(self.touched)):
            self._join(one)
        elif bases.isdisjoint(self.made):
            self.before.append(instruction)
        elif instruction.op.is_view:
            self.behind.append(instruction)
        else:
            self._defer(instruction)

    def fits(self, target: Target) -> bool:
        """Whether the rows fit the nearer caches."""
        sizes = [
            value.tensor.bytes // math.prod(self.rows)
            for value in self.touched
            if value.tensor.size >= math.prod(self.rows)
        ]
        return sum(sizes) <= target.l2_bytes // 2

    def write(self, block: Block, plan: RowPlan, target: Target) -> int:
        """Put the kernel where the members stood; the position behind it."""
        b = Builder(Block(), self.members[0].nest.location)
        made = build_rows(b, plan, target.vector_bytes, has_fma=target.fma)
        for result, value in zip(plan.outputs, made, strict=True):
            result.replace_with(value)
        for one in self.members:
            one.nest.drop_all_references()
        kernel = b.block.instructions
        block.instructions[self.start : self.stop] = [*self.before, *kernel, *self.behind]
        return self.start + len(self.before) + len(kernel)

    def _joining(self, instruction: Instruction) -> RowNest | None:
        """The form of what may be a member."""
        one = self.forms.of(instruction, self.rows)
        if one is None:
            return None
        for number, operand in enumerate(one.nest.operands):
            if base_of(operand) in self.made and one.reads_each_row(number) is None:
                return None
        return one

    def _join(self, one: RowNest) -> None:
        first = 0
        for number, operand in enumerate(one.nest.operands):
            maker, result = self.made.get(base_of(operand), (None, 0))
            if maker is not None:
                at = self.pass_of[maker.nest]
                is_same = one.length == maker.length and (
                    not one.length or (maker.has_rows(result) and one.is_at_point(number))
                )
                first = max(first, at if is_same else at + 1)
        for number in range(first, len(self.passes)):
            if self.passes[number][0].length == one.length:
                first = number
                break
        else:
            first = len(self.passes)
            self.passes.append([])
        self.passes[first].append(one)
        self.pass_of[one.nest] = first
        self.members.append(one)
        self.touched.update(base_of(x) for x in one.nest.operands if not is_constant(x))
        for number, value in enumerate(one.nest.results):
            self.touched.add(value)
            self.made[value] = one, number

    def _defer(self, instruction: Instruction) -> None:
        self.behind.append(instruction)
        self.late.update(instruction.results)

    # The plan.

    def plan(self, target: Target, room: int) -> RowPlan:
        """Where everything lies, with so many bytes for buffers of its own."""
        outputs = [result for result in self.made if self.is_read_by_others(result)]
        homes: dict[Value, Value | None] = {}
        for result, (one, number) in self.made.items():
            if result in outputs or not one.has_rows(number):
                continue
            last = self._last_read(result)
            if last == self.pass_of[one.nest]:
                continue
            size = one.length * result.tensor.dtype.bytes
            home = self._home(result, last, outputs, homes) or self._shared(result, last, homes)
            if home is None and size > room:
                outputs.append(result)
            else:
                homes[result] = home
                room -= size if home is None else 0
        overwriting = tuple(self._overwritten(outputs, homes))
        grains = share_rows(self.rows, self._nanoseconds(target))
        return RowPlan(self.passes, outputs, homes, overwriting, self._rows_ahead(target), grains)

    def _nanoseconds(self, target: Target) -> float:
        """About how long the kernel takes."""
        steps = 0.0
        for nests in self.passes:
            form = PassForm(nests, target.vector_bytes)
            accesses = sum(len(one.nest.operands) + len(one.nest.results) for one in nests)
            steps += -(-form.length // form.lanes) * (form.cost + accesses)
        return _STEP * math.prod(self.rows) * steps

    def local_bytes(self, plan: RowPlan) -> int:
        """What a plan takes of the stack."""
        local = [
            self.made[x][0].length * x.tensor.dtype.bytes for x, y in plan.homes.items() if not y
        ]
        return sum(local)

    def _rows_ahead(self, target: Target) -> int:
        """How many rows before they are needed elements are to be fetched; 0 where all is in the nearer caches."""
        length = max(one.length for one in self.members)
        row = max(x.tensor.bytes for x in self.touched) // math.prod(self.rows)
        if (
            not is_enabled("prefetch")
            or sum(x.tensor.bytes for x in self.touched) < target.near_l2_bytes
        ):
            return 0
        return max(1, _AHEAD // row) if length else 0

    def _home(
        self,
        result: Value,
        last: int,
        outputs: Sequence[Value],
        homes: dict[Value, Value | None],
    ) -> Value | None:
        """An output in whose place a row may lie until it is written: when, or after, the row is read last."""
        one, _ = self.made[result]
        for output in outputs:
            maker, number = self.made[output]
            written = self.pass_of[maker.nest]
            if (
                maker.has_rows(number)
                and maker.length == one.length
                and output.tensor.dtype == result.tensor.dtype
                and self._is_free(output, result, last, homes)
                and written >= last
                and all(
                    at != written or reader.is_at_point(place)
                    for at, reader, place in self.reads(result)
                )
                and written > self.pass_of[one.nest]
            ):
                return output
        return None

    def _shared(self, result: Value, last: int, homes: dict[Value, Value | None]) -> Value | None:
        """A value in whose small buffer a row may lie: of that size, and needed before it or after it only."""
        one, _ = self.made[result]
        for owner, home in homes.items():
            if (
                home is None
                and self.made[owner][0].length == one.length
                and owner.tensor.dtype == result.tensor.dtype
                and self._is_free(owner, result, last, homes)
            ):
                return owner
        return None

    def _is_free(
        self, place: Value, result: Value, last: int, homes: dict[Value, Value | None]
    ) -> bool:
        """Whether no row lies in a place in any pass from the one that makes `result` to the `last` that reads it."""
        first = self.pass_of[self.made[result][0].nest]
        there = [x for x, home in homes.items() if home is place or (home is None and x is place)]
        return all(
            self._last_read(x) < first or last < self.pass_of[self.made[x][0].nest] for x in there
        )

    def _overwritten(
        self, outputs: Sequence[Value], homes: dict[Value, Value | None]
    ) -> Iterator[tuple[Value, Value]]:
        """Operands, and results that may lie in their places: of each element they are read before it is written."""
        firsts = {output: self.pass_of[self.made[output][0].nest] for output in outputs}
        for result, home in homes.items():
            if home is not None and home in firsts:
                firsts[home] = min(firsts[home], self.pass_of[self.made[result][0].nest])
        operands = [x for one in self.members for x in one.nest.operands]
        for operand in dict.fromkeys(operands):
            if base_of(operand) in self.made or is_constant(operand):
                continue
            reads = list(self.reads(operand))
            last = max(at for at, _, _ in reads)
            if not all(reader.length and reader.is_at_point(k) for _, reader, k in reads):
                continue
            for output in outputs:
                maker, number = self.made[output]
                if (
                    output.tensor == operand.tensor
                    and maker.has_rows(number)
                    and last <= firsts[output]
                ):
                    yield operand, output

    def reads(self, value: Value) -> Iterator[tuple[int, RowNest, int]]:
        """The passes, members and operands that read a value, or through a view of it."""
        for one in self.members:
            for number, operand in enumerate(one.nest.operands):
                if operand is value or base_of(operand) is value:
                    yield self.pass_of[one.nest], one, number

    def _last_read(self, result: Value) -> int:
        own = self.pass_of[self.made[result][0].nest]
        return max((at for at, _, _ in self.reads(result)), default=own)

    def is_read_by_others(
        self, result: Value, besides: AbstractSet[Instruction] = frozenset()
    ) -> bool:
        """Whether anybody else reads it."""
        return any(
            not (user.op.is_view or user in self.pass_of or user in besides)
            for value in with_views(result)
            for user in value.uses
        )


def with_views(value: Value) -> list[Value]:
    """A value and those that are views of it."""
    found = [value]
    for one in found:  # which grows
        for user in one.uses:
            if user.op.is_view:
                found += user.results
    return found


def group_of_rows(
    instructions: Sequence[Instruction], seed: int, forms: RowForms, target: Target
) -> RowGroup | None:
    """The group around a reduction of rows, that alone perhaps; None if the rows fit no nearer cache."""
    nest = instructions[seed]
    assert is_nest(nest)
    rows = nest.op.extents[:-1]
    needed = _makers(instructions, seed, rows, forms)
    start = next(k for k, i in enumerate(instructions[: seed + 1]) if i in needed)
    group = RowGroup(rows, forms, start)
    for position in range(start, min(len(instructions), seed + _WINDOW)):
        instruction = instructions[position]
        op = instruction.op
        is_fixed = op.is_terminator or op.is_structured or op.effect is not Effect.NONE
        if is_fixed or (is_nest(instruction) and instruction.op.updates):
            break
        group.take(instruction, is_needed=instruction in needed)
        group.stop = position + 1
    return group if group.fits(target) else None


def _makers(
    instructions: Sequence[Instruction], seed: int, rows: Shape, forms: RowForms
) -> set[Instruction]:
    """The seed, and nests just before it that go through the same rows and make what it reads."""
    near = set(instructions[max(0, seed - _WINDOW) : seed])
    found = {instructions[seed]}
    pending = [instructions[seed]]
    while pending:
        for operand in pending.pop().operands:
            maker = base_of(operand).producer
            if maker is None or maker in found or maker not in near or len(found) == _MOST_MEMBERS:
                continue
            if forms.of(maker, rows) is not None:
                found.add(maker)
                pending.append(maker)
    return found


def _fills_vectors(one: RowNest) -> bool:
    """Whether rows are long, and what is read along them lies side by side."""
    if not one.length:
        return True
    return one.length >= _LEAST_ROW and all(
        is_constant(operand) or _step(one, number) in (0, 1)
        for number, operand in enumerate(one.nest.operands)
    )


def _step(one: RowNest, number: int) -> int:
    """How far apart the elements of an operand lie that neighbours in a row read."""
    operand = one.nest.operands[number]
    indices = one.indices_into(number, operand.tensor.shape)
    step, stride = 0, 1
    for index, extent in zip(reversed(indices), reversed(operand.tensor.shape), strict=True):
        step += stride * index.coefficient(one.rank)
        stride *= extent
    return step
