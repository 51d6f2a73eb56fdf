"""Every law makes the program smaller by the measure at the top of `core/passes/simplify.py`, so rewriting ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from nnkit.core.analysis import Analyses
from nnkit.core.ir import Builder, Instruction, Module, Region, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import (
    Abs,
    Dot,
    Elementwise,
    Gather,
    Literal,
    Multiply,
    Negate,
    Not,
    PadShape,
    Reduce,
    Reverse,
    Scatter,
    ScatterAdd,
    ShapeCast,
    SqueezeShape,
    Structured,
)
from nnkit.core.passes.fold import FOLDING
from nnkit.core.passes.rewrite import Law as Rewriting
from nnkit.core.passes.rewrite import Laws, combine_laws, rewrite
from nnkit.core.passes.rules import FAST_MATH, FINAL, STRICT
from nnkit.core.passes.simplify_structured import inline_known_bodies, simplify_structured
from nnkit.core.types import TensorType, Type
from tests.core.passes.laws import Law, module_of
from tests.core.passes.rules import test_fast_math
from tests.core.passes.test_soundness import ROWS, Composed, compositions, versions
from tests.programs import Program, graphs, programs
from tests.rows import each

VIEWS = (Literal, PadShape, ShapeCast, SqueezeShape)

Measure = tuple[int, int, int, int, int, int]


def measure(value: Value) -> Measure:
    """Of all that `value` depends on, parts 1 to 5; 3 is two numbers."""
    needed = ordered(value)
    ways: dict[Instruction, int] = {}
    for i in needed:
        ways[i] = 1 + sum(ways[x.producer] for x in i.operands if x.producer is not None)
    operands = [x for i in needed for x in i.operands]
    return (
        sum(work(i) for i in needed),
        sum(not isinstance(i.op, Literal) for i in needed),
        len(operands),
        sum(x.op.type.rank for x in operands if isinstance(x.op, Literal)),
        sum(spelling(i) for i in needed),
        ways[value.producer] if value.producer is not None else 0,
    )


def ordered(value: Value) -> list[Instruction]:
    """What `value` depends on, each after what it depends on itself."""
    found: dict[Instruction, None] = {}
    pending = [(value.producer, False)]
    while pending:
        instruction, is_done = pending.pop()
        if instruction is None or instruction in found:
            continue
        if is_done:
            found[instruction] = None
        else:
            pending.append((instruction, True))
            pending.extend((x.producer, False) for x in instruction.operands)
    return list(found)


def work(instruction: Instruction) -> int:
    """What its elements take, where moving one takes 1."""
    op, operands = instruction.op, instruction.operands
    made = sum(size(x.type) for x in instruction.results)
    if isinstance(op, VIEWS):
        return 0
    if isinstance(op, Dot):
        return 8 * made * extent(operands[0].tensor.shape[-1:])
    if isinstance(op, Reduce):
        return 3 * (made + size(operands[0].type))
    if isinstance(op, Elementwise) and not isinstance(op, Negate | Abs | Not):
        return made * (3 * max(op.cost, 1) + isinstance(op, Multiply))
    if isinstance(op, Gather):
        return 3 * made
    if isinstance(op, ScatterAdd) or (isinstance(op, Scatter) and len(operands) > 2):
        return made + 12 * size(operands[0].type)
    return made


def size(type: Type) -> int:
    return extent(type.shape) if isinstance(type, TensorType) else 0


def extent(shape: Sequence[int]) -> int:
    """How many elements; laws of any shape are no better for an empty one, which counts as if it were not."""
    return math.prod(n or 2 for n in shape)


def spelling(instruction: Instruction) -> int:
    """How far it is from the shortest spelling of the same, which is a `shapeCast` if that is one."""
    op = instruction.op
    axes = len(op.axes) if isinstance(op, Reverse) else 0
    return axes + (not isinstance(op, ShapeCast))


def checked(law: Rewriting) -> Rewriting:
    def apply(b: Builder, instruction: Instruction) -> Value | None:
        value = law(b, instruction)
        if value is not None:
            before, after = measure(instruction.result), measure(value)
            assert after < before, f"{law.__name__} of {instruction.op}: {before} became {after}"
        return value

    return apply


def book(laws: Laws) -> Laws:
    return {op_class: tuple(map(checked, found)) for op_class, found in laws.items()}


EXACT = book(combine_laws(FOLDING, STRICT, FINAL))
FAST = book(combine_laws(FOLDING, STRICT, FAST_MATH, FINAL))


def apply(module: Module, laws: Laws, *, merge: bool = False) -> None:
    analyses = Analyses(module)
    for function in module.functions.values():
        rewrite(function, laws, analyses, merge=merge)


@each("law", ROWS, ids=str)
def test_every_law_makes_less(law: Law) -> None:
    for types in versions(law):
        for laws in (EXACT, FAST):
            apply(module_of(types, law.build), laws)


@pytest.mark.parametrize("law", test_fast_math.LAWS)
def test_every_law_of_fast_math_makes_less(law: Law) -> None:
    apply(module_of(law.parameters, law.build), FAST)


@settings(suppress_health_check=list(HealthCheck))
@given(program=compositions())
def test_laws_upon_laws_make_less(program: Composed) -> None:
    apply(program.module, EXACT, merge=True)


@settings(suppress_health_check=list(HealthCheck))
@given(program=programs(control=True))
def test_laws_make_less_of_any_program(program: Program) -> None:
    apply(program.module, FAST, merge=True)


def parts(region: Region) -> int:
    """Structured ops, and what they yield."""
    return sum(1 + len(i.results) for i in walk(region) if isinstance(i.op, Structured))


@pytest.mark.parametrize("law", [inline_known_bodies, simplify_structured])
@settings(suppress_health_check=list(HealthCheck))
@given(program=graphs(control=True) | programs(control=True))
def test_laws_of_structured_ops_leave_fewer(
    law: Callable[[Region], bool], program: Program
) -> None:
    for body in [f.body for f in program.module.functions.values() if f.body is not None]:
        before = parts(body)
        assert law(body) == (parts(body) < before)
