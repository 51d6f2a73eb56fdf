"""Expanding keeps every bit and the order of effects, and leaves nothing to expand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import VerifyError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import clone_module, walk
from nnkit.core.ops import (
    ORDERED,
    Apply,
    ApplyValue,
    Builtin,
    For,
    OrderedReduction,
    Random,
    ShapeQuery,
)
from nnkit.core.passes import Expand, apply_pass
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F64, TensorType
from nnkit.core.verify import verify
from tests.core.ops.test_builtin import SAMPLES as BUILTINS
from tests.programs import Program, programs, same_bits

FUNCTIONS = """
var @calls: f64

func @elementwise: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    %a = multiply %total: f64, 0.5: f64
    %b = builtin "relu"(%x: f64) -> f64
    %c = add %a: f64, %b: f64
    return %c: f64
}

func @last: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    return %x: f64
}

func @constant: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    %y = literal 3: f64
    return %y: f64
}

func @calling: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    %y = apply @elementwise(%x, %total): (f64, f64) -> f64
    return %y: f64
}

func @counting: (f64, f64) -> f64 {
'entry(%total: f64, %x: f64):
    %n = load @calls: *f64
    %m = add %n: f64, 1: f64
    store %m: f64 to @calls: *f64
    %a = multiply %total: f64, %n: f64
    %y = add %a: f64, %x: f64
    return %y: f64
}
"""
NAMES = ("elementwise", "last", "constant", "calling", "counting")
LEFT = (Builtin, ShapeQuery, Random, OrderedReduction)


def expanded(module: Module) -> Module:
    """A copy with nothing left to expand, valid and read back."""
    copy = clone_module(module)
    apply_pass(Expand(), copy)
    verify(copy)
    for function in copy.functions.values():
        if function.body is not None:
            assert not any(isinstance(i.op, LEFT) for i in walk(function.body))
    assert not apply_pass(Expand(), copy)
    text = print_module(copy)
    assert print_module(parse_module(text)) == text
    return copy


def check(text: str, *arguments: Any, seed: int = 0) -> Module:
    """`@main` gives the same bits, expanded or not."""
    module = parse_module(f'module "test"\n{text}')
    verify(module)
    copy = expanded(module)
    one, other = (evaluate(m, "main", *arguments, seed=seed) for m in (module, copy))
    assert same_bits(one, other)
    return copy


@st.composite
def folds(draw: Any) -> tuple[str, tuple[int, ...]]:
    """The text of a fold of %x, and the shape of x."""
    rank = draw(st.integers(0, 3))

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    shape = numbers(0, 3)
    type = TensorType(shape, F64)
    named = [f"@{name}: (f64, f64) -> f64" for name in NAMES]
    function = draw(st.sampled_from((*named, "%f: (f64, f64) -> f64", *ORDERED)))
    init = " init 2.5: f64"
    kind = draw(st.sampled_from(("reduce", "scan", "reduceWindow")))
    if kind == "reduce":
        axes = tuple(axis for axis in range(rank) if draw(st.booleans()))
        if all(shape[axis] for axis in axes) and draw(st.booleans()):
            init = ""
        result: Any = type.with_shape(n for axis, n in enumerate(shape) if axis not in axes)
        return f"%y = reduce %x: {type} by {function}{init} along {axes}: -> {result}", shape
    if kind == "scan" and rank:
        flags = [draw(st.booleans()) for _ in range(2)]
        if not flags[1] and draw(st.booleans()):
            init = ""
        words = f"along {tuple(axis for axis in range(rank) if draw(st.booleans()))}"
        for word, flag in zip(("reverse", "exclusive"), flags, strict=True):
            words += f" {word} true" if flag else ""
        return f"%y = scan %x: {type} by {function}{init} {words}: -> {type}", shape
    window, strides = numbers(1, 3), numbers(1, 2)
    lows, highs = numbers(-1, 2), numbers(-1, 2)
    pairs = zip(shape, window, strides, lows, highs, strict=True)
    rooms = [(low + n + high - w, s) for n, w, s, low, high in pairs]
    result = type.with_shape(room // s + 1 if room >= 0 else 0 for room, s in rooms)
    padding = ", ".join(f"({a}, {b})" for a, b in zip(lows, highs, strict=True)) or "()"
    words = f"dims {window} strides {strides} padding {padding}".replace(",)", ")")
    return f"%y = reduceWindow %x: {type} by {function}{init} {words}: -> {result}", shape


@given(folds())
def test_folds_keep_every_bit_and_every_call(drawn: tuple[str, tuple[int, ...]]) -> None:
    (line, _, result), shape = drawn[0].rpartition(": -> "), drawn[1]
    x = TensorType(shape, F64)
    body = line.replace(",):", "):").replace(",)", ")")
    text = f"""{FUNCTIONS}
