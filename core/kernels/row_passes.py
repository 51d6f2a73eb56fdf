"""One pass over the elements of a row: nests of one length, in loops of vectors that they share.

1. What is the same for a whole row is computed before the loops, as scalars, and copied to vectors where it is used.
2. At a point, a vector of elements, everything is loaded once; stores come last.
3. A reduction has a vector of partial results, several where a step waits for the one before it; the lanes of the last
   step that are no elements keep what they had.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from ..compute.bodies import base_of
from ..ir.instruction import Value
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.combinator import Combinator
from ..ops.comparison import Select
from ..ops.literal import Literal, dense, splat
from ..ops.nest import Affine
from ..ops.reduction import Broadcast
from ..types import BOOL, I64, DType, TensorType
from .bodies import factors_of
from .build import KernelBuilder
from .errors import IllegalRewrite
from .indices import IndexSum
from .ops import Fma, LaneNumbers, ReduceLanes
from .row_nests import RowNest, is_constant
from .row_sums import SumLoops, most_roundings, sum_loops
from .row_writer import RowElement, RowWriter
from .vectorise import COMBINING

_LATENCY: Final = 8
"""Cost units between a step of a reduction and the next one, which needs its result (`schedule.loops`)."""

_MOST_COPIES: Final = 4
"""Partial results of a reduction: more are not faster (`schedule.loops`)."""

_LEAST_STEPS: Final = 4
"""Steps for each of them."""


@dataclass(frozen=True)
class Reduction:
    """A result that joins the elements of a row: the value of the body that it joins, or two that are multiplied."""

    one: RowNest
    number: int
    value: Value
    combinator: Combinator
    factors: tuple[Value, Value] | None

    @property
    def dtype(self) -> DType:
        return self.value.tensor.dtype

    @property
    def is_rounded(self) -> bool:
        """Whether it is a sum of floats, of which rounding takes something away."""
        return self.combinator is Combinator.ADD and self.dtype.is_float


@dataclass
class PassForm:
    """What is known of a pass before it is written: what differs from element to element, and how many are a vector."""

    nests: Sequence[RowNest]
    vector_bytes: int
    varying: set[Value] = field(default_factory=set[Value])
    """Values of the bodies."""
    made: set[Value] = field(default_factory=set[Value])
    """Results with rows."""
    lanes: int = 1
    cost: int = 0
    """Of what is computed at a point, and loaded besides what is reduced."""

    def __post_init__(self) -> None:
        widest = 1
        for one in self.nests:
            body, rank = one.nest.regions[0].entry, one.rank
            if self.length > 1:
                self.varying.add(body.arguments[rank])
            for number, argument in enumerate(body.arguments[rank + 1 :]):
                if self._varies(one, number):
                    self.varying.add(argument)
                    self.cost += base_of(one.nest.operands[number]) not in self.made
                    widest = max(widest, argument.tensor.dtype.bytes)
            for instruction in body.instructions[:-1]:
                if not self.varying.isdisjoint(instruction.operands):
                    self.varying.add(instruction.result)
                    self.cost += instruction.op.cost
                    dtype = instruction.result.tensor.dtype
                    widest = max(widest, 1 if dtype is I64 else dtype.bytes)
            for number, result in enumerate(one.nest.results):
                widest = max(widest, result.tensor.dtype.bytes)
                if one.has_rows(number):
                    self.made.add(result)
        self.cost = max(0, self.cost - 1)
        while self.lanes * widest < self.vector_bytes and self.lanes < self.length:
            self.lanes *= 2

    @property
    def length(self) -> int:
        return self.nests[0].length

    def reductions(self, *, has_fma: bool) -> list[Reduction]:
        """The results that join elements."""
        found: list[Reduction] = []
        for one in self.nests:
            values = one.nest.regions[0].entry.terminator.operands
            for number, value in enumerate(values):
                combinator = one.nest.op.outputs[number].combinator
                if combinator is not None:
                    factors = self._factors(value, combinator) if has_fma else None
                    found.append(Reduction(one, number, value, combinator, factors))
        return found

    def _factors(self, value: Value, combinator: Combinator) -> tuple[Value, Value] | None:
        """Of a product that only a sum uses: both are one instruction."""
        is_sum = combinator is Combinator.ADD and value in self.varying
        return factors_of(value) if is_sum else None

    def _varies(self, one: RowNest, number: int) -> bool:
        operand, access = one.nest.operands[number], one.nest.op.accesses[number]
        if self.length == 1 or is_constant(operand):
            return False
        return any(isinstance(i, Affine) and i.coefficient(one.rank) for i in access.indices)


@dataclass(frozen=True)
class RowAhead:
    """Where an element of a row lies that later iterations are at."""

    buffer: Value
    indices: tuple[Affine, ...]


@dataclass
class RowPass:
    """Writes a pass; at each point it has something of later rows brought to the nearest cache."""

    writer: RowWriter
    form: PassForm
    prefetched: Sequence[RowAhead] = ()
    known: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """What is the same for a row, by the value of a body: scalars."""
    wide: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The same as vectors."""
    reductions: list[Reduction] = field(default_factory=list[Reduction])
    identities: list[Value] = field(default_factory=list[Value])

    def write(self) -> None:
        """The pass, and what its reductions came to."""
        self.reductions = self.form.reductions(has_fma=self.writer.has_fma)
        for one in self.form.nests:
            self._write_uniform(one)
        self._widen()
        self.identities = [
            self._build.emit(splat(self._type(r.dtype), r.combinator.identity(r.dtype)))
            for r in self.reductions
        ]
        totals = self._write_loops(self.identities)
        for reduction, total in zip(self.reductions, totals, strict=True):
            if self._lanes > 1:
                total = self._build.emit(ReduceLanes(reduction.combinator), total)
            self.writer.store(reduction.one, reduction.number, total)

    @property
    def _build(self) -> KernelBuilder:
        return self.writer.build

    @property
    def _lanes(self) -> int:
        return self.form.lanes

    def _type(self, dtype: DType) -> TensorType:
        return TensorType((self._lanes,) if self._lanes > 1 else (), dtype)

    # What is the same for a row.

    def _write_uniform(self, one: RowNest) -> None:
        body, rank = one.nest.regions[0].entry, one.rank
        for axis in range(rank + 1):
            argument = body.arguments[axis]
            if argument not in self.form.varying and argument.uses:
                index = self.writer.indices[axis] if axis < rank else IndexSum(0, {})
                self.known[argument] = self._build.index_value(index)
        for number, argument in enumerate(body.arguments[rank + 1 :]):
            operand = base_of(one.nest.operands[number])
            if argument not in self.form.varying and operand not in self.form.made:
                self.known[argument] = self.writer.read_scalar(one, number)
        for instruction in body.instructions[:-1]:
            if all(operand in self.known for operand in instruction.operands):
                operands = [self.known[operand] for operand in instruction.operands]
                self.known[instruction.result] = self._build.emit(instruction.op, *operands)

    def _widen(self) -> None:
        """Copy to vectors what is used as such."""
        if self._lanes == 1:
            self.wide = self.known
            return
        for one in self.form.nests:
            body = one.nest.regions[0].entry
            for instruction in body.instructions:
                if any(result in self.known for result in instruction.results):
                    continue
                for operand in instruction.operands:
                    if operand in self.known and operand not in self.wide:
                        self.wide[operand] = self._wide(self.known[operand])

    def _wide(self, value: Value) -> Value:
        if isinstance(value.op, Literal):
            type = self._type(value.tensor.dtype)
            return self._build.emit(Literal(type, value.op.data))
        return self._build.emit(Broadcast((self._lanes,)), value)

    # Loops.

    def _write_loops(self, totals: Sequence[Value]) -> Sequence[Value]:
        whole, left = divmod(self.form.length, self._lanes)
        copies, loops = self._plan(whole, left)
        done = math.prod(loops.counts) * copies
        if done:
            totals = self._nested(loops.counts, copies, IndexSum(0, {}), totals)
        if whole > done:
            start = IndexSum(done * self._lanes, {})
            after = self._nested((whole - done,), 1, start, self._fresh(totals))
            totals = self._joined(totals, after)
        if left:
            totals = self._step(IndexSum(whole * self._lanes, {}), totals, left)
        return totals

    def _plan(self, whole: int, left: int) -> tuple[int, SumLoops]:
        """How many partial results there are, and the loops over whole vectors."""
        copies = 1
        wanted = _LATENCY / max(self.form.cost / 2, 1.0)
        while (
            self.reductions
            and copies < _MOST_COPIES
            # a quarter more than there are is not worth twice as many
            and 1.25 * copies < wanted
            and whole >= 2 * _LEAST_STEPS * copies
        ):
            copies *= 2
        if not any(reduction.is_rounded for reduction in self.reductions):
            return copies, SumLoops((whole // copies,), 0)
        if not whole:
            return 1, SumLoops((0,), 0)
        most = most_roundings(self.form.length) - (self._lanes - 1).bit_length() - (left > 0)
        while copies:
            joined = (copies - 1).bit_length() + (whole % copies > 0)
            found = sum_loops(whole // copies, most - joined)
            if found is not None and found.rest * copies + whole % copies <= most:
                return copies, found
            copies //= 2
        raise IllegalRewrite(f"no loops were found for a sum of {self.form.length} numbers")

    def _nested(
        self, counts: Sequence[int], copies: int, start: IndexSum, totals: Sequence[Value]
    ) -> Sequence[Value]:
        """Loops in each other, from an element on."""
        count, *inner = counts
        if inner and count == 1:
            return self._nested(inner, copies, start, totals)
        stride = math.prod(inner) * copies * self._lanes
        if not inner:
            totals = [*totals, *self.identities * (copies - 1)]
            if count == 1:
                return self._join_copies(self._round(copies, start, totals))
        with self._build.loop(count * stride, step=stride, carrying=totals) as loop:
            at = start.plus(IndexSum(0, {loop.index: 1}))
            if inner:
                after = self._nested(inner, copies, at, self._fresh(loop.carried))
                loop.yields(*self._joined(loop.carried, after))
            else:
                loop.yields(*self._round(copies, at, loop.carried))
        return loop.results if inner else self._join_copies(loop.results)

    def _fresh(self, totals: Sequence[Value]) -> list[Value]:
        """What a loop inside begins with: sums of floats afresh."""
        return [
            zero if reduction.is_rounded else total
            for reduction, zero, total in zip(self.reductions, self.identities, totals, strict=True)
        ]

    def _joined(self, before: Sequence[Value], after: Sequence[Value]) -> list[Value]:
        """What a loop inside came to, with what was there before."""
        return [
            self._build.emit(Add(), x, y) if reduction.is_rounded else y
            for reduction, x, y in zip(self.reductions, before, after, strict=True)
        ]

    def _join_copies(self, totals: Sequence[Value]) -> list[Value]:
        """Partial results, joined as a tree."""
        width = len(self.reductions)
        parts = [list(totals[k : k + width]) for k in range(0, len(totals), max(width, 1))]
        while len(parts) > 1:
            parts = [
                [
                    self._build.emit(COMBINING[reduction.combinator], x, y)
                    for reduction, x, y in zip(self.reductions, one, other, strict=True)
                ]
                for one, other in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0] if parts else []

    def _round(self, copies: int, at: IndexSum, totals: Sequence[Value]) -> list[Value]:
        """Steps with partial results of their own."""
        width, found = len(self.reductions), list[Value]()
        for copy in range(copies):
            part = totals[copy * width : (copy + 1) * width]
            found += self._step(at.plus(copy * self._lanes), part)
        return found

    # A point: a vector of elements.

    def _step(self, at: IndexSum, totals: Sequence[Value], active: int = 0) -> list[Value]:
        """All nests at a point; what the reductions come to."""
        point = RowPoint(self, at, active)
        for one in self.form.nests:
            point.compute(one)
        point.write_stores()
        for ahead in self.prefetched:
            indices = [self.writer.at(index, at) for index in ahead.indices]
            self._build.prefetch(ahead.buffer, *indices)
        found: list[Value] = []
        for reduction, total in zip(self.reductions, totals, strict=True):
            joined = point.join(reduction, total)
            if active:
                mask = np.arange(self._lanes) < active
                chosen = self._build.emit(dense(TensorType((self._lanes,), BOOL), mask))
                joined = self._build.emit(Select(), joined, total, chosen)
            found.append(joined)
        return found


@dataclass
class RowPoint:
    """One vector of elements of a row; of the last one, only some lanes may be `active`."""

    around: RowPass
    at: IndexSum
    active: int = 0
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """By the value of a body."""
    made: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """By result."""
    loaded: dict[tuple[Value, tuple[Affine, ...]], Value] = field(
        default_factory=dict[tuple[Value, tuple[Affine, ...]], Value]
    )

    def compute(self, one: RowNest) -> None:
        """What a nest makes."""
        body, rank, build = one.nest.regions[0].entry, one.rank, self.around.writer.build
        if body.arguments[rank] in self.around.form.varying and body.arguments[rank].uses:
            self.values[body.arguments[rank]] = self._numbers()
        for number, argument in enumerate(body.arguments[rank + 1 :]):
            operand = base_of(one.nest.operands[number])
            if operand in self.made:
                self.values[argument] = self.made[operand]
            elif argument in self.around.form.varying and argument.uses:
                self.values[argument] = self._load(one, number)
        fused = {r.value for r in self.around.reductions if r.factors is not None}
        for instruction in body.instructions[:-1]:
            if instruction.result not in self.around.known and instruction.result not in fused:
                operands = [self.value(operand) for operand in instruction.operands]
                self.values[instruction.result] = build.emit(instruction.op, *operands)
        for number, (result, value) in enumerate(
            zip(one.nest.results, body.terminator.operands, strict=True)
        ):
            if one.has_rows(number):
                self.made[result] = self.value(value)

    def value(self, value: Value) -> Value:
        """A value of a body, of all lanes."""
        known = self.values.get(value)
        return self.around.wide[value] if known is None else known

    def join(self, reduction: Reduction, total: Value) -> Value:
        """A partial result with what this point adds to it."""
        build = self.around.writer.build
        if reduction.factors is not None:
            x, y = map(self.value, reduction.factors)
            return build.emit(Fma(), x, y, total)
        return build.emit(COMBINING[reduction.combinator], total, self.value(reduction.value))

    def write_stores(self) -> None:
        """Store the rows that lie in memory: behind all loads, since some of them lie in the same place."""
        writer = self.around.writer
        for one in self.around.form.nests:
            for number, result in enumerate(one.nest.results):
                element = writer.target(one, number)
                if element is None:
                    continue
                at, steps = self._indices(element)
                active = self.active
                value = self.made[result]
                writer.build.store(value, element.buffer, *at, steps=steps, active=active)

    def _load(self, one: RowNest, number: int) -> Value:
        element = self.around.writer.location(one, number)
        key = element.buffer, element.indices
        if key not in self.loaded:
            at, steps = self._indices(element)
            lanes = len(steps) and self.around.form.lanes
            self.loaded[key] = self.around.writer.build.load(
                element.buffer, *at, lanes=lanes, steps=steps, active=self.active
            )
        return self.loaded[key]

    def _indices(self, element: RowElement) -> tuple[list[IndexSum], tuple[int, ...]]:
        """Where the point's first lane lies, and steps from lane to lane, if there are lanes."""
        rank = self.around.form.nests[0].rank
        steps = (
            *(0 for _ in element.first),
            *(index.coefficient(rank) for index in element.indices),
        )
        at = self.around.writer.indices_at(element, self.at)
        return at, steps if self.around.form.lanes > 1 else ()

    def _numbers(self) -> Value:
        """The elements' numbers in the row."""
        build, lanes = self.around.writer.build, self.around.form.lanes
        first = build.index_value(self.at)
        if lanes == 1:
            return first
        return build.emit(
            Add(), build.emit(Broadcast((lanes,)), first), build.emit(LaneNumbers(lanes))
        )
