"""The driver: its order, its end, and what it does with wrong laws."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from nnkit.core.analysis import Analyses
from nnkit.core.driver.stages import advance
from nnkit.core.errors import InternalError
from nnkit.core.ir import Builder, Function, Instruction, Module, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Abs, Add, Elementwise, Exp, Multiply, Negate, Transpose
from nnkit.core.ops.nest import Access, Output, build_nest, coordinate
from nnkit.core.passes import rewrite as rewriting
from nnkit.core.passes.rewrite import Laws, combine_laws
from nnkit.core.stage import Stage
from nnkit.core.types import F32, TensorType
from tests.core.passes.laws import module_of, opcodes
from tests.patience import PATIENCE

X = TensorType((3,), F32)


def function_of(build: Callable[[Builder, Value], Value]) -> Function:
    """A function of one vector."""
    return module_of([X], build).functions["main"]


def rewrite(function: Function, laws: Laws, *, merge: bool = False) -> bool:
    """Apply `laws` to a function of which nothing is known."""
    module = Module()
    module.add(function)
    return rewriting.rewrite(function, laws, Analyses(module), merge=merge)


def names(function: Function) -> str:
    assert function.body is not None
    return " ".join(i.op.name for i in walk(function.body))


def swap_sign(b: Builder, instruction: Instruction) -> Value | None:
    """|x| is −x: makes something new that has a law of its own."""
    return b.emit(Negate(), *instruction.operands)


def exp_for_negate(b: Builder, instruction: Instruction) -> Value | None:
    return b.emit(Exp(), *instruction.operands)


def test_new_instructions_are_visited() -> None:
    function = function_of(lambda b, x: b.emit(Abs(), x))
    assert rewrite(function, {Abs: (swap_sign,), Negate: (exp_for_negate,)})
    assert names(function) == "exp return"


def test_a_law_sees_finished_operands() -> None:
    seen: list[str] = []

    def look(b: Builder, instruction: Instruction) -> Value | None:
        seen.extend(x.op.name for x in instruction.operands if x.op)
        return None

    function = function_of(lambda b, x: b.emit(Exp(), b.emit(Abs(), x)))
    rewrite(function, {Abs: (swap_sign,), Exp: (look,)})
    assert seen == ["negate"]


def test_laws_of_base_classes_hold() -> None:
    assert rewrite(function_of(lambda b, x: b.emit(Add(), x, x)), {Elementwise: (first_operand,)})
    assert not rewrite(
        function_of(lambda b, x: b.emit(Transpose(), x)), {Elementwise: (first_operand,)}
    )


def first_operand(b: Builder, instruction: Instruction) -> Value | None:
    return instruction.operands[0]


def test_books_are_tried_in_order() -> None:
    laws: Laws = combine_laws({Abs: (swap_sign,)}, {Abs: (first_operand,)})
    function = function_of(lambda b, x: b.emit(Abs(), x))
    rewrite(function, laws)
    assert names(function) == "negate return"


def test_laws_that_never_end_are_stopped() -> None:
    def back(b: Builder, instruction: Instruction) -> Value | None:
        return b.emit(Abs(), *instruction.operands)

    function = function_of(lambda b, x: b.emit(Abs(), x))
    assert rewrite(function, {Abs: (swap_sign,), Negate: (back,)})
    assert names(function) in ("abs return", "negate return")


def test_a_law_that_changes_the_type() -> None:
    def wrong(b: Builder, instruction: Instruction) -> Value | None:
        return b.emit(Negate(), b.argument(TensorType((), F32)))

    with pytest.raises(InternalError, match="a law turned <3 x f32> of abs into f32"):
        rewrite(function_of(lambda b, x: b.emit(Abs(), x)), {Abs: (wrong,)})


def test_a_law_that_leaves_something_behind() -> None:
    def wrong(b: Builder, instruction: Instruction) -> Value | None:
        b.emit(Negate(), *instruction.operands)
        return None

    with pytest.raises(InternalError, match="for nothing"):
        rewrite(function_of(lambda b, x: b.emit(Abs(), x)), {Abs: (wrong,)})


def test_names_and_locations_survive() -> None:
    function = function_of(lambda b, x: b.emit(Abs(), x))
    instruction = function.entry.instructions[0]
    instruction.result.name = "h"
    rewrite(function, {Abs: (swap_sign,)})
    replaced = function.entry.instructions[0]
    assert replaced.result.name == "h" and replaced.location is instruction.location


def test_regions_are_walked_on_their_own() -> None:
    def build(b: Builder, x: Value) -> Value:
        point = (coordinate(0),)
        return build_nest(
            b,
            (3,),
            [(x, Access(point))],
            [Output(X, point)],
            lambda inner, _, read: [
                inner.emit(Multiply(), inner.emit(Exp(), *read), inner.emit(Exp(), *read))
            ],
        )[0]

    function = function_of(build)
    assert rewrite(function, {Abs: (swap_sign,)}, merge=True)
    assert names(function) == "nest return exp multiply yield"


@pytest.mark.parametrize("length", [10_000])
def test_long_programs(length: int) -> None:
    def build(b: Builder, x: Value) -> Value:
        y = x
        for index in range(length):
            y = b.emit(Add() if index % 2 else Multiply(), y, x)
        return y

    module = module_of([X], build)
    start = time.process_time()
    advance(module, Stage.OPTIMIZED, "main")
    assert time.process_time() - start < 2 * PATIENCE
    assert opcodes(module.functions["main"]).count(" ") == length - 1


def test_long_chains_of_replacements() -> None:
    def build(b: Builder, x: Value) -> Value:
        for _ in range(20_000):
            x = b.emit(Negate(), x)
        return x

    module = module_of([X], build)
    advance(module, Stage.OPTIMIZABLE)
    assert opcodes(module.functions["main"]) == ""
