"""Constant propagation: what holds on every way that is taken, and nothing more."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.passes import Structurize, apply_pass
from nnkit.core.passes.constant_propagation import ConstantPropagation
from nnkit.core.text import print_module
from nnkit.core.verify import verify
from tests.core.passes.laws import every_opcode, parsed
from tests.patience import PATIENCE
from tests.test_scaling import calls_of


def propagated(text: str, *entries: str) -> Module:
    """The module afterwards: valid, and done after one run."""
    module = parsed(text)
    verify(module)
    apply_pass(ConstantPropagation(entries), module)
    verify(module)
    once = print_module(module)
    assert not apply_pass(ConstantPropagation(entries), module)
    assert print_module(module) == once
    return module


LOOP = """
func @f: (i64) -> i64 {
'entry(%n: i64):
    branch 'head(1: i64, 0: i64)
'head(%x: i64, %i: i64):
    %more = lessThan %i: i64, %n: i64
    conditional %more: bool then 'body() else 'out()
'body():
    %eq = equal %x: i64, 1: i64
    conditional %eq: bool then 'a() else 'b()
'a():
    branch 'latch(%x: i64)
'b():
    branch 'latch(2: i64)
'latch(%y: i64):
    %j = add %i: i64, 1: i64
    branch 'head(%y: i64, %j: i64)
'out():
    %r = add %x: i64, 41: i64
    return %r: i64
}
"""


def test_a_loop_that_keeps_a_constant_is_seen_through() -> None:
    """The example of the paper: each part looked at alone knows nothing."""
    module = propagated(LOOP)
    names = every_opcode(module, "f")
    assert names.count("equal") == 0
    assert names.count("conditional") == 1
    assert names.count("add") == 1
    assert evaluate(module, "f", 5) == 42


def test_a_second_constant_on_a_way_that_is_taken_ends_it() -> None:
    module = propagated(LOOP.replace("equal %x: i64, 1: i64", "equal %i: i64, 1: i64"))
    assert every_opcode(module, "f").count("conditional") == 2
    assert evaluate(module, "f", 1) == 43


def structured(condition: str, other: str = "7: i64") -> str:
    return f"""
func @f: (i64) -> i64 {{
'entry(%n: i64):
    %k, %x = while carrying 0: i64, 1: i64 {{
    'c(%i: i64, %u: i64):
        %more = lessThan %i: i64, %n: i64
        yield %more: bool
    }} do {{
    'b(%i: i64, %v: i64):
        %eq = equal {condition}: i64, 1: i64
        %y = if %eq: bool -> i64 {{
        't():
            yield %v: i64
        }} else {{
        'e():
            yield {other}
        }}
        %j = add %i: i64, 1: i64
        yield %j: i64, %y: i64
    }}
    %r = add %x: i64, 41: i64
    return %r: i64
}}
"""


def test_what_structured_loops_carry() -> None:
    module = propagated(structured("%v"))
    names = every_opcode(module, "f")
    assert "if" not in names
    assert "equal" not in names
    assert evaluate(module, "f", 4) == 42


def test_what_structured_loops_change_stays() -> None:
    module = propagated(structured("%i"))
    assert every_opcode(module, "f").count("if") == 1
    assert evaluate(module, "f", 1) == 48


@pytest.mark.parametrize(
    ("bounds", "argument"),
    [
        ("0: i64 upto 0: i64", 9),
        ("3: i64 upto 4: i64", 9),
        ("0: i64 upto 3: i64", 9),
        ("0: i64 upto %n: i64", 0),
        ("0: i64 upto %n: i64", 2),
        ("%n: i64 upto 4: i64", 3),
    ],
)
def test_how_often_a_loop_runs(bounds: str, argument: int) -> None:
    text = f"""
