"""Redundant loads: which are known, which may have changed, and that results stay the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.redundant_loads import RedundantLoads
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

HEAD = """module "m"
stage raw
struct $P { #a: i64, #b: <3 x i64> }
var @g: i64
func @touch: (i64) -> i64 {
'entry(%x: i64):
    %p = literal @g: *i64
    store %x: i64 to %p: *i64
    return %x: i64
}
"""


def loads(body: str) -> tuple[Module, int]:
    """The module of `@f(%x: i64, %q: *i64)` with `body`, and how many loads are left."""
    lines = f"{HEAD}func @f: (i64, *i64) -> i64 {{\n'entry(%x: i64, %q: *i64):\n{body}\n}}"
    module = parse_module(lines)
    apply_pass(RedundantLoads(), module)
    verify(module)
    assert not apply_pass(RedundantLoads(), module), print_module(module)
    region = module.functions["f"].body
    assert region is not None
    return module, sum(i.op.name == "load" for i in walk(region))


STORED = """
    %p = allocateStack i64 count 1
    store %x: i64 to %p: *i64
    {}
    %a = load %p: *i64
    return %a: i64"""


@pytest.mark.parametrize(
    ("between", "left"),
    [
        ("", 0),
        # a stranger's pointer cannot lead to memory that nobody else knows
        ("store %x: i64 to %q: *i64", 0),
        ("%t = apply @touch(%x): (i64) -> i64", 0),
        ("%o = allocateStack i64 count 1\n store %x: i64 to %o: *i64", 0),
        ("%g = literal @g: *i64\n store %x: i64 to %g: *i64", 0),
        ("%n = negate %x: i64\n store %n: i64 to %p: *i64", 0),
        ("for 0: i64 upto 2: i64 {\n'b(%i: i64):\n store %i: i64 to %p: *i64\n yield\n }", 1),
        ("%c = literal 1: i64\n copy from %q: *i64 to %p: *i64 count %c: i64", 1),
        ("%pp = allocateStack *i64 count 1\n store %p: *i64 to %pp: **i64\n store %x: i64 to %q: *i64", 1),
    ],
)  # fmt: skip
def test_what_is_stored_is_known_until_it_may_have_changed(between: str, left: int) -> None:
    assert loads(STORED.format(between))[1] == left


def test_different_elements_do_not_disturb_each_other() -> None:
    module, left = loads("""
        %p = allocateStack $P count 1
        %a = elementPointer %p: *$P at #a
        %b0 = elementPointer %p: *$P at #b, 0
        %b1 = elementPointer %p: *$P at #b, 1
        %bi = elementPointer %p: *$P at #b, %x: i64
        store %x: i64 to %a: *i64
        store %x: i64 to %b0: *i64
        %u = load %a: *i64
        %n = negate %x: i64
        store %n: i64 to %b1: *i64
        %v = load %b0: *i64
        store %n: i64 to %bi: *i64
        %w = load %a: *i64
        %y = load %b0: *i64
        %s = add %u: i64, %v: i64
        %t = add %w: i64, %y: i64
        %r = multiply %s: i64, %t: i64
        return %r: i64""")
    assert left == 1
    assert evaluate(module, "f", 0, None) == 0


def test_neighbours_by_offset() -> None:
    _, left = loads("""
        %p = allocateStack i64 count 4
        %o = offset %p: *i64 by 1: i64
        %t = offset %o: *i64 by 1: i64
        %u = offset %p: *i64 by 2: i64
        %v = offset %p: *i64 by %x: i64
        store %x: i64 to %t: *i64
        store %x: i64 to %p: *i64
        %a = load %u: *i64
        store %x: i64 to %v: *i64
        %b = load %u: *i64
        %s = add %a: i64, %b: i64
        return %s: i64""")
    assert left == 1


def test_copying_changes_what_lies_behind_the_first_place() -> None:
    _, left = loads("""
        %p = allocateStack i64 count 4
        %o = offset %p: *i64 by 1: i64
        store %x: i64 to %o: *i64
        %c = literal 1: i64
        copy from %p: *i64 to %o: *i64 count %c: i64
        %a = load %o: *i64
        return %a: i64""")
    assert left == 1


def test_memory_that_is_given_back_is_not_known_any_more() -> None:
    module, left = loads("""
        %p = allocateHeap i64 count 1: i64
        store %x: i64 to %p: *i64
        deallocate %p: *i64
        %a = load %p: *i64
        return %a: i64""")
    assert left == 1
    with pytest.raises(TrapError):
        evaluate(module, "f", 1, None)


@st.composite
def statements(draw: st.DrawFn, path: str = "") -> list[str]:
    """Loads and stores through pointers that may or may not be the same."""
    lines: list[str] = []
    pointer = st.sampled_from(["%p", "%o", "%e0", "%e1", "%ei", "%g", "%q"])
    for number in range(draw(st.integers(1, 6))):
        k = f"{path}_{number}"
        match draw(st.integers(0, 5 if len(path) < 4 else 3)):
            case 0 | 1:
                lines += [
                    f"%a{k} = load {draw(pointer)}: *i64",
                    f"%b{k} = load {draw(pointer)}: *i64",
                    f"%c{k} = multiply %a{k}: i64, 5: i64",
                    f"%d{k} = add %c{k}: i64, %b{k}: i64",
                    f"store %d{k}: i64 to {draw(pointer)}: *i64",
                ]
            case 2:
                lines += [f"store {draw(st.integers(-9, 9))}: i64 to {draw(pointer)}: *i64"]
            case 3:
                lines += [
                    f"%a{k} = load {draw(pointer)}: *i64",
                    f"%t{k} = apply @touch(%a{k}): (i64) -> i64",
                ]
            case 4:
                inside, outside = draw(statements(f"{k}t")), draw(statements(f"{k}e"))
                lines += [
                    f"%a{k} = load {draw(pointer)}: *i64",
                    f"%c{k} = greaterThan %a{k}: i64, 0: i64",
                    f"if %c{k}: bool {{", "'t():", *inside, "yield", "} else {", "'e():", *outside, "yield", "}",
                ]  # fmt: skip
            case _:
                lines += [
                    "for 0: i64 upto 2: i64 {", f"'l(%i{k}: i64):", *draw(statements(f"{k}l")), "yield", "}",
                ]  # fmt: skip
    return lines


@given(statements(), st.integers(0, 2), st.booleans())
def test_random_programs_mean_the_same(lines: list[str], x: int, escapes: bool) -> None:
    body = "\n".join(
        [
            "%p = allocateStack i64 count 1",
            "%t = allocateStack <3 x i64> count 1",
            "%e0 = elementPointer %t: *<3 x i64> at 0",
            "%e1 = elementPointer %t: *<3 x i64> at 1",
            "%ei = elementPointer %t: *<3 x i64> at %x: i64",
            "%g = literal @g: *i64",
            "%o = offset %g: *i64 by 0: i64",
            "%pp = allocateStack *i64 count 1",
            f"store {'%p' if escapes else '%g'}: *i64 to %pp: **i64",
            "%q = load %pp: **i64",
            *lines,
            "%r0 = load %p: *i64", "%r1 = load %t: *<3 x i64>", "%r2 = load %g: *i64",
            "%r = literal (%r0: i64, %r1: <3 x i64>, %r2: i64): (i64, <3 x i64>, i64)",
            "return %r: (i64, <3 x i64>, i64)", "}",
        ]
    )  # fmt: skip
    text = f"{HEAD}func @f: (i64) -> (i64, <3 x i64>, i64) {{\n'entry(%x: i64):\n{body}"
    before: Any = evaluate(parse_module(text), "f", x)
    module = parse_module(text)
    apply_pass(RedundantLoads(), module)
    verify(module)
    after = evaluate(module, "f", x)
    assert [v.tolist() for v in after] == [v.tolist() for v in before]
