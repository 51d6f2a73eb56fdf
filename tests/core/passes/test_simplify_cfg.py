"""The graph of blocks, simplified and in canonical form: what is left, and that it means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.analysis import ControlFlow
from nnkit.core.errors import NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.passes.base import Pass, apply_pass
from nnkit.core.passes.canonicalize_cfg import CanonicalizeCFG
from nnkit.core.passes.simplify_cfg import SimplifyCFG
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

PASSES: list[Pass] = [SimplifyCFG(), CanonicalizeCFG()]


def after(a_pass: Pass, text: str) -> Module:
    module = parse_module(f'module "m"\nstage raw\n{text}')
    apply_pass(a_pass, module)
    verify(module)
    printed = print_module(module)
    assert not apply_pass(a_pass, module), printed
    return module


def count(module: Module) -> int:
    body = module.functions["f"].body
    assert body is not None
    return len(body.blocks)


DIAMOND = """
func @f: (bool, f32) -> f32 {
'entry(%c: bool, %x: f32):
    conditional %c: bool then 'a else 'b
'a():
    branch 'join(%x: f32)
'b():
    %n = negate %x: f32
    branch 'join(%n: f32)
'join(%y: f32):
    return %y: f32
}
"""


def test_blocks_that_only_go_on_are_left_out() -> None:
    module = after(SimplifyCFG(), DIAMOND)
    assert count(module) == 3
    assert evaluate(module, "f", True, np.float32(2)) == 2
    assert evaluate(module, "f", False, np.float32(2)) == -2


def test_a_known_choice_leaves_one_block() -> None:
    text = DIAMOND.replace(
        "conditional %c: bool", "%k = literal true: bool\n    conditional %k: bool"
    )
    assert count(after(SimplifyCFG(), text)) == 1


def test_a_known_case_leaves_one_block() -> None:
    module = after(
        SimplifyCFG(),
        """
        enum $E { ?a(f32) ?b(f32, f32) }
        func @f: (f32, f32) -> f32 {
        'entry(%x: f32, %y: f32):
            %e = literal ?b(%x: f32, %y: f32): $E
            branchEnum %e: $E case ?a 'a case ?b 'b
        'a(%u: f32):
            return %u: f32
        'b(%v: f32, %w: f32):
            %z = subtract %v: f32, %w: f32
            return %z: f32
        }""",
    )
    assert count(module) == 1
    assert evaluate(module, "f", np.float32(5), np.float32(3)) == 2


def test_arguments_that_are_always_the_same_are_not_passed() -> None:
    module = after(
        SimplifyCFG(),
        """
        func @f: (i64, i64) -> i64 {
        'entry(%n: i64, %k: i64):
            branch 'head(%n: i64, %k: i64, %k: i64)
        'head(%i: i64, %same: i64, %unused: i64):
            %c = greaterThan %i: i64, 0: i64
            conditional %c: bool then 'body else 'done
        'body():
            %j = subtract %i: i64, %same: i64
            branch 'head(%j: i64, %same: i64, %i: i64)
        'done():
            return %i: i64
        }""",
    )
    function = module.functions["f"]
    assert function.body is not None
    assert len(function.body.blocks[1].arguments) == 1
    assert evaluate(module, "f", 7, 2) == -1


def test_an_infinite_loop_of_empty_blocks_stays() -> None:
    module = after(
        SimplifyCFG(),
        """
        func @f: (bool) -> bool {
        'entry(%c: bool):
            conditional %c: bool then 'a else 'out
        'a():
            branch 'b
        'b():
            branch 'a
        'out():
            return %c: bool
        }""",
    )
    assert not evaluate(module, "f", False)
    with pytest.raises(NNKitError):
        evaluate(module, "f", True, fuel=1000)


def test_the_canonical_form() -> None:
    module = after(
        CanonicalizeCFG(),
        """
        func @f: (i64, bool) -> i64 {
        'entry(%n: i64, %c: bool):
            conditional %c: bool then 'head(%n: i64) else 'out(%n: i64)
        'head(%i: i64):
            %a = greaterThan %i: i64, 100: i64
            conditional %a: bool then 'out(%i: i64) else 'next
        'next():
            %j = add %i: i64, 7: i64
            %b = modulo %j: i64, 2: i64
            %d = equal %b: i64, 0: i64
            conditional %d: bool then 'head(%j: i64) else 'odd
        'odd():
            %k = multiply %j: i64, 3: i64
            %e = greaterThan %k: i64, 50: i64
            conditional %e: bool then 'stop else 'head(%k: i64)
        'stop():
            return %k: i64
        'out(%r: i64):
            return %r: i64
        }""",
    )
    function = module.functions["f"]
    assert function.body is not None
    assert_canonical(ControlFlow(function.body))


def assert_canonical(flow: ControlFlow) -> None:
    blocks = flow.region.blocks
    before = {
        block: [blocks[k] for k in flow.graph.predecessors[n]] for n, block in enumerate(blocks)
    }
    assert sum(not block.terminator.successors for block in blocks) == 1
    for loop in flow.loops.all:
        header, inside = blocks[loop.header], {blocks[k] for k in loop.members()}
        outside = [block for block in before[header] if block not in inside]
        assert len(outside) == 1 and len(outside[0].terminator.successors) == 1
        assert len(loop.latches) == 1
        for block in inside:
            for target in block.terminator.successors:
                assert target in inside or inside.issuperset(before[target])


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """A function whose blocks go anywhere; `%fuel` ends it after some steps, `%x` says which way it went."""
    size = draw(st.integers(1, 7))
    label = st.integers(1, size).map(lambda k: f"'b{k}")
    lines = [
        "func @f: (i64, i64) -> i64 {",
        "'entry(%start: i64, %seed: i64):",
        f"    branch {draw(label)}(%start: i64, %seed: i64)",
    ]
    for k in range(1, size + 1):
        lines += [f"'b{k}(%fuel{k}: i64, %x{k}: i64):"]
        given = f"(%fuel{k}: i64, %x{k}: i64)"
        if draw(st.booleans()):
            lines += [
                f"    %g{k} = subtract %fuel{k}: i64, 1: i64",
                f"    %y{k} = multiply %x{k}: i64, {draw(st.integers(-3, 7))}: i64",
                f"    %z{k} = add %y{k}: i64, {k}: i64",
            ]
            given = f"(%g{k}: i64, %z{k}: i64)"
            lines += [
                f"    %c{k} = lessThan %g{k}: i64, 0: i64",
                f"    conditional %c{k}: bool then 'done{given} else 'on{k}",
                f"'on{k}():",
            ]
        match draw(st.integers(0, 3)):
            case 0:
                lines += [f"    return %x{k}: i64"]
            case 1 if len(given) and "%g" in given:
                lines += [f"    branch {draw(label)}{given}"]
            case 2:
                lines += [
                    f"    %k{k} = literal {draw(st.sampled_from(['true', 'false']))}: bool",
                    f"    conditional %k{k}: bool then 'done{given} else 'done{given}",
                ]
            case _ if "%g" in given:
                lines += [
                    f"    %m{k} = modulo %x{k}: i64, {draw(st.integers(2, 4))}: i64",
                    f"    %d{k} = equal %m{k}: i64, 0: i64",
                    f"    conditional %d{k}: bool then {draw(label)}{given} else {draw(label)}{given}",
                ]
            case _:
                lines += [f"    branch 'done{given}"]
    lines += ["'done(%last: i64, %x: i64):", "    return %x: i64", "}"]
    return "\n".join(lines)


@pytest.mark.parametrize("a_pass", PASSES, ids=lambda p: p.name)
@given(text=graphs(), seed=st.integers(-50, 50))
def test_random_graphs_mean_the_same(a_pass: Pass, text: str, seed: int) -> None:
    before: Any = evaluate(parse_module(f'module "m"\nstage raw\n{text}'), "f", 20, seed)
    module = after(a_pass, text)
    assert evaluate(module, "f", 20, seed) == before
    body = module.functions["f"].body
    assert body is not None
    if isinstance(a_pass, CanonicalizeCFG) and len(body.blocks) > 1:
        flow = ControlFlow(body)
        if not flow.unreachable:
            assert_canonical(flow)
