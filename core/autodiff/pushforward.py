"""Builds pushforwards (JVPs): the instructions of a function, each followed by its forward rule.

    %y = sin %x                    %y = sin %x
                                   %ẏ = ẋ · cos %x                      (the op's rule)
    %y = apply @f(%x)              %y, %ẏ = apply @f_jvp(%x, %ẋ)        the results of @f, and their tangents
    %y = while carrying %x …       %y, %ẏ = while carrying %x, %ẋ …     bodies carry tangents beside values

Which values move is known beforehand (`core.autodiff.activity`), so one walk is enough.  A tangent that is
zero is not made until a body has to yield it.

Of an order n above 1 the tangent is the first of n coefficients of a Taylor series, and where it goes they all go; what
an instruction makes of them is said by `core.autodiff.power_series`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from ..analysis.pointer_bases import leads_to_memory
from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import clone_instructions, with_bodies
from ..location import derivative_location, located
from ..ops.aggregate import Aggregate, Apply
from ..ops.enums import EnumCase, Payload
from ..ops.flows import Flow, flows_of, operands_of, structured
from ..ops.memory import give_back, zeros_to_read
from ..ops.nest import Yield
from ..ops.terminators import Return
from ..types import EnumType, TensorType, Type
from .activity import (
    Activity,
    Mask,
    can_move,
    check_flow,
    mask_of,
    members,
    refuse_foreign,
    straight_line,
)
from .power_series import SeriesExpansion
from .rules import jvp_of
from .shadows import check_memory, check_shadows, writers
from .tangent_types import TangentTypes

Tangents: TypeAlias = "Sequence[Value | None]"
"""The tangent of a value, and the coefficients behind it up to the order; None is zero."""


class PushforwardBody:
    """The body of one pushforward: copies of values, and their tangents."""

    def __init__(
        self,
        pushforward: Callable[[str, int, int], Function],
        moved: Callable[[str, int], list[int]],
        activity: Activity,
        types: TangentTypes,
        push: Function,
        primal: Function,
        given: Mask,
        order: int,
    ) -> None:
        self.pushforward, self.moved, self.push, self.given = pushforward, moved, push, given
        self.types, self.order, self.module = types, order, activity.module
        self.still: Tangents = (None,) * order
        """The coefficients of what does not move."""
        self.source = straight_line(primal)
        self.masks = activity.of_values(primal)
        self.values: dict[Value, Value] = {}
        self.tangents: dict[Value, Tangents] = {}
        assert primal.body is not None
        self.writers: set[Instruction] = set()
        if activity.uses_memory(primal):
            check_shadows(primal, given, [self.is_moving(x) for x in self.source.arguments])
            check_memory(primal.body, self.is_moving, in_reverse=False)
            self.writers = writers(primal.body, self.is_moving)

    def fill(self) -> None:
        b = Builder(Block(name="entry"))
        self.take([b.argument(x.type, x.name) for x in self.source.arguments])
        for k in members(self.given):
            parameter = self.source.arguments[k]
            self.tangents[parameter] = [
                b.argument(self.tangent_type(parameter), self.name_of(parameter, k))
                for k in range(1, self.order + 1)
            ]
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        outputs = [self.values[value] for value in returned]
        b.emit_many(Return(), [*outputs, *self.materialized(b, returned)])
        self.push.body = Region([b.block])

    def name_of(self, value: Value, k: int) -> str | None:
        """The name of coefficient k."""
        if not value.name:
            return None
        return f"d{value.name}" if k == 1 else f"d{k}{value.name}"

    def follow(
        self, b: Builder, arguments: Sequence[Value], directions: Mapping[int, Value]
    ) -> tuple[list[Value], list[Tangents]]:
        """Copy the body for these arguments, of which some move straight along `directions`.

        The copies of the results, and their tangents.
        """
        self.take(arguments)
        for index, tangent in directions.items():
            self.tangents[self.source.arguments[index]] = (tangent, *self.still[1:])
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        return [self.values[value] for value in returned], [self.tangents[x] for x in returned]

    def take(self, arguments: Sequence[Value]) -> None:
        """Have the copies of the parameters, without tangents so far."""
        for parameter, argument in zip(self.source.arguments, arguments, strict=True):
            self.values[parameter] = argument
            self.tangents[parameter] = self.still

    def block(self, source: Block, b: Builder) -> Nested:
        """Copy the instructions of `source`, but for the terminator, with their tangents."""
        expansion = SeriesExpansion(b)
        for instruction in source.instructions[:-1]:
            b.location = instruction.location
            if not self.concerns(instruction):
                for inside in with_bodies([instruction]):
                    self.check(inside)
                clone_instructions(b.block, [instruction], self.values)
                for result in instruction.results:
                    self.tangents[result] = self.still
            elif instruction.op.is_structured:
                yield from self.structured(instruction, b)
            else:
                self.instruction(instruction, b, expansion)
        b.location = None

    def concerns(self, instruction: Instruction) -> bool:
        """Whether an instruction takes, gives or writes what moves."""
        values = (*instruction.operands, *instruction.results)
        return instruction in self.writers or any(map(self.is_moving, values))

    def is_moving(self, value: Value) -> bool:
        return bool(self.masks.get(value, 0) & self.given)

    def materialized(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        """The tangents of those `values` that move, symbolic zeros instantiated."""
        moving = [x for x in values if self.is_moving(x)]
        return [self.tangent(b, x, k) for x in moving for k in range(self.order)]

    def tangent(self, b: Builder, value: Value, k: int) -> Value:
        """One of the tangents of a value, a zero too."""
        return self.tangents[value][k] or self.types.zero(b, value.type)

    def tangent_type(self, value: Value) -> Type:
        type = self.types.of(value.type)
        assert type is not None
        return type

    def check(self, instruction: Instruction) -> None:
        check_flow(instruction, self.is_moving)

    def instruction(self, instruction: Instruction, b: Builder, expansion: SeriesExpansion) -> None:
        """One instruction without bodies."""
        self.check(instruction)
        op = instruction.op
        if isinstance(op, Apply):
            self.call(instruction, op, b)
            return
        clone_instructions(b.block, [instruction], self.values)
        if op.acts_on_shadows:
            self.in_memory(instruction, b)
            return
        if op.is_constant:  # a null pointer that may be chosen
            self.tangents[instruction.result] = [self.values[instruction.result]] * self.order
            return
        if isinstance(op, Aggregate):
            return  # nothing that moves is taken out of it
        values = (*instruction.operands, *instruction.results)
        if any(isinstance(x.type, EnumType) for x in values):
            result = instruction.result
            self.tangents[result] = [self.of_enum(b, instruction, k) for k in range(self.order)]
            return
        b.location = derivative_location(instruction.location, op.name)
        try:
            self.by_rule(instruction, b, expansion)
        except DifferentiationError as error:
            raise located(error, instruction.location) from None

    def in_memory(self, instruction: Instruction, b: Builder) -> None:
        """What is done with memory is done with its shadows, one for each coefficient."""
        op, operands = instruction.op, instruction.operands
        for result in instruction.results:
            self.tangents[result] = self.still
        passed = (*operands, *instruction.results)
        if not any(self.is_moving(x) and leads_to_memory(x.type) for x in passed):
            return
        uses = op.memory_uses(instruction)
        if any(use.value is not None and not can_move(use.value.type) for use in uses):
            return
        found: list[Value] = []
        for k in range(self.order):
            xs = [self.on_shadow(b, x, k) for x in operands]
            still = uses[:1] and not self.is_moving(uses[0].pointer)
            if still:
                xs[0] = zeros_to_read(b, op, xs)
            found += b.emit_many(op, xs)
            if still:
                give_back(b, xs[0])
        for result in instruction.results:
            self.tangents[result] = found

    def on_shadow(self, b: Builder, x: Value, k: int) -> Value:
        """What stands for an operand of what acts on memory: counts and indices stay."""
        if isinstance(x.type, TensorType) and not x.type.dtype.is_float:
            return self.values[x]
        if leads_to_memory(x.type) and not self.is_moving(x):
            return self.values[x]
        return self.tangent(b, x, k)

    def by_rule(self, instruction: Instruction, b: Builder, expansion: SeriesExpansion) -> None:
        """What the op's rule makes of the tangents of its operands."""
        op, operands, results = instruction.op, instruction.operands, instruction.results
        xs, ys = [self.values[x] for x in operands], [self.values[y] for y in results]
        if self.order == 1:
            dys = jvp_of(b, op, ys, xs, [self.tangents[x][0] for x in operands])
            self.tangents.update((y, (dy,)) for y, dy in zip(results, dys, strict=True))
            return
        given = [
            expansion.given(x, self.tangents[operand])
            for x, operand in zip(xs, operands, strict=True)
        ]
        found = expansion.apply(op, given, ys)
        for result, series in zip(results, found, strict=True):
            self.tangents[result] = [series[k] for k in range(1, self.order + 1)]

    def of_enum(self, b: Builder, instruction: Instruction, k: int) -> Value | None:
        """Enums carry the tangents of what they carry, as enums with the same cases."""
        op = instruction.op
        if not self.is_moving(instruction.result):
            return None
        if isinstance(op, EnumCase):
            type = self.types.of(op.type)
            assert isinstance(type, EnumType)
            carried = [x for x in instruction.operands if self.types.carried([x.type])]
            return b.emit(EnumCase(type, op.case), *(self.tangent(b, x, k) for x in carried))
        (value,) = instruction.operands
        tangent = self.tangents[value][k]
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
        push = self.pushforward(op.callee, mask, self.order)
        arguments = [self.values[operand] for operand in operands]
        both = iter(b.emit_many(Apply(push.name, push.type), [*arguments, *moving]))
        for result in instruction.results:
            self.values[result] = copy = next(both)
            copy.name = result.name
            self.tangents[result] = self.still
        for k in self.moved(op.callee, mask):
            self.tangents[instruction.results[k]] = [next(both) for _ in range(self.order)]

    def structured(self, instruction: Instruction, b: Builder) -> Nested:
        """A choice or a loop: beside each flow that moves one for its tangent, or one for each coefficient."""
        flows = list(self.widened(instruction))
        operands = [
            self.copy_or_tangent(b, operand, k)
            for flow, k in flows
            for operand in operands_of(instruction, flow)
        ]
        regions: list[Region] = []
        for body, region in enumerate(instruction.regions):
            source, inner = region.entry, Builder(Block(name=region.entry.name))
            for flow, k in flows:
                for number, position in flow.arguments:
                    if number == body:
                        self.argument(source.arguments[position], k, inner)
            yield self.block(source, inner)
            yielded = [
                self.copy_or_tangent(inner, source.terminator.operands[position], k)
                for flow, k in flows
                for number, position in flow.yields
                if number == body
            ]
            inner.emit_many(Yield(), yielded)
            regions.append(Region([inner.block]))
        b.location = instruction.location
        roles = [(flow.role, self.role_type(flow.type, k)) for flow, k in flows]
        made = iter(b.emit_many(structured(instruction).with_roles(roles), operands, regions))
        for flow, k in flows:
            if flow.result is not None:
                self.result(instruction.results[flow.result], k, next(made))

    def widened(self, instruction: Instruction) -> Iterator[tuple[Flow, int]]:
        """The flows of a structured instruction, and behind those of a role the tangents of those that move.

        With each its order: 0 is the flow itself.
        """
        for _, group in groupby(flows_of(instruction), key=lambda flow: flow.role):
            same = list(group)
            yield from ((flow, 0) for flow in same)
            for flow in same:
                if flow.result is not None and self.is_moving(instruction.results[flow.result]):
                    yield from ((flow, k) for k in range(1, self.order + 1))

    def copy_or_tangent(self, b: Builder, value: Value, k: int) -> Value:
        """The copy of a value, or its coefficient k; a zero is made."""
        if not k:
            return self.values.get(value, value)
        return self.tangent(b, value, k - 1)

    def role_type(self, type: Type, k: int) -> Type:
        return (self.types.of(type) or type) if k else type

    def argument(self, old: Value, k: int, inner: Builder) -> None:
        """What a body takes for a flow."""
        if k:
            made = inner.argument(self.tangent_type(old))
            self.tangents[old] = (*self.tangents[old][: k - 1], made, *self.still[k:])
            return
        self.values[old] = inner.argument(old.type, old.name)
        self.tangents[old] = self.still

    def result(self, old: Value, k: int, made: Value) -> None:
        if k:
            self.tangents[old] = (*self.tangents[old][: k - 1], made, *self.still[k:])
            return
        self.values[old] = made
        made.name = old.name
        self.tangents[old] = self.still
