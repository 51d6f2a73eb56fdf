"""Writes what a nest reads, and where it stores, at the point that the loops of its kernel are at.

| index                | bounds        | becomes                                                                    |
|----------------------|---------------|----------------------------------------------------------------------------|
| affine               | inside        | an index of `loadAt` or `storeAt`                                          |
| affine, or read      | zero          | the same, where a condition holds; none where that is known in all of a part |
| affine, or read      | clip          | a coordinate, moved to the nearest end of the axis                         |
| read                 | inside, check | a coordinate: one for each lane, if lanes read different ones              |

Conditions, clipped indices and checks stand at the level of the loops that their index depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

import numpy as np

from ..compute.address import is_inside
from ..ir import Value
from ..ir.instruction import Op
from ..kernels.access_ops import buffer_of
from ..kernels.build import KernelBuilder
from ..kernels.guarded_ops import ExtractLane, IsInside
from ..kernels.indices import IndexSum
from ..kernels.ops import LaneNumbers, ReduceLanes
from ..kernels.pairs import add_compensated, add_in_excess
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add, Maximum, Minimum
from ..ops.casting import DataTypeCast
from ..ops.combinator import Combinator
from ..ops.comparison import And, Select
from ..ops.literal import dense
from ..ops.nest import Affine, Bounds, Index, Loaded
from ..ops.reduction import Broadcast
from ..types import BOOL, I64, DType, Shape, TensorType
from .combining import added_as, identity_of, joined, logical, type_of
from .cuts import decided_inside
from .memory_totals import MemoryTotals
from .nest_levels import NestLevels, WrittenResult


@dataclass(frozen=True, slots=True)
class BoundedIndex:
    """An index that may be outside of its axis, and what happens there."""

    index: Index
    extent: int
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Where the first lane's element is, how far it is from lane to lane, and where there is one at all.

    `lanes` is 0 where all lanes are at one element; indices may have a coordinate for each lane.  Where an index
    `is_computed`, nobody but the nest knows that it is inside.
    """

    at: tuple[IndexSum, ...]
    lanes: int
    steps: tuple[int, ...]
    condition: Value | None
    is_computed: bool

    @property
    def is_scattered(self) -> bool:
        """Whether the lanes have coordinates of their own."""
        return any(value.tensor.rank for index in self.at for value in index.terms)


NO_ROW: Final = IndexSum(0, {})


