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

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache, partial

import numpy as np

from ..ir import Instruction, Value
from ..ir.instruction import Op
from ..kernels.bodies import factors_of
from ..kernels.build import KernelBuilder
from ..kernels.indices import IndexSum
from ..kernels.ops import Fma, LaneNumbers, ReduceLanes
from ..kernels.vectorise import COMBINING
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.literal import Literal, dense, literal_of, splat, splat_literal
from ..ops.nest import Affine, Index, axes_in
from ..ops.reduction import Broadcast
from ..types import BOOL, DType, TensorType, scalar
from .cuts import comparisons, decided_comparison, is_short, parts_of
from .ops import Loops, cuts_of


@dataclass(frozen=True, slots=True)
class WrittenResult:
    """A result: the value of the body that is written, and the level at which its reduction begins, if it is one."""

    number: int
    value: Value
    begins: int | None
    inside: bool
    """Whether the vector loop is one of those that are reduced."""
    factors: tuple[Value, Value] | None = None
    """Of a product that only a sum uses: both are one instruction."""


class NestLevels:
    """The loops of a nest, and inside of which of them each value of its body differs: a mask, bit 0 the outermost."""

    def __init__(self, instruction: Instruction, op: Loops, *, has_fma: bool) -> None:
        self.op = op
        self.instruction = instruction
        self.axes = tuple([axis for axis in op.order if op.extents[axis] > 1])
        self.position = {axis: position for position, axis in enumerate(self.axes)}
        self.vector = self.position.get(op.vector, -1) if op.lanes > 1 else -1
        body = instruction.regions[0].entry
        rank = len(op.extents)
        self.coordinates, self.scalars = body.arguments[:rank], body.arguments[rank:]
        self.computed, self.results = body.instructions[:-1], body.terminator.operands
        self.uses = _uses(body.instructions)
        self.literals: dict[Value, Literal] = {}
        self.masks: dict[Value, int] = {}
        self._find_masks()
        self.targets = [self._target(number, has_fma) for number in range(len(op.outputs))]
        self.fused = {t.value for t in self.targets if t.factors is not None}

    @property
    def depth(self) -> int:
        return len(self.axes)

    def level(self, value: Value) -> int:
        return self.masks.get(value, 0).bit_length()

    def varies(self, value: Value) -> bool:
        """Whether it differs between lanes."""
        return self.vector >= 0 and bool(self.masks.get(value, 0) >> self.vector & 1)

    def moves(self, indices: Sequence[Index]) -> bool:
        """Whether an element at these indices is another one in each lane."""
        return self.vector >= 0 and self.op.vector in axes_in(indices)

    def _mask(self, indices: Sequence[Index]) -> int:
        return sum(1 << self.position[axis] for axis in axes_in(indices) if axis in self.position)

    def _find_masks(self) -> None:
        for axis, value in enumerate(self.coordinates):
            self.masks[value] = 1 << self.position[axis] if axis in self.position else 0
        operands = self.instruction.operands
        for value, operand, access in zip(self.scalars, operands, self.op.accesses, strict=True):
            literal = splat_literal(operand) if operand.tensor.size else None
            if literal is not None:
                self.literals[value] = literal
            else:
                self.masks[value] = self._mask(access.indices)
        for computed in self.computed:
            literal = literal_of(computed.result)
            if literal is not None:
                self.literals[computed.result] = literal
                continue
            mask = 0
            for operand in computed.operands:
                mask |= self.masks.get(operand, 0)
            self.masks[computed.result] = mask

    def _target(self, number: int, has_fma: bool) -> WrittenResult:
        written, value = self.op.outputs[number], self.results[number]
        first = self._mask(written.indices).bit_length()
        if written.combinator is None or first == self.depth:
            return WrittenResult(number, value, None, False)
        is_sum = written.combinator is Combinator.ADD and self.level(value) == self.depth
        factors = factors_of(value) if has_fma and is_sum else None
        return WrittenResult(number, value, first, self.vector >= first, factors)


