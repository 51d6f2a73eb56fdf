"""Closing bodies."""

from __future__ import annotations

import numpy as np
import pytest

from nnkit.core.errors import UnsupportedError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Literal, Structured
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.isolate import Isolate
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

NESTED = """module "m"
stage optimizable

func @f: (<3 x f32>, <3 x f32>, i64, bool) -> <3 x f32> {
'entry(%x: <3 x f32>, %y: <3 x f32>, %n: i64, %c: bool):
    %half = literal 0.5: f32
    %r = for 0: i64 upto %n: i64 carrying %x: <3 x f32> {
    'body(%i: i64, %v: <3 x f32>):
        %u = multiply %v: <3 x f32>, %half: f32
        %s = if %c: bool -> <3 x f32> {
        'then():
            %k, %t = while carrying %i: i64, %u: <3 x f32> {
            'condition(%k: i64, %t: <3 x f32>):
                %more = lessThan %k: i64, %n: i64
                yield %more: bool
            } do {
            'body(%k: i64, %t: <3 x f32>):
                %l = add %k: i64, 1: i64
                %w = add %t: <3 x f32>, %y: <3 x f32>
                %z = multiply %w: <3 x f32>, %half: f32
                yield %l: i64, %z: <3 x f32>
            }
            yield %t: <3 x f32>
        } else {
        'else():
            yield %y: <3 x f32>
        }
        yield %s: <3 x f32>
    }
    return %r: <3 x f32>
}
"""
ARGUMENTS = (np.arange(3, dtype=np.float32), np.ones(3, np.float32), np.asarray(4))


def isolated(text: str) -> Module:
    module = parse_module(text)
    assert apply_pass(Isolate(), module)
    verify(module)
    return module


@pytest.mark.parametrize("choice", [True, False])
def test_results_stay(choice: bool) -> None:
    arguments = (*ARGUMENTS, np.asarray(choice))
    wanted = evaluate(parse_module(NESTED), "f", *arguments)
    np.testing.assert_array_equal(evaluate(isolated(NESTED), "f", *arguments), wanted)


def test_bodies_use_nothing_from_outside() -> None:
    module = isolated(NESTED)
    body = module.functions["f"].body
    assert body is not None
    for instruction in walk(body):
        for region in instruction.regions:
            known = set(region.entry.arguments)
            for inner in region.entry.instructions:
                assert known.issuperset(inner.operands)
                known.update(inner.results)


def test_literals_are_copied_and_not_passed_on() -> None:
    body = isolated(NESTED).functions["f"].body
    assert body is not None
    given = [
        x for i in walk(body) if isinstance(i.op, Structured) for x in i.operands[-i.op.inputs :]
    ]
    assert given and not any(isinstance(x.op, Literal) for x in given)


def test_both_bodies_take_what_one_needs_and_only_once() -> None:
    body = isolated(NESTED).functions["f"].body
    assert body is not None
    loop = next(i for i in walk(body) if i.op.name == "while")
    names = [operand.name for operand in loop.operands]
    assert names == ["i", "u", "n", "y"] and isinstance(loop.op, Structured) and loop.op.inputs == 2
    assert all(len(region.entry.arguments) == 4 for region in loop.regions)


def test_a_second_run_changes_nothing() -> None:
    module = isolated(NESTED)
    text = print_module(module)
    assert not apply_pass(Isolate(), module)
    assert print_module(module) == text


def test_what_combines_a_batch_is_refused_in_a_function_that_is_compiled_as_it_is() -> None:
    module = parse_module(
        'module "m"\nstage optimizable\n'
        "func @center: (f64) -> f64 {\n'entry(%x: f64):\n"
        '    %s = axisReduce %x: f64 by add over "rows"\n    return %s: f64\n}\n'
    )
    with pytest.raises(UnsupportedError, match="axisReduce stands in @center, which is compiled"):
        apply_pass(Isolate(), module)
