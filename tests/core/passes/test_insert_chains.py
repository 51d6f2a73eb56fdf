"""Chains of `insert`: done at once, and what comes out is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import clone_module
from nnkit.core.passes import Expand, apply_pass
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from tests.core.passes.laws import every_opcode

FIELDS = 4
STRUCT = "struct $S { #a0: i64, #a1: i64, #a2: i64, #a3: i64 }"


def program(lines: list[str], result: str, type: str) -> Module:
    """A function of a number and the four of a struct."""
    return parse_module(
        "\n".join([
            'module "m"', STRUCT, f"func @f: (i64, i64, i64, i64, i64) -> {type} {{",
            "'entry(%x: i64, %p0: i64, %p1: i64, %p2: i64, %p3: i64):",
            "%s = literal {#a0 = %p0: i64, #a1 = %p1: i64, #a2 = %p2: i64, #a3 = %p3: i64}: $S",
            *lines, f"return {result}: {type}", "}",
        ])
    )  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> Module:
    """Structs made of each other and looked at, in any order, in bodies too; the last one is returned."""
    lines: list[str] = []
    structs, numbers = ["s"], ["x"]
    for k in range(draw(st.integers(1, 12))):
        struct = draw(st.sampled_from([structs[-1], *structs]))
        field = f"#a{draw(st.integers(0, FIELDS - 1))}"
        match draw(st.integers(0, 5)):
            case 0 | 1 | 2:
                element = draw(st.sampled_from(numbers))
                lines.append(f"%s{k} = insert %{element}: i64 to %{struct}: $S at {field}")
                structs.append(f"s{k}")
            case 3 | 4:
                lines.append(f"%e{k} = extract {field} from %{struct}: $S")
                lines.append(f"%n{k} = add %e{k}: i64, {k}: i64")
                numbers.append(f"n{k}")
            case _:
                lines.append(f"%c{k} = lessThan %{numbers[-1]}: i64, 3: i64")
                lines.append(f"%s{k} = if %c{k}: bool -> $S {{\n'then():")
                lines.append(f"%i{k} = insert 7: i64 to %{struct}: $S at {field}")
                lines.append(f"%j{k} = insert {k}: i64 to %i{k}: $S at #a1")
                lines.append(f"yield %j{k}: $S\n}} else {{\n'else():\nyield %{struct}: $S\n}}")
                structs.append(f"s{k}")
    return program(lines, f"%{structs[-1]}", "$S")


@given(histories(), st.integers(-5, 5))
def test_any_history_has_the_same_end(module: Module, x: int) -> None:
    verify(module)
    expanded = clone_module(module)
    apply_pass(Expand(), expanded)
    verify(expanded)
    assert "insert" not in every_opcode(expanded, "f")
    arguments = (x, 10, 20, 30, 40)
    assert evaluate(expanded, "f", *arguments) == evaluate(module, "f", *arguments)
    assert not apply_pass(Expand(), expanded)


def test_all_fields_in_turn_are_set_once() -> None:
    lines: list[str] = []
    before = "s"
    for k in range(FIELDS):
        lines.append(f"%e{k} = extract #a{k} from %{before}: $S")
        lines.append(f"%n{k} = add %e{k}: i64, %x: i64")
        lines.append(f"%s{k} = insert %n{k}: i64 to %{before}: $S at #a{k}")
        before = f"s{k}"
    module = program(lines, f"%{before}", "$S")
    apply_pass(Expand(), module)
    opcodes = every_opcode(module, "f")
    assert [opcodes.count(name) for name in ("literal", "extract", "add")] == [0, FIELDS, FIELDS]
    assert opcodes.count("aggregate") == 2


def test_what_is_looked_at_as_a_whole_is_made() -> None:
    lines = [
        "%a = insert %x: i64 to %s: $S at #a0",
        "%b = insert %x: i64 to %a: $S at #a1",
        "%c = insert %x: i64 to %b: $S at #a2",
        "%t = literal (%b: $S, %c: $S): ($S, $S)",
    ]
    module = program(lines, "%t", "($S, $S)")
    expected = evaluate(module, "f", 9, 0, 1, 2, 3)
    apply_pass(Expand(), module)
    assert every_opcode(module, "f").count("aggregate") == 3
    assert evaluate(module, "f", 9, 0, 1, 2, 3) == expected
