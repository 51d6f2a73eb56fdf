"""Builds pushforwards (JVPs): the instructions of a function, each followed by its forward rule.

    %y = sin %x                    %y = sin %x
                                   %ẏ = ẋ · cos %x                      (the op's rule)
    %y = apply @f(%x)              %y, %ẏ = apply @f_jvp(%x, %ẋ)        the results of @f, and their tangents
    %y = while carrying %x …       %y, %ẏ = while carrying %x, %ẋ …     bodies carry tangents beside values

Which values move is known beforehand (`core.autodiff.activity`), so one walk is enough.  A tangent that is
zero is not made until a body has to yield it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import clone_instructions, with_bodies
from ..location import derivative_location, located
from ..ops.aggregate import Aggregate, Apply
from ..ops.enums import EnumCase, Payload
from ..ops.flows import Flow, flows_of, operands_of, structured
from ..ops.nest import Yield
from ..ops.terminators import Return
from ..types import EnumType, TensorType, Type
from .activity import Activity, Mask, check_flow, mask_of, members, refuse_foreign, straight_line
from .rules import jvp_of
from .tangent_types import TangentTypes

Tangent: TypeAlias = "Value | None"
"""The tangent of a value; None is zero."""


class PushforwardBody:
    """The body of one pushforward: copies of values, and their tangents."""

    def __init__(
        self,
        pushforward: Callable[[str, int], Function],
        moved: Callable[[str, int], list[int]],
        activity: Activity,
        types: TangentTypes,
        push: Function,
        primal: Function,
        given: Mask,
    ) -> None:
        self.pushforward, self.moved, self.push, self.given = pushforward, moved, push, given
        self.types = types
        self.module = activity.module
        self.source = straight_line(primal)
        self.masks = activity.of_values(primal)
        self.values: dict[Value, Value] = {}
        self.tangents: dict[Value, Tangent] = {}

    def fill(self) -> None:
        b = Builder(Block(name="entry"))
        self.take(b)
        for k in members(self.given):
            parameter = self.source.arguments[k]
            name = f"d{parameter.name}" if parameter.name else None
            self.tangents[parameter] = b.argument(self.tangent_type(parameter), name)
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        outputs = [self.values[value] for value in returned]
        b.emit_many(Return(), [*outputs, *self.materialized(b, returned)])
        self.push.body = Region([b.block])

    def follow(self, b: Builder, index: int, tangent: Value) -> tuple[list[Value], list[Tangent]]:
        """Copy the body while parameter `index` moves by `tangent`, after `take` has made it.

        The copies of the results, and their tangents.
        """
        self.tangents[self.source.arguments[index]] = tangent
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        return [self.values[value] for value in returned], [self.tangents[x] for x in returned]

    def take(self, b: Builder) -> None:
        """Add the parameters, without tangents so far."""
        for parameter in self.source.arguments:
            self.values[parameter] = b.argument(parameter.type, parameter.name)
            self.tangents[parameter] = None

    def block(self, source: Block, b: Builder) -> Nested:
        """Copy the instructions of `source`, but for the terminator, with their tangents."""
        for instruction in source.instructions[:-1]:
            b.location = instruction.location
            if not any(self.is_moving(x) for x in instruction.operands) and not any(
                self.is_moving(y) for y in instruction.results
            ):
                for inside in with_bodies([instruction]):
                    self.check(inside)
                clone_instructions(b.block, [instruction], self.values)
                for result in instruction.results:
                    self.tangents[result] = None
            elif instruction.op.is_structured:
                yield from self.structured(instruction, b)
            else:
                self.instruction(instruction, b)
        b.location = None

    def is_moving(self, value: Value) -> bool:
        return bool(self.masks.get(value, 0) & self.given)

    def materialized(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        """The tangents of those `values` that move, symbolic zeros instantiated."""
        return [self.tangent(b, x) for x in values if self.is_moving(x)]

    def tangent(self, b: Builder, value: Value) -> Value:
        """The tangent of a value, a zero too."""
        return self.tangents[value] or self.types.zero(b, value.type)

    def tangent_type(self, value: Value) -> Type:
        type = self.types.of(value.type)
        assert type is not None
        return type

    def check(self, instruction: Instruction) -> None:
        check_flow(
            instruction,
            self.is_moving,
            lambda type: isinstance(type, TensorType) or self.types.of(type) is not None,
        )

    def instruction(self, instruction: Instruction, b: Builder) -> None:
        """One instruction without bodies."""
        self.check(instruction)
        op = instruction.op
        if isinstance(op, Apply):
            self.call(instruction, op, b)
            return
        clone_instructions(b.block, [instruction], self.values)
        if isinstance(op, Aggregate):
            return  # nothing that moves is taken out of it
        values = (*instruction.operands, *instruction.results)
        if any(isinstance(x.type, EnumType) for x in values):
            self.tangents[instruction.result] = self.of_enum(b, instruction)
            return
        xs = [self.values[operand] for operand in instruction.operands]
        ys = [self.values[result] for result in instruction.results]
        dxs = [self.tangents[operand] for operand in instruction.operands]
        b.location = derivative_location(instruction.location, op.name)
        try:
            dys = jvp_of(b, op, ys, xs, dxs)
        except DifferentiationError as error:
            raise located(error, instruction.location) from None
        self.tangents.update(zip(instruction.results, dys, strict=True))

    def of_enum(self, b: Builder, instruction: Instruction) -> Tangent:
        """Enums carry the tangents of what they carry, as enums with the same cases."""
        op = instruction.op
        if not self.is_moving(instruction.result):
            return None
        if isinstance(op, EnumCase):
            type = self.types.of(op.type)
            assert isinstance(type, EnumType)
            carried = [x for x in instruction.operands if self.types.of(x.type) is not None]
            return b.emit(EnumCase(type, op.case), *(self.tangent(b, x) for x in carried))
        (value,) = instruction.operands
        tangent = self.tangents[value]
        if tangent is None:
            return None
        assert isinstance(op, Payload)
        assert isinstance(value.type, EnumType)
        before = value.type.carried(op.case)[: op.index]
        return b.emit(Payload(op.case, len(self.types.carried(before))), tangent)

    def call(self, instruction: Instruction, op: Apply, b: Builder) -> None:
        """A call becomes a call of the callee's pushforward for the arguments that move."""
        operands = instruction.operands
        mask = mask_of(k for k, operand in enumerate(operands) if self.is_moving(operand))
        moving = self.materialized(b, operands)
        refuse_foreign(self.module.functions[op.callee], instruction.location)
        push = self.pushforward(op.callee, mask)
        arguments = [self.values[operand] for operand in operands]
        both = iter(b.emit_many(Apply(push.name, push.type), [*arguments, *moving]))
        for result in instruction.results:
            self.values[result] = copy = next(both)
            copy.name = result.name
        moved = dict(zip(self.moved(op.callee, mask), both, strict=True))
        for k, result in enumerate(instruction.results):
            self.tangents[result] = moved.get(k)

    def structured(self, instruction: Instruction, b: Builder) -> Nested:
        """A choice or a loop: beside each flow that moves one for its tangent."""
        flows = list(self.widened(instruction))
        operands = [
            self.copy_or_tangent(b, operand, is_tangent)
            for flow, is_tangent in flows
            for operand in operands_of(instruction, flow)
        ]
        regions: list[Region] = []
        for body, region in enumerate(instruction.regions):
            source, inner = region.entry, Builder(Block(name=region.entry.name))
            for flow, is_tangent in flows:
                for number, position in flow.arguments:
                    if number == body:
                        self.argument(is_tangent, source.arguments[position], inner)
            yield self.block(source, inner)
            yielded = [
                self.copy_or_tangent(inner, source.terminator.operands[position], is_tangent)
                for flow, is_tangent in flows
                for number, position in flow.yields
                if number == body
            ]
            inner.emit_many(Yield(), yielded)
            regions.append(Region([inner.block]))
        b.location = instruction.location
        roles = [(flow.role, self.role_type(flow.type, is_tangent)) for flow, is_tangent in flows]
        made = iter(b.emit_many(structured(instruction).with_roles(roles), operands, regions))
        for flow, is_tangent in flows:
            if flow.result is not None:
                self.result(instruction.results[flow.result], is_tangent, next(made))

    def widened(self, instruction: Instruction) -> Iterator[tuple[Flow, bool]]:
        """The flows of a structured instruction, and behind those of a role the tangents of those that move."""
        for _, group in groupby(flows_of(instruction), key=lambda flow: flow.role):
            same = list(group)
            yield from ((flow, False) for flow in same)
            for flow in same:
                if flow.result is not None and self.is_moving(instruction.results[flow.result]):
                    yield flow, True

    def copy_or_tangent(self, b: Builder, value: Value, is_tangent: bool) -> Value:
        """The copy of a value, or its tangent; a zero is made."""
        if not is_tangent:
            return self.values.get(value, value)
        return self.tangent(b, value)

    def role_type(self, type: Type, is_tangent: bool) -> Type:
        return (self.types.of(type) or type) if is_tangent else type

    def argument(self, is_tangent: bool, old: Value, inner: Builder) -> None:
        """What a body takes for a flow."""
        if is_tangent:
            self.tangents[old] = inner.argument(self.tangent_type(old))
            return
        self.values[old] = inner.argument(old.type, old.name)
        self.tangents[old] = None

    def result(self, old: Value, is_tangent: bool, made: Value) -> None:
        if is_tangent:
            self.tangents[old] = made
            return
        self.values[old] = made
        made.name = old.name
        self.tangents[old] = None
