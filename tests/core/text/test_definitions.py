"""Types, variables and declarations: in any order, and only such types as are finite."""

from __future__ import annotations

import itertools

import pytest

from nnkit.core.ir import Extern, TangentOf
from nnkit.core.text import parse_module, print_declaration, print_module
from nnkit.core.types import (
    F32,
    I64,
    ArrayType,
    BoxType,
    OpaqueType,
    PointerType,
    StructType,
    TupleType,
    scalar,
)
from nnkit.core.verify import verify

from .laws import error_of, in_function, parsed, reread

DEFINITIONS = [
    "struct $Leaf { #value: $Number\n#next: *$Tree }",
    "enum $Tree { ?leaf($Leaf) ?node($Tree, $Trees), ?none() }",
    "type $Trees = [2 x $Tree]",
    "type $Number = f32",
    "type $Handle = opaque",
    "var @root: $Tree",
    "var @handles: ($Handle, box{$Leaf})",
    "[extern]\nfunc @open: (i64) -> $Handle",
]


def test_definitions_come_in_any_order() -> None:
    expected = None
    for order in itertools.islice(itertools.permutations(DEFINITIONS), 0, None, 97):
        module = parse_module("\n".join(['module "m"', *order]))
        verify(module)
        reread(module)
        tree = module.enums["Tree"]
        found = (
            module.structs["Leaf"].fields,
            tree.cases,
            module.aliases,
            module.variables,
            module.functions["open"].declaration,
        )
        expected = expected or found
        assert found == expected
        assert module.structs["Leaf"] == StructType(
            "Leaf", (("value", scalar(F32)), ("next", PointerType(tree)))
        )
        assert tree.carried("node") == (tree, ArrayType(2, tree))
        assert module.aliases["Handle"] == OpaqueType("Handle")
        assert module.variables["handles"].type == TupleType(
            (OpaqueType("Handle"), BoxType(module.structs["Leaf"]))
        )
        assert found[-1] == Extern()


def test_an_alias_is_another_name_of_its_type() -> None:
    text = in_function("    return %x: $Number", parameters="%x: $Number", result="f32")
    module = parse_module(f"{text}\ntype $Number = $Real\ntype $Real = f32")
    verify(module)
    assert "return %x: f32" in print_module(reread(module))


@pytest.mark.parametrize(
    ("definitions", "cycle"),
    [
        ("struct $S { #a: $S }", "$S is made of itself ($S → $S)"),
        ("struct $S { #a: (f32, [2 x $S]) }", "($S → $S)"),
        ("struct $S { #a: *$S }", "($S → $S); only an enum can contain itself"),
        ("struct $S { #a: box{$S} }", "($S → $S); only an enum can contain itself"),
        ("struct $S { #a: ($S) -> f32 }", "($S → $S); only an enum can contain itself"),
        ("struct $S { #a: $T } struct $T { #b: $A } type $A = $S", "($S → $T → $A → $S)"),
        ("type $A = $A", "$A is made of itself ($A → $A)"),
        ("type $A = ($B) type $B = *$A", "($A → $B → $A)"),
    ],
)
def test_a_type_that_contains_itself_is_refused_where_it_does(definitions: str, cycle: str) -> None:
    message = error_of(f'module "m" {definitions} var @x: f32')
    assert cycle in message
    assert message.count("line") == 1


@pytest.mark.parametrize(
    "definitions",
    [
        "enum $E { ?a($E) ?b }",
        "enum $E { ?a(*$E, box{$E}, ($E) -> $E) ?b }",
        "enum $E { ?a($S) ?b } struct $S { #e: $E, #f: [2 x $E] }",
        "type $A = $E enum $E { ?a($A) ?b }",
        "enum $E { ?a($F) ?b } enum $F { ?b($E) }",
    ],
)
def test_an_enum_may_contain_itself(definitions: str) -> None:
    reread(parse_module(f'module "m" {definitions}'))


def test_types_that_share_their_parts_do_not_grow_without_end() -> None:
    for word in ("type $T{} = ($T{}, $T{})", "struct $T{} {{ #a: $T{}, #b: $T{} }}"):
        lines = [word.format(i + 1, i, i) for i in range(64)]
        text = "\n".join(['module "m"', *lines, "type $T0 = f32"])
        assert "this type is made of more than 100000 others" in error_of(text)


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("[1000000 x [1000000 x [1000000 x f32]]]", "larger than the address space"),
        ("[2000000 x f32]", "an array has at most 1048576 elements, not 2000000; make it a tensor"),
        ("<9999999999 x 9999999999 x f32>", "larger than the address space"),
        ("<9223372036854775807 x 0 x f32>", "larger than the address space"),
        (f"<{'9' * 5000} x f32>", "does not fit into 64 bits"),
        (f"< {'9' * 5000} x f32>", "does not fit into 64 bits"),
    ],
)
def test_sizes_that_fit_nowhere_are_refused_before_anything_is_made(
    type: str, message: str
) -> None:
    assert message in error_of(f'module "m" var @x: {type}')


def test_zero_of_a_large_type_is_made_of_few_values() -> None:
    module = parsed(
        "    %z = literal zero: [3 x (f32, [2 x (f32, <2 x i64>, *f32)])]\n    return",
        parameters="",
    )
    instructions = module.functions["f"].entry.instructions
    texts = [str(result.type) for i in instructions for result in i.results]
    assert len(texts) == len(set(texts)) == 7


def test_tangents_have_clauses_in_any_order() -> None:
    text = 'module "m" [extern] func @f: (f32, f32) -> f32 '
    for clauses in itertools.permutations(["from 0", "wrt 1", "keeping 0", "order 1"]):
        declared = f"[tangent @f {' '.join(clauses)}] func @d: (f32, f32, f32) -> (f32, f32)"
        declaration = parse_module(text + declared).functions["d"].declaration
        assert declaration == TangentOf("f", (0,), (1,), (0,))
        assert print_declaration(declaration) == "tangent @f from 0 wrt 1 keeping 0"
    declared = "[tangent @f order 2 wrt 0] func @d: (f32, f32, f32) -> (f32, f32)"
    declaration = parse_module(text + declared).functions["d"].declaration
    assert declaration == TangentOf("f", wrt=(0,), order=2)
    assert print_declaration(declaration) == "tangent @f wrt 0 order 2"
    assert "'from', 'wrt', 'keeping', 'order' or ']' was expected" in error_of(
        f"{text} [tangent @f seedable] func @d: (f32) -> f32"
    )


def test_globals_are_counted_variables_first() -> None:
    text = in_function(
        "    %a = apply @1(%x) -> f32\n    %p = literal @0: *i64\n    return %a: f32",
        parameters="%x: f32",
        result="f32",
    )
    printed = print_module(parse_module(f"{text}\nvar @v: i64"))
    assert "apply @f(%x): (f32) -> f32" in printed
    assert "literal @v: *i64" in printed
    assert parse_module(text + "var @v: i64").variables["v"].type == scalar(I64)
