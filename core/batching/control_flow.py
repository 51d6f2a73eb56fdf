"""Batches through choices and loops.

What decides is the same for all elements: the choice or loop stays, and its bodies work on batches.  Else:

- *Choice.*  Both branches run, and `select` takes from each what belongs to its elements.
- *while.*  It runs until no element goes on; one that is done keeps what it carries, by `select`.
- *for.*  It runs as often as the element with the most iterations.

A branch or body that may fail, not end or call itself must not see elements that it is not for: these get the values
of one that it is for, the first, and so do as that does.  Such a branch is left out if it is for no element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.nested import Nested
from ..ir.surgery import operands_inside, walk_blocks, with_bodies
from ..ops.arithmetic import Add, Maximum, Subtract
from ..ops.casting import DataTypeCast
from ..ops.combinator import Combinator
from ..ops.comparison import And, LessThan, Not, Select
from ..ops.flows import Flow, Role, flows_of, operands_of, structured, yields_of_bodies
from ..ops.indexing import Gather
from ..ops.literal import constant
from ..ops.movement import Transpose
from ..ops.nest import Bounds, Yield
from ..ops.reduction import ArgMax, Reduce
from ..ops.structured import For, If, While
from ..types import I32, I64, TensorType, Type, scalar
from .differing import BatchKey, Differing, is_kept
from .rules import beside, repeated
from .totality import Totality


class Work(Protocol):
    """What batches the function that the choice or loop stands in."""

    key: BatchKey
    known: Differing
    totality: Totality
    values: dict[Value, Value]

    def block(self, source: Block, b: Builder) -> Nested: ...
    def batched_type(self, type: Type) -> TensorType: ...
    def value(self, b: Builder, source: Value, is_batched: bool) -> Value: ...
    def differs(self, values: Sequence[Value]) -> bool: ...


class BatchedControlFlow:
    """Emits one choice or loop."""

    def __init__(self, work: Work, instruction: Instruction, b: Builder) -> None:
        self.work, self.instruction, self.b = work, instruction, b
        self.op = structured(instruction)
        b.location = instruction.location
        self.flows = flows_of(instruction)
        self.batched = {flow.number: self.is_batched(flow) for flow in self.flows}

    def emit(self) -> Nested:
        if not self.work.differs(self.op.deciders(self.instruction)):
            return self.same_for_all()
        if not self.op.is_loop:
            return self.choice()
        return self.counted() if Role.INDEX in self.op.layouts else self.until_done()

    def is_batched(self, flow: Flow) -> bool:
        """Whether what a flow becomes differs."""
        values = self.work.known.values
        if flow.result is not None:
            return self.instruction.results[flow.result] in values
        regions = self.instruction.regions
        return any(regions[body].entry.arguments[k] in values for body, k in flow.arguments)

    def inner_type(self, flow: Flow) -> Type:
        type = flow.inner_type
        return self.work.batched_type(type) if self.batched[flow.number] else type

    # What decides is the same for all.

    def same_for_all(self) -> Nested:
        """The same choice or loop; what is stacked has the axis of the iterations first, inside."""
        work, b = self.work, self.b
        operands = [
            work.value(b, x, self.batched[flow.number])
            for flow in self.flows
            for x in operands_of(self.instruction, flow)
        ]
        regions: list[Region] = []
        for body in range(len(self.instruction.regions)):
            inner = self.start(body)
            yield work.block(self.source(body), inner)
            inner.emit_many(Yield(), self.yielded(inner, body))
            regions.append(Region([inner.block]))
        roles = [(flow.role, self.outer_type(flow)) for flow in self.flows]
        results = iter(b.emit_many(self.op.with_roles(roles), operands, regions))
        for flow in self.flows:
            if flow.result is not None:
                found = next(results)
                if flow.role is Role.STACKED and self.batched[flow.number]:
                    order = (1, 0, *range(2, found.tensor.rank))
                    found = b.emit(Transpose(order), found)
                self.define(flow, found)

    def outer_type(self, flow: Flow) -> Type:
        if flow.role is not Role.STACKED:
            return self.inner_type(flow)
        element = self.inner_type(flow)
        assert isinstance(element, TensorType) and isinstance(flow.type, TensorType)
        return element.with_shape((flow.type.shape[0], *element.shape))

    # A choice for each element.

    def choice(self) -> Nested:
        work, b = self.work, self.b
        (condition,) = self.op.deciders(self.instruction)
        taken = work.values[condition]
        found: list[list[Value]] = []
        for body, mask in enumerate((taken, b.emit(Not(), taken))):
            region = self.instruction.regions[body]
            if work.totality.of_region(region):
                yield work.block(region.entry, b)
                found.append(self.chosen_in(body, b, as_is=True))
            else:
                given: list[Value] = []
                yield self.for_some(body, mask, given)
                found.append(given)
        for flow, one, other in zip(self.chosen, *found, strict=True):
            self.define(flow, self.select(b, taken, one, other, flow))
        for flow in self.flows:
            if flow.role is Role.CHOSEN and is_kept(self.instruction, flow):
                self.define(flow, work.values[yields_of_bodies(self.instruction, flow)[0]])

    @property
    def chosen(self) -> list[Flow]:
        """What the branches give, but for what is the same in both."""
        flows = [flow for flow in self.flows if flow.role is Role.CHOSEN]
        return [flow for flow in flows if not is_kept(self.instruction, flow)]

    def chosen_in(self, body: int, b: Builder, *, as_is: bool = False) -> list[Value]:
        """What a branch gives for each of `chosen`; not repeated where it does not differ, if it is `as_is`."""
        operands = self.source(body).terminator.operands
        places = [k for flow in self.chosen for number, k in flow.yields if number == body]
        return [self.work.value(b, operands[k], not as_is) for k in places]

    def for_some(self, body: int, mask: Value, found: list[Value]) -> Nested:
        """A branch that runs if it is for any element, and sees such elements only."""
        work, b = self.work, self.b
        inner, empty = (Builder(Block(), b.location) for _ in range(2))
        before = self.captured([body])
        self.substitute(inner, mask, before)
        yield work.block(self.source(body), inner)
        inner.emit_many(Yield(), self.chosen_in(body, inner))
        work.values.update(before)
        types = [self.inner_type(flow) for flow in self.chosen]
        empty.emit_many(Yield(), [_zeros(empty, type) for type in types])
        regions = [Region([inner.block]), Region([empty.block])]
        found += b.emit_many(If(tuple(types)), [_any(b, mask)], regions)

    # Loops whose iterations are not the same for all.

    def until_done(self) -> Nested:
        """A `while` that carries, besides, which elements go on."""
        work, b = self.work, self.b
        carried = [flow for flow in self.flows if flow.role is Role.CARRIED]
        start = [
            work.value(b, x, self.batched[flow.number])
            for flow in carried
            for x in operands_of(self.instruction, flow)
        ]
        going: list[Value] = []
        yield self.condition(b, start, going)
        test = Builder(Block(), b.location)
        arguments = [test.argument(x.type, x.name) for x in (*start, going[0])]
        test.emit_many(Yield(), [_any(test, arguments[-1])])
        step = Builder(Block(), b.location)
        *old, active = [step.argument(x.type, x.name) for x in (*start, going[0])]
        before = self.captured([0, 1])
        seen = self.seen(step, active, carried, old)
        work.values.update(zip(self.source(1).arguments, seen, strict=True))
        yield work.block(self.source(1), step)
        following = self.yielded(step, 1)
        again: list[Value] = []
        yield self.condition(step, following, again)
        work.values.update(before)
        kept = [
            self.select(step, active, new, was, flow)
            for flow, new, was in zip(carried, following, old, strict=True)
        ]
        step.emit_many(Yield(), [*kept, step.emit(And(), active, again[0])])
        regions = [Region([test.block]), Region([step.block])]
        results = b.emit_many(While(), [*start, going[0]], regions)
        for flow, result in zip(carried, results, strict=False):
            self.define(flow, result)

    def condition(self, b: Builder, carried: Sequence[Value], found: list[Value]) -> Nested:
        """Which elements go on, with these carried values."""
        self.work.values.update(zip(self.source(0).arguments, carried, strict=True))
        yield self.work.block(self.source(0), b)
        found.append(self.work.value(b, self.source(0).terminator.operands[0], True))

    def counted(self) -> Nested:
        """A `for` with bounds for each element: of as many iterations as the longest has."""
        work, b = self.work, self.b
        lower, upper = (work.value(b, x, True) for x in self.op.deciders(self.instruction))
        carried = [flow for flow in self.flows if flow.role is Role.CARRIED]
        zero = constant(b, scalar(I64), 0)
        trips = b.emit(Maximum(), b.emit(Subtract(), upper, lower), zero)
        most = b.emit(Reduce(Combinator.MAX, (0,)), trips)
        start = [
            work.value(b, x, self.batched[flow.number])
            for flow in carried
            for x in operands_of(self.instruction, flow)
        ]
        inner = Builder(Block(name="body"), b.location)
        count = inner.argument(scalar(I64), "index")
        old = [inner.argument(x.type, x.name) for x in start]
        active = inner.emit(LessThan(), count, trips)
        index = inner.emit(Add(), lower, count)
        before = self.captured([0])
        # an index behind the end is not inside of anything
        is_batched = [True, *(self.batched[flow.number] for flow in carried)]
        fed = self.substitute(inner, active, before, [index, *old], is_batched)
        work.values.update(zip(self.source(0).arguments, fed, strict=True))
        yield work.block(self.source(0), inner)
        following = self.yielded(inner, 0)
        work.values.update(before)
        kept = [
            self.select(inner, active, new, was, flow)
            for flow, new, was in zip(carried, following, old, strict=True)
        ]
        inner.emit_many(Yield(), kept)
        results = b.emit_many(For(), [zero, most, *start], [Region([inner.block])])
        for flow, result in zip(carried, results, strict=True):
            self.define(flow, result)

    # Elements that something is not for.

    def seen(
        self,
        b: Builder,
        active: Value,
        carried: Sequence[Flow],
        values: Sequence[Value],
    ) -> Sequence[Value]:
        """What the bodies are given for carried `values`, so that they run for all elements."""
        if all(map(self.work.totality.of_region, self.instruction.regions)):
            return values
        batched = [self.batched[flow.number] for flow in carried]
        bodies = range(len(self.instruction.regions))
        return self.substitute(b, active, self.captured(bodies), values, batched)

    def captured(self, bodies: Sequence[int]) -> dict[Value, Value]:
        """The values from around these bodies that differ, with their copies."""
        regions = [self.instruction.regions[body] for body in bodies]
        inside = [i for region in regions for i in region.entry.instructions]
        own = {x for one in with_bodies(inside) for x in one.results}
        blocks = [block for region in regions for block in walk_blocks(region)]
        own |= {x for block in blocks for x in block.arguments}
        used = dict.fromkeys(x for x in operands_inside(inside) if x not in own)
        copies = self.work.values
        return {x: copies[x] for x in used if x in self.work.known.values}

    def substitute(
        self,
        b: Builder,
        mask: Value,
        captured: Mapping[Value, Value],
        values: Sequence[Value] = (),
        batched: Sequence[bool] = (),
    ) -> list[Value]:
        """`values` with those of the first element of `mask` in place of all not in it.

        So are the copies of `captured` from now on.
        """
        first = b.emit(ArgMax(0), b.emit(DataTypeCast(I32), mask))

        def of_some(x: Value) -> Value:
            row = b.emit(Gather(0, Bounds.INSIDE), x, first)
            return b.emit(Select(), x, row, beside_mask(b, mask, x.tensor.rank - 1))

        for source, copy in captured.items():
            self.work.values[source] = of_some(copy)
        return [of_some(x) if is_one else x for x, is_one in zip(values, batched, strict=True)]

    # Bodies.

    def source(self, body: int) -> Block:
        return self.instruction.regions[body].entry

    def start(self, body: int) -> Builder:
        """A new body, with its arguments."""
        source, inner = self.source(body), Builder(Block(name=self.source(body).name))
        for flow in self.flows:
            for number, position in flow.arguments:
                if number == body:
                    argument = source.arguments[position]
                    type = self.inner_type(flow)
                    self.work.values[argument] = inner.argument(type, argument.name)
        return inner

    def yielded(self, b: Builder, body: int) -> list[Value]:
        """What a body yields, repeated where it does not differ and what it becomes does."""
        operands = self.source(body).terminator.operands
        places = self.yields_of(body)
        return [
            self.work.value(b, operands[position], self.batched[flow.number])
            for flow, position in places
        ]

    def yields_of(self, body: int) -> Iterator[tuple[Flow, int]]:
        """The flows that a body yields for, in order, those that decide last of all aside."""
        for flow in self.flows:
            for number, position in flow.yields:
                if number == body:
                    yield flow, position

    def select(self, b: Builder, mask: Value, one: Value, other: Value, flow: Flow) -> Value:
        """`one` for the elements of `mask`, else `other`."""
        if not self.batched[flow.number] or (one is other and one.type == self.inner_type(flow)):
            return one
        if one is other:  # both branches came to the same, which is one for all
            return repeated(b, one, self.work.key.extent)
        assert isinstance(flow.type, TensorType)
        return b.emit(Select(), one, other, beside_mask(b, mask, flow.type.rank))

    def define(self, flow: Flow, value: Value) -> None:
        assert flow.result is not None
        result = self.instruction.results[flow.result]
        self.work.values[result] = value
        value.name = value.name or result.name


def beside_mask(b: Builder, mask: Value, rank: int) -> Value:
    """A truth value for each element, as it broadcasts with batches of tensors of `rank`."""
    return beside(b, mask, rank)


def _any(b: Builder, mask: Value) -> Value:
    return b.emit(Reduce(Combinator.OR, (0,)), mask)


def _zeros(b: Builder, type: Type) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, 0)
