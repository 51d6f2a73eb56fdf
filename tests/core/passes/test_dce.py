"""Dead code elimination."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from nnkit.core.errors import IndexOutOfRangeError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Add, Exp, Gather, Multiply, Negate
from nnkit.core.ops.nest import Access, Output, Yield, build_nest, coordinate
from nnkit.core.passes import DeadCode, apply_pass
from nnkit.core.types import F32, I64, TensorType
from nnkit.core.verify import verify
from tests.core.passes.laws import (
    call,
    define,
    every_opcode,
    module_of,
    opcodes,
    parsed,
)

X = TensorType((3,), F32)


def test_unused_chains_go() -> None:
    def build(b: Builder, x: Value) -> Value:
        b.emit(Negate(), b.emit(Exp(), x))
        return b.emit(Add(), x, x)

    module = module_of([X], build)
    assert apply_pass(DeadCode(), module)
    assert opcodes(module.functions["main"]) == "add"
    assert not apply_pass(DeadCode(), module)


def test_what_is_returned_stays() -> None:
    module = module_of([X], lambda b, x: b.emit(Add(), b.emit(Exp(), x), x))
    assert not apply_pass(DeadCode(), module)


def test_a_check_goes_with_its_result_and_stays_with_it() -> None:
    indices = TensorType((2,), I64)

    def build(b: Builder, x: Value, at: Value, *, is_used: bool) -> Value:
        taken = b.emit(Gather(0), x, at)
        return taken if is_used else b.emit(Add(), x, x)

    for is_used in (False, True):
        module = module_of([X, indices], partial(build, is_used=is_used))
        apply_pass(DeadCode(), module)
        assert opcodes(module.functions["main"]) == ("gather" if is_used else "add")
        arguments = np.ones(3, np.float32), np.array([0, 7])
        with pytest.raises(IndexOutOfRangeError) if is_used else nullcontext():
            evaluate(module, "main", *arguments)


def test_unused_calls_go() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    callee = module.functions["main"]

    def build(b: Builder, x: Value) -> Value:
        call(b, callee, x)
        return x

    assert apply_pass(DeadCode(), module) is False
    caller = define(module, "caller", [X], build)
    assert apply_pass(DeadCode(), module)
    assert opcodes(caller) == ""


def test_inside_the_body_of_a_nest() -> None:
    def body(b: Builder, at: Sequence[Value], read: Sequence[Value]) -> list[Value]:
        b.emit(Exp(), *read)
        return [b.emit(Multiply(), *read, *read)]

    def build(b: Builder, x: Value) -> Value:
        point = (coordinate(0),)
        reads = [(x, Access(point))]
        return build_nest(b, (3,), reads, [Output(X, point)], body)[0]

    module = module_of([X], build)
    assert apply_pass(DeadCode(), module)
    region = module.functions["main"].body
    assert region is not None
    names = [instruction.op.name for instruction in walk(region)]
    assert names == ["nest", "return", "multiply", Yield.name]


def test_what_a_loop_carries_only_for_itself_goes() -> None:
    module = parsed("""
    func @f: (i64, f32) -> i64 {
    'entry(%n: i64, %x: f32):
        %zero = literal 0: i64
        %i, %y, %all = for %zero: i64 upto %n: i64 carrying %zero: i64, %x: f32 stacking <4 x f32> {
        'body(%k: i64, %s: i64, %v: f32):
            %w = exp %v: f32
            %t = add %s: i64, %k: i64
            yield %t: i64, %w: f32, %w: f32
        }
        return %i: i64
    }
    """)
    assert apply_pass(DeadCode(), module)
    verify(module)
    assert every_opcode(module, "f") == ["literal", "for", "return", "add", "yield"]
    assert evaluate(module, "f", 4, 1.0) == 6
    assert not apply_pass(DeadCode(), module)


def test_loops_that_nobody_needs_go_and_endless_ones_stay() -> None:
    text = """
    func @f: (bool) -> bool {{
    'entry(%c: bool):
        while {{
        'condition():
            {}
        }} do {{
        'body():
            yield
        }}
        return %c: bool
    }}
    """
    module = parsed(text.format("yield %c: bool"))
    assert apply_pass(DeadCode(), module)
    assert every_opcode(module, "f") == ["return"]
    module = parsed(text.format("%t = literal true: bool yield %t: bool"))
    assert not apply_pass(DeadCode(), module)


def test_effects_stay_in_bodies_and_through_calls() -> None:
    module = parsed("""
    var @v: f32
    func @set: (f32) -> f32 {
    'entry(%x: f32):
        %p = literal @v: *f32
        store %x: f32 to %p: *f32
        return %x: f32
    }
    func @get: () -> f32 {
    'entry():
        %p = literal @v: *f32
        %y = load %p: *f32
        return %y: f32
    }
    func @f: (bool, f32) -> f32 {
    'entry(%c: bool, %x: f32):
        %unused = apply @get(): () -> f32
        %y = if %c: bool -> f32 {
        'then():
            %a = apply @set(%x): (f32) -> f32
            %b = exp %x: f32
            yield %b: f32
        } else {
        'else():
            yield %x: f32
        }
        %z = apply @get(): () -> f32
        return %z: f32
    }
    """)
    assert apply_pass(DeadCode(), module)
    verify(module)
    left = ["apply", "apply", "if", "return", "yield", "yield"]
    assert sorted(every_opcode(module, "f")) == left
    assert evaluate(module, "f", True, 3.0) == 3 and evaluate(module, "f", False, 3.0) == 0


def test_blocks_and_their_arguments() -> None:
    module = parsed("""
    func @f: (bool, f32) -> f32 {
    'entry(%c: bool, %x: f32):
        conditional %c: bool then 'a(%x: f32, %x: f32) else 'b(%x: f32)
    'a(%p: f32, %q: f32):
        branch 'b(%q: f32)
    'b(%r: f32):
        return %r: f32
    'never(%s: f32):
        branch 'b(%s: f32)
    }
    """)
    assert apply_pass(DeadCode(), module)
    verify(module)
    body = module.functions["f"].body
    assert body is not None
    assert [len(block.arguments) for block in body.blocks] == [2, 1, 1]
    assert evaluate(module, "f", True, 3.0) == 3
    assert not apply_pass(DeadCode(), module)
