"""Derivatives of derivatives in every order of nesting, by laws that hold for every program.

With F the sum of the results of a program, weighted, and v₁, v₂, v₃ random directions:

1. Dᵏ F [v₁, …, vₖ] is one number, whether each of the k derivatives is a gradient or a tangent;
2. it is the central difference of Dᵏ⁻¹ F [v₁, …, vₖ₋₁] along vₖ;
3. compiled code gives what the evaluator does.

So every tape (of loops of any number of iterations, of recursions) is recorded and read by code that is differentiated
again, in both modes.  In half of the programs a rule has a part, so that no gradient is differentiated by its symmetry.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.ir import (
    Builder,
    CustomRules,
    Function,
    GradientOf,
    Module,
    TangentOf,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.types import F64, Array, FunctionType, Type, scalar

from .building import differentiate
from .program_generator import DifferentiableProgram, differentiable_programs
from .test_reverse_control_flow import (
    LEVELS,
    Numbers,
    agree,
    call,
    compiled,
    copied,
    random_like,
    relaxed,
)

NUMBER = scalar(F64)
PROGRAMS = differentiable_programs(unbounded=True)


def function(
    module: Module, name: str, types: Sequence[Type], body: Callable[[Builder, list[Value]], Value]
) -> Function:
    """A function of one result."""
    b = start_function(types)
    result = body(b, list(b.block.arguments))
    b.emit_many(ops.Return(), [result])
    return module.add(finish_function(name, b, result.type))


def inner(b: Builder, xs: Sequence[Value], vs: Sequence[Value]) -> Value:
    """⟨x, v⟩."""
    total = ops.constant(b, NUMBER, 0)
    for x, v in zip(xs, vs, strict=True):
        product = b.emit(ops.Multiply(), x, v)
        product = b.emit(ops.Reduce(Combinator.ADD, tuple(range(x.tensor.rank))), product)
        total = b.emit(ops.Add(), total, product)
    return total


def with_weighted_sum(program: DifferentiableProgram, *, has_rule: bool) -> Module:
    """The module with `@F`, of the arguments of `main`, by which derivatives are taken."""
    module = copied(program.module)
    main = module.functions["main"]
    weights = random_like([NUMBER] * len(program.sources), 1)

    def body(b: Builder, xs: list[Value]) -> Value:
        if has_rule:
            for k in program.wrt:
                xs[k] = b.emit(ops.Apply(*ruled(module, xs[k].type)), xs[k])
        results = b.emit_many(ops.Apply("main", main.type), xs)
        chosen = [results[k] for k in program.sources]
        given = zip(chosen, weights, strict=True)
        return inner(b, chosen, [ops.constant(b, y.tensor, float(u)) for y, u in given])

    function(module, "F", program.type.parameters, body)
    return module


def ruled(module: Module, type: Type) -> tuple[str, FunctionType]:
    """A function that returns what it takes, and says so by a rule."""
    name = f"same_{len(module.functions)}"

    def pull(b: Builder, given: list[Value]) -> Value:
        return given[1]

    function(module, f"{name}_pull", [type, type], pull)
    same = function(module, name, [type], lambda b, given: given[0])
    same.rules = CustomRules(vjp=f"{name}_pull")
    return name, same.type


def nested(module: Module, program: DifferentiableProgram, modes: str) -> str:
    """The function Dᵏ F, of the arguments and k directions; `modes` are the derivatives, the innermost last."""
    if not modes:
        return "F"
    name = f"F_{modes}"
    if name in module.functions:
        return name
    primal = module.functions[nested(module, program, modes[1:])]
    if modes[0] == "f":
        declaration = TangentOf(primal.name, (0,), program.wrt)
        type = derivative_type(primal.type, declaration)
        module.add(Function(name, type, declaration=declaration))
        return name
    gradient = GradientOf(primal.name, (0,), program.wrt)
    made = Function(
        f"{name}_gradient", derivative_type(primal.type, gradient), declaration=gradient
    )
    module.add(made)
    count = len(primal.type.parameters)

    def body(b: Builder, given: list[Value]) -> Value:
        found = b.emit_many(ops.Apply(made.name, made.type), given[:count])
        return inner(b, found, given[count:])

    moving = [program.type.parameters[k] for k in program.wrt]
    function(module, name, [*primal.type.parameters, *moving], body)
    return name


def nestings(order: int) -> list[str]:
    return ["".join(modes) for modes in itertools.product("rf", repeat=order)]


def along(program: DifferentiableProgram, order: int) -> list[Numbers]:
    """The directions."""
    types = [program.type.parameters[k] for k in program.wrt]
    return [random_like(types, 10 + number) for number in range(order)]


def value(
    module: Module, name: str, arguments: Sequence[Array], directions: Sequence[Numbers]
) -> float:
    (found,) = call(module, name, *arguments, *itertools.chain(*directions))
    return float(found)


def check(program: DifferentiableProgram, order: int, has_rule: bool) -> None:
    module = with_weighted_sum(program, has_rule=has_rule)
    names = {modes: nested(module, program, modes) for modes in nestings(order)}
    below = nested(module, program, "r" * (order - 1))
    differentiate(module)
    vs = along(program, order)
    found = {modes: value(module, name, program.arguments, vs) for modes, name in names.items()}
    first = found["r" * order]
    size = max(map(abs, found.values()))
    for modes, one in found.items():
        assert abs(one - first) <= 1e-8 * max(size, 1e-2), (modes, found)
    if not program.has_stops:
        compare_with_differences(program, module, below, vs, first)


def compare_with_differences(
    program: DifferentiableProgram, module: Module, below: str, vs: Sequence[Numbers], found: float
) -> None:
    """Where nothing jumps or bends."""
    step = 1e-5
    at: list[float] = []
    for h in (-step, -step / 2, 0.0, step / 2, step):
        moved = list(program.arguments)
        for k, direction in zip(program.wrt, vs[-1], strict=True):
            moved[k] = moved[k] + h * direction
        at.append(value(module, below, moved, vs[:-1]))
    slope, half = (at[4] - at[0]) / (2 * step), (at[3] - at[1]) / step
    size = max(abs(slope), abs(at[2]), 1)
    bend = abs((at[4] - at[2]) - (at[2] - at[0])) / step
    assume(abs(slope - half) <= 1e-6 * size and bend <= 1e-3 * size)
    assert abs(found - slope) <= 3e-5 * size, (found, slope)


@settings(relaxed, max_examples=settings().max_examples // 4)
@given(PROGRAMS, st.booleans())
def test_second_derivatives_by_all_nestings(program: DifferentiableProgram, has_rule: bool) -> None:
    check(program, 2, has_rule)


@settings(relaxed, max_examples=settings().max_examples // 10)
@given(PROGRAMS, st.booleans())
def test_third_derivatives_by_all_nestings(program: DifferentiableProgram, has_rule: bool) -> None:
    check(program, 3, has_rule)


@settings(relaxed, max_examples=max(settings().max_examples // 30, 1))
@given(
    PROGRAMS,
    st.booleans(),
    st.sampled_from([modes for order in (2, 3) for modes in nestings(order)]),
    st.sampled_from(LEVELS),
)
def test_compiled_code_gives_what_the_evaluator_does(
    program: DifferentiableProgram, has_rule: bool, modes: str, level: int
) -> None:
    module = with_weighted_sum(program, has_rule=has_rule)
    name = nested(module, program, modes)
    evaluated = copied(module)
    differentiate(evaluated)
    arguments = [*program.arguments, *itertools.chain(*along(program, len(modes)))]
    expected = call(evaluated, name, *arguments)
    assume(np.isfinite(expected[0]))
    agree(compiled(module, level, name, arguments), expected, 1e-8)
