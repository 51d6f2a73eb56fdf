"""The evaluator: programs of any length and depth, every stage, and its errors."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pytest

from nnkit.core.errors import IndexOutOfRangeError, InternalError, UnsupportedError
from nnkit.core.evaluate import evaluate, evaluate_region
from nnkit.core.ir import Block, Builder, Module, Region, finish_function, start_function
from nnkit.core.ops import Add, Apply, Negate, Return
from nnkit.core.text import parse_module
from nnkit.core.types import F32, FunctionType, TensorType, scalar

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


def run(text: str, name: str, *arguments: Any) -> Any:
    return evaluate(parse_module(f'module "m"\n{text}'), name, *arguments)


def test_long_programs_take_no_stack() -> None:
    module = chain(10_000)
    start = time.process_time()
    assert evaluate(module, "f", np.float32(1)) == 10_001
    assert time.process_time() - start < 2


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
    with pytest.raises(InternalError, match="@f takes 1 arguments"):
        evaluate(chain(1), "f")


def test_a_region_gives_the_operands_of_its_terminator() -> None:
    b = Builder()
    x = b.argument(TensorType((2,), F32))
    b.emit_many(Return(), [b.emit(Negate(), x), x])
    negated, same = evaluate_region(Region([b.block]), [np.array([1, -2], np.float32)])
    np.testing.assert_array_equal(negated, -same)
    with pytest.raises(InternalError, match="a region without a terminator was evaluated"):
        evaluate_region(Region([Block()]), [])
