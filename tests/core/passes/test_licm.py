"""Loop-invariant code motion: what moves, what stays, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from nnkit.core.errors import NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk_blocks
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.licm import LoopInvariants
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from tests.programs import Program, describe, programs, same_bits

PROGRAMS = max(150, settings().max_examples // 4)
"""In one of fifty a choice or a loop moves that alone uses a constant from around it."""


def moved(text: str) -> Module:
    """The module after the pass, which a second run leaves alone."""
    module = parse_module(f'module "m"\nstage raw\n{text}')
    assert apply_pass(LoopInvariants(), module)
    verify(module)
    assert not apply_pass(LoopInvariants(), module)
    return module


def left_alone(text: str) -> Module:
    module = parse_module(f'module "m"\nstage raw\n{text}')
    assert not apply_pass(LoopInvariants(), module)
    return module


def opcodes(module: Module, depth: int) -> list[str]:
    """The instructions of block number `depth` of @f, counted inwards."""
    body = module.functions["f"].body
    assert body is not None
    return [i.op.name for i in list(walk_blocks(body))[depth].instructions]


NESTED = """
func @f: (<3 x f32>, f32, i64) -> <3 x f32> {
'entry(%x: <3 x f32>, %s: f32, %n: i64):
    %r = for 0: i64 upto %n: i64 carrying %x: <3 x f32> {
    'body(%i: i64, %v: <3 x f32>):
        %q = for 0: i64 upto %i: i64 carrying %v: <3 x f32> {
        'inner(%j: i64, %w: <3 x f32>):
            %e = exp %s: f32
            %d = square %v: <3 x f32>
            %p = multiply %d: <3 x f32>, %e: f32
            %y = subtract %w: <3 x f32>, %p: <3 x f32>
            yield %y: <3 x f32>
        }
        yield %q: <3 x f32>
    }
    return %r: <3 x f32>
}
"""


def test_what_is_invariant_leaves_each_loop_that_it_can() -> None:
    before = parse_module(f'module "m"\nstage raw\n{NESTED}')
    module = moved(NESTED)
    assert "exp" in opcodes(module, 0)
    assert "square" in opcodes(module, 1) and "multiply" in opcodes(module, 1)
    assert opcodes(module, 2) == ["subtract", "yield"]
    x = np.array([0.1, 0.2, 0.3], np.float32)
    for n in range(4):
        arguments = x, np.float32(-1.0), np.int64(n)
        np.testing.assert_array_equal(
            evaluate(module, "f", *arguments), evaluate(before, "f", *arguments)
        )


def products(carried: str, *body: str) -> str:
    """A loop that carries a matrix through products with x, 30 × 40, and what is made of it."""
    lines = "\n        ".join(body)
    return f"""
