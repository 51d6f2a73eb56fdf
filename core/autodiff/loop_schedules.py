"""Reverse mode of loops by schedules that save few states and compute the others again.

every √n      √n states are saved on the way back, and from each of them √n iterations with all that they need;
              one iteration more is computed for each, and memory is O(√n).  Where n is known only when it runs, these
              are reversed block by block (and a block is computed again once or twice more)

binomial      n iterations with s slots for states, the first one included: the state after m iterations goes into the
              next slot, the n − m behind it are reversed with s − 1 slots, then the first m with s.  m is such that no
              iteration is computed more often than needs be: r times, when C(s + r, s) ≥ n

    level s:  while n > 1 { x' = advance(x, m); level s − 1 on x', n − m; n = m }, then the first iteration

Levels are loops in loops, as many as slots; states are what these carry.

Source: Griewank & Walther 2000, Algorithm 799: Revolve; Griewank & Walther 2008, Evaluating Derivatives, §12.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir import Builder, Value
from ..ir.loop_schedules import LoopSchedule
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add, Maximum, Minimum, Multiply, Subtract, TruncateDivide
from ..ops.casting import DataTypeCast
from ..ops.comparison import GreaterThan, LessThan
from ..ops.enums import EnumCase, Payload
from ..ops.indexing import Gather
from ..ops.nest import Bounds
from ..ops.rounding import Ceil
from ..ops.transcendental import Sqrt
from ..types import F64, TensorType, Type
from .emit_structured import LoopState, count_of, emit_for, emit_if, emit_while
from .loop_steps import Cotangents, LoopSteps, zero_of
from .tapes import EMPTY, RECORD, Tapes

BLOCK = 32
"""Iterations of which all that is needed is stacked where their number is not known: with fewer, more states between
blocks are computed again; with more, short loops would take memory of long ones."""

BLOCK_SLOTS = 4
"""States saved between the blocks of √n iterations: with 10⁵ in all, 10 blocks, each is computed twice again."""


@dataclass
class ReversedLoop:
    """The reversal of a loop of `upper − lower` iterations, `trips` of them if that is known."""

    b: Builder
    steps: LoopSteps
    tapes: Tapes
    lower: Value
    upper: Value
    trips: int | None

    def run(self, schedule: LoopSchedule, state: LoopState, cts: Cotangents) -> Cotangents:
        """The cotangents before the loop, which started from `state`, from those after it."""
        if schedule.slots is not None:
            count = self.b.emit(Subtract(), self.upper, self.lower)
            return self.level(self.b, schedule.slots, state, self.lower, count, cts)
        kept = [*(x.type for x in state), *self.steps.recorded]
        if self.trips is not None and all(isinstance(type, TensorType) for type in kept):
            return self.by_known_chunks(state, cts, self.trips)
        return self.by_chunks(state, cts)

    # Binomial.

    def level(
        self,
        b: Builder,
        slots: int,
        state: LoopState,
        first: Value,
        count: Value,
        cts: Cotangents,
        last: Value | None = None,
    ) -> Cotangents:
        """Back over `count` iterations from `first` on, before which there is `state`, in one of `slots` slots.

        With `last`, over as many blocks of iterations, up to that one.
        """

        def place_of(inner: Builder, number: Value) -> Value:
            if last is not None:
                number = inner.emit(Multiply(), number, count_of(inner, BLOCK))
            return inner.emit(Add(), first, number)

        def back(inner: Builder, place: Value, there: LoopState, after: Cotangents) -> Cotangents:
            if last is not None:
                return self.block(inner, place, last, there, after)
            return self.steps.back(inner, place, there, after)

        def goes_on(inner: Builder, carried: LoopState) -> Value:
            return inner.emit(GreaterThan(), carried[0], count_of(inner, 1))

        def halve(inner: Builder, carried: LoopState) -> LoopState:
            count, after = carried[0], cts.like(carried[1:])
            before = _split(inner, slots, count)
            middle = place_of(inner, before)
            there = self.steps.advance(inner, state, first, middle)
            rest = inner.emit(Subtract(), count, before)
            if slots == 1:
                found = back(inner, middle, there, after)
            else:
                found = self.level(inner, slots - 1, there, middle, rest, after, last)
            return [before, *found.all]

        left, *values = emit_while(b, [count, *cts.all], goes_on, halve)

        def one(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            return back(inner, place_of(inner, index), state, cts.like(carried)).all

        return cts.like(emit_for(b, count_of(b, 0), left, values, one))

    # Every √n.

    def by_known_chunks(self, state: LoopState, cts: Cotangents, trips: int) -> Cotangents:
        """As many chunks of one length as there are, then what is left."""
        b, length = self.b, math.isqrt(trips - 1) + 1
        chunks = trips // length
        rest = trips - chunks * length

        def advance(inner: Builder, number: Value, carried: LoopState) -> LoopState:
            first = self.at(inner, number, count_of(inner, length))
            last = inner.emit(Add(), first, count_of(inner, length))
            return [*self.steps.advance(inner, carried, first, last), *carried]

        every = emit_for(
            b,
            count_of(b, 0),
            count_of(b, chunks),
            state,
            advance,
            _stacked([x.type for x in state], chunks),
        )
        end, starts = every[: len(state)], every[len(state) :]
        if rest:
            first = b.emit(Add(), self.lower, count_of(b, chunks * length))
            cts = self.chunk(b, first, rest, end, cts)

        def back(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            number = inner.emit(Subtract(), count_of(inner, chunks - 1), index)
            there = [inner.emit(Gather(0, Bounds.INSIDE), x, number) for x in starts]
            first = self.at(inner, number, count_of(inner, length))
            return self.chunk(inner, first, length, there, cts.like(carried)).all

        return cts.like(emit_for(b, count_of(b, 0), count_of(b, chunks), cts.all, back))

    def chunk(
        self, b: Builder, first: Value, length: int, state: LoopState, cts: Cotangents
    ) -> Cotangents:
        """Back over `length` iterations, what they need stacked."""

        def forward(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            following, needed = self.steps.forward(inner, inner.emit(Add(), first, index), carried)
            return [*following, *needed]

        zero, last = count_of(b, 0), count_of(b, length)
        stacks = _stacked(self.steps.recorded, length)
        found = emit_for(b, zero, last, state, forward, stacks)[len(state) :]

        def back(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            row = inner.emit(Subtract(), count_of(inner, length - 1), index)
            needed = [inner.emit(Gather(0, Bounds.INSIDE), x, row) for x in found]
            place = inner.emit(Add(), first, row)
            return self.steps.backward(inner, place, needed, cts.like(carried)).all

        return cts.like(emit_for(b, zero, last, cts.all, back))

    def by_chunks(self, state: LoopState, cts: Cotangents) -> Cotangents:
        """The same with a number of iterations that is known when it runs; the √n states lie on a tape."""
        b = self.b
        count = b.emit(Maximum(), b.emit(Subtract(), self.upper, self.lower), count_of(b, 0))
        root = b.emit(Ceil(), b.emit(Sqrt(), b.emit(DataTypeCast(F64), count)))
        length = b.emit(Maximum(), b.emit(DataTypeCast(count.tensor.dtype), root), count_of(b, 1))
        more = b.emit(Subtract(), b.emit(Add(), count, length), count_of(b, 1))
        chunks = b.emit(TruncateDivide(), more, length)
        kind = self.tapes.of([x.type for x in state])

        def bounds(inner: Builder, number: Value) -> tuple[Value, Value]:
            first = self.at(inner, number, length)
            return first, inner.emit(Minimum(), inner.emit(Add(), first, length), self.upper)

        def advance(inner: Builder, number: Value, carried: LoopState) -> LoopState:
            *there, tape = carried
            record = inner.emit(EnumCase(kind, RECORD), *there, tape)
            return [*self.steps.advance(inner, there, *bounds(inner, number)), record]

        start = b.emit(EnumCase(kind, EMPTY))
        tape = emit_for(b, count_of(b, 0), chunks, [*state, start], advance)[-1]

        def back(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            *after, tape = carried
            number = inner.emit(
                Subtract(), inner.emit(Subtract(), chunks, index), count_of(inner, 1)
            )
            there = [inner.emit(Payload(RECORD, k), tape) for k in range(len(state))]
            found = self.by_blocks(inner, *bounds(inner, number), there, cts.like(after))
            return [*found.all, inner.emit(Payload(RECORD, len(state)), tape)]

        return cts.like(emit_for(b, count_of(b, 0), chunks, [*cts.all, tape], back)[:-1])

    def by_blocks(
        self, b: Builder, first: Value, last: Value, state: LoopState, cts: Cotangents
    ) -> Cotangents:
        """Back over a chunk, block by block, without a tape: its memory would be freed when all is done only.

        What iterations of a block need is stacked; few states between blocks are saved, by a binomial schedule.
        """
        count = b.emit(Subtract(), last, first)
        if not all(isinstance(type, TensorType) for type in self.steps.recorded):
            return self.level(b, BLOCK_SLOTS, state, first, count, cts)
        whole = b.emit(Add(), count, count_of(b, BLOCK - 1))
        blocks = b.emit(TruncateDivide(), whole, count_of(b, BLOCK))
        return self.level(b, BLOCK_SLOTS, state, first, blocks, cts, last)

    def block(
        self, b: Builder, first: Value, last: Value, state: LoopState, cts: Cotangents
    ) -> Cotangents:
        """Back over the iterations from `first` up to `last`, or `BLOCK` of them if that is less."""
        types = self.steps.recorded

        def forward(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            place = inner.emit(Add(), first, index)

            def runs(then: Builder) -> LoopState:
                following, needed = self.steps.forward(then, place, carried)
                return [*following, *needed]

            def stays(other: Builder) -> LoopState:
                return [*carried, *(zero_of(other, type) for type in types)]

            return emit_if(inner, inner.emit(LessThan(), place, last), runs, stays)

        zero, end = count_of(b, 0), count_of(b, BLOCK)
        found = emit_for(b, zero, end, state, forward, _stacked(types, BLOCK))[len(state) :]

        def back(inner: Builder, index: Value, carried: LoopState) -> LoopState:
            row = inner.emit(Subtract(), count_of(inner, BLOCK - 1), index)
            place = inner.emit(Add(), first, row)

            def runs(then: Builder) -> LoopState:
                needed = [then.emit(Gather(0, Bounds.INSIDE), x, row) for x in found]
                return self.steps.backward(then, place, needed, cts.like(carried)).all

            return emit_if(inner, inner.emit(LessThan(), place, last), runs, lambda _: carried)

        return cts.like(emit_for(b, zero, end, cts.all, back))

    def at(self, b: Builder, number: Value, length: Value) -> Value:
        """The first iteration of a chunk."""
        return b.emit(Add(), self.lower, b.emit(Multiply(), number, length))


def _split(b: Builder, slots: int, count: Value) -> Value:
    """After how many of `count` > 1 iterations the next state is saved.

    β(s, r) = C(s + r, s) iterations can be reversed with s slots when each is computed r times at most.  With the least
    such r the first β(s, r − 1) are left to the s slots, and β(s − 1, r − 1) at least to the others.
    """

    def too_few(inner: Builder, carried: LoopState) -> Value:
        return inner.emit(LessThan(), carried[1], count)

    def more(inner: Builder, carried: LoopState) -> LoopState:
        times = inner.emit(Add(), carried[0], count_of(inner, 1))
        slots_and_times = inner.emit(Add(), times, count_of(inner, slots))
        grown = inner.emit(Multiply(), carried[1], slots_and_times)
        return [times, inner.emit(TruncateDivide(), grown, times)]

    times, most = emit_while(b, [count_of(b, 0), count_of(b, 1)], too_few, more)
    both = b.emit(Add(), times, count_of(b, slots))
    before = b.emit(TruncateDivide(), b.emit(Multiply(), most, times), both)
    fewer = b.emit(Subtract(), both, count_of(b, 1))
    others = b.emit(TruncateDivide(), b.emit(Multiply(), before, count_of(b, slots)), fewer)
    return b.emit(Minimum(), before, b.emit(Subtract(), count, others))


def _stacked(types: Sequence[Type], count: int) -> list[TensorType]:
    """The types of stacks of so many values of these."""
    return [x.with_shape((count, *x.shape)) for x in types if isinstance(x, TensorType)]
