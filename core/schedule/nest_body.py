"""What a nest computes at each level of its loops: coordinates, checks, reads, scalars of the body, results.

What depends on a loop stands inside of it, and what does not, around it; what is the same in all lanes is computed
once, as a scalar, and copied to the lanes where it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial

from ..ir import Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.nest import Loaded
from ..ops.reduction import Broadcast
from ..types import BOOL
from .combining import type_of
from .cuts import comparisons, decided_comparison, parts_of
from .nest_accesses import NestAccessWriter
from .nest_levels import WrittenResult


@dataclass
class NestBodyWriter(NestAccessWriter):
    """Writes the scalars of a nest's body at the levels that they depend on."""

    wide: dict[tuple[Value, int], Value] = field(default_factory=dict[tuple[Value, int], Value])
    """What is the same in all lanes, by their number."""

    def __post_init__(self) -> None:
        super().__post_init__()
        levels, op = self.levels, self.levels.op
        self.compared = comparisons(levels.instruction) if levels.cuts else {}
        self.steps: list[list[Callable[[], None]]] = [[] for _ in range(levels.depth + 1)]
        for axis, value in enumerate(levels.coordinates):
            if value in levels.uses:
                self.steps[levels.level(value)].append(partial(self._write_coordinate, axis))
        self._plan_reads()
        for computed in levels.computed:
            value = computed.result
            if value in levels.uses and value not in levels.literals and value not in levels.fused:
                self.steps[levels.level(value)].append(partial(self._write_computed, computed))
        self.begun: list[list[WrittenResult]] = [[] for _ in range(levels.depth + 1)]
        for target in levels.targets:
            written = op.outputs[target.number]
            for level, write in self.index_steps(
                target.indices, written.type.shape, written.bounds
            ):
                self.steps[level].append(write)
            if target.begins is not None:
                self.begun[target.begins].append(target)
            else:
                level = max(levels.level(target.value), levels.mask(target.indices).bit_length())
                level = levels.depth if target.is_scattered else level
                self.steps[level].append(partial(self._write_result, target))

    def _plan_reads(self) -> None:
        """Checks of indices are written whether or not anybody uses what they lead to."""
        levels, op = self.levels, self.levels.op
        operands = levels.instruction.operands
        everywhere = [*levels.indices, *[target.indices for target in levels.targets]]
        indexing = {i.operand for indices in everywhere for i in indices if isinstance(i, Loaded)}
        for number, value in enumerate(levels.scalars):
            if value in levels.literals:
                continue
            shape, bounds = operands[number].tensor.shape, op.accesses[number].bounds
            for level, write in self.index_steps(levels.indices[number], shape, bounds):
                self.steps[level].append(write)
            if value in levels.uses or number in indexing:
                self.steps[levels.level(value)].append(partial(self._write_read, number))

    def write_steps(self, level: int) -> None:
        """What stands at a level, in front of the loop inside."""
        for write in self.steps[level]:
            write()

    def _write_coordinate(self, axis: int) -> None:
        is_vector = axis == self.levels.op.vector and self.levels.vector >= 0
        value = self.numbered(self.build.index_value(self.at[axis]), int(is_vector))
        self._keep(self.levels.coordinates[axis], value)

    def _write_read(self, number: int) -> None:
        self._keep(self.levels.scalars[number], self.read(number))

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
        made = self.emit(computed.op, type_of(result.tensor.dtype, lanes), *operands)
        self._keep(result, made)

    def _write_result(self, target: WrittenResult) -> None:
        moves = target.varies or self.levels.moves(target.indices)
        value = self._value(target.value, self.lanes if moves else 1)
        if target.varies and self.lanes > 1 and not value.tensor.rank:
            wide = type_of(value.tensor.dtype, self.lanes)
            value = self.emit(Broadcast((self.lanes,)), wide, value)
        self.store(target, value)

    def _keep(self, value: Value, made: Value) -> None:
        self.values[value] = made
        if value not in self.levels.copied or made.tensor.rank:
            return
        counts = {self.lanes}
        if self.levels.vector >= self.levels.level(value):
            counts = self._lane_counts
        for lanes in counts - {1}:
            wide = type_of(made.tensor.dtype, lanes)
            self.wide[value, lanes] = self.emit(Broadcast((lanes,)), wide, made)

    @property
    def _lane_counts(self) -> set[int]:
        """The numbers of lanes that the vector loop uses."""
        op, found = self.levels.op, set[int]()
        extent = op.extents[op.vector]
        for _, count in [(0, extent), *parts_of(extent, self.levels.cuts_of(op.vector))]:
            if count >= op.lanes:
                found.add(op.lanes)
            if count % op.lanes:
                tail = 1 << (count % op.lanes - 1).bit_length()
                found.add(op.lanes if self._reduces_lanes else tail)
        return found

    def _value(self, value: Value, lanes: int) -> Value:
        """A value of the body, copied to the lanes if it is the same in all of them; constants are not."""
        return self.wide[value, lanes] if (value, lanes) in self.wide else self.values[value]

    @property
    def _reduces_lanes(self) -> bool:
        return any(target.inside for target in self.levels.targets)
