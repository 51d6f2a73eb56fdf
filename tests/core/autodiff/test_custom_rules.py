"""Derivatives by rules of functions, by a law over random programs, and cases beside it.

The law: a function that has its own derivatives as rules has the derivatives that it has without.  The rules are
declared derivatives of a copy of it, in every form: a jvp, a vjp, one that saves, and a jvp and a vjp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core import ops
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.autodiff import reverse
from nnkit.core.errors import DifferentiationError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import (
    Block,
    Builder,
    CustomRules,
    Function,
    GradientOf,
    Module,
    Region,
    TangentOf,
    Value,
)
from nnkit.core.ir.surgery import clone_function, walk
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import FunctionType, Type, one_or_tuple
from nnkit.core.verify import verify

from .body_writer import is_float
from .program_generator import DifferentiableProgram, differentiable_programs
from .test_reverse_control_flow import agree, call, copied, declare, directions, random_like

FORMS = ("jvp", "vjp", "saving", "both")


def function_of(module: Module, name: str, parameters: Sequence[Type], results: Any) -> Function:
    """A new function; `results` makes what it returns of a builder and the parameters."""
    b = Builder(Block(name="entry"))
    returned = results(b, [b.argument(type) for type in parameters])
    b.emit_many(ops.Return(), returned)
    type = FunctionType(tuple(parameters), one_or_tuple([x.type for x in returned]))
    return module.add(Function(module.fresh_name(name), type, Region([b.block])))


def twins_of(module: Module, functions: Sequence[Function]) -> list[Function]:
    """Copies of `functions`, which call copies: else a rule would be asked for while it is made."""
    twins = {f.name: module.add(clone_function(f, f"{f.name}_twin")) for f in functions}
    for twin in twins.values():
        assert twin.body is not None
        for instruction in walk(twin.body):
            other = twins.get(instruction.op.called or "")
            if other is not None:
                instruction.op = ops.Apply(other.name, other.type)
    return list(twins.values())


def give_rules(module: Module, function: Function, twin: Function, form: str) -> None:
    """The derivatives of `twin`, a copy of `function`, as its rules."""
    types, results = function.type.parameters, function.type.results
    wrt = tuple(k for k, type in enumerate(types) if is_float(type))
    sources = tuple(k for k, type in enumerate(results) if is_float(type))
    if not wrt or not sources:
        return

    def derived(declaration: GradientOf | TangentOf, b: Builder, given: list[Value]) -> list[Value]:
        type = derivative_type(twin.type, declaration)
        name = module.fresh_name(f"{twin.name}_derivative")
        module.add(Function(name, type, declaration=declaration))
        return list(b.emit_many(ops.Apply(name, type), given))

    def put(b: Builder, found: list[Value], places: tuple[int, ...], like: Sequence[Type]) -> Any:
        at = dict(zip(places, found, strict=True))
        return [at.get(k) or ops.constant(b, type, 0) for k, type in enumerate(like)]

    def jvp(b: Builder, xs: list[Value]) -> Any:
        given = [*xs[: len(types)], *(xs[len(types) + k] for k in wrt)]
        found = derived(TangentOf(twin.name, sources, wrt), b, given)
        return put(b, found, sources, results)

    def vjp(b: Builder, xs: list[Value]) -> Any:
        given = [*xs[: len(types)], *(xs[len(types) + k] for k in sources)]
        found = derived(GradientOf(twin.name, sources, wrt, seedable=True), b, given)
        return put(b, found, wrt, types)

    def saving(b: Builder, xs: list[Value]) -> Any:
        return [*b.emit_many(ops.Apply(function.name, function.type), xs), *xs]

    names: dict[str, str] = {}
    if form in ("jvp", "both"):
        names["jvp"] = function_of(module, "by_jvp", [*types, *types], jvp).name
    if form != "jvp":
        names["vjp"] = function_of(module, "by_vjp", [*types, *results], vjp).name
    if form == "saving":
        names["saving"] = function_of(module, "saving", types, saving).name
    function.rules = CustomRules(**names)


def derivatives_of(program: DifferentiableProgram, forms: Sequence[str]) -> dict[str, list[Any]]:
    """First and second derivatives along fixed directions, in every mode, of functions with rules of these forms."""
    module = copied(program.module)
    helpers = [f for f in module.functions.values() if f.name != "main"][: len(forms)]
    for function, twin, form in zip(helpers, twins_of(module, helpers), forms, strict=False):
        give_rules(module, function, twin, form)
    sources, wrt = program.sources, program.wrt
    declare(module, "reverse", GradientOf("main", sources, wrt, seedable=True))
    declare(module, "forward", TangentOf("main", sources, wrt))
    outputs = tuple(range(len(sources)))
    inputs = tuple(range(len(wrt)))
    declare(module, "reverse_of_reverse", GradientOf("reverse", inputs, wrt, seedable=True))
    declare(module, "forward_of_reverse", TangentOf("reverse", inputs, wrt))
    declare(module, "reverse_of_forward", GradientOf("forward", outputs, wrt, seedable=True))
    declare(module, "forward_of_forward", TangentOf("forward", outputs, wrt))
    module = parse_module(print_module(module))
    verify(module)
    reverse.differentiate(module)
    verify(module)
    assert not any(function.rules for function in module.functions.values())
    u, v = directions(program)
    w = random_like([program.type.parameters[k] for k in wrt], 3)
    at = program.arguments
    given = {
        "reverse": u,
        "forward": v,
        "reverse_of_reverse": [*u, *w],
        "forward_of_reverse": [*u, *w],
        "reverse_of_forward": [*v, *u],
        "forward_of_forward": [*v, *w],
    }
    return {name: call(module, name, *at, *more) for name, more in given.items()}


# six derivatives of two programs each take a tenth of a second
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    max_examples=settings().max_examples // 3,
)
@given(differentiable_programs(), st.lists(st.sampled_from(FORMS), min_size=4, max_size=4))
def test_own_derivatives_as_rules_change_nothing(
    program: DifferentiableProgram, forms: list[str]
) -> None:
    plain = derivatives_of(program, ())
    ruled = derivatives_of(program, forms)
    for name, found in ruled.items():
        agree(found, plain[name], 1e-8)


SIN = """
{rules}
func @f: (f64) -> f64 {{
'entry(%x: f64):
    %y = sin %x: f64
    return %y: f64
}}
{functions}
func @main: (f64) -> f64 {{
'entry(%x: f64):
    %y = apply @f(%x): (f64) -> f64
    %z = square %y: f64
    return %z: f64
}}
[gradient @main wrt 0]
func @reverse: (f64) -> f64
[tangent @main wrt 0]
func @forward: (f64, f64) -> f64
"""


def sine(rules: str, functions: str) -> Module:
    text = 'module "m"\nstage raw\n' + SIN.format(rules=rules, functions=functions)
    module = parse_module(text)
    verify(module)
    return module


TRIPLED = """
func @t: (f64, f64) -> f64 {
'entry(%x: f64, %d: f64):
    %y = multiply %d: f64, 3: f64
    return %y: f64
}
"""


@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_a_rule_need_not_be_the_derivative(rule: str) -> None:
    module = sine(f"[{rule} @t]", TRIPLED)
    reverse.differentiate(module)
    expected = 2 * np.sin(0.5) * 3
    assert float(evaluate(module, "reverse", 0.5)) == pytest.approx(expected)
    assert float(evaluate(module, "forward", 0.5, 1.0)) == pytest.approx(expected)


def test_what_only_rules_need_goes() -> None:
    """The declaration is of an order that nobody wants: it gets no body, but is gone."""
    never = """
