"""Memory of bodies: frames, what is carried, and what is written where it belongs at once."""

from __future__ import annotations

import pytest

from nnkit.core.compute.bodies import Body, bodies_of
from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import HEADER_BYTES, Function, Instruction, Module, Stage
from nnkit.core.ir.placement import Place, arena, output, register
from nnkit.core.ops.flows import Structured
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.isolate import Isolate
from nnkit.core.schedule.arena import aligned
from nnkit.core.schedule.plan import arena_bytes, block_bytes, schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module
from nnkit.core.verify import verify

T = "<100 x f32>"


def scheduled(body: str, *, parameters: str = f"%n: i64, %x: {T}, %w: {T}") -> Function:
    """The function of the parameters and these instructions, at the end of stage schedule."""
    types = ", ".join(part.split(": ")[1] for part in parameters.split(", "))
    text = f"""module "m"
stage raw
func @f: ({types}) -> {T} {{
'entry({parameters}):
{body}
    return %r: {T}
}}
"""
    module: Module = parse_module(text)
    module.stage = Stage.OPTIMIZABLE
    apply_pass(Isolate(), module)
    generate_compute(module)
    fuse(module)
    schedule(module, Target())
    verify(module)
    return module.functions["f"]


def made(body: Body) -> list[Place]:
    """Where the results of the instructions of a body lie, in order."""
    return [place for i in body.block.instructions for place in i.placement.results]


def loop(inside: str, *, first: str = "%x") -> str:
    return f"""
    %r = for 0: i64 upto %n: i64 carrying {first}: {T} {{
    'body(%i: i64, %v: {T}):
{inside}
    }}"""


def test_an_accumulator_is_written_over_itself() -> None:
    function = scheduled(loop(f"%s = add %v: {T}, %w: {T}\nyield %s: {T}"))
    entry, body = bodies_of(function)
    assert made(entry) == [output(0)] and made(body) == [output(0)]
    assert arena_bytes(function) == HEADER_BYTES


def test_the_first_value_of_a_loop_lies_where_the_loop_has_it() -> None:
    function = scheduled(
        f"%y = add %x: {T}, %w: {T}" + loop(f"%s = add %v: {T}, %w: {T}\nyield %s: {T}", first="%y")
    )
    assert made(bodies_of(function)[0]) == [output(0), output(0)]


def test_what_others_still_read_is_copied_at_the_end() -> None:
    function = scheduled(loop(f"%s = reverse %v: {T} along 0\nyield %s: {T}"))
    entry, body = bodies_of(function)
    assert made(body) == [arena(0)]
    (instruction,) = (i for i in entry.block.instructions if isinstance(i.op, Structured))
    assert instruction.placement.frame == HEADER_BYTES
    assert arena_bytes(function) == HEADER_BYTES + aligned(400)


def test_a_conditional_update_happens_in_place() -> None:
    function = scheduled(
        loop(f"""
        %c = equal %i: i64, 2: i64
        %u = if %c: bool -> {T} {{
        't():
            %s = add %v: {T}, %w: {T}
            yield %s: {T}
        }} else {{
        'e():
            yield %v: {T}
        }}
        yield %u: {T}""")
    )
    entry, body, then, otherwise = bodies_of(function)
    assert made(entry) == made(then) == [output(0)] and made(otherwise) == []
    assert made(body) == [register(0), output(0)]
    assert arena_bytes(function) == HEADER_BYTES


def test_a_stacked_element_is_written_to_its_row() -> None:
    rows = "<7 x 100 x f32>"
    function = scheduled(f"""
    %k, %all = for 0: i64 upto 7: i64 carrying %x: {T} stacking {rows} {{
    'body(%i: i64, %v: {T}):
        %e = tanh %v: {T}
        %s = add %v: {T}, %w: {T}
        yield %s: {T}, %e: {T}
    }}
    %r = reduce %all: {rows} by add along 0""")
    _, body = bodies_of(function)
    assert sorted(made(body), key=lambda place: place.offset) == [output(0), output(1)]


def test_bodies_of_an_if_share_a_frame_that_is_free_afterwards() -> None:
    function = scheduled(f"""
    %big = tanh %w: {T}
    %c = equal %n: i64, 2: i64
    %u = if %c: bool -> {T} {{
    't():
        %s = tanh %x: {T}
        %a = scan %s: {T} by add along 0
        %t = multiply %a: {T}, %s: {T}
        yield %t: {T}
    }} else {{
    'e():
        %s = exp %x: {T}
        %a = scan %s: {T} by max along 0
        %t = multiply %a: {T}, %s: {T}
        yield %t: {T}
    }}
    %v = scan %u: {T} by add along 0
    %r = add %v: {T}, %big: {T}""")
    entry, then, otherwise = bodies_of(function)
    assert made(then)[0] == made(otherwise)[0] == arena(0)
    assert block_bytes(then.block, {}) == block_bytes(otherwise.block, {}) == aligned(400)
    # the frame, what the if makes, and perhaps one more
    assert arena_bytes(function) <= HEADER_BYTES + 3 * aligned(400)
    assert made(entry)


def frames_of(function: Function) -> list[tuple[Instruction, int]]:
    return [
        (i, i.placement.frame)
        for body in bodies_of(function)
        for i in body.block.instructions
        if isinstance(i.op, Structured)
    ]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_frames_lie_inside_of_each_other(depth: int) -> None:
    text = f"%s{depth} = reverse %v{depth}: {T} along 0"
    for level in reversed(range(depth)):
        text = f"""
        %t{level} = for 0: i64 upto %n: i64 carrying %v{level}: {T} {{
        'body(%i{level}: i64, %v{level + 1}: {T}):
        {text}
        yield %s{level + 1}: {T}
        }}
        %s{level} = reverse %t{level}: {T} along 0"""
    function = scheduled(f"%v0 = add %x: {T}, %w: {T}\n{text}\n%r = add %s0: {T}, %w: {T}")
    frames = frames_of(function)
    assert len(frames) == depth and all(frame % 64 == 0 for _, frame in frames)
    assert arena_bytes(function) <= HEADER_BYTES + (depth + 2) * aligned(400)


def test_scalars_are_variables_only_where_there_is_control_flow() -> None:
    straight = f"%s = reduce %x: {T} by add along 0\n%r = multiply %w: {T}, %s: f32"
    assert made(bodies_of(scheduled(straight))[0])[0] == arena(HEADER_BYTES)
    bent = scheduled(straight.replace("%r", "%x2") + loop(f"yield %v: {T}", first="%x2"))
    assert made(bodies_of(bent)[0])[0] == register(0)
