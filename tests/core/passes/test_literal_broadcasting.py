"""Literal broadcasting: splats become scalars where another operand has the shape of the result."""

from __future__ import annotations

import pytest
from hypothesis import given

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import ALL as OPS
from nnkit.core.ops import Broadcast, Elementwise, Literal, Power
from nnkit.core.passes import DeadCode, apply_pass
from nnkit.core.passes.literal_broadcasting import LiteralBroadcasting
from nnkit.core.text import print_module
from nnkit.core.types import broadcast_shapes
from nnkit.core.verify import verify
from tests.core.passes.laws import parsed
from tests.programs import Program, describe, programs, same_bits


def literals(line: str) -> list[str]:
    """The types of the literals that are left of a function whose result is what `line` computes."""
    module = parsed(f"""
func @f: (<2 x 3 x f32>, <3 x f32>, bool) -> <2 x 3 x f32> {{
'entry(%x: <2 x 3 x f32>, %v: <3 x f32>, %c: bool):
    %two = literal 2: <2 x 3 x f32>
    %one = literal 1: <1 x 1 x f32>
    %row = literal <1, 2, 3>: <3 x f32>
    %yes = literal true: <2 x 3 x bool>
    %b = broadcast %v: <3 x f32> to 2 x 3
    %y = {line}
    return %y: <2 x 3 x f32>
}}
""")
    verify(module)
    changed = apply_pass(LiteralBroadcasting(), module)
    verify(module)
    text = print_module(module)
    assert not apply_pass(LiteralBroadcasting(), module)
    assert print_module(module) == text
    apply_pass(DeadCode(), module)
    body = module.functions["f"].body
    assert body is not None
    left = [str(i.result.type) for i in walk(body) if isinstance(i.op, Literal)]
    assert changed or left
    return left


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("multiply %x: <2 x 3 x f32>, %two: <2 x 3 x f32>", ["f32"]),
        ("subtract %two: <2 x 3 x f32>, %x: <2 x 3 x f32>", ["f32"]),
        ("add %x: <2 x 3 x f32>, %one: <1 x 1 x f32>", ["f32"]),
        ("select %x: <2 x 3 x f32>, %two: <2 x 3 x f32> by %yes: <2 x 3 x bool>", ["f32", "bool"]),
        # what is broadcast, and not a literal, stays as it is written
        ("multiply %b: <2 x 3 x f32>, %two: <2 x 3 x f32>", ["f32"]),
        # the shape of the result is that of the literal
        ("add %v: <3 x f32>, %two: <2 x 3 x f32>", ["<2 x 3 x f32>"]),
        ("add %two: <2 x 3 x f32>, %two: <2 x 3 x f32>", ["<2 x 3 x f32>"]),
        ("negate %two: <2 x 3 x f32>", ["<2 x 3 x f32>"]),
        # not a splat
        ("add %x: <2 x 3 x f32>, %row: <3 x f32>", ["<3 x f32>"]),
    ],
)
def test_which_literals_become_scalars(line: str, left: list[str]) -> None:
    assert literals(line) == left


def test_broadcasts_are_left_to_simplify() -> None:
    module = parsed("""
func @f: (<3 x f32>) -> <2 x 3 x f32> {
'entry(%v: <3 x f32>):
    %two = literal 2: <2 x 3 x f32>
    %b = broadcast %v: <3 x f32> to 2 x 3
    %y = multiply %b: <2 x 3 x f32>, %two: <2 x 3 x f32>
    return %y: <2 x 3 x f32>
}
""")
    assert apply_pass(LiteralBroadcasting(), module)
    last = module.functions["f"].entry.instructions[-2]
    assert isinstance(last.operands[0].op, Broadcast)


@given(program=programs(ops=[op for op in OPS if op is not Power], control=True))
def test_every_bit_stays_and_no_splat_is_left(program: Program) -> None:
    expected = evaluate(program.module, program.entry, *program.arguments)
    apply_pass(LiteralBroadcasting(), program.module)
    verify(program.module)
    assert not apply_pass(LiteralBroadcasting(), program.module)
    actual = evaluate(program.module, program.entry, *program.arguments)
    assert same_bits(actual, expected), describe(program.module)
    for function in program.module.functions.values():
        assert not _promotable(function), describe(program.module)


def _promotable(function: Function) -> list[Value]:
    """The splats that an elementwise function could take as scalars."""
    found: list[Value] = []
    for i in walk(function.body) if function.body is not None else ():
        if not isinstance(i.op, Elementwise) or not i.op.broadcasts:
            continue
        splats = [x for x in i.operands if isinstance(x.op, Literal) and x.op.is_splat]
        others = [x.tensor.shape for x in i.operands if x not in splats]
        if others and broadcast_shapes(others) == i.result.tensor.shape:
            found += [x for x in splats if x.tensor.rank]
    return found
