"""Reverse mode through control flow and calls, by laws that hold for every program.

With u random numbers for the results and v for the parameters:

1. ⟨u, J v⟩ = ⟨Jᵀ u, v⟩, and both are the central difference where there is one;
2. `keeping` gives the very bits of the function itself;
3. compiled code gives what the evaluator does, at every level of optimization, by way of the text of every stage;
4. second derivatives agree in reverse over reverse, forward over reverse and reverse over forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.driver.stages import advance
from nnkit.core.errors import FuelError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, GradientOf, Module, TangentOf
from nnkit.core.ir.surgery import walk
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, F64, Array, DType, TensorType, Type
from nnkit.jit.executable import host_target
from tests.core.text.laws import reread
from tests.jit.emit.running import run as run_compiled
from tests.programs import flat, same_bits

from .body_writer import is_float
from .building import differentiate
from .program_generator import DifferentiableProgram, differentiable_programs

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Numbers: TypeAlias = "list[Array]"

LEVELS = (0, 1, 2, 3)
FUEL = 20_000
"""Instructions, so that no program takes a second."""

LARGEST = 1e7
"""Of results and derivatives that are compared: beyond, rounding may be all there is."""


def declare(module: Module, name: str, declaration: GradientOf | TangentOf) -> None:
    type = derivative_type(module.functions[declaration.primal].type, declaration)
    module.add(Function(name, type, declaration=declaration))


def with_derivatives(program: DifferentiableProgram) -> Module:
    """The module with the declarations `@reverse` and `@forward`."""
    module = copied(program.module)
    sources, wrt, keeping = program.sources, program.wrt, program.keeping
    declare(module, "reverse", GradientOf("main", sources, wrt, keeping, seedable=True))
    declare(module, "forward", TangentOf("main", sources, wrt, keeping))
    return module


def copied(module: Module) -> Module:
    return parse_module(print_module(module))


def random_like(types: Sequence[Type], seed: int) -> Numbers:
    rng = np.random.default_rng(seed)
    found: Numbers = []
    for type in types:
        assert isinstance(type, TensorType)
        found.append(np.asarray(rng.uniform(-1, 1, type.shape), type.dtype.numpy))
    return found


def call(module: Module, name: str, *arguments: Any) -> Numbers:
    """Results as a list; a program that takes too long or gives no finite numbers is not a case."""
    try:
        results = list(flat(evaluate(module, name, *arguments, fuel=FUEL)))
    except FuelError:
        assume(False)
        raise
    assume(all(np.all(np.abs(x) < LARGEST) for x in results))
    return results


def inner(u: Sequence[Array], v: Sequence[Array]) -> tuple[float, float]:
    """⟨u, v⟩, and the sum of the sizes of what is added up."""
    terms = [np.asarray(x, np.float64) * y for x, y in zip(u, v, strict=True)]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


def close(one: float, other: float, size: float, tolerance: float) -> None:
    assert abs(one - other) <= tolerance * max(size, 1e-3), (one, other, size)


def directions(program: DifferentiableProgram) -> tuple[Numbers, Numbers]:
    """u and v."""
    u = random_like([program.type.results[k] for k in program.sources], 1)
    return u, random_like([program.type.parameters[k] for k in program.wrt], 2)


def both_modes(
    program: DifferentiableProgram, module: Module, tolerance: float = 1e-9
) -> tuple[Numbers, Numbers]:
    """J v and Jᵀ u, which agree, beside the bits of the function."""
    u, v = directions(program)
    plain = call(program.module, "main", *program.arguments)
    reverse = call(module, "reverse", *program.arguments, *u)
    forward = call(module, "forward", *program.arguments, *v)
    gradients, tangents = reverse[: len(v)], forward[: len(u)]
    kept = tuple(plain[k] for k in program.keeping)
    assert same_bits(tuple(reverse[len(v) :]), kept)
    assert same_bits(tuple(forward[len(u) :]), kept)
    left, first = inner(u, tangents)
    right, second = inner(gradients, v)
    close(left, right, first + second, tolerance)
    return tangents, gradients


def moved(program: DifferentiableProgram, v: Numbers, step: float) -> Numbers:
    """f(x + h v), for h = `step`."""
    arguments = list(program.arguments)
    for k, direction in zip(program.wrt, v, strict=True):
        arguments[k] = arguments[k] + step * direction
    found = call(program.module, "main", *arguments)
    return [found[k] for k in program.sources]


def differences_agree(program: DifferentiableProgram, tangents: Numbers) -> None:
    """Where the slopes to both sides, and at half the step, are the same, nothing jumps or bends: it is the tangent."""
    _, v = directions(program)
    step = 1e-5
    at = [moved(program, v, h) for h in (-step, -step / 2, 0.0, step / 2, step)]
    for tangent, a, b, middle, c, d in zip(tangents, *at, strict=True):
        slope, half = (d - a) / (2 * step), (c - b) / step
        bend = np.abs((d - middle) - (middle - a)) / step
        size = np.maximum(np.abs(slope), 1)
        smooth = (np.abs(slope - half) <= 1e-6 * size) & (bend <= 1e-3 * size)
        np.testing.assert_allclose(tangent[smooth], slope[smooth], rtol=2e-5, atol=2e-5)


def dtypes_of(module: Module) -> set[DType]:
    """The element types of the values in its functions."""
    bodies = [f.body for f in module.functions.values() if f.body is not None]
    results = [x for body in bodies for i in walk(body) for x in i.results]
    return {x.tensor.dtype for x in results if isinstance(x.type, TensorType)}


def compiled(module: Module, level: int, entry: str, arguments: Sequence[Any]) -> Numbers:
    """What compiled code returns, by way of the text of every stage, which reads back and verifies."""
    module = copied(module)
    for stage in module.stage.steps_to(Stage.SCHEDULE):
        advance(module, stage, entry, level=level, target=host_target())
        module = reread(module)
    given = [np.asarray(x) for x in arguments]
    return run_compiled(module.functions[entry], given, module.functions)


def agree(found: Numbers, expected: Numbers, tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        size = np.maximum(np.max(np.abs(other), initial=0), 1e-3)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * size)


# 533 programs by default, 10,666 by the profile `fuzz`
relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@settings(relaxed, max_examples=3 * settings().max_examples)
@given(differentiable_programs())
def test_forward_is_reverse_is_the_difference(program: DifferentiableProgram) -> None:
    module = with_derivatives(program)
    differentiate(module)
    tangents, _ = both_modes(program, module)
    if not program.has_stops:
        differences_agree(program, tangents)


@relaxed
@given(differentiable_programs(dtypes=(F64, F32)))
def test_forward_is_reverse_among_types(program: DifferentiableProgram) -> None:
    module = with_derivatives(program)
    differentiate(module)
    both_modes(program, module, 1e-4)


@relaxed
@given(differentiable_programs())
def test_second_derivatives(program: DifferentiableProgram) -> None:
    """Of the gradient Jᵀ u and what is kept, by the point and the seed u: in reverse, and forward.

    And of Jᵀ u by the point alone: the same as in reverse of forward, ∂/∂x ⟨u, J w⟩ along v being ⟨w, ∂/∂x Jᵀ u⟩.
    """
    module = copied(program.module)
    sources, wrt, type = program.sources, program.wrt, program.type
    keeping = tuple(k for k in program.keeping if is_float(type.results[k]))
    declare(module, "reverse", GradientOf("main", sources, wrt, keeping, seedable=True))
    declare(module, "forward", TangentOf("main", sources, wrt))
    count = len(type.parameters)
    both = (*wrt, *range(count, count + len(sources)))
    every = tuple(range(len(wrt) + len(keeping)))
    declare(module, "reverse_of_reverse", GradientOf("reverse", every, both, seedable=True))
    declare(module, "forward_of_reverse", TangentOf("reverse", every, both))
    outputs = tuple(range(len(sources)))
    declare(module, "reverse_of_forward", GradientOf("forward", outputs, wrt, seedable=True))
    differentiate(module)
    u, v = directions(program)
    du = random_like([type.results[k] for k in sources], 3)
    w = random_like([type.parameters[k] for k in wrt] + [type.results[k] for k in keeping], 4)
    at = (*program.arguments, *u)
    left, size = inner(call(module, "reverse_of_reverse", *at, *w), [*v, *du])
    right, more = inner(call(module, "forward_of_reverse", *at, *v, *du), w)
    close(left, right, size + more, 1e-9)
    still = [np.zeros_like(x) for x in u]
    moved = call(module, "forward_of_reverse", *at, *v, *still)[: len(wrt)]
    left, size = inner(moved, w[: len(wrt)])
    found = call(module, "reverse_of_forward", *program.arguments, *w[: len(wrt)], *u)
    right, more = inner(found, v)
    close(left, right, size + more, 1e-9)


@settings(relaxed, max_examples=settings().max_examples // 3)
@given(differentiable_programs(dtypes=(F64, F32)), st.sampled_from(LEVELS))
def test_compiled_code_gives_what_the_evaluator_does(
    program: DifferentiableProgram, level: int
) -> None:
    module = with_derivatives(program)
    evaluated = copied(module)
    differentiate(evaluated)
    u, v = directions(program)
    tolerance = 1e-9 if F32 not in dtypes_of(evaluated) else 1e-3
    plain = compiled(module, level, "main", program.arguments)
    agree(plain, call(evaluated, "main", *program.arguments), tolerance)
    kept = tuple(plain[k] for k in program.keeping)
    for entry, more in (("reverse", u), ("forward", v)):
        arguments = [*program.arguments, *more]
        expected = call(evaluated, entry, *arguments)
        found = compiled(module, level, entry, arguments)
        agree(found, expected, tolerance)
        assert same_bits(tuple(found[len(found) - len(kept) :]), kept)


@settings(relaxed, max_examples=max(settings().max_examples // 10, 1))
@given(differentiable_programs(), st.sampled_from(LEVELS))
def test_compiled_second_derivatives(program: DifferentiableProgram, level: int) -> None:
    """The gradient of a gradient: tangents of what is saved, of tapes among it."""
    module = with_derivatives(program)
    every = tuple(range(len(program.wrt)))
    declare(module, "again", GradientOf("reverse", every, program.wrt, seedable=True))
    evaluated = copied(module)
    differentiate(evaluated)
    u, v = directions(program)
    arguments = [*program.arguments, *u, *v]
    expected = call(evaluated, "again", *arguments)
    agree(compiled(module, level, "again", arguments), expected, 1e-9)


NOTHING_FLOWS_BACK = """module "m"
stage raw
func @f: (f64, bool) -> <0 x f64> {
'entry(%x: f64, %c: bool):
    %y = if %c: bool -> <0 x f64> {
    'then():
        %s = for 1: i64 upto 0: i64 stacking <0 x f64> {
        'body(%i: i64):
            yield %x: f64
        }
        %m = min %s: <0 x f64>, 0.0: f64
        yield %m: <0 x f64>
    } else {
    'else():
        %z = literal zero: <0 x f64>
        yield %z: <0 x f64>
    }
    return %y: <0 x f64>
}
[gradient @f wrt 0 keeping 0]
func @df: (f64, bool) -> (f64, <0 x f64>)
"""


def test_a_choice_through_which_nothing_flows_back() -> None:
    """What was swept in its branches stayed a use of the forward half."""
    module = parse_module(NOTHING_FLOWS_BACK)
    differentiate(module)
    assert evaluate(module, "df", 2.0, True)[0] == 0.0
