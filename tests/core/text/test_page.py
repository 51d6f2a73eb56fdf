"""`docs/ir.md`: every production is defined, has an example, and says what the parser says."""

from __future__ import annotations

import importlib
import re

import pytest
from hypothesis import given, settings

from nnkit.core.ir import Op
from nnkit.core.text import parse_module, print_module
from nnkit.core.text.attributes import NOTATIONS, parse_attribute
from nnkit.core.text.cursor import Cursor
from nnkit.core.text.operations import OPS
from nnkit.core.verify import verify
from tests.programs import Program, programs
from tests.rows import each

from .grammar import KINDS, PAGE, RULES, names_in, productions, recognizes, rule_of, symbols_in
from .texts import TEXTS

TERMINALS = {"INTEGER", "FLOAT", "STRING", "COORDINATE", *(f"{sigil}NAME" for sigil in "@%'$#?!")}

PRELUDE = """module "m" struct $S { #w: <2 x f32>, #b: f32 }
enum $E { ?leaf(f32), ?node($E, $E), ?none }
[extern] func @f: (f32) -> f32
[extern] func @g: (f32, f32) -> f32
"""
INSIDE = (
    "func @t: (f32, <2 x f32>, <2 x 2 x f32>, bool, $E, *$S, i64, $S) -> void { 'entry(%x: f32, "
    "%t: <2 x f32>, %m: <2 x 2 x f32>, %c: bool, %e: $E, %p: *$S, %i: i64, %s: $S):\n{}\nreturn "
    "'b(%z: f32): return 'c(): return 'n(%l: $E, %r: $E): return }"
)
DEFINITION, DECLARED, TYPE, LINE = "{}", "{} func @h: (f32) -> f32", "var @v: {}", INSIDE
CONTEXTS = {
    "module": "", "stage": "", "definition": DEFINITION, "struct": DEFINITION, "enum": DEFINITION,
    "alias": DEFINITION, "variable": DEFINITION, "function": DEFINITION,
    "attribute": DECLARED, "declaration": DECLARED, "rule": DECLARED, "gradient": DECLARED.format("[{}]"),
    "tangent": DECLARED.format("[{}]"), "batch": DECLARED.format("[{}]"),
    "axes": DECLARED.format("[batch @f along {}]"), "axis": DECLARED.format("[batch @f along 0, {}]"),
    "clause": DECLARED.format("[gradient @f {}]"), "policy": DECLARED.format("[gradient @f save {}]"),
    "body": "func @h: () -> void {}", "block": "func @h: (f32) -> f32 { {} }",
    "argument": "func @h: (f32) -> void { 'entry({}): return }",
    "type": TYPE, "types": TYPE.format("({})"), "tensor": TYPE, "dtype": TYPE, "tuple": TYPE,
    "function_type": TYPE, "array": TYPE, "pointer": TYPE, "box": TYPE,
    **dict.fromkeys((
        "instruction", "operation", "constant", "call", "reduce", "scan", "reduce_window",
        "element_pointer", "bit_cast", "branch", "conditional", "branch_enum", "if", "while", "for",
    ), LINE),
    "call_argument": LINE.replace("{}", "apply @f({}): (f32) -> f32"),
    "combinator": LINE.replace("{}", "%y = reduce %t: <2 x f32> by {} along 0"),
    "placement": LINE.replace("{}", "%y = negate %x: f32 {}"),
    "places": LINE.replace("{}", "%y = negate %x: f32 into {}"),
    "place": LINE.replace("{}", "%y = negate %x: f32 into {}"),
    "target": LINE.replace("{}", "branch {}"),
    "operand": LINE.replace("{}", "yield {}"), "operands": LINE.replace("{}", "yield {}"),
    **dict.fromkeys((
        "literal", "reference", "tuple_value", "struct_value", "array_value", "case_value",
    ), LINE.replace("{}", "%y = literal {}")),
    "elements": LINE.replace("{}", "%y = literal {}: <2 x 2 x f64>"),
    "rows": LINE.replace("{}", "%y = literal {}: <2 x 2 x f32>"),
    "element": LINE.replace("{}", "%y = literal <{}, <3: f32, 4>>: <2 x 2 x f32>"),
    "number": LINE.replace("{}", "%y = literal {}: f64"),
    "key": LINE.replace("{}", "%y = elementPointer %p: *$S at {}"),
}  # fmt: skip
"""Where the parser meets an example of each production."""

