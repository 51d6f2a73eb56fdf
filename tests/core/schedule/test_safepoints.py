"""Which code polls, and what it pays for."""

from __future__ import annotations

import pytest

from nnkit.core.ir import Instruction
from nnkit.core.ops.structured import For, While
from nnkit.core.schedule.safepoints import LONG, Safepoints
from nnkit.core.schedule.target import Target
from tests.jit.emit.lowering import scheduled_module


def safepoints(text: str) -> tuple[Safepoints, list[Instruction]]:
    """Those of @f, and its instructions."""
    function = scheduled_module(text, target=Target(vector_bytes=32)).functions["f"]
    return Safepoints(function), function.entry.instructions


def loop(bound: str, body: str = "%b = add %a: f32, %x: f32") -> str:
    return f"""
func @f: (i64, f32) -> f32 {{
'entry(%n: i64, %x: f32):
    %r = for 0: i64 upto {bound}: i64 carrying %x: f32 {{
    'body(%i: i64, %a: f32):
        {body}
        yield %b: f32
    }}
    return %r: f32
}}
"""


def add(extent: int) -> str:
    type = f"<{extent} x f32>"
    return f"""
func @f: ({type}) -> {type} {{
'entry(%x: {type}):
    %y = tanh %x: {type}
    return %y: {type}
}}
"""


@pytest.mark.parametrize(("extent", "long"), [(1, False), (10**4, False), (10**8, True)])
def test_a_nest_is_long_by_its_points(extent: int, long: bool) -> None:
    found, instructions = safepoints(add(extent))
    assert found.runs_long is long
    paid = [found.before(instruction) for instruction in instructions]
    assert (max(paid) > LONG) is long
    assert not found.has_long_loops


def test_a_loop_is_long_by_its_iterations_or_because_nobody_knows_them() -> None:
    assert not safepoints(loop("100"))[0].runs_long
    assert safepoints(loop("100000000"))[0].runs_long
    found, instructions = safepoints(loop("%n"))
    assert found.runs_long and found.has_long_loops
    (long,) = (i for i in instructions if isinstance(i.op, For))
    assert found.is_long(long)
    assert found.at_start(long.regions[0].entry) < 20


def test_a_while_is_always_long() -> None:
    text = """
func @f: (f32) -> f32 {
'entry(%x: f32):
    %r = while carrying %x: f32 {
    'condition(%a: f32):
        %c = lessThan %a: f32, 10: f32
        yield %c: bool
    } do {
    'body(%a: f32):
        %b = add %a: f32, 1: f32
        yield %b: f32
    }
    return %r: f32
}
"""
    found, instructions = safepoints(text)
    assert [found.is_long(i) for i in instructions if isinstance(i.op, While)] == [True]


def test_what_is_around_a_long_loop_is_long() -> None:
    inner = """%b = for 0: i64 upto %n: i64 carrying %a: f32 {
        'inside(%j: i64, %c: f32):
            %d = add %c: f32, %x: f32
            yield %d: f32
        }"""
    found, instructions = safepoints(loop("3", inner))
    assert all(found.is_long(i) for i in instructions if isinstance(i.op, For))


def test_many_short_instructions_pay_in_parts() -> None:
    """No stretch of a block is more than LONG without being paid for anew."""
    type, count = "<1000000 x f32>", 30
    lines = [
        f"    %y{n + 1} = dot %y{n}: <700 x 700 x f32>, %x: <700 x 700 x f32>" for n in range(count)
    ]
    type = "<700 x 700 x f32>"
    text = f"""
func @f: ({type}, {type}) -> {type} {{
'entry(%x: {type}, %y0: {type}):
{chr(10).join(lines)}
    return %y{count}: {type}
}}
"""
    found, instructions = safepoints(text)
    paid = [found.before(i) for i in instructions if found.before(i)]
    assert found.runs_long and len(paid) >= count - 1
