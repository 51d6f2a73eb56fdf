"""Calls, branches and bodies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import DTypeError, ShapeError, TrapError, UnsupportedError
from nnkit.core.evaluate import FunctionValue

from .running import run

LOOPS = """func @blocks: (i64) -> i64 {
'entry(%n: i64):
    branch 'head(0: i64, 1: i64)
'head(%i: i64, %p: i64):
    %more = lessThan %i: i64, %n: i64
    conditional %more: bool then 'body else 'exit(%p: i64)
'body():
    %j = add %i: i64, 1: i64
    %q = multiply %p: i64, %j: i64
    branch 'head(%j: i64, %q: i64)
'exit(%r: i64):
    return %r: i64
}
func @while: (i64) -> i64 {
'entry(%n: i64):
    %i, %p = while carrying 0: i64, 1: i64 {
    'condition(%i: i64, %p: i64):
        %more = lessThan %i: i64, %n: i64
        yield %more: bool
    } do {
    'body(%i: i64, %p: i64):
        %j = add %i: i64, 1: i64
        %q = multiply %p: i64, %j: i64
        yield %j: i64, %q: i64
    }
    return %p: i64
}
func @for: (i64) -> i64 {
'entry(%n: i64):
    %p = for 0: i64 upto %n: i64 carrying 1: i64 {
    'body(%i: i64, %p: i64):
        %j = add %i: i64, 1: i64
        %q = multiply %p: i64, %j: i64
        yield %q: i64
    }
    return %p: i64
}
func @recursion: (i64) -> i64 {
'entry(%n: i64):
    %some = greaterThan %n: i64, 0: i64
    %r = if %some: bool -> i64 {
    'then():
        %m = subtract %n: i64, 1: i64
        %p = apply @recursion(%m) -> i64
        %q = multiply %p: i64, %n: i64
        yield %q: i64
    } else {
    'else():
        yield 1: i64
    }
    return %r: i64
}
"""


@pytest.mark.parametrize("name", ["blocks", "while", "for", "recursion"])
@pytest.mark.parametrize("n", [-3, 0, 1, 2, 10])
def test_the_factorial_in_every_form(name: str, n: int) -> None:
    assert run(LOOPS, name, n) == math.factorial(max(n, 0))


PARITY = """func @even: (i64) -> bool {
'entry(%n: i64):
    %zero = equal %n: i64, 0: i64
    conditional %zero: bool then 'yes else 'no
'yes():
    return true: bool
'no():
    %m = subtract %n: i64, 1: i64
    %r = apply @odd(%m): (i64) -> bool
    return %r: bool
}
func @odd: (i64) -> bool {
'entry(%n: i64):
    %zero = equal %n: i64, 0: i64
    %r = if %zero: bool -> bool {
    'then():
        yield false: bool
    } else {
    'else():
        %m = subtract %n: i64, 1: i64
        %r = apply @even(%m): (i64) -> bool
        yield %r: bool
    }
    return %r: bool
}"""


def test_mutual_recursion_takes_no_stack() -> None:
    assert run(PARITY, "even", 4) and not run(PARITY, "even", 7)
    assert run(PARITY, "even", 100_000)


def test_block_arguments_are_given_at_once() -> None:
    text = """func @f: (i64, i64, i64) -> (i64, i64) {
'entry(%n: i64, %a: i64, %b: i64):
    branch 'head(%n: i64, %a: i64, %b: i64)
'head(%k: i64, %x: i64, %y: i64):
    %more = greaterThan %k: i64, 0: i64
    %j = subtract %k: i64, 1: i64
    conditional %more: bool then 'head(%j: i64, %y: i64, %x: i64) else 'exit
'exit():
    return (%x: i64, %y: i64): (i64, i64)
}"""
    assert run(text, "f", 2, 10, 20) == (10, 20)
    assert run(text, "f", 3, 10, 20) == (20, 10)


def test_a_graph_that_cannot_be_reduced() -> None:
    text = """func @f: (i64, bool) -> i64 {
'entry(%n: i64, %first: bool):
    conditional %first: bool then 'a(%n: i64, 0: i64) else 'b(%n: i64, 0: i64)
'a(%i: i64, %s: i64):
    %t = add %s: i64, 1: i64
    branch 'b(%i: i64, %t: i64)
'b(%j: i64, %u: i64):
    %v = add %u: i64, 100: i64
    %k = subtract %j: i64, 1: i64
    %more = greaterThan %k: i64, 0: i64
    conditional %more: bool then 'a(%k: i64, %v: i64) else 'exit
'exit():
    return %v: i64
}"""
    assert run(text, "f", 3, True) == 303
    assert run(text, "f", 3, False) == 302


def test_bodies_inside_each_other_see_what_is_around_them() -> None:
    text = """func @f: (i64, f32) -> (f32, <3 x i64>) {
'entry(%n: i64, %x: f32):
    %y, %all = for 0: i64 upto %n: i64 carrying 0: f32 stacking <3 x i64> {
    'body(%i: i64, %v: f32):
        %odd = modulo %i: i64, 2: i64
        %is = equal %odd: i64, 1: i64
        %k, %w = while carrying 0: i64, %v: f32 {
        'c(%k: i64, %w: f32):
            %m = lessThan %k: i64, %i: i64
            yield %m: bool
        } do {
        'd(%k: i64, %w: f32):
            %k2 = add %k: i64, 1: i64
            %w2 = if %is: bool -> f32 {
            'then():
                %a = add %w: f32, %x: f32
                yield %a: f32
            } else {
            'else():
                %s = subtract %w: f32, %x: f32
                yield %s: f32
            }
            yield %k2: i64, %w2: f32
        }
        yield %w: f32, %k: i64
    }
    return (%y: f32, %all: <3 x i64>): (f32, <3 x i64>)
}"""
    total, counts = run(text, "f", 3, 2.0)
    assert total == 2.0 - 4.0
    np.testing.assert_array_equal(counts, [0, 1, 2])


STACKED = """func @f: (i64, i64) -> (<2 x 3 x f32>, <2 x bool>) {
'entry(%lo: i64, %hi: i64):
    %rows, %flags = for %lo: i64 upto %hi: i64 stacking <2 x 3 x f32>, <2 x bool> {
    'body(%i: i64):
        %x = dataTypeCast %i: i64 to f32
        %row = broadcast %x: f32 to 3
        %late = greaterThan %i: i64, 5: i64
        yield %row: <3 x f32>, %late: bool
    }
    return (%rows: <2 x 3 x f32>, %flags: <2 x bool>): (<2 x 3 x f32>, <2 x bool>)
}"""


def test_stacked_elements_lie_in_rows() -> None:
    rows, flags = run(STACKED, "f", 5, 7)
    np.testing.assert_array_equal(rows, [[5, 5, 5], [6, 6, 6]])
    np.testing.assert_array_equal(flags, [False, True])
    assert rows.dtype == np.float32 and flags.dtype == np.bool_


@pytest.mark.parametrize(("lower", "upper", "trips"), [(0, 3, 3), (0, 1, 1), (3, -3, 0)])
def test_stacks_have_one_element_per_iteration(lower: int, upper: int, trips: int) -> None:
    with pytest.raises(ShapeError, match=f": {trips} iterations cannot fill an axis of 2"):
        run(STACKED, "f", lower, upper)


def test_loops_that_never_run_give_what_they_carry() -> None:
    text = """func @f: (f32) -> (f32, <0 x f32>, f32) {
'entry(%x: f32):
    %y, %s = for 5: i64 upto 5: i64 carrying %x: f32 stacking <0 x f32> {
    'body(%i: i64, %v: f32):
        trap
        yield %v: f32, %v: f32
    }
    %z = while carrying %x: f32 {
    'c(%v: f32):
        yield false: bool
    } do {
    'd(%v: f32):
        trap
        yield %v: f32
    }
    return (%y: f32, %s: <0 x f32>, %z: f32): (f32, <0 x f32>, f32)
}"""
    y, s, z = run(text, "f", 3)
    assert (y, s.shape, z) == (3, (0,), 3)


def test_only_one_body_of_if_is_run() -> None:
    text = """func @f: (bool) -> void {
'entry(%c: bool):
    if %c: bool {
    'then():
        trap
        yield
    } else {
    'else():
        yield
    }
    return
}"""
    assert run(text, "f", False) == ()
    with pytest.raises(TrapError):
        run(text, "f", True)


VALUES = """func @double: (f32) -> f32 {
'entry(%x: f32):
    %y = add %x: f32, %x: f32
    return %y: f32
}
func @negate: (f32) -> f32 {
'entry(%x: f32):
    %y = negate %x: f32
    return %y: f32
}
func @twice: ((f32) -> f32, f32) -> f32 {
'entry(%f: (f32) -> f32, %x: f32):
    %y = apply %f(%x): (f32) -> f32
    %z = apply %f(%y): (f32) -> f32
    return %z: f32
}
func @choose: (bool) -> ((f32) -> f32, f32) {
'entry(%c: bool):
    %f = if %c: bool -> (f32) -> f32 {
    'then():
        %d = literal @double: (f32) -> f32
        yield %d: (f32) -> f32
    } else {
    'else():
        %n = literal @negate: (f32) -> f32
        yield %n: (f32) -> f32
    }
    return (%f: (f32) -> f32, 3: f32): ((f32) -> f32, f32)
}
func @f: (bool) -> f32 {
'entry(%c: bool):
    %pair = apply @choose(%c) -> ((f32) -> f32, f32)
    %f = extract 0 from %pair: ((f32) -> f32, f32)
    %x = extract 1 from %pair: ((f32) -> f32, f32)
    %y = apply @twice(%f, %x) -> f32
    return %y: f32
}
func @null: () -> f32 {
'entry():
    %f = literal null: (f32) -> f32
    %y = apply %f(1: f32): (f32) -> f32
    return %y: f32
}
"""


def test_functions_are_values() -> None:
    assert run(VALUES, "f", True) == 12
    assert run(VALUES, "f", False) == 3
    assert run(VALUES, "choose", True) == (FunctionValue("double"), 3)
    assert run(VALUES, "twice", FunctionValue("negate"), 5) == 5


def test_a_call_of_null_stops_the_program() -> None:
    with pytest.raises(TrapError, match="call null"):
        run(VALUES, "null")


OUTSIDE = """[extern]
func @hypot: (f32, f32) -> f32
[extern]
func @note: (f32) -> void
[extern]
func @split: (f32) -> (f32, (i64, bool))
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @hypot(%x, 4: f32): (f32, f32) -> f32
    %n = apply @note(%y): (f32) -> void
    %p = apply @split(%y): (f32) -> (f32, (i64, bool))
    %r = extract 0 from %p: (f32, (i64, bool))
    return %r: f32
}
func @g: (f32) -> f32 {
'entry(%x: f32):
    %h = literal @hypot: (f32, f32) -> f32
    %y = apply %h(%x, %x): (f32, f32) -> f32
    return %y: f32
}
"""


def test_extern_functions_are_callables() -> None:
    seen: list[Any] = []
    externs = {
        "hypot": math.hypot,
        "note": seen.append,
        "split": lambda x: (x / 3, [np.int64(1), True]),
    }
    result = run(OUTSIDE, "f", 3, externs=externs)
    assert seen == [5] and result == np.float32(5 / 3) and result.dtype == np.float32
    assert run(OUTSIDE, "g", 1, externs=externs) == np.float32(math.sqrt(2))
    assert run(OUTSIDE, "hypot", 3, 4, externs=externs) == 5


def test_extern_functions_must_be_given() -> None:
    with pytest.raises(
        UnsupportedError, match=r"@hypot is extern: pass evaluate a callable as ext"
    ):
        run(OUTSIDE, "f", 3)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda x: x, DTypeError, r"a \(f32, \(i64, bool\)\) was expected, not a ndarray"),
        (lambda x: (x, (1, True), 3), ShapeError, "is made of 2 values, not 3"),
        (lambda x: (x, (1.5, True)), DTypeError, "1.5 is no i64"),
        (
            lambda x: ([x], (1, True)),
            ShapeError,
            r"a f32 was expected, not an array of shape \[1\]",
        ),
    ],
)
def test_what_extern_functions_give_is_checked(given: Any, error: Any, message: str) -> None:
    externs = {"hypot": math.hypot, "note": lambda x: None, "split": given}
    with pytest.raises(error, match=message):
        run(OUTSIDE, "f", 3, externs=externs)


TREES = """enum $Tree { ?leaf(f32), ?node($Tree, $Tree) }
func @sum: ($Tree) -> f32 {
'entry(%t: $Tree):
    branchEnum %t: $Tree case ?node 'node case ?leaf 'leaf
'leaf(%v: f32):
    return %v: f32
'node(%l: $Tree, %r: $Tree):
    %x = apply @sum(%l): ($Tree) -> f32
    %y = apply @sum(%r): ($Tree) -> f32
    %z = add %x: f32, %y: f32
    return %z: f32
}
func @chain: (i64) -> $Tree {
'entry(%n: i64):
    %one = literal ?leaf(1: f32): $Tree
    %t = for 0: i64 upto %n: i64 carrying %one: $Tree {
    'body(%i: i64, %t: $Tree):
        %x = dataTypeCast %i: i64 to f32
        %l = literal ?leaf(%x: f32): $Tree
        %u = literal ?node(%l: $Tree, %t: $Tree): $Tree
        yield %u: $Tree
    }
    return %t: $Tree
}
func @f: (i64) -> f32 {
'entry(%n: i64):
    %t = apply @chain(%n): (i64) -> $Tree
    %x = apply @sum(%t): ($Tree) -> f32
    return %x: f32
}
"""


def test_a_tree_is_summed_by_recursion() -> None:
    assert run(TREES, "f", 10) == 46
    tree = ("node", (("leaf", (1,)), ("node", [("leaf", [2]), ("leaf", [4])])))
    assert run(TREES, "sum", tree) == 7


def test_deep_trees_take_no_stack() -> None:
    deep = run(TREES, "chain", 20_000)
    assert repr(deep).startswith("?node(?leaf(19999.0), ?node(?leaf(19998.0), ")
    total = np.float32(1)
    for number in range(20_000):  # in the order of the additions, whose roundings count
        total = np.float32(number) + total
    assert run(TREES, "sum", deep) == total
