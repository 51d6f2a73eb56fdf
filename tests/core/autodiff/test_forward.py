"""Forward mode: tangents against finite differences, through control flow, calls and recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from nnkit.core.analysis.derivatives import derivative_type, elements, has_float
from nnkit.core.errors import DifferentiationError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module, TangentOf
from nnkit.core.text import parse_module
from nnkit.core.types import F64, I64, TensorType, TupleType, Type, elements_of
from nnkit.core.verify import verify
from tests.core.autodiff.building import differentiate
from tests.programs import Program, programs

from .forward import forward
from .test_programs import SMOOTH, spread


def tangent_of(text: str, primal: str = "f", **options: Any) -> Module:
    """The module `text` with the tangent `@df` of `@primal`, differentiated."""
    module = parse_module(f'module "m"\nstage raw\n{text}')
    declaration = TangentOf(primal, **options)
    type = derivative_type(module.functions[primal].type, declaration)
    module.add(Function("df", type, declaration=declaration))
    differentiate(module)
    return module


def check(module: Module, *arguments: Any, wrt: int = 0) -> None:
    """The tangent in a random direction is the central difference."""
    rng = np.random.default_rng(3)
    direction = rng.uniform(-1, 1, np.shape(arguments[wrt]))
    found = evaluate(module, "df", *arguments, direction)
    step = 1e-6
    moved = [
        evaluate(
            module, "f", *(a + s * direction if k == wrt else a for k, a in enumerate(arguments))
        )
        for s in (step, -step)
    ]
    several = isinstance(found, tuple)
    for tangent, up, down in zip(
        found if several else [found],
        moved[0] if several else [moved[0]],
        moved[1] if several else [moved[1]],
        strict=True,
    ):
        np.testing.assert_allclose(tangent, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)


POWER = """
func @f: (f64, i64) -> f64 {
'entry(%x: f64, %n: i64):
    %r = for 0: i64 upto %n: i64 carrying 1.0: f64 {
    'body(%i: i64, %r: f64):
        %s = multiply %r: f64, %x: f64
        yield %s: f64
    }
    return %r: f64
}
"""


@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_a_loop_whose_trips_are_known_at_run_time(n: int) -> None:
    found = evaluate(tangent_of(POWER, wrt=(0,)), "df", 1.01, n, 1.0)
    assert found == pytest.approx(n * 1.01 ** (n - 1) if n else 0.0, rel=1e-12)


def test_a_while_loop_with_a_data_dependent_exit() -> None:
    module = tangent_of("""
    func @f: (f64) -> f64 {
    'entry(%a: f64):
        %r = while carrying %a: f64 {
        'condition(%x: f64):
            %s = multiply %x: f64, %x: f64
            %d = subtract %s: f64, %a: f64
            %e = abs %d: f64
            %c = greaterThan %e: f64, 1e-12: f64
            yield %c: bool
        } do {
        'body(%x: f64):
            %q = divide %a: f64, %x: f64
            %t = add %x: f64, %q: f64
            %h = multiply %t: f64, 0.5: f64
            yield %h: f64
        }
        return %r: f64
    }""")
    assert evaluate(module, "df", 2.0, 1.0) == pytest.approx(1 / (2 * 2**0.5), rel=1e-11)


@pytest.mark.parametrize(("x", "expected"), [(4.5, 9.0), (-1.0, 1.0)])
def test_only_the_taken_branch_counts(x: float, expected: float) -> None:
    module = tangent_of("""
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %c = greaterThanOrEqual %x: f64, 0.0: f64
        %y = if %c: bool -> f64 {
        'then():
            %s = square %x: f64
            yield %s: f64
        } else {
        'else():
            yield %x: f64
        }
        return %y: f64
    }""")
    assert evaluate(module, "df", x, 1.0) == expected


def test_nested_loops_that_carry_and_stack_tensors() -> None:
    module = tangent_of(
        """
    func @f: (<3 x f64>, <3 x 3 x f64>) -> (<3 x f64>, <4 x 3 x f64>, <4 x f64>) {
    'entry(%x: <3 x f64>, %w: <3 x 3 x f64>):
        %h, %hs, %ss = for 0: i64 upto 4: i64 carrying %x: <3 x f64> stacking <4 x 3 x f64>, <4 x f64> {
        'body(%i: i64, %h: <3 x f64>):
            %g = for 0: i64 upto 2: i64 carrying %h: <3 x f64> {
            'inner(%j: i64, %u: <3 x f64>):
                %p = dot %w: <3 x 3 x f64>, %u: <3 x f64>
                %t = tanh %p: <3 x f64>
                yield %t: <3 x f64>
            }
            %s = reduce %g: <3 x f64> by add along 0
            yield %g: <3 x f64>, %h: <3 x f64>, %s: f64
        }
        %r = literal (%h: <3 x f64>, %hs: <4 x 3 x f64>, %ss: <4 x f64>): (<3 x f64>, <4 x 3 x f64>, <4 x f64>)
        return %r: (<3 x f64>, <4 x 3 x f64>, <4 x f64>)
    }""",
        wrt=(1,),
    )
    rng = np.random.default_rng(0)
    check(module, rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (3, 3)), wrt=1)


def test_recursive_functions_call_their_own_pushforward() -> None:
    module = tangent_of(
        """
    func @f: (f64, i64) -> f64 {
    'entry(%x: f64, %n: i64):
        %c = equal %n: i64, 0: i64
        %y = if %c: bool -> f64 {
        'then():
            %one = literal 1.0: f64
            yield %one: f64
        } else {
        'else():
            %m = subtract %n: i64, 1: i64
            %p = apply @f(%x, %m): (f64, i64) -> f64
            %q = multiply %x: f64, %p: f64
            yield %q: f64
        }
        return %y: f64
    }""",
        wrt=(0,),
    )
    assert evaluate(module, "df", 1.5, 7, 1.0) == pytest.approx(7 * 1.5**6, rel=1e-12)
    assert [name for name in module.functions if "jvp" in name] == ["f_jvp"]


def test_aggregates_and_calls_share_pushforwards() -> None:
    module = tangent_of(
        """
    struct $P { #w: <2 x f64>, #n: i64, #b: f64 }
    func @g: ($P, f64) -> (f64, i64, $P) {
    'entry(%p: $P, %x: f64):
        %w = extract #w from %p: $P
        %n = extract #n from %p: $P
        %s = reduce %w: <2 x f64> by multiply along 0
        %t = multiply %s: f64, %x: f64
        %q = literal {#w = %w: <2 x f64>, #n = %n: i64, #b = %t: f64}: $P
        %r = literal (%t: f64, %n: i64, %q: $P): (f64, i64, $P)
        return %r: (f64, i64, $P)
    }
    func @f: ($P) -> $P {
    'entry(%p: $P):
        %b = extract #b from %p: $P
        %1 = apply @g(%p, %b): ($P, f64) -> (f64, i64, $P)
        %2 = extract 2 from %1: (f64, i64, $P)
        %3 = apply @g(%2, %b): ($P, f64) -> (f64, i64, $P)
        %4 = extract 2 from %3: (f64, i64, $P)
        return %4: $P
    }""",
        keeping=(0,),
    )
    p = (np.array([2.0, 3.0]), np.int64(4), np.float64(5.0))
    dp = (np.array([1.0, 0.0]), np.int64(0), np.float64(0.5))
    found = evaluate(module, "df", *p, *dp)
    moved, kept = found[:3], found[3:]
    # b' = w0·w1·b: 3·1·5 + 6·0.5
    assert float(moved[2]) == 18.0
    np.testing.assert_array_equal(moved[0], [1.0, 0.0])
    assert moved[1] == 0 and kept[1] == 4 and float(kept[2]) == 30.0


def test_a_tangent_of_a_tangent() -> None:
    module = parse_module(f"""module "m"
    stage raw
    {POWER}
    [tangent @f wrt 0]
    func @df: (f64, i64, f64) -> f64
    [tangent @df wrt 0]
    func @ddf: (f64, i64, f64, f64) -> f64
    """)
    differentiate(module)
    verify(module)
    assert evaluate(module, "ddf", 1.1, 5, 1.0, 1.0) == pytest.approx(20 * 1.1**3, rel=1e-12)


def test_zeros_that_are_filled_in_stay_zero() -> None:
    module = tangent_of("""
    func @f: (f64) -> f64 {
    'entry(%x: f64):
        %c = greaterThan %x: f64, 0.0: f64
        %z = select %x: f64, 0.0: f64 by %c: bool
        %y = sqrt %z: f64
        return %y: f64
    }""")
    assert evaluate(module, "df", -1.0, 1.0) == 0.0
    assert evaluate(module, "df", 4.0, 1.0) == 0.25


@given(programs(ops=SMOOTH, dtypes=(F64, I64), tame=True))
def test_random_programs_agree_with_the_rules_as_they_run(program: Program) -> None:
    module, arguments = program.module, program.arguments
    primal = module.functions["main"].type
    wrt = tuple(k for k, type in enumerate(primal.parameters) if has_float(type))
    assume(bool(wrt) and any(map(has_float, elements(primal.result))))
    tangents = [spread(*pair) for pair in zip(primal.parameters, arguments, strict=True)]
    with np.errstate(all="ignore"):
        expected = forward(module, "main", arguments, tangents)
        declaration = TangentOf("main", wrt=wrt)
        type = derivative_type(primal, declaration)
        module.add(Function("d_main", type, declaration=declaration))
        differentiate(module)
        verify(module)
        moving = [filled(primal.parameters[k], tangents[k]) for k in wrt]
        found = evaluate(module, "d_main", *arguments, *moving, type=type)
    results = elements(primal.result)
    if isinstance(primal.result, TupleType):
        expected = [e for e, r in zip(expected, results, strict=True) if has_float(r)]
        found = found if len(expected) > 1 or len(results) == 1 else (found,)
        found = found if isinstance(found, tuple) and len(expected) == len(found) else (found,)
    else:
        expected, found = [expected], [found]
    for left, right in zip(expected, found, strict=True):
        same(left, right)


def filled(type: Type, tangent: Any) -> Any:
    """A tangent with zeros for what is not a float."""
    parts = elements_of(type)
    if parts is not None:
        return tuple(filled(part, t) for part, t in zip(parts, tangent, strict=True))
    assert isinstance(type, TensorType)
    return np.zeros(type.shape, type.dtype.numpy) if tangent is None else tangent


def same(expected: Any, found: Any) -> None:
    """Whether both tangents are; None is zero, and a zero by chance may have met an infinite factor."""
    if isinstance(expected, tuple):
        for left, right in zip(expected, found, strict=True):
            same(left, right)
    elif expected is None:
        assert not np.any(found)
    elif np.all(np.isfinite(expected)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


EXTERN = """
    [extern]
    func @c: (f64) -> f64
    func @f: (f64, f64) -> f64 {
    'entry(%x: f64, %y: f64):
        %z = apply @c(%y): (f64) -> f64
        %r = multiply %x: f64, %z: f64
        return %r: f64
    }"""


def test_what_is_defined_elsewhere_has_no_derivative() -> None:
    module = tangent_of(EXTERN, wrt=(0,))
    found = evaluate(module, "df", 2.0, 3.0, 1.0, externs={"c": lambda y: y + 1.0})
    assert found == 4.0
    with pytest.raises(
        DifferentiationError, match="@c is a foreign function, which has no derivative"
    ):
        tangent_of(EXTERN, wrt=(1,))


def test_declarations_that_make_no_sense() -> None:
    for options, message in (
        ({"wrt": (1,)}, "only floats"),
        ({"wrt": (2,)}, "out of range"),
        ({"wrt": ()}, "empty"),
        ({"wrt": (0, 0)}, "twice"),
        ({"sources": (1,)}, "out of range"),
        ({"keeping": (1,)}, "out of range"),
    ):
        with pytest.raises(DifferentiationError, match=message):
            tangent_of(POWER, **{"wrt": (0,), **options})


def test_the_tangent_of_what_lies_in_memory() -> None:
    module = tangent_of("""
        func @f: (f64) -> f64 {
        'entry(%x: f64):
            %p = allocateStack f64 count 1
            store %x: f64 to %p: *f64
            %y = load %p: *f64
            %z = multiply %y: f64, %y: f64
            return %z: f64
        }""")
    assert evaluate(module, "df", 3.0, 2.0) == 12.0


def test_nothing_is_lost_in_a_stack() -> None:
    with pytest.raises(
        UnsupportedError,
        match="push cannot be differentiated: derivatives do not pass through stacks",
    ):
        tangent_of("""
        func @f: (f64) -> f64 {
        'entry(%x: f64):
            %st = createStack
            push %x: f64 to %st: stack
            %y = pop f64 from %st: stack
            return %y: f64
        }""")