func @f: (i64) -> i64 {{
'entry(%n: i64):
    %c = greaterThan %n: i64, 2: i64
    %x = for {bounds} carrying 5: i64 {{
    'b(%i: i64, %v: i64):
        %w = max %i: i64, 2: i64
        %y = add %w: i64, 5: i64
        %z = min %y: i64, 8: i64
        %s = select %z: i64, 6: i64 by %c: bool
        yield %s: i64
    }}
    return %x: i64
}}
"""
    before = evaluate(parsed(text), "f", argument)
    module = propagated(text)
    assert evaluate(module, "f", argument) == before
    if bounds.startswith("0: i64 upto 0"):
        assert "for" not in every_opcode(module, "f")
    if bounds.startswith("3: i64 upto 4"):
        # the one index is known
        assert not {"max", "add", "min"}.intersection(every_opcode(module, "f"))


def test_the_result_of_a_loop_that_certainly_runs_is_what_it_yields() -> None:
    text = """
func @f: (i64) -> (i64, i64) {
'entry(%n: i64):
    %x = for 0: i64 upto 2: i64 carrying 5: i64 {
    'b(%i: i64, %v: i64):
        yield 6: i64
    }
    %y = for 0: i64 upto %n: i64 carrying 5: i64 {
    'b(%i: i64, %v: i64):
        yield 6: i64
    }
    %a = negate %x: i64
    %b = negate %y: i64
    %r = literal (%a: i64, %b: i64): (i64, i64)
    return %r: (i64, i64)
}
"""
    module = propagated(text)
    assert every_opcode(module, "f").count("negate") == 1
    assert evaluate(module, "f", 0) == (-6, -5)
    assert evaluate(module, "f", 1) == (-6, -6)


CASES = """
enum $E {
    ?none()
    ?some(i64)
}
func @f: (i64) -> i64 {
'entry(%n: i64):
    %e = literal ?some(4: i64): $E
    %m = literal ?none(): $E
    branchEnum %e: $E case ?none 'a case ?some 'b
'a():
    return %n: i64
'b(%x: i64):
    %y = multiply %x: i64, 2: i64
    branch 'c(%m: $E, %y: i64)
'c(%k: $E, %z: i64):
    branchEnum %k: $E case ?none 'd case ?some 'e
'd():
    return %z: i64
'e(%w: i64):
    return %w: i64
}
"""


def test_cases_of_enums() -> None:
    module = propagated(CASES)
    names = every_opcode(module, "f")
    assert "branchEnum" not in names
    assert "multiply" not in names
    assert evaluate(module, "f", 0) == 8


def test_an_enum_of_one_case_that_is_not_known_stays() -> None:
    text = """
enum $E {
    ?one(i64)
}
func @f: ($E) -> i64 {
'entry(%e: $E):
    branchEnum %e: $E case ?one 'a
'a(%x: i64):
    return %x: i64
}
"""
    assert "branchEnum" in every_opcode(propagated(text), "f")


CALLS = """
func @inner: (i64, i64) -> i64 {
'entry(%a: i64, %b: i64):
    %u = add %a: i64, %a: i64
    %v = add %u: i64, %b: i64
    return %v: i64
}
func @middle: (i64, i64) -> i64 {
'entry(%c: i64, %d: i64):
    %e = negate %c: i64
    %r = apply @inner(%e, %d): (i64, i64) -> i64
    return %r: i64
}
func @main: (i64) -> i64 {
'entry(%n: i64):
    %one = literal 1: i64
    %p = apply @middle(%one, %n): (i64, i64) -> i64
    %q = apply @middle(%one, %p): (i64, i64) -> i64
    return %q: i64
}
"""


def test_arguments_that_are_the_same_at_every_call() -> None:
    module = propagated(CALLS, "main")
    assert "negate" not in every_opcode(module, "middle")
    assert every_opcode(module, "inner").count("add") == 1
    assert evaluate(module, "main", 10) == 6


@pytest.mark.parametrize(
    ("entries", "more"),
    [
        ((), ""),
        (("main", "middle", "inner"), ""),
        (("main",), "[gradient @middle]\nfunc @grad: (i64, i64) -> (i64, i64)"),
        (
            ("main", "other"),
            "func @other: (i64) -> i64 {\n'entry(%x: i64):\n"
            "%r = apply @middle(%x, %x): (i64, i64) -> i64\nreturn %r: i64\n}",
        ),
        (
            ("main",),
            "func @other: () -> ((i64, i64) -> i64) {\n'entry():\n"
            "%r = literal @middle: (i64, i64) -> i64\nreturn %r: (i64, i64) -> i64\n}",
        ),
    ],
    ids=["no entries", "an entry", "a primal", "another call", "a value"],
)
def test_parameters_that_others_may_give(entries: tuple[str, ...], more: str) -> None:
    module = parsed(CALLS + more)
    apply_pass(ConstantPropagation(entries), module)
    assert "negate" in every_opcode(module, "middle")


def test_a_recursive_function_is_called_with_other_arguments() -> None:
    text = """