@dataclass
class NestAccessWriter:
    """Writes loads, stores and indices of a nest; `buffers` are those of its operands and results."""

    build: KernelBuilder
    levels: NestLevels
    buffers: Mapping[Value, Value]
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """By the value of the body: what is known where the writer is."""
    lanes: int = 1
    active: int = 1
    windows: Mapping[Value, int] = field(default_factory=dict[Value, int])
    """The buffers that have room for one block of rows, one row after the other, and the elements of a row."""
    first_row: IndexSum = NO_ROW
    """Of the block that the loops are at."""

    def __post_init__(self) -> None:
        op = self.levels.op
        self.at = [IndexSum(0, {})] * len(op.extents)
        self.ranges = {axis: (0, extent - 1) for axis, extent in enumerate(op.extents)}
        self.read_indices: dict[int, Value] = {}
        """As i64, by the number of the operand."""
        self.bounded: dict[BoundedIndex, Value | bool | None] = {}
        """Whether an index is inside, or the index clipped; None if nothing of it is needed."""
        self.excesses = {
            number: self.build.scratch(op.outputs[number].type) for number in self.levels.scattered
        }
        self.in_memory = MemoryTotals(self.build, op, self.result)

    def result(self, number: int) -> Value:
        """The buffer that an output is written to."""
        within = self.levels.op.outputs[number].within
        return self.buffers[self.levels.instruction.results[number if within is None else within]]

    # Indices.

    def index_steps(
        self, indices: Sequence[Index], shape: Shape, bounds: Bounds
    ) -> Iterator[tuple[int, Callable[[], None]]]:
        """What is to be written before an access, at which level, unless that has been said before."""
        levels = self.levels
        for index, extent in zip(indices, shape, strict=True):
            if isinstance(index, Loaded) and index.operand not in self.read_indices:
                value = levels.scalars[index.operand]
                self.read_indices[index.operand] = value
                yield levels.level(value), partial(self._write_read_index, index.operand)
            key = self._bounded_index(index, extent, bounds)
            if key is not None and key not in self.bounded:
                self.bounded[key] = None
                yield levels.mask([index]).bit_length(), partial(self._write_bound, key)

    def _bounded_index(self, index: Index, extent: int, bounds: Bounds) -> BoundedIndex | None:
        if bounds is Bounds.INSIDE or is_inside(index, extent, self.levels.op.extents):
            return None
        return BoundedIndex(index, extent, bounds)

    def _write_read_index(self, number: int) -> None:
        value = self.values[self.levels.scalars[number]]
        if value.tensor.dtype != I64:
            value = self.emit(DataTypeCast(I64), value.tensor.with_dtype(I64), value)
        self.read_indices[number] = value

    def _write_bound(self, key: BoundedIndex) -> None:
        index, extent = key.index, key.extent
        if key.bounds is Bounds.ZERO and isinstance(index, Affine):
            holds = decided_inside(index, extent, self.ranges)
            if holds is not None:
                self.bounded[key] = holds
                return
        value = self._index_value(index)
        match key.bounds:
            case Bounds.CHECK:
                lanes = value.tensor.size
                self.build.check(value, extent, active=self.active % lanes if lanes > 1 else 0)
            case Bounds.CLIP:
                ends = [self.build.constant(I64, end) for end in (0, max(extent - 1, 0))]
                least = self.emit(Maximum(), value.tensor, value, ends[0])
                self.bounded[key] = self.emit(Minimum(), value.tensor, least, ends[1])
            case _:
                is_there = self.emit(IsInside(extent), value.tensor.with_dtype(BOOL), value)
                self.bounded[key] = is_there

    def _index_value(self, index: Index) -> Value:
        """An index, or one for each lane if these differ."""
        if isinstance(index, Loaded):
            return self.read_indices[index.operand]
        step = index.coefficient(self.levels.op.vector) if self.levels.moves([index]) else 0
        return self.numbered(self.build.index_value(self._affine(index)), step)

    def numbered(self, first: Value, step: int) -> Value:
        """A number, and so much more for each lane."""
        if self.lanes == 1 or not step:
            return first
        wide = type_of(first.tensor.dtype, self.lanes)
        first = self.emit(Broadcast((self.lanes,)), wide, first)
        return self.emit(Add(), wide, first, self.emit(LaneNumbers(self.lanes, step), wide))

    def _affine(self, index: Affine) -> IndexSum:
        found = IndexSum(index.constant, {})
        for axis, coefficient in index.terms:
            found = found.plus(self.at[axis], coefficient)
        return found

    # Elements.

    def _place(
        self, indices: Sequence[Index], type: TensorType, bounds: Bounds
    ) -> ElementPlace | None:
        """Where an element is; None if there is none in all of the part that the loops are in."""
        if not type.size:
            return None
        moves = self.lanes > 1 and self.levels.moves(indices)
        at: list[IndexSum] = []
        steps: list[int] = []
        condition: Value | None = None
        is_computed = False
        for index, extent in zip(indices, type.shape, strict=True):
            key = self._bounded_index(index, extent, bounds)
            known = self.bounded[key] if key is not None else None
            if known is False:
                return None
            step = 0
            if isinstance(known, Value) and bounds is Bounds.CLIP:
                at.append(IndexSum(0, {known: 1}))
                is_computed = True
            elif isinstance(index, Affine):
                at.append(self._affine(index))
                is_computed |= key is not None and bounds is Bounds.CHECK
                step = index.coefficient(self.levels.op.vector) if moves else 0
            else:
                at.append(IndexSum(0, {self.read_indices[index.operand]: 1}))
                is_computed = True
            steps.append(step)
            if isinstance(known, Value) and bounds is Bounds.ZERO:
                condition = known if condition is None else self._both(condition, known)
        lanes, steps = (self.lanes, steps) if moves else (0, [])
        return ElementPlace(tuple(at), lanes, tuple(steps), condition, is_computed)

    def _in_window(self, place: ElementPlace, shape: Shape, buffer: Value) -> ElementPlace:
        """The same element in a buffer that has room for one block of rows."""
        row = self.windows.get(buffer)
        if row is None:
            return place
        at, step, stride = self.first_row, 0, 1
        at = IndexSum(0, {}).plus(at, -row)
        for number in reversed(range(len(shape))):
            at = at.plus(place.at[number], stride)
            step += place.steps[number] * stride if place.lanes else 0
            stride *= shape[number]
        return replace(place, at=(at,), steps=(step,) if place.lanes else ())

    def _both(self, x: Value, y: Value) -> Value:
        wider = x if x.tensor.rank else y
        return self.emit(And(), wider.tensor, x, y)

    def read(self, number: int) -> Value:
        """The scalar that an operand gives, or one for each lane; a zero where there is no element."""
        operand, access = self.levels.instruction.operands[number], self.levels.op.accesses[number]
        place = self._place(self.levels.indices[number], operand.tensor, access.bounds)
        if place is None:
            return self.build.constant(operand.tensor.dtype, 0)
        buffer = self.buffers[operand]
        return self._load(self._in_window(place, operand.tensor.shape, buffer), buffer)

    def _load(self, place: ElementPlace, buffer: Value) -> Value:
        active = self.active % self.lanes if place.lanes else 0
        condition = place.condition
        if condition is None and place.is_computed:
            condition = self.build.constant(BOOL, True)
        if condition is None:
            return self.build.load(
                buffer, *place.at, lanes=place.lanes, steps=place.steps, active=active
            )
        return self.build.load_where(
            condition, buffer, *place.at, lanes=place.lanes, steps=place.steps, active=active
        )

    def store(self, target: WrittenResult, value: Value) -> None:
        """Store what a result is at this point, or join it with what is there."""
        written = self.levels.op.outputs[target.number]
        place = self._place(target.indices, written.type, written.bounds)
        if place is None:
            return
        total = self.in_memory.totals.get(target.number)
        if total is not None:
            buffer = total.base
            at, steps = self.in_memory.place(target.number, place.at, place.steps)
            place = replace(place, at=at, steps=steps)
        else:
            buffer = self.result(target.number)
            place = self._in_window(place, written.type.shape, buffer)
        if not place.lanes and value.tensor.rank:
            value = self._one_value(written.combinator, value)
        elif place.lanes and not value.tensor.rank:
            wide = type_of(value.tensor.dtype, self.lanes)
            value = self.emit(Broadcast((self.lanes,)), wide, value)
        is_joined = target.joins or target.is_scattered
        if is_joined and place.lanes and not self._is_consecutive(place, _shape_of(buffer)):
            for lane in range(self.active):
                one = self._lane_of(place, lane)
                self._update(target, one, buffer, self.lane(value, lane))
        else:
            self._update(target, place, buffer, value)

    def _update(
        self, target: WrittenResult, place: ElementPlace, buffer: Value, value: Value
    ) -> None:
        combinator = self.levels.op.outputs[target.number].combinator
        kept = self.in_memory.totals.get(target.number)
        if target.is_scattered:
            excess = self.excesses[target.number]
            before = self._load(place, buffer), self._load(place, excess)
            value, rest = add_in_excess(self.build, *before, value)
            self._store(place, excess, rest)
        elif kept is not None and kept.rest is not None and kept.total is buffer:
            before = self._load(place, buffer), self._load(place, kept.rest)
            value, rest = add_compensated(self.build, *before, value)
            self._store(place, kept.rest, rest)
        elif target.joins:
            assert combinator is not None
            value = self.combined(combinator, self._load(place, buffer), value)
        self._store(place, buffer, value)

    def _store(self, place: ElementPlace, buffer: Value, value: Value) -> None:
        active = self.active % self.lanes if place.lanes else 0
        condition = place.condition
        if condition is None and place.is_computed:
            condition = self.build.constant(BOOL, True)
        if condition is None:
            self.build.store(value, buffer, *place.at, steps=place.steps, active=active)
        else:
            self.build.store_where(
                condition, value, buffer, *place.at, steps=place.steps, active=active
            )

    def _one_value(self, combinator: Combinator | None, value: Value) -> Value:
        """What all lanes write to one element: joined, or the last one's."""
        if combinator is None:
            return self.lane(value, self.active - 1)
        dtype = value.tensor.dtype
        value = self.cast(value, added_as(dtype))
        if self.active < self.lanes:
            mask = self.emit_active(value.tensor.size)
            nothing = self.build.constant(value.tensor.dtype, identity_of(combinator, dtype))
            value = self.emit(Select(), value.tensor, value, nothing, mask)
        return self.cast(self.reduced(combinator, value), dtype)

    def _is_consecutive(self, place: ElementPlace, shape: Shape) -> bool:
        """Whether no two lanes are at one element, as one is next to the other."""
        if place.is_scattered:
            return False
        stride, found = 1, 0
        for step, extent in zip(reversed(place.steps), reversed(shape), strict=True):
            found += step * stride
            stride *= extent
        return found == 1

    def _lane_of(self, place: ElementPlace, lane: int) -> ElementPlace:
        at: list[IndexSum] = []
        for index, step in zip(place.at, place.steps, strict=True):
            terms = {
                self.lane(value, lane) if value.tensor.rank else value: coefficient
                for value, coefficient in index.terms.items()
            }
            at.append(IndexSum(index.constant + lane * step, terms))
        condition = place.condition
        if condition is not None and condition.tensor.rank:
            condition = self.lane(condition, lane)
        return ElementPlace(tuple(at), 0, (), condition, place.is_computed)

    # Lanes and numbers.

    def lane(self, value: Value, lane: int) -> Value:
        """One lane of a vector."""
        return self.emit(ExtractLane(lane), type_of(value.tensor.dtype, 1), value)

    def emit_active(self, lanes: int) -> Value:
        """Which of so many lanes are points of the loop."""
        return self.build.emit(dense(type_of(BOOL, lanes), np.arange(lanes) < self.active))

    def combined(self, combinator: Combinator, x: Value, y: Value) -> Value:
        """Two numbers joined."""
        return joined(self.build, combinator, x, y)

    def reduced(self, combinator: Combinator, value: Value) -> Value:
        """The lanes of a vector joined."""
        return self.build.emit(ReduceLanes(logical(combinator, value.tensor.dtype)), value)

    def cast(self, value: Value, dtype: DType) -> Value:
        """A value as another type of float."""
        type = value.tensor
        if type.dtype == dtype:
            return value
        return self.emit(DataTypeCast(dtype), TensorType(type.shape, dtype), value)

    def emit(self, op: Op, type: TensorType, *operands: Value) -> Value:
        """Append an op whose result's type is known: asking the op for it takes longer than all else."""
        return self.build.emit_typed(op, type, *operands)


def _shape_of(buffer: Value) -> Shape:
    return buffer_of("storeAt", buffer.type).shape