func @f: (<30 x 40 x f32>, <{carried} x f32>, i64) -> <{carried} x f32> {{
'entry(%x: <30 x 40 x f32>, %z: <{carried} x f32>, %n: i64):
    %r = for 0: i64 upto %n: i64 carrying %z: <{carried} x f32> {{
    'body(%i: i64, %v: <{carried} x f32>):
        %t = transpose %x: <30 x 40 x f32>
        {lines}
        yield %w: <{carried} x f32>
    }}
    return %r: <{carried} x f32>
}}
"""


def test_a_matrix_that_large_products_read_turned_stays() -> None:
    first = products(
        "30 x 20",
        "%p = dot %t: <40 x 30 x f32>, %v: <30 x 20 x f32>",
        "%w = dot %x: <30 x 40 x f32>, %p: <40 x 20 x f32>",
    )
    left_alone(first)
    second = products(
        "20 x 40",
        "%p = dot %v: <20 x 40 x f32>, %t: <40 x 30 x f32>",
        "%w = dot %p: <20 x 30 x f32>, %x: <30 x 40 x f32>",
    )
    left_alone(second.replace("30 x", "9000 x"))  # which is packed for each product in any case
    small = first.replace("x 20 x", "x 2 x")
    used = first.replace("%p = dot %t", "%e = exp %t: <40 x 30 x f32>\n        %p = dot %e")
    for text in (second, small, used):
        assert "transpose" in opcodes(moved(text), 0)


def test_a_choice_moves_as_a_whole() -> None:
    module = moved("""
    func @f: (f32, bool, i64) -> f32 {
    'entry(%x: f32, %c: bool, %n: i64):
        %r = for 0: i64 upto %n: i64 carrying %x: f32 {
        'body(%i: i64, %v: f32):
            %k = if %c: bool -> f32 {
            'then():
                %e = exp %x: f32
                yield %e: f32
            } else {
            'else():
                yield %x: f32
            }
            %w = add %v: f32, %k: f32
            yield %w: f32
        }
        return %r: f32
    }""")
    assert "if" in opcodes(module, 0)


@pytest.mark.parametrize(
    ("free", "user"),
    [
        (
            "literal 0.5: <30 x 20 x f32>",
            """if %c: bool -> <30 x 20 x f32> {
            'then():
                %e = multiply %z: <30 x 20 x f32>, %free: <30 x 20 x f32>
                yield %e: <30 x 20 x f32>
            } else {
            'else():
                yield %z: <30 x 20 x f32>
            }""",
        ),
        (
            "transpose %x: <30 x 40 x f32>",
            """for 0: i64 upto 2: i64 carrying %z: <30 x 20 x f32> {
            'inner(%j: i64, %u: <30 x 20 x f32>):
                %p = dot %free: <40 x 30 x f32>, %u: <30 x 20 x f32>
                %q = dot %x: <30 x 40 x f32>, %p: <40 x 20 x f32>
                yield %q: <30 x 20 x f32>
            }""",
        ),
    ],
    ids=["constant", "turned matrix"],
)
def test_what_is_free_goes_along_with_a_body_that_uses_it(free: str, user: str) -> None:
    """Though no instruction that stands beside it does."""
    text = f"""
    func @f: (<30 x 40 x f32>, <30 x 20 x f32>, bool, i64) -> <30 x 20 x f32> {{
    'entry(%x: <30 x 40 x f32>, %z: <30 x 20 x f32>, %c: bool, %n: i64):
        %r = for 0: i64 upto %n: i64 carrying %z: <30 x 20 x f32> {{
        'body(%i: i64, %v: <30 x 20 x f32>):
            %free = {free}
            %k = {user}
            %w = add %v: <30 x 20 x f32>, %k: <30 x 20 x f32>
            yield %w: <30 x 20 x f32>
        }}
        return %r: <30 x 20 x f32>
    }}"""
    assert opcodes(moved(text), 1) == ["add", "yield"]


@settings(max_examples=PROGRAMS)
@given(program=programs(control=True))
def test_a_program_stays_valid_and_keeps_every_bit(program: Program) -> None:
    expected = evaluate(program.module, program.entry, *program.arguments)
    apply_pass(LoopInvariants(), program.module)
    verify(program.module)
    actual = evaluate(program.module, program.entry, *program.arguments)
    assert same_bits(actual, expected), f"became\n{describe(program.module)}"


def looping(bound: str, inside: str = "%k = negate %x: f32") -> str:
    """%k by a loop."""
    depth = inside.count("for")
    return f"""%k = for 0: i64 upto {bound} carrying %x: f32 {{
        'inner{depth}(%j{depth}: i64, %u{depth}: f32):
            {inside}
            yield %k: f32
        }}"""


def stacking(count: int) -> str:
    """%k by a loop of three rounds that stacks so many elements."""
    return f"""%s = for 0: i64 upto 3: i64 stacking <{count} x f32> {{
        'inner(%j: i64):
            yield %x: f32
        }}
        %k = reduce %s: <{count} x f32> by add along 0"""


@pytest.mark.parametrize(
    "invariant",
    [
        "%k = gather %t: <3 x f32> at %at: i64 along 0",  # may be out of range
        "%k = load %p: *f32",  # reads what may change
        "%k = random scalar from 0.0: f32 upto 1.0: f32",  # another one each time
        "%k = apply @g(%x): (f32) -> f32",  # may not end
        looping("%at: i64"),  # may take long
        looping("9000000000000: i64"),  # does take long
        looping("9000000: i64", looping("9000000: i64")),
        stacking(5),  # the wrong number of rounds
    ],
    ids=lambda text: " ".join(text.split()[2:7]),
)
def test_what_may_fail_or_has_an_effect_stays(invariant: str) -> None:
    text = f"""
    func @g: (f32) -> f32 {{
    'entry(%x: f32):
        return %x: f32
    }}
    func @f: (f32, <3 x f32>, i64, i64) -> f32 {{
    'entry(%x: f32, %t: <3 x f32>, %at: i64, %n: i64):
        %p = allocateStack f32 count 1
        store %x: f32 to %p: *f32
        %r = for 0: i64 upto %n: i64 carrying %x: f32 {{
        'body(%i: i64, %v: f32):
            {invariant}
            %w = add %v: f32, %k: f32
            yield %w: f32
        }}
        return %r: f32
    }}"""
    module = parse_module(f'module "m"\nstage raw\n{text}')
    apply_pass(LoopInvariants(), module)
    assert invariant.split()[2] in opcodes(module, 1)
    # with an index that is out of range, a loop that does not run is no error
    assert evaluate(module, "f", np.float32(1.0), np.zeros(3, np.float32), 99, 0) == 1.0


@pytest.mark.parametrize(
    ("rounds", "invariant"),
    [
        ("%n: i64", looping("100: i64")),
        ("%n: i64", looping("100: i64", looping("100: i64"))),
        ("%n: i64", stacking(3)),
        ("1: i64", looping("9000000: i64")),
        ("1: i64", looping("%n: i64")),
    ],
)
def test_a_loop_that_is_short_or_needed_moves(rounds: str, invariant: str) -> None:
    module = moved(f"""
    func @f: (f32, i64) -> f32 {{
    'entry(%x: f32, %n: i64):
        %r = for 0: i64 upto {rounds} carrying %x: f32 {{
        'body(%i: i64, %v: f32):
            {invariant}
            %w = add %v: f32, %k: f32
            yield %w: f32
        }}
        return %r: f32
    }}""")
    assert opcodes(module, 1) == ["add", "yield"]


def test_an_index_that_fails_still_fails_in_the_loop() -> None:
    text = """
    func @f: (<3 x f32>, i64) -> f32 {
    'entry(%t: <3 x f32>, %n: i64):
        %r = for 0: i64 upto %n: i64 carrying 0.0: f32 {
        'body(%i: i64, %v: f32):
            %k = gather %t: <3 x f32> at %n: i64 along 0
            yield %k: f32
        }
        return %r: f32
    }"""
    module = parse_module(f'module "m"\nstage raw\n{text}')
    apply_pass(LoopInvariants(), module)
    with pytest.raises(NNKitError):
        evaluate(module, "f", np.zeros(3, np.float32), 9)
