"""The data structures themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import InternalError
from nnkit.core.ir import (
    Builder,
    Instruction,
    Module,
    Region,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops import Add, Aggregate, Exp, Negate, Nest, Return
from nnkit.core.types import F32, VOID, TensorType

X = TensorType((2,), F32)


def counted(instructions: list[Instruction]) -> dict[Value, list[Instruction]]:
    """Who uses what, from the operands."""
    found: dict[Value, list[Instruction]] = {}
    for instruction in instructions:
        for operand in dict.fromkeys(instruction.operands):
            found.setdefault(operand, []).append(instruction)
    return found


@given(data=st.data(), width=st.sampled_from([2, 3, 40]))
def test_uses_are_what_operands_say_whatever_is_changed(data: st.DataObject, width: int) -> None:
    values = [Value(X) for _ in range(6)]
    operands = st.lists(st.sampled_from(values), max_size=width)
    instructions = [
        Instruction(Aggregate(VOID), tuple(x), ()) for x in data.draw(st.lists(operands))
    ]
    for _ in range(data.draw(st.integers(0, 8))):
        before = [list(i.operands) for i in instructions]
        match data.draw(st.sampled_from(["replace", "set", "erase"])):
            case "replace":
                old, new = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
                old.replace_all_uses_with(new)
                expected = [[new if x is old else x for x in xs] for xs in before]
                assert [list(i.operands) for i in instructions] == expected
            case "set" if instructions:
                chosen, given_now = data.draw(st.sampled_from(instructions)), data.draw(operands)
                chosen.set_operands(given_now)
                assert list(chosen.operands) == given_now
            case "erase" if instructions:
                instructions.pop(data.draw(st.integers(0, len(instructions) - 1))).erase()
        expected_uses = counted(instructions)
        for value in values:
            assert set(value.uses) == set(expected_uses.get(value, ()))
            times = sum(i.operands.count(value) for i in instructions)
            assert value.has_one_use == (times == 1)


def test_users_come_in_the_order_in_which_they_were_made() -> None:
    b = Builder()
    x = Value(X)
    made = [b.emit(op, x).producer for op in (Exp(), Negate(), Exp())]
    assert list(x.uses) == made


def test_what_is_used_is_not_erased() -> None:
    b = Builder()
    x = Value(X)
    y = b.emit(Exp(), x)
    z = b.emit(Negate(), y)
    assert y.producer is not None and z.producer is not None
    with pytest.raises(InternalError, match="exp is erased, but its results are used"):
        y.producer.erase()
    z.producer.erase()
    y.producer.erase()
    assert not x.uses and not y.uses


def test_what_replaces_a_result_takes_its_name_if_it_has_none() -> None:
    b = Builder()
    x, y = Value(X), Value(X, "y")
    exp, negate = b.emit(Exp(), x), b.emit(Negate(), x)
    exp.name, end = "e", Instruction(Return(), (exp,), ())
    assert exp.producer is not None and negate.producer is not None
    exp.producer.replace_with(negate)
    assert end.operands == (negate,) and negate.name == "e" and list(x.uses) == [negate.producer]
    negate.producer.replace_with(y)
    assert end.operands == (y,) and y.name == "y" and not x.uses


def test_what_is_dropped_uses_nothing_inside_either() -> None:
    x, inner, b = Value(X), Builder(), Builder()
    inner.emit_many(Return(), [inner.emit(Exp(), x)])
    b.emit_many(Nest((1,)), (), [Region([inner.block])])
    assert len(x.uses) == 1
    b.block.instructions[0].drop_all_references()
    assert not x.uses


def test_what_is_printed_for_debugging_stays_short() -> None:
    """A value knows its producer, which knows its operands: following them would print the program."""
    b = start_function([TensorType((2,), F32)], ["x"])
    x = b.block.arguments[0]
    for _ in range(2000):
        x = b.emit(Add(), x, x)
    b.emit_many(Return(), [x])
    function = finish_function("f", b, x.type)
    module = Module("m")
    module.add(function)
    assert x.producer is not None
    assert repr(x) == "<%?: <2 x f32>>"
    assert repr(b.block.arguments[0]) == "<%x: <2 x f32>>"
    assert repr(x.producer) == "<add of 2 operands>"
    assert repr(b.block) == "<block 'entry of 2001 instructions>"
    assert repr(Region([b.block])) == "<region of 1 blocks>"
    assert repr(function) == "<func @f: (<2 x f32>) -> <2 x f32>>"
    assert repr(module) == "<module 'm' of 1 functions>"