func @down: (i64, i64) -> i64 {
'entry(%n: i64, %k: i64):
    %done = lessThan %n: i64, 1: i64
    %r = if %done: bool -> i64 {
    't():
        yield %k: i64
    } else {
    'e():
        %m = subtract %n: i64, 1: i64
        %l = add %k: i64, 1: i64
        %s = apply @down(%m, %l): (i64, i64) -> i64
        yield %s: i64
    }
    return %r: i64
}
func @main: (i64) -> i64 {
'entry(%n: i64):
    %a = literal 3: i64
    %b = literal 1: i64
    %r = apply @down(%a, %b): (i64, i64) -> i64
    return %r: i64
}
"""
    assert evaluate(propagated(text, "main"), "main", 0) == 4


def test_what_may_fail_or_has_effects_stays() -> None:
    text = """
var @v: i64
func @f: (<3 x i64>) -> i64 {
'entry(%t: <3 x i64>):
    %i = literal 7: i64
    %l = literal <1, 2, 3>: <3 x i64>
    %x = gather %l: <3 x i64> at %i: i64 along 0 bounds check
    %p = literal @v: *i64
    store %i: i64 to %p: *i64
    %y = load %p: *i64
    %z = add %x: i64, %y: i64
    return %z: i64
}
"""
    names = every_opcode(propagated(text), "f")
    assert {"gather", "store", "load", "add"} <= set(names)


@pytest.mark.parametrize(("extent", "left"), [(64, 0), (10_000, 1)])
def test_large_constants_are_not_made(extent: int, left: int) -> None:
    module = propagated(f"""
func @f: (bool) -> <{extent} x i64> {{
'entry(%c: bool):
    %a = literal 5: <{extent} x i64>
    %y = scan %a: <{extent} x i64> by add along 0
    return %y: <{extent} x i64>
}}
""")
    assert every_opcode(module, "f").count("scan") == left


@pytest.mark.parametrize(
    "text",
    [
        "func @f: (i64) -> i64 {\n'entry(%n: i64):\n branch 'a(1: i64)\n'a(%x: i64):\n branch 'a(%x: i64)\n}",
        """func @f: (bool) -> i64 {
'entry(%c: bool):
    %t = literal true: bool
    while {
    'c():
        yield %t: bool
    } do {
    'b():
        yield
    }
    %k = while carrying 0: i64 {
    'c(%i: i64):
        yield %t: bool
    } do {
    'b(%i: i64):
        %j = add %i: i64, 1: i64
        yield %j: i64
    }
    %more = lessThan %k: i64, 3: i64
    conditional %more: bool then 'a() else 'b()
'a():
    return %k: i64
'b():
    %m = negate %k: i64
    return %m: i64
}""",
    ],
    ids=["a block", "while true"],
)
def test_what_comes_after_an_infinite_loop_is_left_alone(text: str) -> None:
    propagated(text)


def test_an_irreducible_cycle() -> None:
    text = """
