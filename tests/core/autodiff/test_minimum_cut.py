"""What is saved for the backward half is enough, and no choice has fewer bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.autodiff.minimum_cut import choose_residuals
from nnkit.core.ir import Block, Builder, Instruction, Value
from nnkit.core.ops import Add, Broadcast, Exp, Multiply, Negate, Slice, constant
from nnkit.core.types import F32, F64, TensorType, tensor_bytes

SMALL, LARGE = TensorType((2,), F64), TensorType((64,), F64)
AGAIN = (Add, Multiply, Negate, Broadcast, Slice)
"""What may be computed again here; `Exp` may not."""


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Block, list[Value], Value]:
    """A body of few instructions, values that are needed of it, and an argument that is free."""
    b = Builder(Block())
    values = [b.argument(SMALL), b.argument(LARGE), b.argument(SMALL)]
    free = b.argument(SMALL)
    values += [free, constant(b, LARGE, 2.0)]
    for _ in range(draw(st.integers(1, 5))):
        x = draw(st.sampled_from(values))
        others = [y for y in values if y.type == x.type]
        kind = draw(st.integers(0, 4))
        if kind == 0:
            made = b.emit(Add(), x, draw(st.sampled_from(others)))
        elif kind == 1:
            made = b.emit(Multiply(), x, draw(st.sampled_from(others)))
        elif kind == 2:
            made = b.emit(Exp(), x)
        elif x.type == LARGE:
            made = b.emit(Slice((0,), (2,)), x)
        else:
            made = b.emit(Negate(), x)
        values.append(made)
    needed = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
    return b.block, needed, free


@settings(max_examples=200)
@given(blocks())
def test_no_other_choice_is_enough_with_fewer_bytes(made: tuple[Block, list[Value], Value]) -> None:
    block, needed, free = made
    found = choose_residuals(block, needed, {free})
    known = {free, *found.saved}
    for instruction in found.computed:
        assert isinstance(instruction.op, AGAIN) or instruction.op.is_constant
        assert known.issuperset(instruction.operands)
        known.update(instruction.results)
    assert known.issuperset(needed)
    inside = [*block.arguments, *(x for i in block.instructions for x in i.results)]
    for count in range(len(inside) + 1):
        for saved in combinations(inside, count):
            if is_enough(block.instructions, needed, {free, *saved}):
                assert total(saved) >= total(found.saved)


def is_enough(instructions: Sequence[Instruction], needed: list[Value], known: set[Value]) -> bool:
    for instruction in instructions:
        is_cheap = isinstance(instruction.op, AGAIN) or instruction.op.is_constant
        if is_cheap and known.issuperset(instruction.operands):
            known.update(instruction.results)
    return known.issuperset(needed)


def total(values: Sequence[Value]) -> int:
    return sum(tensor_bytes(value.type) for value in values)


def test_sums_of_one_function_save_it_once() -> None:
    """Of exp x, 2 exp x, and its first elements, exp x is saved, or two elements where they are all that is needed."""
    b = Builder(Block())
    x = b.argument(LARGE)
    y = b.emit(Exp(), x)
    twice = b.emit(Add(), y, y)
    first = b.emit(Slice((0,), (2,)), twice)
    assert choose_residuals(b.block, [y, twice, first], set()).saved == [y]
    assert choose_residuals(b.block, [first], set()).saved == [first]
    found = choose_residuals(b.block, [x, first], set())
    assert found.saved == [x, first]
    assert not found.computed


def test_values_that_are_wider_than_what_they_are_made_of_are_made_again() -> None:
    b = Builder(Block())
    x = b.argument(TensorType((1,), F32))
    wide = b.emit(Broadcast((1000,)), x)
    found = choose_residuals(b.block, [wide], set())
    assert (found.saved, [i.op for i in found.computed]) == ([x], [Broadcast((1000,))])


def test_long_chains_take_no_more_than_time_in_proportion() -> None:
    b = Builder(Block())
    x = y = b.argument(LARGE)
    for _ in range(3000):
        y = b.emit(Negate(), b.emit(Add(), y, x))
    values = [z for i in b.block.instructions for z in i.results]
    assert choose_residuals(b.block, values, set()).saved == [x]
