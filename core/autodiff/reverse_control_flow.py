"""Reverse mode through control flow: a choice becomes a choice, and a loop one that runs backwards.

    %y = if %c { … yield %u }                 %x̄ = if %c { sweep over the body from ȳ; yield its x̄ } else { … }
    %y = for %i carrying %x { … yield %u }    %x̄, %ā = for %i carrying ȳ, 0 { sweep from ȳ; yield its x̄, ā + its ā }

1. A body is swept with adjoints of its own.  What it finds for values from around it is a result of the choice, and
   added up by the loop.
2. The forward values that a swept body uses are *residuals*: the forward instruction has them as further results, a
   loop those of all iterations along a new axis.  Constants and the index are made anew.
3. Values from around a body are used as they are; if they lie in a body themselves, they are residuals of that.

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.2; Hascoët & Pascual 2013, The Tapenade automatic
differentiation tool, §5 (adjoints of structured loops).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..errors import UnsupportedError
from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import replace_operands, with_bodies
from ..location import located
from ..ops.arithmetic import Add, Subtract
from ..ops.flows import (
    Flow,
    Role,
    add_flows,
    add_yields,
    arguments_of_bodies,
    flows_in,
    operands_of,
    trips_of,
    yields_of_bodies,
)
from ..ops.indexing import Gather
from ..ops.literal import constant
from ..ops.nest import Bounds, Yield
from ..ops.structured import For, If
from ..types import I64, TensorType, Type, scalar
from .adjoints import Adjoints
from .linearized import Linearized, Sweep
from .liveness import backward_slice
from .residuals import again, is_constant

SweepBlock: TypeAlias = Callable[[Linearized, Block, Adjoints], Sweep]
"""The sweep over a block of the forward half."""


def reverse_control_flow(
    work: Linearized, at: Instruction, adjoints: Adjoints, sweep: SweepBlock
) -> Sweep:
    """Hand the cotangents of the results of `at`, in the forward half, on to all that its bodies use.

    Raises: UnsupportedError for a loop whose iterations are not counted before it is compiled.
    """
    match at.op:
        case If():
            return _reverse_if(work, at, adjoints, sweep)
        case For() if (trips := trips_of(at)) is not None:
            return _reverse_for(work, at, trips, adjoints, sweep)
        case _:
            reason = (
                f"the gradient of {_SPOKEN[at.op.name]} whose iterations are counted while it runs is not supported "
                "yet: give it bounds that are numbers, or unroll it with Python's own for"
            )
            raise located(UnsupportedError(reason), at.location)


_SPOKEN = {"while": "a while (while_loop)", "for": "a for (fori)"}
"""Control flow in the words of the IR, and of the language that it may have been written in."""


class _ReversedBody:
    """The sweep over one body of the forward half, in a block of its own."""

    def __init__(self, work: Linearized, body: Block, adjoints: Adjoints) -> None:
        self.work, self.body = work, body
        self.head = Builder(Block(), adjoints.builder.location)
        self.b = Builder(Block(name=body.name), adjoints.builder.location)
        self.adjoints = Adjoints(self.b, adjoints.active)

    def around(self) -> list[Value]:
        """The values from around the body that have got a cotangent."""
        inside = {*self.body.arguments, *_results(self.body)}
        return [x for x, _ in self.adjoints.items() if x not in inside]

    def cotangent(self, x: Value) -> Value:
        """What has come together for `x`, a zero too."""
        return self.adjoints[x] or _zero(self.b, x.type)

    def finish(self, outputs: Sequence[Value]) -> list[Value]:
        """Yield `outputs` and keep only what they need: the values of the forward body among that."""
        block = self.b.block
        kept, used = backward_slice(block.instructions, outputs)
        for instruction in set(block.instructions).difference(kept):
            instruction.drop_all_references()
        block.instructions = kept
        self.b.emit_many(Yield(), outputs)
        self.work.save_in_calls(self.body, used)
        return [x for x in (*self.body.arguments, *_results(self.body)) if x in used]

    def region(self, values: Mapping[Value, Value]) -> Region:
        """The body, which uses values from its head for values of the forward body."""
        block = self.b.block
        replace_operands(with_bodies(block.instructions), values)
        block.instructions[:0] = self.head.block.instructions
        return Region([block])


def _reverse_if(work: Linearized, at: Instruction, adjoints: Adjoints, sweep: SweepBlock) -> Sweep:
    chosen = flows_in(at, Role.CHOSEN)
    bodies = [_ReversedBody(work, region.entry, adjoints) for region in at.regions]
    for number, body in enumerate(bodies):
        for flow in chosen:
            body.adjoints.add(yields_of_bodies(at, flow)[number], adjoints[_result(at, flow)])
        yield sweep(work, body.body, body.adjoints)
    around = list(dict.fromkeys(x for body in bodies for x in body.around()))
    if not around:
        return
    regions: list[Region] = []
    for number, body in enumerate(bodies):
        needed = body.finish([body.cotangent(x) for x in around])
        values = {x: again(body.head, x) for x in needed if is_constant(x)}
        residuals = [x for x in needed if x not in values]
        values.update(_saved_by_branch(work, at, number, residuals))
        regions.append(body.region(values))
    made = adjoints.builder.emit_many(If(tuple(x.type for x in around)), at.operands[:1], regions)
    for x, cotangent in zip(around, made, strict=True):
        adjoints.add(x, cotangent)


def _saved_by_branch(
    work: Linearized, at: Instruction, number: int, residuals: Sequence[Value]
) -> dict[Value, Value]:
    """For values of body `number` the results of `at` that are these if it was the one that ran."""
    flows = add_flows(at, Role.CHOSEN, residuals)
    for other, region in enumerate(at.regions):
        values = residuals
        if other != number:
            terminator = region.entry.instructions.pop()
            b = Builder(region.entry, at.location)
            values = [_zero(b, x.type) for x in residuals]
            region.entry.instructions.append(terminator)
        add_yields(at, other, flows, values)
    return _saved(work, at, flows, residuals, f"of branch {number}")


def _reverse_for(
    work: Linearized, at: Instruction, trips: int, adjoints: Adjoints, sweep: SweepBlock
) -> Sweep:
    (bounds,) = flows_in(at, Role.INDEX)
    lower, upper = operands_of(at, bounds)
    carried = [f for f in flows_in(at, Role.CARRIED) if _result(at, f) in adjoints.active]
    seeds = [adjoints[_result(at, flow)] for flow in carried]
    if not trips:  # what is carried stays as it was
        for flow, seed in zip(carried, seeds, strict=True):
            adjoints.add(_only(operands_of(at, flow)), seed)
        return
    outer = adjoints.builder
    starts = [seed or _zero(outer, flow.type) for flow, seed in zip(carried, seeds, strict=True)]
    body = _ReversedBody(work, at.regions[0].entry, adjoints)
    index = _only(arguments_of_bodies(at, bounds))
    one = constant(outer, scalar(I64), 1)
    both = outer.emit(Subtract(), outer.emit(Add(), lower, upper), one)
    place = body.head.emit(Subtract(), both, body.b.argument(index.type, index.name))
    row = body.head.emit(Subtract(), place, lower)
    for flow in carried:
        body.adjoints.add(_only(yields_of_bodies(at, flow)), body.b.argument(flow.type))
    for flow in flows_in(at, Role.STACKED):
        ct = adjoints[_result(at, flow)]
        element = ct and body.b.emit(Gather(0, Bounds.INSIDE), ct, row)
        body.adjoints.add(_only(yields_of_bodies(at, flow)), element)
    yield sweep(work, body.body, body.adjoints)
    outputs = [body.cotangent(_only(arguments_of_bodies(at, flow))) for flow in carried]
    around = body.around()
    for x in around:
        starts.append(_zero(outer, x.type))
        outputs.append(body.b.emit(Add(), body.b.argument(x.type), body.cotangent(x)))
    needed = body.finish(outputs)
    values = {x: again(body.head, x) for x in needed if is_constant(x)}
    values[index] = place
    residuals = [x for x in needed if x not in values]
    for x, stacked in _stacked_by_loop(work, at, trips, residuals).items():
        values[x] = body.head.emit(Gather(0, Bounds.INSIDE), stacked, row)
    made = outer.emit_many(For(), [lower, upper, *starts], [body.region(values)])
    targets = [*(_only(operands_of(at, flow)) for flow in carried), *around]
    for x, cotangent in zip(targets, made, strict=True):
        adjoints.add(x, cotangent)


def _stacked_by_loop(
    work: Linearized, at: Instruction, trips: int, residuals: Sequence[Value]
) -> dict[Value, Value]:
    """For values of the body the results of `at` that are these of all iterations, along a new leading axis."""
    rows = [Value(x.tensor.with_shape((trips, *x.tensor.shape)), x.name) for x in residuals]
    flows = add_flows(at, Role.STACKED, rows)
    add_yields(at, 0, flows, residuals)
    return _saved(work, at, flows, residuals, "of all iterations")


def _saved(
    work: Linearized, at: Instruction, flows: Sequence[Flow], residuals: Sequence[Value], how: str
) -> dict[Value, Value]:
    """For each residual the result that has been added for it."""
    found = {x: _result(at, flow) for x, flow in zip(residuals, flows, strict=True)}
    for x, result in found.items():
        work.copy.origins[result] = work.copy.origins[x], how
    return found


def _result(at: Instruction, flow: Flow) -> Value:
    assert flow.result is not None
    return at.results[flow.result]


def _results(block: Block) -> list[Value]:
    return [result for instruction in block.instructions for result in instruction.results]


def _only(values: Sequence[Value]) -> Value:
    """That of a flow which has one."""
    (value,) = values
    return value


def _zero(b: Builder, type: Type) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, 0)