func @f: (bool, i64) -> i64 {
'entry(%c: bool, %n: i64):
    conditional %c: bool then 'a(1: i64, 0: i64) else 'b(1: i64, 0: i64)
'a(%x: i64, %i: i64):
    %u = multiply %x: i64, %x: i64
    %j = add %i: i64, 1: i64
    %more = lessThan %j: i64, %n: i64
    conditional %more: bool then 'b(%u: i64, %j: i64) else 'out(%u: i64)
'b(%y: i64, %k: i64):
    %v = multiply %y: i64, %y: i64
    %l = add %k: i64, 1: i64
    %less = lessThan %l: i64, %n: i64
    conditional %less: bool then 'a(%v: i64, %l: i64) else 'out(%v: i64)
'out(%z: i64):
    return %z: i64
}
"""
    module = propagated(text)
    assert "multiply" not in every_opcode(module, "f")
    assert evaluate(module, "f", True, 5) == 1


def test_many_blocks_and_arguments_take_no_long_time() -> None:
    """A chain of loops that all pass the same constants: near-linear."""
    width, count = 30, 300
    names = [f"%x{k}" for k in range(width)]
    lines = ["func @f: (i64) -> i64 {", "'entry(%n: i64):"]
    lines.append(f"    branch 'h0(0: i64, {', '.join(f'{k}: i64' for k in range(width))})")
    for block in range(count):
        arguments = ", ".join(f"{x}_{block}: i64" for x in names)
        lines += [
            f"'h{block}(%i{block}: i64, {arguments}):",
            f"    %j{block} = add %i{block}: i64, 1: i64",
            f"    %c{block} = lessThan %j{block}: i64, %n: i64",
            f"    conditional %c{block}: bool then 'h{block}(%j{block}: i64, {arguments}) "
            f"else 'h{block + 1}(0: i64, {arguments})",
        ]
    arguments = ", ".join(f"{x}_{count}: i64" for x in names)
    lines += [f"'h{count}(%i{count}: i64, {arguments}):", f"    return %x7_{count}: i64", "}"]
    module = parsed("\n".join(lines))
    start = time.perf_counter()
    apply_pass(ConstantPropagation(), module)
    assert time.perf_counter() - start < 2 * PATIENCE
    assert evaluate(module, "f", 1) == 7


def ring(count: int) -> str:
    """Blocks in a ring that is entered at two of them; each goes on in either direction."""
    head = "func @f: (i64, bool) -> i64 {\n'entry(%n: i64, %c: bool):\n"
    lines = [f"{head}conditional %c: bool then 'b0(%n: i64) else 'b{count // 2}(%n: i64)"]
    for k in range(count):
        after, before = f"b{(k + 1) % count}", f"b{k - 1}" if k else "out"
        lines += [
            f"'b{k}(%x{k}: i64): %y{k} = add %x{k}: i64, 1: i64",
            f"%t{k} = lessThan %y{k}: i64, {k}: i64",
            f"conditional %t{k}: bool then '{after}(%y{k}: i64) else '{before}(%y{k}: i64)",
        ]
    return "\n".join([*lines, "'out(%r: i64): return %r: i64 }"])


def wide_loops(depth: int) -> str:
    """Loops inside each other that all carry as many values, of which the innermost moves each by one place."""

    def row(name: str) -> list[str]:
        return [f"%{name}_{k}: i64" for k in range(depth)]

    lines = ["func @f: (bool) -> i64 {\n'entry(%c: bool):"]
    given = ["0: i64"] * depth
    for k in range(depth):
        results = ", ".join(x.partition(":")[0] for x in row(f"r{k}"))
        lines.append(f"{results} = while carrying {', '.join(given)} {{")
        lines.append(f"'c({', '.join(row(f'c{k}'))}): yield %c: bool }} do {{")
        given = row(f"b{k}")
        lines.append(f"'b({', '.join(given)}):")
    lines.append(f"%next = add {given[0]}, 1: i64")
    lines.append(f"yield {', '.join(['%next: i64', *given[:-1]])} }}")
    lines += [f"yield {', '.join(row(f'r{k}'))} }}" for k in range(depth - 1, 0, -1)]
    return "\n".join([*lines, "return %r0_0: i64 }"])


@pytest.mark.parametrize(("program", "count"), [(ring, 60), (wide_loops, 10)])
def test_calls_grow_as_operands_do(program: Callable[[int], str], count: int) -> None:
    """However many values loops carry together, and however deep they lie in each other."""
    found: list[tuple[int, int]] = []
    for size in (count, 4 * count):
        module = parsed(program(size))
        apply_pass(Structurize(), module)
        body = module.functions["f"].body
        assert body is not None
        operands = sum(1 + len(instruction.operands) for instruction in walk(body))
        found.append((operands, calls_of(apply_pass, ConstantPropagation(), module)))
    (few, quick), (many, slow) = found
    assert slow / quick < 1.2 * many / few
