"""The evaluator: programs of any length and depth, every stage, its fuel and its errors."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from nnkit.core.errors import (
    FuelError,
    IndexOutOfRangeError,
    NNKitError,
    RecursionDepthError,
    ShapeError,
    TrapError,
    UnsupportedError,
    VerifyError,
)
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, finish_function, start_function
from nnkit.core.ops import Add, Apply, Return
from nnkit.core.types import F32, FunctionType, scalar
from tests.patience import PATIENCE

from .running import run

S = scalar(F32)


def chain(count: int) -> Module:
    """@f: x ↦ x + x + … + x."""
    b = start_function([S])
    [x] = b.block.arguments
    value = x
    for _ in range(count):
        value = b.emit(Add(), value, x)
    b.emit_many(Return(), [value])
    module = Module()
    module.add(finish_function("f", b, S))
    return module


def tower(depth: int) -> Module:
    """@f0 calls @f1, which calls @f2 …; each adds its argument once."""
    module = Module()
    for level in range(depth + 1):
        b = start_function([S])
        [x] = b.block.arguments
        called = b.emit(Apply(f"f{level + 1}", FunctionType((S,), S)), x) if level < depth else x
        b.emit_many(Return(), [b.emit(Add(), called, x)])
        module.add(finish_function(f"f{level}", b, S))
    return module


def test_long_programs_take_no_stack() -> None:
    module = chain(10_000)
    start = time.process_time()
    assert evaluate(module, "f", np.float32(1)) == 10_001
    assert time.process_time() - start < 2 * PATIENCE


def test_deep_calls_take_no_stack() -> None:
    depth = 3 * sys.getrecursionlimit()
    assert evaluate(tower(depth), "f0", np.float32(1)) == depth + 2


def test_arguments_are_anything_numpy_takes() -> None:
    module = chain(1)
    for number in (3, 3.0, np.float32(3), np.array(3, np.float32)):
        assert evaluate(module, "f", number) == 6


def test_results_are_rounded_to_their_type_after_every_instruction() -> None:
    text = """func @f: (bf16) -> bf16 {
'b(%x: bf16):
    %y = add %x: bf16, 1: bf16
    %z = subtract %y: bf16, 1: bf16
    return %z: bf16
}"""
    assert run(text, "f", np.float32(2.0**-9)) == 0
    assert run(text.replace("bf16", "f16"), "f", np.float16(2.0**-9)) == np.float16(2.0**-9)


def test_tuples_and_structs_are_tuples() -> None:
    text = """struct $S { #a: f32, #b: (f32, f32) }
func @f: ($S, f32) -> ($S, f32) {
'b(%s: $S, %x: f32):
    %y = extract #b, 1 from %s: $S
    %t = literal {#b = (%x: f32, %x: f32): (f32, f32), #a = %y: f32}: $S
    return (%t: $S, %y: f32): ($S, f32)
}"""
    arguments = [(np.float32(1), [np.float32(2), np.float32(3)]), np.float32(4)]
    assert run(text, "f", *arguments) == ((3, (4, 4)), 3)


def test_functions_that_return_nothing() -> None:
    text = """func @g: () -> void {
'b():
    return
}
func @f: () -> (void, f32) {
'b():
    %n = apply @g() -> void
    return (%n: void, 1: f32): (void, f32)
}"""
    assert run(text, "f") == ((), 1)
    assert run(text, "g") == ()


def test_results_of_a_nest_lie_in_rows() -> None:
    text = """stage compute
func @f: (<3 x 2 x f32>) -> <2 x 3 x f32> {
'b(%x: <3 x 2 x f32>):
    %y = nest 2 x 3 of %x: <3 x 2 x f32> reading (d1, d0) writing <2 x 3 x f32> at (d0, d1) {
    'body(%d0: i64, %d1: i64, %v: f32):
        yield %v: f32
    }
    return %y: <2 x 3 x f32>
}"""
    result = run(text, "f", np.arange(6, dtype=np.float32).reshape(3, 2))
    np.testing.assert_array_equal(result, [[0, 2, 4], [1, 3, 5]])
    assert result.flags.c_contiguous


def test_floating_point_errors_are_silent() -> None:
    text = "func @f: (f32) -> f32 { 'b(%x: f32): %y = log %x: f32 return %y: f32 }"
    assert run(text, "f", np.float32(0)) == -np.inf


def test_an_index_out_of_range_is_an_error() -> None:
    text = """func @f: (<3 x f32>, i64) -> f32 {
'b(%x: <3 x f32>, %i: i64):
    %y = gather %x: <3 x f32> at %i: i64 along 0 bounds check
    return %y: f32
}"""
    x = np.arange(3, dtype=np.float32)
    assert run(text, "f", x, np.array(2)) == 2
    with pytest.raises(
        IndexOutOfRangeError, match="index 3 is out of range for an axis of extent 3"
    ):
        run(text, "f", x, np.array(3))


def test_a_gradient_without_body_is_an_error() -> None:
    text = """func @f: (f32) -> f32 {
'b(%x: f32):
    return %x: f32
}
[gradient @f]
func @d: (f32) -> f32
func @g: (f32) -> f32 {
'b(%x: f32):
    %y = apply @d(%x) -> f32
    return %y: f32
}"""
    for name in ("d", "g"):
        with pytest.raises(
            UnsupportedError, match="@d has no body: differentiate the module first"
        ):
            run(text, name, np.float32(1))


def test_a_wrong_number_of_arguments_is_an_error() -> None:
    with pytest.raises(ShapeError, match="@f takes 1 argument, not 0"):
        evaluate(chain(1), "f")
    with pytest.raises(ShapeError, match="@f takes 1 argument, not 2"):
        evaluate(chain(1), "f", np.float32(1), np.float32(1))


def test_a_missing_function_is_an_error() -> None:
    with pytest.raises(VerifyError, match="the module 'module' has no function @g"):
        evaluate(chain(1), "g")


LOOP = """func @f: (i64) -> i64 {
'entry(%x: i64):
    branch 'again(%x: i64)
'again(%y: i64):
    %z = add %y: i64, 1: i64
    branch 'again(%z: i64)
}
func @recur: (i64) -> i64 {
'entry(%x: i64):
    %y = apply @recur(%x) -> i64
    return %y: i64
}
func @spin: () -> void {
'entry():
    while {
    'more():
        yield true: bool
    } do {
    'body():
        yield
    }
    return
}
func @count: () -> i64 {
'entry():
    %n = for 0: i64 upto 9223372036854775807: i64 carrying 0: i64 {
    'body(%i: i64, %n: i64):
        yield %i: i64
    }
    return %n: i64
}
"""


@pytest.mark.parametrize(
    ("name", "arguments"), [("f", [0]), ("recur", [0]), ("spin", []), ("count", [])]
)
def test_endless_programs_end_with_their_fuel(name: str, arguments: list[int]) -> None:
    start = time.process_time()
    with pytest.raises(FuelError, match="the program is not done after 10000 instructions"):
        run(LOOP, name, *arguments, fuel=10_000)
    assert time.process_time() - start < 2 * PATIENCE


def test_fuel_is_the_number_of_instructions() -> None:
    module = chain(7)
    assert evaluate(module, "f", np.float32(1), fuel=8) == 8
    for fuel in (7, 0, -1):
        with pytest.raises(FuelError):
            evaluate(module, "f", np.float32(1), fuel=fuel)
    assert evaluate(module, "f", np.float32(1), fuel=10**30) == 8


def test_endless_recursion_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnkit.core.evaluate.machine.MOST_FRAMES", 5_000)
    with pytest.raises(
        RecursionDepthError, match="@recur is called too deeply: more than 5000 calls"
    ):
        run(LOOP, "recur", 0)


def test_errors_say_where_they_happened() -> None:
    text = """func @"in ner": () -> void {
'entry():
    trap
    return
}
func @outer: () -> void {
'entry():
    %n = apply @"in ner"() -> void
    return
}"""
    with pytest.raises(TrapError, match="the program stopped at a trap") as caught:
        run(text, "outer")
    assert caught.value.__notes__ == [
        '  in trap of @"in ner"',
        "  <text>:4  trap\n            ^^^^",
    ]


FAILING = """func @take: (<3 x f32>, i64) -> f32 {
'entry(%x: <3 x f32>, %i: i64):
    %y = gather %x: <3 x f32> at %i: i64 along 0
    return %y: f32
}
func @trips: (i64) -> <3 x f32> {
'entry(%n: i64):
    %z = literal 0: f32
    %y = for 0: i64 upto %n: i64 stacking <3 x f32> {
    'body(%i: i64):
        yield %z: f32
    }
    return %y: <3 x f32>
}
func @freed: (f32) -> f32 {
'entry(%x: f32):
    %p = allocateHeap f32 count 1: i64
    store %x: f32 to %p: *f32
    deallocate %p: *f32
    %y = load %p: *f32
    return %y: f32
}
func @empty: () -> f32 {
'entry():
    %s = createStack
    %y = pop f32 from %s: stack
    return %y: f32
}
func @deep: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @deep(%x) -> f32
    return %y: f32
}
func @declared: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @slope(%x) -> f32
    return %y: f32
}
[gradient @deep]
func @slope: (f32) -> f32
"""


@pytest.mark.parametrize(
    ("function", "arguments", "at"),
    [
        ("take", (np.zeros(3, np.float32), 3), "gather %x"),
        ("trips", (4,), "for 0: i64"),
        ("freed", (1.0,), "load %p"),
        ("empty", (), "pop f32"),
        ("deep", (1.0,), "apply @deep"),
        ("declared", (1.0,), "apply @slope"),
    ],
)
def test_every_error_has_the_line_of_its_instruction(
    function: str, arguments: tuple[object, ...], at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nnkit.core.evaluate.machine.MOST_FRAMES", 5_000)
    with pytest.raises(NNKitError) as caught:
        run(FAILING, function, *arguments)
    opcode = at.split()[0]
    inside, shown = caught.value.__notes__
    assert inside == f"  in {opcode} of @{function}"
    line, caret = shown.splitlines()
    assert at in line and line[caret.index("^") :].startswith(opcode)


def test_what_spends_its_fuel_says_where_it_was() -> None:
    with pytest.raises(FuelError) as caught:
        run(FAILING, "deep", 1.0, fuel=10)
    assert caught.value.__notes__[0].endswith("of @deep")


FOLDING = """func @add: (f32, f32) -> f32 {
'entry(%x: f32, %y: f32):
    %z = add %x: f32, %y: f32
    return %z: f32
}
func @sum: (<4 x f32>, f32) -> f32 {
'entry(%x: <4 x f32>, %i: f32):
    %f = literal @add: (f32, f32) -> f32
    %y = reduce %x: <4 x f32> by %f: (f32, f32) -> f32 init %i: f32 along 0
    return %y: f32
}
func @deep: (f32, f32) -> f32 {
'entry(%x: f32, %y: f32):
    %z = literal <1, 1>: <2 x f32>
    %f = literal @deep: (f32, f32) -> f32
    %r = reduce %z: <2 x f32> by %f: (f32, f32) -> f32 along 0
    return %r: f32
}
func @none: (<4 x f32>) -> f32 {
'entry(%x: <4 x f32>):
    %f = literal null: (f32, f32) -> f32
    %y = reduce %x: <4 x f32> by %f: (f32, f32) -> f32 along 0
    return %y: f32
}
"""


def test_ops_call_functions_while_they_compute() -> None:
    x = np.arange(4, dtype=np.float32)
    assert run(FOLDING, "sum", x, 10) == 16


def test_ops_that_call_functions_end_with_the_fuel() -> None:
    with pytest.raises(FuelError):
        run(FOLDING, "sum", np.zeros(4), 0, fuel=8)


def test_ops_that_call_functions_are_not_nested_endlessly() -> None:
    with pytest.raises(RecursionDepthError, match="nested more than 40 deep"):
        run(FOLDING, "deep", 1, 1)


def test_ops_that_call_null_stop_the_program() -> None:
    with pytest.raises(TrapError, match="call null"):
        run(FOLDING, "none", np.zeros(4))


RANDOM = """func @two: () -> (<3 x f32>, <3 x f32>) {
'entry():
    %a = random 3 from 0: f32 upto 1: f32
    %b = random 3 from 0: f32 upto 1: f32
    return (%a: <3 x f32>, %b: <3 x f32>): (<3 x f32>, <3 x f32>)
}"""


def test_random_numbers_follow_from_the_seed_alone() -> None:
    first, second = run(RANDOM, "two")
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(run(RANDOM, "two"), (first, second))
    np.testing.assert_array_equal(run(RANDOM, "two", seed=0), (first, second))
    for seed in (1, -1, 2**63, 2**80 + 5):
        assert not np.array_equal(run(RANDOM, "two", seed=seed), (first, second))


def test_running_out_of_memory_is_an_error() -> None:
    text = """func @f: () -> f32 {
'entry():
    %x = literal 1: <30000000000000 x f32>
    %y = extract 0 from %x: <30000000000000 x f32>
    return %y: f32
}"""
    with pytest.raises(TrapError, match="out of memory"):
        run(text, "f")