[gradient @tripled wrt 1]
func @never: (f64, f64) -> f64
func @tripled: (f64, f64) -> f64 {
'entry(%x: f64, %d: f64):
    %y = multiply %d: f64, %x: f64
    return %y: f64
}
[jvp @more]
func @s: (f64) -> f64 {
'entry(%x: f64):
    return %x: f64
}
func @more: (f64, f64) -> f64 {
'entry(%x: f64, %d: f64):
    %y = apply @never(%x, %d): (f64, f64) -> f64
    return %y: f64
}
"""
    calling = TRIPLED.replace("multiply %d: f64, 3: f64", "apply @s(%d): (f64) -> f64")
    module = sine("[jvp @t]", calling + never)
    del module.functions["reverse"], module.functions["forward"]
    assert reverse.differentiate(module)
    verify(module)
    assert set(module.functions) == {"f", "main"}


def test_a_rule_that_is_not_linear_has_no_transpose() -> None:
    squared = TRIPLED.replace("%d: f64, 3: f64", "%d: f64, %d: f64")
    with pytest.raises(DifferentiationError, match=r"the jvp of @f is not linear in its tangents"):
        reverse.differentiate(sine("[jvp @t]", squared))
    with pytest.raises(
        DifferentiationError, match=r"the vjp of @f is not linear in its cotangents"
    ):
        reverse.differentiate(sine("[vjp @t]", squared))


def test_a_rule_that_needs_its_own_transpose_is_refused() -> None:
    linear = TRIPLED.replace("multiply %d: f64, 3: f64", "apply @f(%d): (f64) -> f64")
    with pytest.raises(DifferentiationError, match=r"@f calls @f with tangents.*give a vjp, too"):
        reverse.differentiate(sine("[jvp @t]", linear))


def test_a_rule_by_the_derivative_of_its_function_is_refused() -> None:
    circular = """
func @t: (f64, f64) -> f64 {
'entry(%x: f64, %d: f64):
    %y = apply @own(%x): (f64) -> f64
    %z = multiply %y: f64, %d: f64
    return %z: f64
}
[gradient @f wrt 0]
func @own: (f64) -> f64
"""
    with pytest.raises(UnsupportedError, match=r"uses that gradient \(@own → @own\)"):
        reverse.differentiate(sine("[jvp @t]", circular))
