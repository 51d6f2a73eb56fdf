"""Products of which one sum is made become one instruction with it, which rounds once: `fma`.

    a · b + c     fma a, b, c
    c − a · b     fma −a, b, c
    u ⊗ v + c     fma u, v, c, chosen where the factor that has to be compared is not zero, and c elsewhere

Not where both terms are products: a · b − c · d would not be 0 any more where a · b = c · d.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..ir import Builder, Instruction, Value
from ..ops.arithmetic import Add, Multiply, Negate, Square, StrongMultiply, Subtract
from ..ops.combinator import Combinator
from ..ops.comparison import NotEqual, Select
from ..ops.literal import number_of, splat
from ..ops.nest import Nest
from .ops import Fma
from .strong_products import StrongProduct, StrongProducts, is_strong_product

_PRODUCTS: Final = (Multiply, Square, StrongMultiply)


def multiply_and_add(nest: Instruction[Nest]) -> None:
    """Rewrite the body of a nest for a machine that multiplies and adds in one instruction."""
    body = nest.regions[0].entry
    if len(body.instructions) > 2:
        _BodyWriter(nest, body.terminator).write()


@dataclass
class _BodyWriter:
    """Writes the instructions of one body anew."""

    nest: Instruction[Nest]
    yielded: Instruction
    strong: StrongProducts = field(default_factory=StrongProducts)
    examined: dict[Value, StrongProduct] = field(default_factory=dict[Value, StrongProduct])
    """The strong products that need one comparison at most."""
    conditions: dict[Value, Value] = field(default_factory=dict[Value, Value])
    zeros: dict[str, Value] = field(default_factory=dict[str, Value])
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def write(self) -> None:
        body = self.nest.regions[0].entry
        old = body.instructions
        for instruction in old:
            if is_strong_product(instruction):
                found = self.strong.examine(instruction)
                if found is not None:
                    self.examined[instruction.result] = found
        sums = {i: term for i in old if (term := self._product_of(i)) is not None}
        if not sums and not self.examined:
            return
        waiting = {term.producer for term in sums.values()}
        body.instructions = []
        b = Builder(body)
        for instruction in old:
            b.location = instruction.location
            if instruction in waiting:
                continue
            if instruction in sums:
                product = sums[instruction]
                self._replace(instruction, self._sum(b, instruction, product))
                assert product.producer is not None
                product.producer.erase()
            elif instruction.results and instruction.result in self.examined:
                self._replace(instruction, self._product(b, instruction))
            else:
                body.instructions.append(instruction)

    def _replace(self, instruction: Instruction, value: Value) -> None:
        self.replaced[instruction.result] = value
        instruction.replace_with(value)

    def _product_of(self, instruction: Instruction) -> Value | None:
        """The operand of a sum that is a product which nothing else uses."""
        if not isinstance(instruction.op, Add | Subtract):
            return None
        if instruction.result.tensor.dtype.name not in ("f32", "f64"):
            return None
        terms = [x for x in instruction.operands if isinstance(x.op, _PRODUCTS)]
        if len({isinstance(x.op, StrongMultiply) for x in terms}) != len(terms):
            return None  # none, or two of a kind
        for x in terms:
            is_known = not isinstance(x.op, StrongMultiply) or x in self.examined
            if is_known and list(x.uses) == [instruction] and instruction.operands.count(x) == 1:
                return x
        return None

    def _sum(self, b: Builder, instruction: Instruction, product: Value) -> Value:
        assert product.producer is not None
        first, second = instruction.operands
        u, v = product.producer.operands[0], product.producer.operands[-1]
        other = second if first is product else first
        if isinstance(instruction.op, Subtract):
            if first is product:
                other = b.emit(Negate(), other)
            else:
                u, v = self._negated(b, u, v)
        made = b.emit(Fma(), u, v, other)
        found = self.examined.get(product)
        if found is None or found.guard is None:
            return made
        return b.emit(Select(), made, other, self._condition(b, found.guard))

    def _product(self, b: Builder, instruction: Instruction) -> Value:
        """A strong product by itself; plain where it is only added up, as the sign of a zero does not matter there."""
        product, found = instruction.result, self.examined[instruction.result]
        if found.guard is None and self._is_only_summed(product):
            return b.emit(Multiply(), *instruction.operands)
        zero = self._zero(b, product)
        made = b.emit(Fma(), *instruction.operands, zero)
        if found.guard is None:
            return made
        return b.emit(Select(), made, zero, self._condition(b, found.guard))

    def _is_only_summed(self, value: Value) -> bool:
        return list(value.uses) == [self.yielded] and all(
            written.combinator is Combinator.ADD
            for x, written in zip(self.yielded.operands, self.nest.op.outputs, strict=True)
            if x is value
        )

    def _condition(self, b: Builder, guard: Value) -> Value:
        guard = self.replaced.get(guard, guard)
        if guard not in self.conditions:
            self.conditions[guard] = b.emit(NotEqual(), guard, self._zero(b, guard))
        return self.conditions[guard]

    def _zero(self, b: Builder, like: Value) -> Value:
        type = like.tensor
        if type.dtype.name not in self.zeros:
            self.zeros[type.dtype.name] = b.emit(splat(type, 0.0))
        return self.zeros[type.dtype.name]

    def _negated(self, b: Builder, u: Value, v: Value) -> tuple[Value, Value]:
        for x, other in ((u, v), (v, u)):
            number = number_of(x)
            if number is not None:
                return b.emit(splat(x.tensor, -number)), other
        return b.emit(Negate(), u), v
