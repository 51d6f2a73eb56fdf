"""Reverse mode through control flow: a choice becomes a choice, and a loop one that runs backwards.

    %y = if %c { … yield %u }                 %x̄ = if %c { sweep over the body from ȳ; yield its x̄ } else { … }
    %y = for %i carrying %x { … yield %u }    %x̄, %ā = for %i carrying ȳ, 0 { sweep from ȳ; yield its x̄, ā + its ā }

1. A body is swept with adjoints of its own.  What it finds for values from around it is a result of the choice, and
   added up by the loop; what it scatters to a part of such a value (a row that it has read) is a stacked result of the
   loop, and scattered after it, all at once.
2. The forward values that a swept body uses are *residuals*: the forward instruction has them as further results, a
   loop those of all iterations.  These are tensors with a new leading axis where the number of iterations is known,
   and else a *tape* that the forward loop carries (`core.autodiff.tapes`).  What is saved, and what is computed from
   that again, a minimum cut says (`core.autodiff.minimum_cut`).
3. Values from around a body are used as they are; if they lie in a body themselves, they are residuals of that.

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.2; Hascoët & Pascual 2013, The Tapenade automatic
differentiation tool, §5 (adjoints of structured loops).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from ..analysis.liveness import backward_slice
from ..analysis.pointer_bases import leads_to_memory
from ..errors import UnsupportedError
from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.loop_schedules import LoopSchedule
from ..ir.surgery import clone_instructions, replace_operands, with_bodies
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.arithmetic import Add, Subtract
from ..ops.enums import EnumCase, Payload
from ..ops.flows import (
    Flow,
    Role,
    add_flows,
    add_yields,
    arguments_of_bodies,
    flows_in,
    operands_of,
    structured,
    trips_of,
    yields_of_bodies,
)
from ..ops.indexing import Gather, ScatterAdd
from ..ops.literal import constant
from ..ops.movement import Transpose
from ..ops.nest import Bounds, Yield
from ..ops.reference import Undefined
from ..ops.structured import For, If
from ..types import I64, EnumType, TensorType, Type, scalar
from .adjoints import Adjoints
from .linearized import Linearized, Sweep
from .loop_schedules import ReversedLoop
from .loop_steps import Cotangents, steps_of
from .minimum_cut import ResidualChoice, choose_residuals
from .primal_copy import Origin
from .save_policies import cost_in_bodies
from .tapes import EMPTY, RECORD

SweepBlock: TypeAlias = Callable[[Linearized, Block, Adjoints], Sweep]
"""The sweep over a block of the forward half."""

COUNTER = scalar(I64)


def reverse_control_flow(
    work: Linearized, block: Block, at: Instruction, adjoints: Adjoints, sweep: SweepBlock
) -> Sweep:
    """Hand the cotangents of the results of `at`, in a `block` of the forward half, on to all that its bodies use."""
    reversal = _Reversal(work, block, at, adjoints, sweep)
    return reversal.loop() if structured(at).is_loop else reversal.choice()


class _ReversedBody:
    """The sweep over one body of the forward half, in a block of its own; `head` is what comes first there."""

    def __init__(
        self,
        work: Linearized,
        body: Block,
        adjoints: Adjoints,
        start: Callable[[Builder, Value], Value | None],
        *,
        keeps_rows: bool = False,
    ) -> None:
        self.work, self.body = work, body
        self.head = Builder(Block(), adjoints.builder.location)
        self.b = Builder(Block(name=body.name), adjoints.builder.location)
        inside = {*body.arguments, *_results(body)}
        self.adjoints = Adjoints(
            self.b,
            adjoints.active,
            adjoints.arithmetic,
            keeps_rows,
            lambda x: None if x in inside else start(self.b, x),
        )

    def around(self) -> list[Value]:
        """The values from around the body that have got a cotangent."""
        inside = {*self.body.arguments, *_results(self.body)}
        return [x for x in self.adjoints.values() if x not in inside]

    def cotangent(self, x: Value) -> Value:
        """What has come together for `x`, a zero too."""
        return self.adjoints[x] or self.adjoints.arithmetic.zero(self.b, x)

    def finish(self, outputs: Sequence[Value], free: Iterable[Value] = ()) -> ResidualChoice:
        """Yield `outputs` and keep only what they need: how to have the values of the forward body among that."""
        block = self.b.block
        kept, used = backward_slice(block.instructions, outputs)
        for instruction in set(block.instructions).difference(kept):
            instruction.drop_all_references()
        block.instructions = kept
        self.b.emit_many(Yield(), outputs)
        self.work.save_in_calls(self.body, used)
        needed = [x for x in (*self.body.arguments, *_results(self.body)) if x in used]
        return choose_residuals(self.body, needed, set(free), cost_in_bodies(self.work.save))

    def yield_also(self, place: int, value: Value) -> None:
        terminator = self.b.block.terminator
        yielded = terminator.operands
        terminator.set_operands([*yielded[:place], value, *yielded[place:]])

    def region(self, values: dict[Value, Value], computed: Sequence[Instruction]) -> Region:
        """The body, which uses values from its head for values of the forward body, and computes others again."""
        block = self.b.block
        clone_instructions(self.head.block, computed, values)
        replace_operands(with_bodies(block.instructions), values)
        block.instructions[:0] = self.head.block.instructions
        return Region([block])


@dataclass
class _Reversal:
    """The reversal of the instruction `at`, which stands in a `block` of the forward half."""

    work: Linearized
    block: Block
    at: Instruction
    adjoints: Adjoints
    sweep: SweepBlock

    def choice(self) -> Sweep:
        at = self.at
        outer = self.adjoints
        bodies = [
            _ReversedBody(self.work, region.entry, outer, lambda _, x: outer.total(x))
            for region in at.regions
        ]
        chosen = flows_in(at, Role.CHOSEN)
        for number, body in enumerate(bodies):
            for flow in chosen:
                ct = self.adjoints[self.result(flow)]
                body.adjoints.add(yields_of_bodies(at, flow)[number], ct)
            yield self.sweep(self.work, body.body, body.adjoints)
        around = list(dict.fromkeys(x for body in bodies for x in body.around()))
        running = list(dict.fromkeys(x for body in bodies for x in body.adjoints.running))
        if not around and not running and at not in self.work.writers:
            for body in bodies:
                body.finish(())
            return
        regions: list[Region] = []
        for number, body in enumerate(bodies):
            totals = [body.adjoints.total(x) for x in running]
            ends = [*(body.cotangent(x) for x in around), *(t for t in totals if t is not None)]
            chosen_here = body.finish(ends)
            values = self.saved_by_branch(number, chosen_here.saved)
            regions.append(body.region(values, chosen_here.computed))
        op = If(tuple(outer.arithmetic.type(x) for x in (*around, *running)))
        made = outer.builder.emit_many(op, at.operands[:1], regions)
        for x, total in zip(running, made[len(around) :], strict=True):
            outer.set_total(x, total)
        for x, cotangent in zip(around, made, strict=False):
            outer.add(x, cotangent)

    def loop(self) -> Sweep:
        at, of, b = self.at, self.adjoints.arithmetic, self.adjoints.builder
        carried = self.useful()
        inputs = [_only(operands_of(at, flow)) for flow in carried]
        seeds = [self.adjoints[self.result(flow)] for flow in carried]
        if trips_of(at) == 0:  # what is carried stays as it was
            for x, seed in zip(inputs, seeds, strict=True):
                self.adjoints.add(x, seed)
            return
        starts = [seed or of.zero(b, x) for x, seed in zip(inputs, seeds, strict=True)]
        schedule = self.work.schedule_of(self.block)
        if schedule is not None and not self.moves_enums():
            self.refuse_memory()
            yield from self.by_schedule(schedule, carried, starts)
        else:
            yield from self.from_the_last(carried, inputs, starts)

    def from_the_last(
        self, carried: Sequence[Flow], inputs: Sequence[Value], starts: Sequence[Value]
    ) -> Sweep:
        """A loop over the iterations from the last to the first, which carries cotangents from their `starts`.

        It carries those of `carried`, then running totals, then sums for values from around the loop, then the tape
        if there is one; stacked are the parts of tensors that are scattered at once behind the loop.
        """
        at, trips, of, b = (
            self.at,
            trips_of(self.at),
            self.adjoints.arithmetic,
            self.adjoints.builder,
        )
        body = _ReversedBody(
            self.work,
            at.regions[-1].entry,
            self.adjoints,
            lambda inside, x: inside.argument(x.type),
            keeps_rows=trips is not None,
        )
        lower, upper, index = self.counted()
        last = b.emit(Subtract(), b.emit(Add(), lower, upper), constant(b, COUNTER, 1))
        place = body.head.emit(Subtract(), last, body.b.argument(COUNTER, "index"))
        row = body.head.emit(Subtract(), place, lower)
        self.give_seeds(body, carried, row)
        yield self.sweep(self.work, body.body, body.adjoints)
        outputs = [body.cotangent(arguments_of_bodies(at, flow)[-1]) for flow in carried]
        scattered = [
            (x, rows, len(_scattered(rows).operands))
            for x in body.around()
            for rows in body.adjoints.take_rows(x)
        ]
        elements = [x for _, rows, _ in scattered for x in _scattered(rows).operands]
        totals = {x: self.adjoints.total(x) for x in body.adjoints.running}
        outputs += body.adjoints.running.values()
        around = body.around()
        for x in around:
            outputs.append(of.add(body.b, body.b.argument(of.type(x)), body.cotangent(x)))
        values: dict[Value, Value] = {} if index is None else {index: place}
        residuals = body.finish([*outputs, *elements], values)
        tape = self.give_residuals(body, residuals.saved, values, row, len(outputs))
        starts = [
            *starts,
            *(total or of.zero(b, x) for x, total in totals.items()),
            *(of.zero(b, x) for x in around),
            *tape,
        ]
        stacks = tuple(x.tensor.with_shape((trips or 0, *x.tensor.shape)) for x in elements)
        region = body.region(values, residuals.computed)
        made = iter(b.emit_many(For(stacks), [lower, upper, *starts], [region]))
        self.add_carried(made, inputs, totals, around)
        operands = islice(made, len(tape), None)
        for x, rows, count in scattered:
            self.adjoints.add(x, _scattered_at_once(b, rows, *islice(operands, count)))

    def add_carried(
        self,
        made: Iterator[Value],
        inputs: Sequence[Value],
        totals: Mapping[Value, Value | None],
        around: Sequence[Value],
    ) -> None:
        """Accumulate the first of what a loop has `made`: running totals replace what was there, others are added."""
        of_inputs = list(islice(made, len(inputs)))
        for (x, before), total in zip(totals.items(), islice(made, len(totals)), strict=True):
            if before is None:
                self.adjoints.add(x, total)
            else:
                self.adjoints.set_total(x, total)
        for x, cotangent in zip(inputs, of_inputs, strict=True):
            self.adjoints.add(x, cotangent)
        for x, cotangent in zip(around, islice(made, len(around)), strict=True):
            self.adjoints.add(x, cotangent)

    def give_seeds(self, body: _ReversedBody, carried: Sequence[Flow], row: Value) -> None:
        """Start the sweep over a body with the cotangents of what it carries on, and of the rows that it stacks."""
        of = self.adjoints.arithmetic
        for flow in carried:
            yielded = _only(yields_of_bodies(self.at, flow))
            body.adjoints.add(yielded, body.b.argument(of.type(yielded)))
        for flow in flows_in(self.at, Role.STACKED):
            ct = self.adjoints[self.result(flow)]
            element = ct and body.b.emit(Gather(0, Bounds.INSIDE), ct, row)
            body.adjoints.add(_only(yields_of_bodies(self.at, flow)), element)

    def give_residuals(
        self,
        body: _ReversedBody,
        saved: Sequence[Value],
        values: dict[Value, Value],
        row: Value,
        count: int,
    ) -> list[Value]:
        """Add to `values` what was `saved` in the iteration that runs: rows of tensors, and the record of a tape.

        The tape is carried behind `count` others; it starts as what is returned, nothing if there is none.
        """
        trips = trips_of(self.at)
        stacked = [x for x in saved if trips is not None and isinstance(x.type, TensorType)]
        if stacked:
            for x, rows in self.stacked(trips or 0, stacked).items():
                values[x] = body.head.emit(Gather(0, Bounds.INSIDE), rows, row)
        recorded = [x for x in saved if x not in values]
        if not recorded:
            return []
        start = self.recorded(recorded)
        tape = body.b.argument(start.type)
        for number, x in enumerate(recorded):
            values[x] = body.head.emit(Payload(RECORD, number), tape)
        body.yield_also(count, body.head.emit(Payload(RECORD, len(recorded)), tape))
        return [start]

    def refuse_memory(self) -> None:
        """Raises: UnsupportedError for a loop whose iterations cannot be computed again, as memory has changed."""
        inside = (x for i in with_bodies([self.at]) for x in (*i.operands, *i.results))
        if any(leads_to_memory(x.type) for x in inside):
            error = UnsupportedError(
                f"a {self.at.op.name} that uses memory is not reversed by a schedule: its iterations would be computed "
                "again when memory has changed; carry values, or leave the schedule out"
            )
            raise located(error, self.at.location)

    def by_schedule(
        self, schedule: LoopSchedule, carried: Sequence[Flow], starts: Sequence[Value]
    ) -> Sweep:
        """A loop of which few states are saved; all that is used is there before it."""
        at, trips, b = self.at, trips_of(self.at), self.adjoints.builder
        stacked = [
            (flow, ct)
            for flow in flows_in(at, Role.STACKED)
            if (ct := self.adjoints[self.result(flow)]) is not None
        ]
        state = [_only(operands_of(at, flow)) for flow in flows_in(at, Role.CARRIED)]
        name = f"{self.work.copy.primal.name}_step"
        module, active = self.work.tapes.module, self.adjoints.active
        steps = yield from steps_of(module, name, at, carried, active, stacked)
        lower, upper, _ = self.counted()
        steps.lower = lower
        of = self.adjoints.arithmetic
        cts = Cotangents([*starts], [of.zero(b, steps.around[k]) for k in steps.active])
        reversal = ReversedLoop(b, steps, self.work.tapes, lower, upper, trips)
        found = reversal.run(schedule, state, cts)
        for flow, ct in zip(carried, found.carried, strict=True):
            self.adjoints.add(_only(operands_of(at, flow)), ct)
        for k, ct in zip(steps.active, found.around, strict=True):
            self.adjoints.add(steps.around[k], ct)

    def moves_enums(self) -> bool:
        """Whether cotangents flow to enums in the body, which the states of a schedule are not."""
        inside = with_bodies(self.at.regions[-1].entry.instructions)
        used = (x for instruction in inside for x in instruction.operands)
        return any(x in self.adjoints.active and isinstance(x.type, EnumType) for x in used)

    def useful(self) -> list[Flow]:
        """What is carried and has a cotangent in some iteration: at the end, or as others depend on it."""
        at, active = self.at, self.adjoints.active
        carried = [
            f
            for f in flows_in(at, Role.CARRIED)
            if self.result(f) in active and not leads_to_memory(f.type)
        ]
        body = at.regions[-1].entry
        wanted = [f for f in flows_in(at, Role.STACKED) if self.adjoints[self.result(f)]]
        found = [f for f in carried if self.adjoints[self.result(f)]]
        while True:
            reached = {_only(yields_of_bodies(at, flow)) for flow in (*wanted, *found)}
            for instruction in reversed(body.instructions):
                is_writer = instruction in self.work.writers
                if is_writer or not reached.isdisjoint(instruction.results):
                    used = (x for inner in with_bodies([instruction]) for x in inner.operands)
                    reached.update(x for x in used if x in active)
            grown = [f for f in carried if f in found or arguments_of_bodies(at, f)[-1] in reached]
            if len(grown) == len(found):
                return found
            found = grown

    def counted(self) -> tuple[Value, Value, Value | None]:
        """The bounds of the iterations, and the index if there is one; iterations of a `while` are counted."""
        for bounds in flows_in(self.at, Role.INDEX):
            lower, upper = operands_of(self.at, bounds)
            return lower, upper, _only(arguments_of_bodies(self.at, bounds))

        def next_number(b: Builder, number: Value) -> Value:
            return b.emit(Add(), number, constant(b, COUNTER, 1))

        start = Builder(Block(), self.at.location)
        copy, how = self.work.copy, "how many iterations"
        origin = self.origin(self.at.results[:1], how)
        if not self.at.results:
            origin = copy.silent[self.at], how
        count = self.carry(start, constant(start, COUNTER, 0), next_number)
        copy.origins[count] = origin
        return constant(self.adjoints.builder, COUNTER, 0), count, None

    def saved_by_branch(self, number: int, residuals: Sequence[Value]) -> dict[Value, Value]:
        """For values of body `number` the results that are these if it was the one that ran."""
        flows = add_flows(self.at, Role.CHOSEN, residuals)
        for other in range(len(self.at.regions)):
            values = residuals
            if other != number:
                values = self.at_end(other, lambda b: [_nothing(b, x.type) for x in residuals])
            add_yields(self.at, other, flows, values)
        return self.saved(flows, residuals, f"of branch {number}")

    def stacked(self, trips: int, residuals: Sequence[Value]) -> dict[Value, Value]:
        """For values of the body the results that are these of all iterations, along a new leading axis."""
        rows = [Value(x.tensor.with_shape((trips, *x.tensor.shape)), x.name) for x in residuals]
        flows = add_flows(self.at, Role.STACKED, rows)
        add_yields(self.at, 0, flows, residuals)
        return self.saved(flows, residuals, "of all iterations")

    def recorded(self, residuals: Sequence[Value]) -> Value:
        """The tape with a record of these values of the body for each iteration."""
        type = self.work.tapes.of([x.type for x in residuals])
        start = Builder(Block(), self.at.location)

        def record(b: Builder, tape: Value) -> Value:
            return b.emit(EnumCase(type, RECORD), *residuals, tape)

        tape = self.carry(start, start.emit(EnumCase(type, EMPTY)), record)
        self.work.copy.origins[tape] = self.origin(residuals, "recorded")
        return tape

    def carry(
        self, start: Builder, first: Value, following: Callable[[Builder, Value], Value]
    ) -> Value:
        """Have the loop carry one value more, `first` at first, which `start` makes; what it is in the end."""
        place = self.block.instructions.index(self.at)
        self.block.instructions[place:place] = start.block.instructions
        (flow,) = add_flows(self.at, Role.CARRIED, [first])
        body = len(self.at.regions) - 1
        argument = arguments_of_bodies(self.at, flow)[-1]
        add_yields(self.at, body, [flow], self.at_end(body, lambda b: [following(b, argument)]))
        return self.result(flow)

    def at_end(self, body: int, emit: Callable[[Builder], list[Value]]) -> list[Value]:
        """What is emitted at the end of a body of the forward half."""
        block = self.at.regions[body].entry
        terminator = block.instructions.pop()
        values = emit(Builder(block, self.at.location))
        block.instructions.append(terminator)
        return values

    def saved(
        self, flows: Sequence[Flow], residuals: Sequence[Value], how: str
    ) -> dict[Value, Value]:
        """For each residual the result that has been added for it."""
        found = {x: self.result(flow) for x, flow in zip(residuals, flows, strict=True)}
        for x, result in found.items():
            self.work.copy.origins[result] = self.origin([x], how)
        return found

    def origin(self, values: Sequence[Value], how: str) -> Origin:
        return (*(self.work.copy.origins[x] for x in values), how)

    def result(self, flow: Flow) -> Value:
        assert flow.result is not None
        return self.at.results[flow.result]


def _scattered(rows: Value) -> Instruction:
    assert rows.producer is not None
    return rows.producer


def _scattered_at_once(b: Builder, rows: Value, updates: Value, *indices: Value) -> Value:
    """What `rows` scatters in each iteration, from the updates and indices of all, along their first axes."""
    op = rows.op
    assert isinstance(op, ScatterAdd)
    if op.axis:
        order = (*range(1, op.axis + 1), 0, *range(op.axis + 1, updates.tensor.rank))
        updates = b.emit(Transpose(order), updates)
    return b.emit(op, updates, *indices)


def _results(block: Block) -> list[Value]:
    return [result for instruction in block.instructions for result in instruction.results]


def _only(values: Sequence[Value]) -> Value:
    """That of a flow which has one."""
    (value,) = values
    return value


def _zero(b: Builder, type: Type) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, 0)


def _nothing(b: Builder, type: Type) -> Value:
    """What the branch that does not run leaves of a residual."""
    return _zero(b, type) if isinstance(type, TensorType) else b.emit(Undefined(type))
