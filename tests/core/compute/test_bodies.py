"""The blocks that code is generated for, and what cannot be compiled."""

from __future__ import annotations

import pytest

from nnkit.core.compute.bodies import bodies_of
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.errors import UnsupportedError
from nnkit.core.ir import Module
from nnkit.core.ops import If
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.isolate import Isolate
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module

HEAD = 'module "m"\nstage raw\n'

CHOICE = """
func @f: (bool, f32, f32) -> (f32, f32) {
'entry(%c: bool, %x: f32, %y: f32):
    %p, %q = if %c: bool -> f32, f32 {
    'then():
        yield %y: f32, %x: f32
    } else {
    'else():
        yield %x: f32, %x: f32
    }
    %r = literal (%p: f32, %q: f32): (f32, f32)
    return %r: (f32, f32)
}
"""


def parsed(text: str) -> Module:
    module = parse_module(HEAD + text)
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    return module


def test_bodies_come_outer_before_inner() -> None:
    bodies = bodies_of(parsed(CHOICE).functions["f"])
    assert [(body.owner is None, body.number) for body in bodies] == [
        (True, 0),
        (False, 0),
        (False, 1),
    ]
    assert bodies[1].owner is not None and isinstance(bodies[1].owner.op, If)


def test_a_result_of_an_if_replaces_an_input_that_is_yielded_as_it_is() -> None:
    _, then, otherwise = bodies_of(parsed(CHOICE).functions["f"])
    for body in (then, otherwise):
        names = [None if x is None else x.name for x in body.replaced]
        assert names == ["y", "x"]  # each input once


REFUSED = {
    "a call of @g, which has no body": """
[gradient @h]
func @g: (f32) -> f32
func @h: (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @g(%x): (f32) -> f32
    return %y: f32
}
""",
    "@f, which branches": """
func @f: (f32) -> f32 {
'entry(%x: f32):
    branch 'next
'next():
    return %x: f32
}
""",
    "@f takes or returns a *f32": """
func @f: (*f32) -> f32 {
'entry(%p: *f32):
    %x = load %p: *f32
    return %x: f32
}
""",
    "allocateStack": """
func @f: (f32) -> f32 {
'entry(%x: f32):
    %p = allocateStack f32 count 1
    store %x: f32 to %p: *f32
    %y = load %p: *f32
    return %y: f32
}
""",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_compiled_is_named(what: str) -> None:
    module = parsed(REFUSED[what])
    with pytest.raises(
        UnsupportedError, match=r"cannot be compiled yet: .*the evaluator runs it"
    ) as error:
        generate_compute(module)
    assert what in str(error.value)


def test_bodies_are_fused_by_themselves() -> None:
    module = parsed("""
func @f: (<4 x f32>, i64) -> <4 x f32> {
'entry(%x: <4 x f32>, %n: i64):
    %r = for 0: i64 upto %n: i64 carrying %x: <4 x f32> {
    'body(%i: i64, %v: <4 x f32>):
        %a = add %v: <4 x f32>, %x: <4 x f32>
        %b = tanh %a: <4 x f32>
        %c = multiply %b: <4 x f32>, 2.0: f32
        yield %c: <4 x f32>
    }
    return %r: <4 x f32>
}
""")
    generate_compute(module)
    fuse(module)
    _, body = bodies_of(module.functions["f"])
    assert [i.op.name for i in body.block.instructions] == ["nest", "yield"]
