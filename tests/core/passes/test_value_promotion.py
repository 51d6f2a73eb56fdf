"""Memory to values: what is promoted, what is not, and that results stay the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.value_promotion import ValuePromotion
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

MEMORY = ("allocateStack", "load", "store")


def promoted(text: str) -> Module:
    module = parse_module(f'module "m"\nstage raw\n{text}')
    assert apply_pass(ValuePromotion(), module)
    verify(module)
    assert not apply_pass(ValuePromotion(), module), print_module(module)
    return module


def opcodes(module: Module) -> list[str]:
    body = module.functions["f"].body
    assert body is not None
    return [i.op.name for i in walk(body)]


def test_a_straight_line() -> None:
    module = promoted("""
    func @f: (i64) -> i64 {
    'entry(%x: i64):
        %p = allocateStack i64 count 1
        %a = load %p: *i64
        store %x: i64 to %p: *i64
        %b = load %p: *i64
        %s = add %a: i64, %b: i64
        store %s: i64 to %p: *i64
        %c = load %p: *i64
        return %c: i64
    }""")
    assert not set(MEMORY) & set(opcodes(module))
    assert evaluate(module, "f", 7) == 7


@pytest.mark.parametrize("flag", [True, False])
def test_a_choice_yields_what_it_stores(flag: bool) -> None:
    module = promoted("""
    func @f: (bool, i64) -> i64 {
    'entry(%c: bool, %x: i64):
        %p = allocateStack i64 count 1
        store %x: i64 to %p: *i64
        if %c: bool {
        'then():
            %y = negate %x: i64
            store %y: i64 to %p: *i64
            yield
        } else {
        'else():
            yield
        }
        %r = load %p: *i64
        return %r: i64
    }""")
    assert not set(MEMORY) & set(opcodes(module))
    assert evaluate(module, "f", flag, 7) == (-7 if flag else 7)


def test_loops_carry_what_they_store() -> None:
    module = promoted("""
    func @f: (i64) -> (i64, <3 x i64>) {
    'entry(%n: i64):
        %sum = allocateStack i64 count 1
        %i = allocateStack i64 count 1
        while {
        'condition():
            %k = load %i: *i64
            %c = lessThan %k: i64, %n: i64
            yield %c: bool
        } do {
        'body():
            %k = load %i: *i64
            %s = load %sum: *i64
            %t = add %s: i64, %k: i64
            store %t: i64 to %sum: *i64
            %j = add %k: i64, 1: i64
            store %j: i64 to %i: *i64
            yield
        }
        %all = for 0: i64 upto 3: i64 stacking <3 x i64> {
        'body(%q: i64):
            %own = allocateStack i64 count 1
            %old = load %own: *i64
            store %q: i64 to %own: *i64
            %s = load %sum: *i64
            %u = add %s: i64, %old: i64
            store %u: i64 to %sum: *i64
            %v = multiply %s: i64, 2: i64
            store %v: i64 to %sum: *i64
            yield %s: i64
        }
        %r = load %sum: *i64
        %both = literal (%r: i64, %all: <3 x i64>): (i64, <3 x i64>)
        return %both: (i64, <3 x i64>)
    }""")
    assert not set(MEMORY) & set(opcodes(module))
    total, stacked = evaluate(module, "f", 5)
    assert total == 80 and stacked.tolist() == [10, 20, 40]


@pytest.mark.parametrize(
    "use",
    [
        "%q = elementPointer %p: *<2 x i64> at 0",
        "%u = apply @g(%p): (*<2 x i64>) -> i64",
        "store %p: *<2 x i64> to %pp: **<2 x i64>",
    ],
)
def test_a_pointer_that_goes_elsewhere_keeps_its_memory(use: str) -> None:
    text = f"""module "m"
    stage raw
    func @g: (*<2 x i64>) -> i64 {{
    'entry(%p: *<2 x i64>):
        %z = literal 0: i64
        return %z: i64
    }}
    func @f: (<2 x i64>, **<2 x i64>) -> <2 x i64> {{
    'entry(%x: <2 x i64>, %pp: **<2 x i64>):
        %p = allocateStack <2 x i64> count 1
        store %x: <2 x i64> to %p: *<2 x i64>
        {use}
        %y = load %p: *<2 x i64>
        return %y: <2 x i64>
    }}"""
    module = parse_module(text)
    assert not apply_pass(ValuePromotion(), module)


@st.composite
def bodies(draw: st.DrawFn, path: str = "") -> list[str]:
    """Statements on the cells %p0 to %p2 and the number %x; `path` makes names that are used once."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, 4))):
        k = f"{path}_{number}"
        cell, other = (f"%p{draw(st.integers(0, 2))}" for _ in range(2))
        match draw(st.integers(0, 4 if len(path) < 6 else 1)):
            case 0:
                lines += [f"store %x: i64 to {cell}: *i64"]
            case 1 | 4:
                lines += [
                    f"%a{k} = load {cell}: *i64",
                    f"%b{k} = load {other}: *i64",
                    f"%c{k} = multiply %a{k}: i64, 3: i64",
                    f"%d{k} = subtract %c{k}: i64, %b{k}: i64",
                    f"%e{k} = add %d{k}: i64, {draw(st.integers(-3, 3))}: i64",
                    f"store %e{k}: i64 to {cell}: *i64",
                ]
            case 2:
                inside, outside = draw(bodies(f"{k}t")), draw(bodies(f"{k}e"))
                lines += [
                    f"%a{k} = load {cell}: *i64",
                    f"%c{k} = greaterThan %a{k}: i64, %x: i64",
                    f"if %c{k}: bool {{", "'t():", *inside, "yield", "} else {", "'e():", *outside, "yield", "}",
                ]  # fmt: skip
            case _:
                trips = draw(st.integers(0, 3))
                lines += [
                    f"for 0: i64 upto {trips}: i64 {{", f"'l(%i{k}: i64):", *draw(bodies(f"{k}l")),
                    "yield", "}",
                ]  # fmt: skip
    return lines


@given(bodies(), st.integers(-9, 9))
def test_random_programs_mean_the_same(lines: list[str], x: int) -> None:
    text = "\n".join(
        [
            'module "m"', "stage raw", "func @f: (i64) -> (i64, i64, i64) {", "'entry(%x: i64):",
            *(f"%p{k} = allocateStack i64 count 1" for k in range(3)), *lines,
            *(f"%r{k} = load %p{k}: *i64" for k in range(3)),
            "%r = literal (%r0: i64, %r1: i64, %r2: i64): (i64, i64, i64)",
            "return %r: (i64, i64, i64)", "}",
        ]
    )  # fmt: skip
    before: Any = evaluate(parse_module(text), "f", x)
    module = parse_module(text)
    apply_pass(ValuePromotion(), module)
    verify(module)
    assert not set(MEMORY) & set(opcodes(module))
    assert [int(v) for v in evaluate(module, "f", x)] == [int(v) for v in before]
