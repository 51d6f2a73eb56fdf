"""Derivatives of what lies in memory: both modes, in both orders, of random programs; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.driver.stages import advance
from nnkit.core.errors import DifferentiationError, NNKitError, UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

from .memory_programs import memory_programs
from .test_reverse_control_flow import compiled

LEVELS = (0, 1, 2, 3)

FIRST = """
[gradient @main wrt 0, 1]
func @reverse: (f64, f64, i64) -> (f64, f64)
[tangent @main wrt 0, 1]
func @forward: (f64, f64, i64, f64, f64) -> f64
"""

SECOND = """
[gradient @reverse from 0 wrt 0, 1]
func @reverse_of_reverse: (f64, f64, i64) -> (f64, f64)
[tangent @reverse from 0 wrt 0, 1]
func @forward_of_reverse: (f64, f64, i64, f64, f64) -> f64
[gradient @forward wrt 0, 1]
func @reverse_of_forward: (f64, f64, i64, f64, f64) -> (f64, f64)
"""

# 77 programs by default, 1,546 by the profile `fuzz`
relaxed = settings(suppress_health_check=[HealthCheck.too_slow])


def differentiated(text: str, level: int = 2) -> Module:
    module = parse_module(text)
    advance(module, Stage.OPTIMIZABLE, level=level)
    verify(module)
    return module


def difference(module: Module, name: str, x: float, y: float, k: int) -> list[float]:
    """The slopes of the first result by x and y."""
    step = 1e-5

    def value(x: float, y: float) -> float:
        found = evaluate(module, name, x, y, k)
        return float(np.ravel(found)[0])

    return [
        (value(x + step, y) - value(x - step, y)) / (2 * step),
        (value(x, y + step) - value(x, y - step)) / (2 * step),
    ]


def close(found: object, expected: object, tolerance: float = 1e-9) -> None:
    size = 1 + np.max(np.abs(np.asarray(expected)))
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(expected), rtol=0, atol=tolerance * size
    )


@settings(relaxed, max_examples=settings().max_examples // 2)
@given(memory_programs(), st.sampled_from(LEVELS), st.integers(0, 2))
def test_forward_is_reverse_is_the_difference(text: str, level: int, k: int) -> None:
    module = differentiated(text + FIRST, level)
    at = (0.7, -0.4, k)
    gradient = np.asarray(evaluate(module, "reverse", *at))
    close(gradient, difference(module, "main", *at), 1e-5)
    tangents = [evaluate(module, "forward", *at, *unit) for unit in ((1.0, 0.0), (0.0, 1.0))]
    close(gradient, tangents)


@settings(relaxed, max_examples=settings().max_examples // 5)
@given(memory_programs(), st.integers(0, 2))
def test_second_derivatives(text: str, k: int) -> None:
    module = differentiated(text + FIRST + SECOND)
    at = (0.7, -0.4, k)
    units = ((1.0, 0.0), (0.0, 1.0))
    row = evaluate(module, "reverse_of_reverse", *at)
    close(row, difference(module, "reverse", *at), 1e-4)
    close(row, [evaluate(module, "forward_of_reverse", *at, *unit) for unit in units])
    close(row, evaluate(module, "reverse_of_forward", *at, 1.0, 0.0))


@settings(relaxed, max_examples=max(settings().max_examples // 30, 1))
@given(memory_programs(depth=1), st.sampled_from(LEVELS), st.integers(0, 2))
def test_compiled_code_gives_what_the_evaluator_does(text: str, level: int, k: int) -> None:
    at = (0.7, -0.4, k)
    expected = evaluate(differentiated(text + FIRST), "reverse", *at)
    close(compiled(parse_module(text + FIRST), level, "reverse", at), expected)


@settings(relaxed, max_examples=max(settings().max_examples // 50, 1))
@given(memory_programs(depth=1), st.integers(0, 2))
def test_compiled_second_derivatives(text: str, k: int) -> None:
    at = (0.7, -0.4, k)
    expected = evaluate(differentiated(text + FIRST + SECOND), "reverse_of_reverse", *at)
    close(compiled(parse_module(text + FIRST + SECOND), 2, "reverse_of_reverse", at), expected)


def refused(text: str, *declarations: str) -> NNKitError:
    """The error when this is differentiated; laws might have taken away what it is about."""
    with pytest.raises((UnsupportedError, DifferentiationError)) as failed:
        differentiated(f'module "m"\nstage raw\n{text}\n' + "\n".join(declarations), 0)
    assert isinstance(failed.value, NNKitError)
    return failed.value


F = "func @f: (f64, i64, $Maybe) -> f64 {\n'entry(%x: f64, %k: i64, %e: $Maybe):\n"
REVERSE = "[gradient @f wrt 0]\nfunc @df: (f64, i64, $Maybe) -> f64"
FORWARD = "[tangent @f wrt 0]\nfunc @df: (f64, i64, $Maybe, f64) -> f64"

UNKNOWN = {
    "a pointer that is cast": (
        """%p = allocateStack f64 count 1
        %q = bitCast %p: *f64 to *i64
        store %x: f64 to %p: *f64
        %n = load %q: *i64
        %y = dataTypeCast %n: i64 to f64""",
        "bitCast cannot be differentiated: %p leads to memory that moves, and would be used unseen after",
        "bitCast %p",
    ),
    "through a pointer that is a number": (
        """%p = allocateStack f64 count 1
        %n = bitCast %p: *f64 to i64
        %q = bitCast %n: i64 to *f64
        store %x: f64 to %q: *f64
        %y = load %p: *f64""",
        "%q leads to memory that moves, and is what bitCast gives, so that what else leads there is not known; take",
        "bitCast %n",
    ),
    "a pointer that is kept in memory": (
        """%p = allocateStack f64 count 1
        %pp = allocateStack *f64 count 2
        store %x: f64 to %p: *f64
        %at = offset %pp: **f64 by %k: i64
        store %p: *f64 to %at: **f64
        %y = load %p: *f64""",
        "store cannot be differentiated: %p leads to memory that moves, and is kept in memory, from where",
        "store %p",
    ),
    "through a pointer from memory": (
        """%pp = allocateStack *f64 count 2
        %p = allocateStack f64 count 2
        %at = offset %pp: **f64 by %k: i64
        store %p: *f64 to %at: **f64
        %q = load %pp: **f64
        store %x: f64 to %q: *f64
        %y = load %p: *f64""",
        "load cannot be differentiated: %q leads to memory that moves, and is what load gives, so that",
        "load %pp",
    ),
    "a global variable": (
        """%g = literal @g: *f64
        store %x: f64 to %g: *f64
        %y = load %g: *f64""",
        "%g leads to memory that moves, and is the global variable @g, so that what else leads there is not known",
        "literal @g",
    ),
    "memory of more than numbers": (
        """%p = allocateStack $Mixed count 1
        %a = elementPointer %p: *$Mixed at #a
        store %x: f64 to %a: *f64
        %y = load %a: *f64""",
        "%p leads to memory for a $Mixed, which holds more than numbers, and so has no tangent",
        "allocateStack",
    ),
    "a pointer in a case": (
        """%p = allocateStack f64 count 2
        store %x: f64 to %p: *f64
        %c = greaterThan %k: i64, 0: i64
        %one = if %c: bool -> $Maybe {
        'then():
            %to = literal ?to(%p: *f64): $Maybe
            yield %to: $Maybe
        } else {
        'else():
            yield %e: $Maybe
        }
        %q = payload ?to 0 of %one: $Maybe
        %y = load %q: *f64""",
        "literal cannot be differentiated: %p leads to memory that moves, and would be used unseen after this",
        "literal ?to",
    ),
    "a pointer that is returned": (
        """%p = apply @made(%x): (f64) -> *f64
        %y = load %p: *f64""",
        "apply cannot be differentiated: %p leads to memory that moves, and is returned; let who calls allocate it",
        "apply @made",
    ),
    "a foreign function": (
        """%p = allocateStack f64 count 1
        store %x: f64 to %p: *f64
        %y = apply @c(%p): (*f64) -> f64""",
        "@c is a foreign function, which has no derivative without a rule",
        "apply @c",
    ),
    "an unknown function": (
        """%p = allocateStack f64 count 1
        store %x: f64 to %p: *f64
        %f = payload ?call 0 of %e: $Maybe
        %y = apply %f(%p): (*f64) -> f64""",
        "%p leads to memory that moves, and would be used unseen after this",
        "apply %f",
    ),
    "a condition that writes": (
        """%p = allocateStack f64 count 2
        %q = offset %p: *f64 by %k: i64
        while carrying 0: i64 {
        'more(%i: i64):
            store %x: f64 to %q: *f64
            %m = lessThan %i: i64, %k: i64
            yield %m: bool
        } do {
        'body(%i: i64):
            %j = add %i: i64, 1: i64
            yield %j: i64
        }
        %y = load %p: *f64""",
        "while cannot be differentiated: its condition writes what moves to memory; write in the body",
        "while carrying",
    ),
}
TYPES = """
var @g: f64
enum $Maybe { ?none(), ?to(*f64), ?call((*f64) -> f64) }
struct $Mixed { #a: f64, #p: *i64 }
[extern]
func @c: (*f64) -> f64
func @made: (f64) -> *f64 {
'entry(%x: f64):
    %r = allocateHeap f64 count 2: i64
    store %x: f64 to %r: *f64
    return %r: *f64
}
func @f_in: (*f64, f64) -> f64 {
'entry(%p: *f64, %x: f64):
    store %x: f64 to %p: *f64
    %y = load %p: *f64
    return %y: f64
}
"""


@pytest.mark.parametrize("mode", [REVERSE, FORWARD])
@pytest.mark.parametrize("name", UNKNOWN)
def test_where_it_is_not_known_what_pointers_lead_to(name: str, mode: str) -> None:
    body, message, line = UNKNOWN[name]
    error = refused(f"{TYPES}{F}{body}\nreturn %y: f64\n}}", mode)
    assert message in str(error)
    assert any(line in note for note in error.__notes__), error.__notes__


def test_a_parameter_to_which_what_moves_is_stored_has_a_shadow() -> None:
    text = """func @f: (*f64, f64) -> f64 {
    'entry(%p: *f64, %x: f64):
        store %x: f64 to %p: *f64
        %y = load %p: *f64
        return %y: f64
    }"""
    for declaration in (
        "[gradient @f wrt 1]\nfunc @df: (*f64, f64) -> f64",
        "[tangent @f wrt 1]\nfunc @df: (*f64, f64, f64) -> f64",
    ):
        message = str(refused(text, declaration))
        assert "@f stores what moves where its parameter 0 leads to, a *f64 which has no" in message
    order = "[tangent @f wrt 0, 1 order 2]\nfunc @df: (*f64, f64, *f64, f64) -> (f64, f64)"
    assert "a tangent of order 2 of @f by memory would take 2 shadows" in str(refused(text, order))


CHOSEN_INSIDE = """func @f: (f64, i64) -> f64 {
'entry(%x: f64, %k: i64):
    %t = allocateStack <3 x f64> count 1
    %c = greaterThan %k: i64, 0: i64
    %q = if %c: bool -> *f64 {
    'then():
        %j = multiply %k: i64, 1: i64
        %e = elementPointer %t: *<3 x f64> at %j: i64
        store %x: f64 to %e: *f64
        yield %e: *f64
    } else {
    'else():
        %e = elementPointer %t: *<3 x f64> at 0
        yield %e: *f64
    }
    %y = load %q: *f64
    %z = multiply %y: f64, %y: f64
    return %z: f64
}
"""


def test_what_is_made_in_a_body_and_leaves_it_is_followed_forward_only() -> None:
    error = refused(CHOSEN_INSIDE, "[gradient @f wrt 0]\nfunc @df: (f64, i64) -> f64")
    assert "if cannot be differentiated: %q leads to memory that moves, and is chosen among" in str(
        error
    )
    assert "choose or carry an index" in str(error)
    tangent = "[tangent @f wrt 0]\nfunc @df: (f64, i64, f64) -> f64"
    module = differentiated(f'module "m"\nstage raw\n{CHOSEN_INSIDE}{tangent}', 0)
    assert [evaluate(module, "df", 3.0, k, 1.0) for k in (0, 2)] == [0.0, 6.0]


def test_indices_from_around_may_be_used_in_a_body() -> None:
    text = CHOSEN_INSIDE.replace("%j = multiply %k: i64, 1: i64\n", "").replace("%j", "%k")
    gradient = "[gradient @f wrt 0]\nfunc @df: (f64, i64) -> f64"
    for level in LEVELS:
        module = differentiated(f'module "m"\nstage raw\n{text}{gradient}', level)
        assert [evaluate(module, "df", 3.0, k) for k in (0, 2)] == [0.0, 6.0]


def test_what_is_computed_again_does_not_use_memory_of_others() -> None:
    walk = """%y = for 0: i64 upto %k: i64 carrying %x: f64 {
        'body(%i: i64, %c: f64):
            %u = load %p: *f64
            %v = multiply %u: f64, %c: f64
            store %v: f64 to %p: *f64
            yield %v: f64
        }"""
    body = "func @g: (*f64, f64, i64) -> f64 {\n'entry(%p: *f64, %x: f64, %k: i64):\n"
    caller = """func @f: (f64, i64) -> f64 {
    'entry(%x: f64, %k: i64):
        %p = allocateStack f64 count 1
        store %x: f64 to %p: *f64
        %y = apply @g(%p, %x, %k): (*f64, f64, i64) -> f64
        return %y: f64
    }"""
    declared = "[gradient @f wrt 0]\nfunc @df: (f64, i64) -> f64"
    for attribute, message in (
        ("!checkpoint", "@g has the attribute checkpoint and takes a *f64"),
        ("!binomial_3", "a for that uses memory is not reversed by a schedule"),
    ):
        text = f"{attribute}\n{body}{walk}\nreturn %y: f64\n}}\n{caller}"
        assert message in str(refused(text, declared))


def test_memory_of_constants_may_do_anything() -> None:
    text = """struct $Node { #value: f64, #next: i64 }
    var @g: f64
    func @f: (f64, i64) -> f64 {
    'entry(%x: f64, %k: i64):
        %first = for 0: i64 upto %k: i64 carrying 0: i64 {
        'body(%i: i64, %next: i64):
            %node = allocateHeap $Node count 1: i64
            %value = dataTypeCast %i: i64 to f64
            %whole = literal {#value = %value: f64, #next = %next: i64}: $Node
            store %whole: $Node to %node: *$Node
            %address = bitCast %node: *$Node to i64
            yield %address: i64
        }
        %p = allocateStack f64 count 1
        store %x: f64 to %p: *f64
        %sum, %end = for 0: i64 upto %k: i64 carrying 0.0: f64, %first: i64 {
        'next(%i: i64, %s: f64, %from: i64):
            %at = bitCast %from: i64 to *$Node
            %v = elementPointer %at: *$Node at #value
            %n = elementPointer %at: *$Node at #next
            %u = load %v: *f64
            %y = load %p: *f64
            %m = multiply %u: f64, %y: f64
            store %m: f64 to %p: *f64
            %t = add %s: f64, %m: f64
            %following = load %n: *i64
            store %u: f64 to @g: *f64
            yield %t: f64, %following: i64
        }
        return %sum: f64
    }
    """
    module = differentiated(
        f'module "m"\nstage raw\n{text}{REVERSE}\n{FORWARD}'.replace(", $Maybe", "").replace(
            "[tangent @f wrt 0]\nfunc @df", "[tangent @f wrt 0]\nfunc @tf"
        )
    )
    # 3·x + 2·3·x + 1·2·3·x, and 0 at the end of the list
    assert evaluate(module, "df", 0.5, 4) == 15.0 == evaluate(module, "tf", 0.5, 4, 1.0)


def test_batches_run_for_one_element_after_the_other() -> None:
    text = """func @f: (f64, i64) -> f64 {
    'entry(%x: f64, %k: i64):
        %p = allocateHeap f64 count 4: i64
        store %x: f64 to %p: *f64
        %q = offset %p: *f64 by %k: i64
        %u = load %q: *f64
        %v = multiply %u: f64, %x: f64
        store %v: f64 to %q: *f64
        %y = load %p: *f64
        deallocate %p: *f64
        return %y: f64
    }
    [gradient @f wrt 0]
    func @df: (f64, i64) -> f64
    [batch @df along 0, none]
    func @each: (<3 x f64>, i64) -> <3 x f64>
    [batch @f along 0, none]
    func @all: (<3 x f64>, i64) -> <3 x f64>
    [gradient @all wrt 0]
    func @of_all: (<3 x f64>, i64) -> <3 x f64>"""
    module = differentiated(f'module "m"\nstage raw\n{text}')
    x = np.array([1.0, 2.0, -3.0])
    for k, expected in ((0, 2 * x), (1, np.ones(3))):
        np.testing.assert_array_equal(evaluate(module, "each", x, k), expected)
        np.testing.assert_array_equal(evaluate(module, "of_all", x, k), expected)
