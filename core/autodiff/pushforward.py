"""The body of a pushforward: the instructions of a function, each followed by its forward rule.

    %y = sin %x                    %y = sin %x
                                   %ẏ = ẋ · cos %x                      (the op's rule)
    %y = apply @f(%x)              %t = apply @f_jvp(%x, %ẋ)            the result of @f, and its tangent
    %y = while carrying %x …       %y, %ẏ = while carrying %x, %ẋ …     bodies carry tangents beside values

Which leaves move is known beforehand (`core.autodiff.activity`), so one walk is enough.  A tangent that is
zero is not made until a body has to yield it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import clone_instructions
from ..location import located
from ..ops.aggregate import Aggregate, Apply, Extract
from ..ops.control import For, If, While
from ..ops.flows import Structured
from ..ops.literal import constant
from ..ops.nest import Yield
from ..ops.stopping import StopGradient
from ..ops.terminators import Return
from ..types import TensorType, TupleType
from .activity import Activity, Masks, check_flow, straight_line
from .leaves import Leaf, Spans, leaves_of, mask_of, members
from .rules import jvp_of

Tangent: TypeAlias = "Value | None"
"""The tangent of a leaf; None is zero."""


class Body:
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
            for position in range(len(leaves_of(parameter.type)))
        ]
        for k in members(self.given):
            parameter, position = places[k]
            leaf = leaves_of(parameter.type)[position]
            name = f"d{parameter.name}" if parameter.name else None
            self.tangents[parameter][position] = b.argument(leaf.type, name)
        run_nested(self.block(self.source, b))
        returned = self.source.terminator.operands
        outputs: list[Value]
        if returned:
            tangents = self.materialized(b, returned[0])
            outputs = [self.values[returned[0]], *tangents]
        else:
            outputs = [b.emit(Aggregate(TupleType(())))]
        assert isinstance(self.push.type.result, TupleType)
        b.emit_many(Return(), [b.emit(Aggregate(self.push.type.result), *outputs)])
        self.push.body = Region([b.block])

    def follow(self, b: Builder, index: int, tangent: Value) -> tuple[Value, list[Tangent]]:
        """Copy the body while parameter `index`, a tensor, moves by `tangent`, after `take` has made it.

        The copy of the result, and the tangents of its leaves.
        """
        self.tangents[self.source.arguments[index]] = [tangent]
        run_nested(self.block(self.source, b))
        (returned,) = self.source.terminator.operands
        return self.values[returned], self.tangents[returned]

    def take(self, b: Builder) -> None:
        """The parameters, none of which moves yet."""
        for parameter in self.source.arguments:
            self.values[parameter] = b.argument(parameter.type, parameter.name)
            self.tangents[parameter] = [None] * len(leaves_of(parameter.type))

    def block(self, source: Block, b: Builder) -> Nested:
        """Copy the instructions of `source`, but for the terminator, with their tangents."""
        for instruction in source.instructions[:-1]:
            b.location = instruction.location
            if not any(self.is_moving(x) for x in instruction.operands) and not any(
                self.is_moving(y) for y in instruction.results
            ):
                clone_instructions(b.block, [instruction], self.values)
                for result in instruction.results:
                    self.tangents[result] = [None] * len(leaves_of(result.type))
            elif isinstance(instruction.op, Structured):
                yield from self.structured(instruction, b)
            else:
                self.instruction(instruction, b)
        b.location = None

    def is_moving(self, value: Value) -> bool:
        return any(mask & self.given for mask in self.masks.get(value, ()))

    def moving(self, value: Value) -> list[int]:
        """The leaves of `value` that may have a tangent other than zero."""
        masks: Masks = self.masks[value]
        return [k for k, mask in enumerate(masks) if mask & self.given]

    def materialized(self, b: Builder, value: Value) -> list[Value]:
        """The tangents of all leaves of `value` that may move; zeros are made."""
        leaves = leaves_of(value.type)
        found: list[Value] = []
        for k in self.moving(value):
            found.append(self.tangents[value][k] or constant(b, leaves[k].type, 0))
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
            case StopGradient():
                self.tangents[instruction.result] = [None]
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
        """A call becomes a call of the pushforward for the leaves that move."""
        moving: list[Value] = []
        given: list[int] = []
        first = 0
        for operand in instruction.operands:
            given += [first + k for k in self.moving(operand)]
            moving += self.materialized(b, operand)
            first += len(leaves_of(operand.type))
        mask = mask_of(given)
        push = self.pushforward(op.callee, mask)
        arguments = [self.values[operand] for operand in instruction.operands]
        both = b.emit(Apply(push.name, push.type), *arguments, *moving)
        result = b.emit(Extract((0,)), both)
        result.name = instruction.result.name
        self.values[instruction.result] = result
        tangents: list[Tangent] = [None] * len(leaves_of(result.type))
        for position, leaf in enumerate(self.moved(op.callee, mask)):
            tangents[leaf] = b.emit(Extract((1 + position,)), both)
        self.tangents[instruction.result] = tangents

    def structured(self, instruction: Instruction, b: Builder) -> Nested:
        """An `if`, `while` or `for` with tangents beside the values that move."""
        op, operands = instruction.op, instruction.operands
        match op:
            case If():
                fixed, end = 1, 1
            case While():
                fixed, end = 0, len(operands) - op.inputs
            case For():
                fixed, end = 2, len(operands) - op.inputs
            case _:
                raise located(
                    DifferentiationError(f"{op.name} cannot be differentiated"),
                    instruction.location,
                )
        carried, inputs = operands[fixed:end], operands[end:]
        results = instruction.results[: len(carried)] if not isinstance(op, If) else ()
        starts = [v for x, y in zip(carried, results, strict=True) for v in self.started(b, x, y)]
        regions: list[Region] = []
        for number, region in enumerate(instruction.regions):
            inner = Builder(Block(name=region.entry.name))
            self.enter(
                region.entry, inner, fixed=isinstance(op, For), carried=results, given=inputs
            )
            yield self.block(region.entry, inner)
            self.leave(instruction, number, region.entry, inner)
            regions.append(Region([inner.block]))
        b.location = instruction.location
        made = b.emit_many(
            self.widened(instruction),
            [*self.copies(operands[:end]), *starts, *self.copies(inputs)],
            regions,
        )
        self.collect(instruction, made)

    def started(self, b: Builder, operand: Value, result: Value) -> list[Value]:
        """What the tangents of a carried value are before the first iteration."""
        leaves = leaves_of(operand.type)
        found: list[Value] = []
        for k in self.moving(result):
            found.append(self.tangents[operand][k] or constant(b, leaves[k].type, 0))
        return found

    def enter(
        self,
        source: Block,
        inner: Builder,
        *,
        fixed: bool,
        carried: Sequence[Value],
        given: Sequence[Value],
    ) -> None:
        """The arguments of a body: index, carried values, their tangents, then the inputs."""
        arguments = list(source.arguments)
        if fixed:
            self.argument(arguments.pop(0), inner)
        own, rest = arguments[: len(carried)], arguments[len(carried) :]
        for argument in own:
            self.argument(argument, inner)
        for argument, result in zip(own, carried, strict=True):
            leaves = leaves_of(argument.type)
            for k in self.moving(result):
                self.tangents[argument][k] = inner.argument(leaves[k].type)
        for argument, operand in zip(rest, given, strict=True):
            self.argument(argument, inner)
            self.tangents[argument] = self.tangents[operand]  # visible from inside

    def argument(self, argument: Value, inner: Builder) -> None:
        self.values[argument] = inner.argument(argument.type, argument.name)
        self.tangents[argument] = [None] * len(leaves_of(argument.type))

    def leave(self, instruction: Instruction, number: int, source: Block, inner: Builder) -> None:
        """Yield values and the tangents of those whose results move, in the order of `widened`."""
        yielded = source.terminator.operands
        op = instruction.op
        if isinstance(op, While) and number == 0:
            inner.emit_many(Yield(), self.copies(yielded))
            return
        count = len(instruction.results) - (len(op.stacked) if isinstance(op, For) else 0)
        values: list[Value] = []
        for part in (slice(0, count), slice(count, None)):
            values += self.copies(yielded[part])
            for operand, result in zip(yielded[part], instruction.results[part], strict=True):
                values += self.started(inner, operand, result)
        inner.emit_many(Yield(), values)

    def widened(self, instruction: Instruction) -> Structured:
        """The op with room for the tangents of the results that move."""
        op, results = instruction.op, instruction.results
        match op:
            case If():
                extra = [leaf.type for y in results for leaf in self.moving_leaves(y)]
                return If((*op.results, *extra), op.inputs)
            case For():
                stacked = results[len(results) - len(op.stacked) :]
                more = [leaf.type for y in stacked for leaf in self.moving_leaves(y)]
                return For((*op.stacked, *more), op.inputs)
            case While():
                return op
            case _:
                raise DifferentiationError(f"{op.name} cannot be differentiated")

    def moving_leaves(self, value: Value) -> Iterable[Leaf]:
        leaves = leaves_of(value.type)
        return (leaves[k] for k in self.moving(value))

    def collect(self, instruction: Instruction, made: Sequence[Value]) -> None:
        """Tell the results of the widened instruction apart: values, tangents, in two groups."""
        op, remaining = instruction.op, iter(made)
        count = len(instruction.results) - (len(op.stacked) if isinstance(op, For) else 0)
        for part in (slice(0, count), slice(count, None)):
            for result in instruction.results[part]:
                self.values[result] = next(remaining)
                self.values[result].name = result.name
                self.tangents[result] = [None] * len(leaves_of(result.type))
            for result in instruction.results[part]:
                for k in self.moving(result):
                    self.tangents[result][k] = next(remaining)

    def copies(self, values: Iterable[Value]) -> list[Value]:
        return [self.values.get(value, value) for value in values]