func @main: ({x}) -> ({result}, f64) {{
'entry(%x: {x}):
    %f = literal @counting: (f64, f64) -> f64
    {body}
    %n = load @calls: *f64
    return (%y: {result}, %n: f64): ({result}, f64)
}}
"""
    values = np.random.default_rng(sum(shape)).uniform(-2, 2, shape)
    check(text, values)


def test_functions_of_elementwise_ops_are_put_in_place() -> None:
    text = f"""{FUNCTIONS}
func @main: (<4 x 5 x f64>) -> <5 x f64> {{
'entry(%x: <4 x 5 x f64>):
    %y = reduce %x: <4 x 5 x f64> by @elementwise: (f64, f64) -> f64 init 0: f64 along 0
    return %y: <5 x f64>
}}
"""
    copy = check(text, np.ones((4, 5)))
    body = copy.functions["main"].body
    assert body is not None
    ops = [instruction.op for instruction in walk(body)]
    assert sum(isinstance(op, For) for op in ops) == 1
    assert not any(isinstance(op, Apply | ApplyValue) for op in ops)


RANDOM = """
func @twice: () -> (<3 x f32>, <3 x f32>) {
'entry():
    %a = random 3 from 0: f32 upto 1: f32
    %b = random 3 from 0: f32 upto 1: f32
    return (%a: <3 x f32>, %b: <3 x f32>): (<3 x f32>, <3 x f32>)
}
func @main: (f32, f32) -> (<3 x f32>, <3 x f32>, i8, <2 x 2 x f32>) {
'entry(%low: f32, %high: f32):
    %unused = random 7 from 0: i32 upto 5: i32
    %t = apply @twice(): () -> (<3 x f32>, <3 x f32>)
    %a = extract 0 from %t: (<3 x f32>, <3 x f32>)
    %b = extract 1 from %t: (<3 x f32>, <3 x f32>)
    %c = random scalar from -7: i8 upto 100: i8
    %d = random 2 x 2 from %low: f32 upto %high: f32
    return (%a: <3 x f32>, %b: <3 x f32>, %c: i8, %d: <2 x 2 x f32>): (<3 x f32>, <3 x f32>, i8, <2 x 2 x f32>)
}
"""


@pytest.mark.parametrize("seed", [0, 1, -(2**63), 2**63 - 1])
def test_random_numbers_are_the_same_at_every_stage(seed: int) -> None:
    module = check(RANDOM, np.float32(-3), np.float32(8), seed=seed)
    first, second, whole, grid = evaluate(module, "main", np.float32(-3), np.float32(8), seed=seed)
    assert not np.array_equal(first, second)
    assert -7 <= whole < 100
    assert ((grid >= -3) & (grid < 8)).all()


def test_an_unused_random_number_counts() -> None:
    without = RANDOM.replace("    %unused = random 7 from 0: i32 upto 5: i32\n", "")
    one, other = (check(text, np.float32(0), np.float32(1)) for text in (RANDOM, without))
    pair = [evaluate(m, "main", np.float32(0), np.float32(1)) for m in (one, other)]
    assert not np.array_equal(pair[0][0], pair[1][0])
    np.testing.assert_array_equal(pair[0][0], pair[1][1])


def test_the_generators_variables_are_its_own() -> None:
    module = parse_module('module "test"\nvar @nnkit.random: f32\n' + RANDOM)
    with pytest.raises(VerifyError, match=r"@nnkit\.random belongs to the generator"):
        apply_pass(Expand(), module)


def test_questions_about_shapes_are_answered() -> None:
    copy = check(
        """
func @main: (<2 x 0 x f32>) -> (i64, <2 x i64>, i64) {
'entry(%x: <2 x 0 x f32>):
    %a = rank of %x: <2 x 0 x f32>
    %b = shape of %x: <2 x 0 x f32>
    %c = unitCount of %x: <2 x 0 x f32>
    return (%a: i64, %b: <2 x i64>, %c: i64): (i64, <2 x i64>, i64)
}
""",
        np.zeros((2, 0), np.float32),
    )
    answers = evaluate(copy, "main", np.zeros((2, 0), np.float32))
    assert [answer.tolist() for answer in answers] == [2, [2, 0], 0]


@pytest.mark.parametrize("sample", BUILTINS, ids=str)
def test_builtins_keep_every_bit(sample: Any) -> None:
    names = [f"%x{number}" for number in range(len(sample.types))]
    typed = ", ".join(f"{name}: {type}" for name, type in zip(names, sample.types, strict=True))
    types, result = ", ".join(map(str, sample.types)), sample.op.type
    check(
        f"""
func @main: ({types}) -> {result} {{
'entry({typed}):
    %y = builtin "{sample.op.builtin}"({typed}) -> {result}
    return %y: {result}
}}
""",
        *sample.operands(),
    )


@given(programs())
def test_random_programs_keep_every_bit(program: Program) -> None:
    copy = expanded(program.module)
    expected = evaluate(program.module, program.entry, *program.arguments)
    assert same_bits(evaluate(copy, program.entry, *program.arguments), expected)
