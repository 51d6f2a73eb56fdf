"""What branches say of their operands and successors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir import Block, Builder, Instruction, Op, Value, start_function
from nnkit.core.ops import Branch, BranchEnum, Conditional, EnumCase, Return, arguments_of, constant
from nnkit.core.ops.terminators import (
    argument_counts,
    case_of,
    decider_of,
    is_unconditional,
    pass_arguments,
    successor_taken,
    types_passed,
    values_passed,
)
from nnkit.core.types import BOOL, F32, EnumType, Type, scalar

S = scalar(F32)
ENUM = EnumType("E")
ENUM.define([("a", (S,)), ("b", ())])


def values(count: int, type: Type = S) -> list[Value]:
    return [Value(type) for _ in range(count)]


def ending(op: Op, operands: Sequence[Value], successors: int) -> Instruction:
    return Instruction(op, tuple(operands), (), (), None, tuple(Block() for _ in range(successors)))


@given(first=st.integers(0, 4), second=st.integers(0, 4))
def test_operands_are_the_decider_and_what_each_successor_is_given(first: int, second: int) -> None:
    condition = Value(scalar(BOOL))
    one, other = values(first), values(second)
    choice = ending(Conditional(first), [condition, *one, *other], 2)
    assert decider_of(choice) is condition and not is_unconditional(choice)
    assert argument_counts(choice) == (first, second)
    assert [*arguments_of(choice, 0)] == one and [*arguments_of(choice, 1)] == other
    assert types_passed(choice, 1) == (S,) * second
    pass_arguments(choice, [other, [*one, *other]])
    assert choice.op == Conditional(second)
    assert choice.operands == (condition, *other, *one, *other)
    branch = ending(Branch(), one, 1)
    assert decider_of(branch) is None and is_unconditional(branch)
    assert successor_taken(branch) is None and [*arguments_of(branch, 0)] == one
    pass_arguments(branch, [other])
    assert [*branch.operands] == other


def test_cases_bring_what_they_carry() -> None:
    op = BranchEnum(("b", "a"))
    unknown = ending(op, [Value(ENUM)], 2)
    assert [case_of(unknown, k) for k in range(2)] == ["b", "a"]
    assert successor_taken(unknown) is None and values_passed(unknown, 1) is None
    assert types_passed(unknown, 0) == () and types_passed(unknown, 1) == (S,)
    assert [*arguments_of(unknown, 1)] == []
    assert types_passed(ending(op, [Value(S)], 2), 1) is None
    b = start_function([S])
    (x,) = b.block.arguments
    known = ending(op, [b.emit(EnumCase(ENUM, "a"), x)], 2)
    assert successor_taken(known) == 1 and values_passed(known, 1) == (x,)
    assert successor_taken(unknown, EnumCase(ENUM, "b")) == 0
    pass_arguments(known, [[], []])
    assert known.op == op and len(known.operands) == 1


@pytest.mark.parametrize("truth", [True, False])
def test_a_known_condition_decides(truth: bool) -> None:
    b = Builder()
    condition = constant(b, scalar(BOOL), truth)
    assert condition.op is not None
    for value, op in ((condition, None), (Value(scalar(BOOL)), condition.op)):
        choice = ending(Conditional(1), [value, *values(2)], 2)
        assert successor_taken(choice, op) == (0 if truth else 1)


def test_what_leaves_a_function_goes_on_to_nothing() -> None:
    leaves = ending(Return(), values(1), 0)
    assert argument_counts(leaves) == () and not is_unconditional(leaves)
    assert decider_of(leaves) is None and successor_taken(leaves) is None
