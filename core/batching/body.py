"""Builds batched functions: the instructions of a function, for all elements of a batch at once.

    %y = add %x, %w                %y = add %x, %w with a leading axis      (the op's rule)
    %y = apply @f(%x, %w)          %y = apply @f_batch(%x, %w)              shared by all calls with the same operands
    %y = for … carrying %x …       bodies carry batches

What does not differ among the elements is computed once, and has no further axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir import Block, Builder, Function, Instruction, Region, Value
from ..ir.nested import Nested, run_nested
from ..ir.surgery import clone_instructions
from ..ops import Apply
from ..ops.terminators import Return
from ..types import TensorType, Type
from .control_flow import BatchedControlFlow
from .differing import BatchKey, Differing
from .element_loop import one_by_one
from .rules import batch_of, repeated
from .totality import Totality

Batched = Callable[[BatchKey], "tuple[Function, Differing]"]
"""The batched function of a key, which may get its body later, and what differs in it."""


class BatchedBody:
    """The body of one batched function."""

    def __init__(
        self,
        batched: Batched,
        totality: Totality,
        primal: Function,
        key: BatchKey,
        known: Differing,
    ) -> None:
        self.batched, self.totality = batched, totality
        self.primal, self.key, self.known = primal, key, known
        self.values: dict[Value, Value] = {}

    def build(self) -> Region:
        """The region of the batched function."""
        b = Builder(Block(name="entry"))
        source = self.primal.entry
        for parameter in source.arguments:
            self.values[parameter] = b.argument(self.type_of(parameter), parameter.name)
        run_nested(self.block(source, b))
        returned = source.terminator.operands
        b.emit_many(
            Return(),
            [
                repeated(b, self.values[x], self.key.extent)
                if differs and x not in self.known.values
                else self.values[x]
                for x, differs in zip(returned, self.known.results, strict=True)
            ],
        )
        return Region([b.block])

    def block(self, source: Block, b: Builder) -> Nested:
        """Copy the instructions of `source`, but for the terminator."""
        around = b.location
        for instruction in source.instructions[:-1]:
            b.location = instruction.location
            if instruction not in self.known.concerned:
                clone_instructions(b.block, [instruction], self.values)
            elif instruction.op.is_structured:
                yield from BatchedControlFlow(self, instruction, b).emit()
            else:
                self.instruction(instruction, b)
        b.location = around

    def differs(self, values: Sequence[Value]) -> bool:
        return any(value in self.known.values for value in values)

    def type_of(self, value: Value) -> Type:
        """The type of the copy of `value`."""
        return self.batched_type(value.type) if value in self.known.values else value.type

    def batched_type(self, type: Type) -> TensorType:
        assert isinstance(type, TensorType)
        return type.with_shape((self.key.extent, *type.shape))

    def value(self, b: Builder, source: Value, is_batched: bool) -> Value:
        """The copy of `source`, with a batch axis if `is_batched`, though it does not differ."""
        copy = self.values[source]
        if is_batched and source not in self.known.values:
            return repeated(b, copy, self.key.extent)
        return copy

    def instruction(self, instruction: Instruction, b: Builder) -> None:
        """One instruction without bodies."""
        op = instruction.op
        batched = tuple(x in self.known.values for x in instruction.operands)
        xs = [self.values[x] for x in instruction.operands]
        if op.called is not None:
            self.call(instruction, op.called, b, batched)
            return
        if op.axis_name is not None and op.axis_name == self.key.axis:
            found: Sequence[Value] = [op.combined(b, xs[0], self.key.extent, batched[0])]
        else:
            result = batch_of(b, op, xs, batched)
            found = one_by_one(b, op, xs, batched, self.key.extent) if result is None else [result]
        for result, copy in zip(instruction.results, found, strict=True):
            self.values[result] = copy
            copy.name = copy.name or result.name

    def call(
        self, instruction: Instruction, name: str, b: Builder, batched: tuple[bool, ...]
    ) -> None:
        """A call becomes one of the callee's batched function for the operands that differ."""
        key = self.key._replace(name=name, batched=batched)
        function, _ = self.batched(key)
        arguments = [self.values[operand] for operand in instruction.operands]
        results = b.emit_many(Apply(function.name, function.type), arguments)
        for result, copy in zip(instruction.results, results, strict=True):
            self.values[result] = copy
            copy.name = result.name
