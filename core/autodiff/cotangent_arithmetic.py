"""Cotangents as values: what is taken out of an enum is put into one, and they are added up.

    %x = payload ?record 0 of %t                the cotangent of %t is ?record(x̄, zeros)
    %t = literal ?record(%x, %rest)             x̄ is payload ?record 0 of t̄

So the cotangent of a tape is a tape: reading one, from its end, is reversed by recording, and recording by reading.

Sums of enums are made case by case.  What is of one case is added part by part, where it is known to be; else by a
function for each enum, as such a value may be a zero, which is of any case and has no numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field

from ..ir import Block, Builder, Function, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply
from ..ops.arithmetic import Add
from ..ops.enums import EnumCase, IsCase, case_made, default_cases, payload_of
from ..ops.literal import number_of
from ..ops.reference import is_undefined
from ..ops.terminators import Return
from ..types import EnumType, FunctionType, Type
from .emit_structured import emit_if
from .tangent_types import TangentTypes


@dataclass
class CotangentArithmetic:
    """Makes and adds up cotangents of `types`; functions that add enums up are made once."""

    types: TangentTypes
    sums: dict[str, Function] = field(default_factory=dict[str, Function])
    """By the names of the enums."""

    def type(self, value: Value) -> Type:
        """The type of its cotangent."""
        return self.types.known(value.type)

    def zero(self, b: Builder, value: Value) -> Value:
        """The cotangent of a value without influence."""
        return self.types.zero(b, value.type)

    def is_sum(self, name: str) -> bool:
        """Whether `@name` adds two cotangents."""
        return any(function.name == name for function in self.sums.values())

    def add(self, b: Builder, x: Value, y: Value) -> Value:
        """x + y."""
        for one, other in ((x, y), (y, x)):
            if _is_zero(one):
                return other
        if not isinstance(x.type, EnumType):
            return b.emit(Add(), x, y)
        for one, other in ((x, y), (y, x)):
            made = case_made(one.producer)
            if made is not None:
                return self._added_parts(b, made, one, other)
        function = self._sum_of(x.type)
        return b.emit(Apply(function.name, function.type), x, y)

    def of_enum(
        self, b: Builder, enum: Value, parts: Mapping[tuple[str, int], Value]
    ) -> list[Value]:
        """Cotangents of `enum` that have these for what it carries at (case, index), one for each case.

        Code may have been moved to where `enum` is of another case, and what has come together there is zeros.  With
        several cases of numbers, that must not be taken for what it is not.
        """
        assert isinstance(enum.type, EnumType)
        several = sum(bool(self.types.carried(carried)) for _, carried in enum.type.cases) > 1
        found: list[Value] = []
        for case in dict.fromkeys(case for case, _ in parts):
            known = {index: part for (one, index), part in parts.items() if one == case}
            carrying = self._if_of_case if several else self._carrying
            found.append(carrying(b, enum, case, known))
        return found

    def carried(self, b: Builder, ct: Value | None, op: EnumCase) -> list[Value | None]:
        """What the cotangent of a case of an enum has for each value that this carries."""
        places = itertools.count()
        return [
            None
            if ct is None or self.types.of(part) is None
            else payload_of(b, ct, op.case, next(places))
            for part in op.type.carried(op.case)
        ]

    def _carrying(self, b: Builder, enum: Value, case: str, parts: Mapping[int, Value]) -> Value:
        type = enum.type
        tangent = self.types.known(type)
        assert isinstance(type, EnumType) and isinstance(tangent, EnumType)
        operands = [
            parts.get(k) or self.types.zero(b, part)
            for k, part in enumerate(type.carried(case))
            if self.types.of(part) is not None
        ]
        return b.emit(EnumCase(tangent, case), *operands)

    def _if_of_case(self, b: Builder, enum: Value, case: str, parts: Mapping[int, Value]) -> Value:
        """The same where `enum` is of that case, else a zero."""
        (found,) = emit_if(
            b,
            b.emit(IsCase(case), enum),
            lambda inner: [self._carrying(inner, enum, case, parts)],
            lambda inner: [self.zero(inner, enum)],
        )
        return found

    def _added_parts(self, b: Builder, op: EnumCase, one: Value, other: Value) -> Value:
        """Of a value that is made as a case and another, which is of that case or zero."""
        assert one.producer is not None
        parts = [
            self.add(b, part, payload_of(b, other, op.case, k))
            for k, part in enumerate(one.producer.operands)
        ]
        return b.emit(op, *parts)

    def _sum_of(self, enum: EnumType) -> Function:
        """The function that adds two values of a type of tangents."""
        if enum.name not in self.sums:
            module = self.types.module
            name = module.fresh_name(f"{enum.name}_sum")
            function = Function(name, FunctionType((enum, enum), enum))
            self.sums[enum.name] = module.add(function)
            b = Builder(Block(name="entry"))
            x, y = (b.argument(enum, name) for name in "xy")
            cases = [case for case, carried in enum.cases if carried]
            b.emit_many(Return(), [self._sum_by_case(b, x, y, cases)])
            function.body = Region([b.block])
        return self.sums[enum.name]

    def _sum_by_case(self, b: Builder, x: Value, y: Value, cases: Sequence[str]) -> Value:
        """The sum when x is of one of `cases`; y when it is of none, and so carries nothing."""
        if not cases:
            return y
        case, *others = cases
        assert isinstance(x.type, EnumType)
        enum = x.type
        zero_case = default_cases(enum)[enum.name]

        def both(inner: Builder) -> list[Value]:
            parts = [
                self.add(inner, payload_of(inner, x, case, k), payload_of(inner, y, case, k))
                for k in range(len(enum.carried(case)))
            ]
            return [inner.emit(EnumCase(enum, case), *parts)]

        def of_case(inner: Builder) -> list[Value]:
            is_same = inner.emit(IsCase(case), y)
            return [*emit_if(inner, is_same, both, lambda _: [y if case == zero_case else x])]

        def of_others(inner: Builder) -> list[Value]:
            return [self._sum_by_case(inner, x, y, others)]

        (total,) = emit_if(b, b.emit(IsCase(case), x), of_case, of_others)
        return total


def _is_zero(value: Value) -> bool:
    return is_undefined(value) or number_of(value) == 0
