"""Builds pushforwards (JVPs): the instructions of a function, each followed by its forward rule.

    %y = sin %x                    %y = sin %x
                                   %ẏ = ẋ · cos %x                      (the op's rule)
    %y = apply @f(%x)              %y, %ẏ = apply @f_jvp(%x, %ẋ)        the results of @f, and their tangents
    %y = while carrying %x …       %y, %ẏ = while carrying %x, %ẋ …     bodies carry tangents beside values

Which leaves move is known beforehand (`core.autodiff.activity`), so one walk is enough.  A tangent that is
zero is not made until a body has to yield it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TypeAlias

from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import clone_instructions
from ..location import located
from ..ops.aggregate import Aggregate, Apply, Extract
from ..ops.flows import Flow, flows_of, operands_of, structured
from ..ops.literal import constant
from ..ops.nest import Yield
from ..ops.terminators import Return
from ..types import TensorType, Type
from .activity import Activity, Masks, check_flow, straight_line
from .leaves import Spans, mask_of, members, tensors_in
from .rules import jvp_of

Tangent: TypeAlias = "Value | None"
"""The tangent of a leaf; None is zero."""


class PushforwardBody:
    """The body of one pushforward: copies of values, and the tangents of their leaves."""

    def __init__(
        self,
        pushforward: Callable[[str, int], Function],
        moved: Callable[[str, int], list[int]],
        activity: Activity,
        push: Function,
        primal: Function,
        given: int,
    ) -> None:
        self.pushforward, self.moved, self.push, self.given = pushforward, moved, push, given
        self.source = straight_line(primal)
        self.masks = activity.of_values(primal)
        self.values: dict[Value, Value] = {}
        self.tangents: dict[Value, list[Tangent]] = {}
        self.spans = Spans()

    def fill(self) -> None:
        b = Builder(Block(name="entry"))
        self.take(b)
        places = [
            (parameter, position)
            for parameter in self.source.arguments
            for position in range(len(tensors_in(parameter.type)))
        ]
        for k in members(self.given):
            parameter, position = places[k]
            leaf = tensors_in(parameter.type)[position]
            name = f"d{parameter.name}" if parameter.name else None
            self.tangents[parameter][position] = b.argument(leaf, name)
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        outputs = [self.values[value] for value in returned]
        for value in returned:
            outputs += self.materialized(b, value)
        b.emit_many(Return(), outputs)
        self.push.body = Region([b.block])

    def follow(self, b: Builder, index: int, tangent: Value) -> tuple[list[Value], list[Tangent]]:
        """Copy the body while parameter `index`, a tensor, moves by `tangent`, after `take` has made it.

        The copies of the results, and the tangents of their leaves.
        """
        self.tangents[self.source.arguments[index]] = [tangent]
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        tangents = [tangent for value in returned for tangent in self.tangents[value]]
        return [self.values[value] for value in returned], tangents

    def take(self, b: Builder) -> None:
        """Add the parameters, without tangents so far."""
        for parameter in self.source.arguments:
            self.values[parameter] = b.argument(parameter.type, parameter.name)
            self.tangents[parameter] = [None] * len(tensors_in(parameter.type))

    def block(self, source: Block, b: Builder) -> Nested:
        """Copy the instructions of `source`, but for the terminator, with their tangents."""
        for instruction in source.instructions[:-1]:
            b.location = instruction.location
            if not any(self.is_moving(x) for x in instruction.operands) and not any(
                self.is_moving(y) for y in instruction.results
            ):
                clone_instructions(b.block, [instruction], self.values)
                for result in instruction.results:
                    self.tangents[result] = [None] * len(tensors_in(result.type))
            elif instruction.op.is_structured:
                yield from self.structured(instruction, b)
            else:
                self.instruction(instruction, b)
        b.location = None

    def is_moving(self, value: Value) -> bool:
        return any(mask & self.given for mask in self.masks.get(value, ()))

    def moving(self, value: Value) -> list[int]:
        """The leaves of `value` whose tangent is not a symbolic zero."""
        masks: Masks = self.masks[value]
        return [k for k, mask in enumerate(masks) if mask & self.given]

    def materialized(self, b: Builder, value: Value) -> list[Value]:
        """The tangents of all leaves of `value`, symbolic zeros instantiated."""
        leaves = tensors_in(value.type)
        found: list[Value] = []
        for k in self.moving(value):
            found.append(self.tangents[value][k] or constant(b, leaves[k], 0))
        return found

    def instruction(self, instruction: Instruction, b: Builder) -> None:
        """One instruction without bodies."""
        check_flow(instruction, self.is_moving)
        op = instruction.op
        if isinstance(op, Apply):
            self.call(instruction, op, b)
            return
        clone_instructions(b.block, [instruction], self.values)
        tangents = [self.tangents[operand] for operand in instruction.operands]
        match op:
            case Aggregate():
                self.tangents[instruction.result] = [t for inside in tangents for t in inside]
            case Extract() if not isinstance(instruction.operands[0].type, TensorType):
                span = self.spans.of(op, instruction.operands[0])
                self.tangents[instruction.result] = tangents[0][span]
            case _:
                self.rule(instruction, b)

    def rule(self, instruction: Instruction, b: Builder) -> None:
        """The forward rule of a tensor op."""
        xs = [self.values[operand] for operand in instruction.operands]
        ys = [self.values[result] for result in instruction.results]
        dxs = [self.tangents[operand][0] for operand in instruction.operands]
        try:
            dys = jvp_of(b, instruction.op, ys, xs, dxs)
        except DifferentiationError as error:
            raise located(error, instruction.location) from None
        for result, dy in zip(instruction.results, dys, strict=True):
            self.tangents[result] = [dy]

    def call(self, instruction: Instruction, op: Apply, b: Builder) -> None:
        """A call becomes a call of the callee's pushforward for its active leaves."""
        moving: list[Value] = []
        given: list[int] = []
        first = 0
        for operand in instruction.operands:
            given += [first + k for k in self.moving(operand)]
            moving += self.materialized(b, operand)
            first += len(tensors_in(operand.type))
        mask = mask_of(given)
        push = self.pushforward(op.callee, mask)
        arguments = [self.values[operand] for operand in instruction.operands]
        both = iter(b.emit_many(Apply(push.name, push.type), [*arguments, *moving]))
        for result in instruction.results:
            self.values[result] = copy = next(both)
            copy.name = result.name
        moved = dict(zip(self.moved(op.callee, mask), both, strict=True))
        first = 0
        for result in instruction.results:
            count = len(tensors_in(result.type))
            self.tangents[result] = [moved.get(k) for k in range(first, first + count)]
            first += count

    def structured(self, instruction: Instruction, b: Builder) -> Nested:
        """A choice or a loop: beside each flow one for the tangent of each leaf that moves."""
        flows = list(self.widened(instruction))
        operands = [
            self.copy_or_tangent(b, operand, leaf)
            for flow, leaf in flows
            for operand in operands_of(instruction, flow)
        ]
        regions: list[Region] = []
        for body, region in enumerate(instruction.regions):
            source, inner = region.entry, Builder(Block(name=region.entry.name))
            for flow, leaf in flows:
                for number, position in flow.arguments:
                    if number == body:
                        self.argument(leaf, source.arguments[position], inner)
            yield self.block(source, inner)
            yielded = [
                self.copy_or_tangent(inner, source.terminator.operands[position], leaf)
                for flow, leaf in flows
                for number, position in flow.yields
                if number == body
            ]
            inner.emit_many(Yield(), yielded)
            regions.append(Region([inner.block]))
        b.location = instruction.location
        roles = [(flow.role, _leaf_type(flow.type, leaf)) for flow, leaf in flows]
        made = iter(b.emit_many(structured(instruction).with_roles(roles), operands, regions))
        for flow, leaf in flows:
            if flow.result is not None:
                self.result(instruction.results[flow.result], leaf, next(made))

    def widened(self, instruction: Instruction) -> Iterator[tuple[Flow, int | None]]:
        """The flows of a structured instruction, and, for each leaf that moves, one more behind those of its role."""
        for _, group in groupby(flows_of(instruction), key=lambda flow: flow.role):
            same = list(group)
            yield from ((flow, None) for flow in same)
            for flow in same:
                if flow.result is not None:
                    moving = self.moving(instruction.results[flow.result])
                    yield from ((flow, leaf) for leaf in moving)

    def copy_or_tangent(self, b: Builder, value: Value, leaf: int | None) -> Value:
        """The copy of a value, or the tangent of one of its leaves; a zero is made."""
        if leaf is None:
            return self.values.get(value, value)
        tangent = self.tangents[value][leaf]
        return tangent or constant(b, tensors_in(value.type)[leaf], 0)

    def argument(self, leaf: int | None, old: Value, inner: Builder) -> None:
        """What a body takes for a flow."""
        if leaf is not None:
            self.tangents[old][leaf] = inner.argument(tensors_in(old.type)[leaf])
            return
        self.values[old] = inner.argument(old.type, old.name)
        self.tangents[old] = [None] * len(tensors_in(old.type))

    def result(self, old: Value, leaf: int | None, made: Value) -> None:
        if leaf is not None:
            self.tangents[old][leaf] = made
            return
        self.values[old] = made
        made.name = old.name
        self.tangents[old] = [None] * len(tensors_in(old.type))


def _leaf_type(type: Type, leaf: int | None) -> Type:
    return type if leaf is None else tensors_in(type)[leaf]