ATTRIBUTES = {
    **{name: kind for kind, name in KINDS.items() if name in RULES},
    "pair": "tuple[tuple[int, int], ...]",
    "access": "tuple[Access, ...]",
    "output": "tuple[Output, ...]",
}


@each("name", productions())
def test_an_example_is_what_its_production_says(name: str) -> None:
    example = productions()[name][1]
    assert recognizes(name, example)
    assert not recognizes(name, f"{example} =")


@each("name", productions())
def test_an_example_is_parsed(name: str) -> None:
    example = productions()[name][1]
    if name == "module":
        module = parse_module(example)
    elif name == "stage":
        module = parse_module(f'module "m" stage {example}')
    elif name in CONTEXTS:
        module = parse_module(PRELUDE + CONTEXTS[name].replace("{}", example, 1))
    else:
        text = f"({example})" if name in ("index", "term") else example
        cursor = Cursor(text)
        parse_attribute(ATTRIBUTES.get(name, "tuple[Access, ...]"), cursor)
        assert cursor.token.kind == "end"
        return
    printed = print_module(module)
    assert recognizes("module", printed)
    assert print_module(parse_module(printed)) == printed


def test_every_production_that_is_used_is_defined_and_the_other_way() -> None:
    defined = productions()
    used = {name for right, _ in defined.values() for name in symbols_in(right)}
    templates = {KINDS[kind] for kind in NOTATIONS}
    assert used - set(defined) <= TERMINALS | {"template"}
    assert set(defined) - used - templates == {"module"}


@each("op", OPS.values(), ids=lambda op: op.name)
def test_the_attributes_of_every_instruction_are_on_the_page(op: type[Op]) -> None:
    assert set(names_in(rule_of(op))) <= {*RULES, *TERMINALS}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_printed_is_in_the_grammar(name: str) -> None:
    assert recognizes("module", TEXTS[name])
    assert recognizes("module", print_module(parse_module(TEXTS[name])))


@settings(max_examples=20)
@given(program=programs(max_instructions=6))
def test_random_programs_are_in_the_grammar(program: Program) -> None:
    text = print_module(program.module)
    assert recognizes("module", text)
    assert not recognizes("module", text.replace("return", "return ,", 1))


def test_the_module_on_the_page_is_valid_and_prints_as_it_stands() -> None:
    text = PAGE.split("```")[1].lstrip("\n")
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


def test_the_nest_on_the_page_is_valid() -> None:
    nest = re.search(r"```\n(%c = nest .*?)```", PAGE, re.DOTALL)
    assert nest is not None
    verify(
        parse_module(
            'module "m" stage compute func @f: (<2 x 3 x f32>, <3 x 2 x f32>) -> <2 x 2 x f32> {'
            f"'b(%a: <2 x 3 x f32>, %b: <3 x 2 x f32>): {nest[1]} return %c: <2 x 2 x f32> }}"
        )
    )


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| [^|]* \| ([\d,⁰¹²³⁴⁵⁶⁷⁸⁹]+) \| `([\w.]+)\.(\w+)` \|$", PAGE, re.MULTILINE
    )
    assert len(rows) == PAGE.count("MAX_") + PAGE.count("MOST_")
    for shown, module, name in rows:
        base = shown.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹")
        exponent = shown[len(base) :].translate(_DIGITS) or "1"
        limit = int(base.replace(",", "")) ** int(exponent)
        assert getattr(importlib.import_module(f"nnkit.{module}"), name) == limit, name


_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