@dataclass
class NestLoopWriter:
    """Writes the loops of a nest; `buffers` are those of its operands."""

    build: KernelBuilder
    levels: NestLevels
    buffers: Mapping[Value, Value]
    grain: int = 0
    """Of the outermost loop, in points."""
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """By the value of the body: what is known where the writer is."""
    wide: dict[tuple[Value, int], Value] = field(default_factory=dict[tuple[Value, int], Value])
    """What is the same in all lanes, by their number."""
    lanes: int = 1
    active: int = 1
    is_short: bool = False

    def __post_init__(self) -> None:
        levels, op = self.levels, self.levels.op
        self.at = [IndexSum(0, {})] * len(op.extents)
        self.ranges = {axis: (0, extent - 1) for axis, extent in enumerate(op.extents)}
        self.compared = comparisons(levels.instruction) if op.cuts else {}
        self.steps: list[list[Callable[[], None]]] = [[] for _ in range(levels.depth + 1)]
        for axis, value in enumerate(levels.coordinates):
            if value in levels.uses:
                self.steps[levels.level(value)].append(partial(self._write_coordinate, axis))
        for number, value in enumerate(levels.scalars):
            if value in levels.uses and value not in levels.literals:
                self.steps[levels.level(value)].append(partial(self._write_read, number))
        for computed in levels.computed:
            value = computed.result
            if value in levels.uses and value not in levels.literals and value not in levels.fused:
                self.steps[levels.level(value)].append(partial(self._write_computed, computed))
        self.begun: list[list[WrittenResult]] = [[] for _ in range(levels.depth + 1)]
        for target in levels.targets:
            if target.begins is not None:
                self.begun[target.begins].append(target)
            else:
                written = axes_in(op.outputs[target.number].indices)
                found = [levels.position[axis] + 1 for axis in written if axis in levels.position]
                level = max([levels.level(target.value), *found])
                self.steps[level].append(partial(self._write_result, target))
        self.copied = self._copied()

    def _copied(self) -> set[Value]:
        """What is the same in all lanes, and is used where they differ."""
        levels, found = self.levels, set[Value]()
        for computed in levels.computed:
            if levels.varies(computed.result) and computed.result in levels.uses:
                found.update(x for x in computed.operands if not levels.varies(x))
        for target in levels.targets:
            moves = levels.moves(levels.op.outputs[target.number].indices)
            if target.inside or (target.begins is None and moves) or target.factors:
                values = target.factors or (target.value,)
                found.update(x for x in values if not levels.varies(x))
        return {value for value in found if value not in levels.literals}

    def write(self) -> None:
        for value, literal in self.levels.literals.items():
            if value in self.levels.uses:
                type = scalar(literal.type.dtype)
                self.values[value] = self._emit(Literal(type, literal.data), type)
        self._write_level(0, [])

    # Loops.

    def _write_level(self, level: int, totals: Sequence[Value]) -> list[Value]:
        """Everything inside of `level` loops; the carried totals afterwards."""
        for write in self.steps[level]:
            write()
        if level == self.levels.depth:
            return self._accumulated(totals)
        begun = self.begun[level]
        carried = self._write_loops(level, [*totals, *map(self._start, begun)])
        for target, total in zip(begun, carried[len(totals) :], strict=True):
            self._finish(target, total)
        return carried[: len(totals)]

    def _write_loops(self, level: int, carried: list[Value]) -> list[Value]:
        op, axis = self.levels.op, self.levels.axes[level]
        extent, cuts = op.extents[axis], cuts_of(op, axis)
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
        op = self.levels.op
        lanes = op.lanes if level == self.levels.vector else 1
        copies = op.accumulators if self._is_innermost_reduction(level) else 1
        whole, rounds = count - count % lanes, count - count % (lanes * copies)
        carried = self._write_rounds(level, first, rounds, copies, carried)
        carried = self._write_rounds(level, first + rounds, whole - rounds, 1, carried)
        if whole < count:
            at = IndexSum(first + whole, {})
            wide = lanes if self._reduces_lanes else 1 << (count - whole - 1).bit_length()
            carried = self._write_step(level, at, wide, count - whole, carried)
        return carried

    def _is_innermost_reduction(self, level: int) -> bool:
        return level == self.levels.depth - 1 and any(self.begun)

    @property
    def _reduces_lanes(self) -> bool:
        return any(target.inside for target in self.levels.targets)

    def _write_rounds(
        self, level: int, first: int, count: int, copies: int, carried: list[Value]
    ) -> list[Value]:
        """So many points in rounds of several steps, each with its own totals, which are joined pairwise at the end."""
        if not count:
            return carried
        lanes = self.levels.op.lanes if level == self.levels.vector else 1
        targets = self._carried(level)
        width, unit = len(targets), lanes * copies
        totals = [*carried, *[self._start(t) for _ in range(copies - 1) for t in targets]]

        def write_round(at: IndexSum, totals: Sequence[Value]) -> list[Value]:
            found: list[Value] = []
            for copy in range(copies):
                part = totals[copy * width : (copy + 1) * width]
                found += self._write_step(level, at.plus(copy * lanes), lanes, lanes, part)
            return found

        if count == unit:
            totals = write_round(IndexSum(first, {}), totals)
        else:
            grain = self.grain // unit if level == 0 and not targets else 0
            with self.build.loop(
                first + count, lower=first, step=unit, grain=grain, carrying=totals
            ) as loop:
                loop.yields(*write_round(IndexSum(0, {loop.index: 1}), loop.carried))
            totals = list(loop.results)
        parts = [totals[k * width : (k + 1) * width] for k in range(copies)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [self._joined(targets, x, y) for x, y in pairs] + odd
        return parts[0]

    def _write_step(
        self, level: int, at: IndexSum, lanes: int, active: int, totals: Sequence[Value]
    ) -> list[Value]:
        outer = self.lanes, self.active
        self.at[self.levels.axes[level]] = at
        if level == self.levels.vector:
            self.lanes, self.active = lanes, active
        found = self._write_level(level + 1, totals)
        self.lanes, self.active = outer
        return found

    # Reductions.

    def _carried(self, level: int) -> list[WrittenResult]:
        return [target for inner in range(level + 1) for target in self.begun[inner]]

    def _combinator(self, target: WrittenResult) -> Combinator:
        combinator = self.levels.op.outputs[target.number].combinator
        assert combinator is not None
        return combinator

    def _start(self, target: WrittenResult) -> Value:
        """The total of nothing."""
        lanes = self.lanes if self.levels.varies(target.value) else 1
        if target.inside:
            lanes = self.levels.op.lanes
        dtype = target.value.tensor.dtype
        identity = self._combinator(target).identity(dtype)
        return self.build.emit(splat(_type(dtype, lanes), identity))

    def _joined(
        self, targets: Sequence[WrittenResult], totals: Sequence[Value], others: Sequence[Value]
    ) -> list[Value]:
        return [
            self._emit(COMBINING[self._combinator(target)], x.tensor, x, y)
            for target, x, y in zip(targets, totals, others, strict=True)
        ]

    def _accumulated(self, totals: Sequence[Value]) -> list[Value]:
        """The totals with what this point gives; lanes that are no points keep what they had."""
        found: list[Value] = []
        for target, total in zip(self._carried(self.levels.depth - 1), totals, strict=True):
            lanes = total.tensor.size
            if target.factors is not None:
                x, y = [self._value(factor, lanes) for factor in target.factors]
                joined = self._emit(Fma(), total.tensor, x, y, total)
            else:
                value = self._value(target.value, lanes)
                op = COMBINING[self._combinator(target)]
                joined = self._emit(op, total.tensor, total, value)
            if target.inside and self.active < self.lanes:
                mask = np.arange(lanes) < self.active
                chosen = self.build.emit(dense(_type(BOOL, lanes), mask))
                joined = self._emit(Select(), total.tensor, joined, total, chosen)
            found.append(joined)
        return found

    def _finish(self, target: WrittenResult, total: Value) -> None:
        if target.inside:
            total = self.build.emit(ReduceLanes(self._combinator(target)), total)
        self._store(target, total)

    # What stands at a level.

    def _write_coordinate(self, axis: int) -> None:
        value = self.build.index_value(self.at[axis])
        lanes = self.lanes
        if axis == self.levels.op.vector and self.levels.vector >= 0 and lanes > 1:
            wide = _type(value.tensor.dtype, lanes)
            first = self._emit(Broadcast((lanes,)), wide, value)
            numbers = self._emit(LaneNumbers(lanes), wide)
            value = self._emit(Add(), wide, first, numbers)
        self._keep(self.levels.coordinates[axis], value)

    def _write_read(self, number: int) -> None:
        operand = self.levels.instruction.operands[number]
        indices = self.levels.op.accesses[number].indices
        at, steps = self._indices(indices)
        lanes = self.lanes if steps else 0
        active = self.active % self.lanes if steps else 0
        loaded = self.build.load(
            self.buffers[operand], *at, lanes=lanes, steps=steps, active=active
        )
        self._keep(self.levels.scalars[number], loaded)

    def _write_computed(self, computed: Instruction) -> None:
        result = computed.result
        difference = self.compared.get(result)
        if difference is not None:
            holds = decided_comparison(computed.op, difference, self.ranges)
            if holds is not None:
                self._keep(result, self.build.constant(BOOL, holds))
                return
        lanes = self.lanes if self.levels.varies(result) else 1
        operands = [self._value(operand, lanes) for operand in computed.operands]
        lanes = max([1, *[operand.tensor.size for operand in operands]])
        made = self._emit(computed.op, _type(result.tensor.dtype, lanes), *operands)
        self._keep(result, made)

    def _write_result(self, target: WrittenResult) -> None:
        self._store(target, self._value(target.value, self.lanes))

    def _keep(self, value: Value, made: Value) -> None:
        self.values[value] = made
        if value not in self.copied or made.tensor.rank:
            return
        counts = {self.lanes}
        if self.levels.vector >= self.levels.level(value):
            counts = self._lane_counts
        for lanes in counts - {1}:
            wide = _type(made.tensor.dtype, lanes)
            self.wide[value, lanes] = self._emit(Broadcast((lanes,)), wide, made)

    @property
    def _lane_counts(self) -> set[int]:
        """The numbers of lanes that the vector loop uses."""
        op, found = self.levels.op, set[int]()
        extent = op.extents[op.vector]
        for _, count in [(0, extent), *parts_of(extent, cuts_of(op, op.vector))]:
            if count >= op.lanes:
                found.add(op.lanes)
            if count % op.lanes:
                tail = 1 << (count % op.lanes - 1).bit_length()
                found.add(op.lanes if self._reduces_lanes else tail)
        return found

    def _value(self, value: Value, lanes: int) -> Value:
        """A value of the body, copied to the lanes if it is the same in all of them; constants are not."""
        return self.wide[value, lanes] if (value, lanes) in self.wide else self.values[value]

    # Memory.

    def _store(self, target: WrittenResult, value: Value) -> None:
        written = self.levels.op.outputs[target.number]
        at, steps = self._indices(written.indices)
        if steps and not value.tensor.rank:
            wide = _type(value.tensor.dtype, self.lanes)
            value = self._emit(Broadcast((self.lanes,)), wide, value)
        active = self.active % self.lanes if steps else 0
        buffer = self.build.outputs[target.number]
        self.build.store(value, buffer, *at, steps=steps, active=active)

    def _indices(self, indices: Sequence[Index]) -> tuple[list[IndexSum], tuple[int, ...]]:
        """Where the first lane is, and steps from lane to lane, if there are any."""
        at: list[IndexSum] = []
        for index in indices:
            assert isinstance(index, Affine)
            found = IndexSum(index.constant, {})
            for axis, coefficient in index.terms:
                found = found.plus(self.at[axis], coefficient)
            at.append(found)
        if self.lanes == 1 or not self.levels.moves(indices):
            return at, ()
        vector = self.levels.op.vector
        return at, tuple([i.coefficient(vector) for i in indices if isinstance(i, Affine)])

    def _emit(self, op: Op, type: TensorType, *operands: Value) -> Value:
        """Append an op whose result's type is known: asking the op for it takes longer than all else."""
        return self.build.emit_typed(op, type, *operands)


@cache
def _type(dtype: DType, lanes: int) -> TensorType:
    return TensorType((lanes,) if lanes > 1 else (), dtype)


def _uses(instructions: Sequence[Instruction]) -> dict[Value, int]:
    """How often each value is used by what the results need."""
    uses: dict[Value, int] = {}
    for instruction in reversed(instructions):
        if instruction.op.is_terminator or any(result in uses for result in instruction.results):
            for operand in instruction.operands:
                uses[operand] = uses.get(operand, 0) + 1
    return uses
