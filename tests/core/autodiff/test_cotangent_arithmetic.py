"""Cotangents of enums are zeros, made of parts, and added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nnkit.core import ops
from nnkit.core.autodiff.cotangent_arithmetic import CotangentArithmetic
from nnkit.core.autodiff.tangent_types import TangentTypes
from nnkit.core.autodiff.tapes import EMPTY, RECORD, Tapes
from nnkit.core.evaluate import EnumValue, evaluate
from nnkit.core.ir import Builder, Module, Value, finish_function, start_function
from nnkit.core.types import F64, I64, EnumType, Type, scalar
from nnkit.core.verify import verify

NUMBER, COUNT = scalar(F64), scalar(I64)


def shapes(module: Module) -> EnumType:
    """An enum of which several cases have numbers; the first of them is its zero."""
    shape = module.enums["Shape"] = EnumType("Shape")
    shape.define(
        [("circle", (NUMBER,)), ("box", (COUNT, NUMBER)), ("both", (shape, shape)), ("none", ())]
    )
    return shape


def computed(
    module: Module, parameters: Sequence[Type], body: Callable[[Builder, list[Value]], Value]
) -> Callable[..., Any]:
    b = start_function(parameters)
    result = body(b, list(b.block.arguments))
    b.emit_many(ops.Return(), [result])
    module.add(finish_function("f", b, result.type))
    verify(module)
    return lambda *arguments: evaluate(module, "f", *arguments)


def circle(x: float) -> EnumValue:
    return EnumValue("circle", (x,))


def box(x: float) -> EnumValue:
    return EnumValue("box", (x,))


def both(x: EnumValue, y: EnumValue) -> EnumValue:
    return EnumValue("both", (x, y))


SUMS: dict[str, tuple[EnumValue, EnumValue, EnumValue]] = {
    "of one case": (box(2.0), box(3.0), box(5.0)),
    "of the case of zeros": (circle(2.0), circle(3.0), circle(5.0)),
    "a zero first": (circle(0.0), box(3.0), box(3.0)),
    "a zero last": (box(3.0), circle(0.0), box(3.0)),
    "nothing": (EnumValue("none", ()), circle(3.0), circle(3.0)),
    "inside": (
        both(box(1.0), circle(2.0)), both(circle(0.0), circle(5.0)), both(box(1.0), circle(7.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str) -> None:
    module = Module()
    types = TangentTypes(module)
    arithmetic = CotangentArithmetic(types)
    tangent = types.known(shapes(module))
    assert types.of(tangent) == tangent
    f = computed(module, [tangent, tangent], lambda b, given: arithmetic.add(b, *given))
    assert [arithmetic.is_sum(name) for name in module.functions] == [True, False]
    x, y, expected = SUMS[name]
    assert f(x, y) == expected


def test_a_part_of_another_case_is_a_zero() -> None:
    """What comes together for a case, where the value is not of it, is not taken for the other case."""
    module = Module()
    shape = shapes(module)
    arithmetic = CotangentArithmetic(TangentTypes(module))

    def body(b: Builder, given: list[Value]) -> Value:
        value, part = given
        (ct,) = arithmetic.of_enum(b, value, {("box", 1): part})
        return ct

    f = computed(module, [shape, NUMBER], body)
    assert f(EnumValue("box", (4, 1.0)), 2.0) == box(2.0)
    assert f(circle(1.0), 0.0) == circle(0.0)


def test_records_are_added_where_they_are_known() -> None:
    """No function is called for a record and a tape: what is behind it is taken over."""
    module = Module()
    types = TangentTypes(module)
    arithmetic = CotangentArithmetic(types)
    tape = Tapes(module).of([NUMBER, COUNT])
    tangent = types.known(tape)

    def body(b: Builder, given: list[Value]) -> Value:
        value, rest, part = given
        (record,) = arithmetic.of_enum(b, value, {(RECORD, 0): part})
        return arithmetic.add(b, record, rest)

    f = computed(module, [tape, tangent, NUMBER], body)
    assert list(module.functions) == ["f"]
    empty = EnumValue(EMPTY, ())
    more = EnumValue(RECORD, (5.0, empty))
    some = EnumValue(RECORD, (2.0, 7, EnumValue(RECORD, (3.0, 8, empty))))
    assert f(some, EnumValue(RECORD, (1.0, more)), 10.0) == EnumValue(RECORD, (11.0, more))
    assert f(some, empty, 10.0).carried[0] == 10.0


def test_what_has_no_tangent_has_no_part() -> None:
    module = Module()
    arithmetic = CotangentArithmetic(TangentTypes(module))
    shape = shapes(module)
    b = Builder()
    tangent = arithmetic.types.known(shape)
    number, part = arithmetic.carried(b, b.argument(tangent), ops.EnumCase(shape, "box"))
    assert number is None and part is not None and part.type == NUMBER
    counts = Tapes(module).of([COUNT])
    assert arithmetic.types.of(counts) is None
