"""Modules, structs, functions, declarations and blocks as text, and the errors in them."""

from __future__ import annotations

import itertools

import pytest

from nnkit.core.ir import GradientOf, Module, Stage
from nnkit.core.text import parse_module, print_declaration, print_module
from nnkit.core.types import VOID, FunctionType
from nnkit.core.verify import verify

from .laws import error_of, reread

SLIDES = """module "my_module"
stage raw

struct $Classifier { #w: <784 x 10 x f32>, #b: <1 x 10 x f32> }

func @f: (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>) -> <1 x 10 x f32> {
'entry(%x: <1 x 784 x f32>, %w: <784 x 10 x f32>, %b: <1 x 10 x f32>):
    %0.0 = dot %x: <1 x 784 x f32>, %w: <784 x 10 x f32>
    %0.1 = add %0.0: <1 x 10 x f32>, %b: <1 x 10 x f32>
    return %0.1: <1 x 10 x f32>
}

func @g: (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>) -> <1 x 10 x f32> {
'entry(%x: <1 x 784 x f32>, %w: <784 x 10 x f32>, %b: <1 x 10 x f32>):
    %0.0 = apply @f(%x, %w, %b): (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>) -> <1 x 10 x f32>
    %0.1 = tanh %0.0: <1 x 10 x f32>
    return %0.1: <1 x 10 x f32>
}

[gradient @g wrt 1, 2 keeping 0 seedable]
func @g_grad: (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>, <1 x 10 x f32>) \
-> (<784 x 10 x f32>, <1 x 10 x f32>, <1 x 10 x f32>)
"""

SQUARE = """module "m"
func @f: (f32, f32) -> f32 {
'b(%x: f32, %y: f32):
    %z = multiply %x: f32, %y: f32
    return %z: f32
}
"""


def test_the_module_of_the_slides_reads_back_as_it_stands() -> None:
    module = parse_module(SLIDES)
    verify(module)
    assert print_module(module) == SLIDES
    assert list(module.structs) == ["Classifier"]


def test_line_breaks_tabs_comments_and_other_systems_change_nothing() -> None:
    for text in (
        SLIDES.replace("\n", "\r\n"),
        SLIDES.replace("\n", "\r"),
        SLIDES.replace("    ", "\t"),
        SLIDES.replace("\n", " // a comment with \" ' } and <\n"),
        SLIDES.replace("\n", "\r\n// über\r\n"),
        "\ufeff" + SLIDES + "// the end",
        " ".join(SLIDES.split()),
        SLIDES.replace("x 10", "x\n//>\n10").replace("<", "< "),
    ):
        assert print_module(parse_module(text)) == SLIDES


@pytest.mark.parametrize(
    "fields",
    ["#a: f32, #b: i64", "#a: f32\n#b: i64", "#a: f32 #b: i64", "#a: f32,\n #b: i64,\n"],
)
def test_fields_are_separated_by_commas_or_lines(fields: str) -> None:
    module = parse_module(f'module "m" struct $S {{ {fields} }}')
    assert [name for name, _ in module.structs["S"].fields] == ["a", "b"]
    reread(module)


def test_structs_may_stand_anywhere() -> None:
    text = f"{SQUARE}struct $Empty {{ }}\nstruct $Outer {{ #e: $Empty, #f: ($Empty) -> ($Empty, f32) }}"
    module = parse_module(text)
    assert "struct $Empty { }\n\nstruct $Outer" in print_module(module)
    reread(module)


CLAUSES = ["from 0", "wrt 1, 0", "keeping 0", "seedable"]


def test_clauses_of_a_gradient_come_in_any_order() -> None:
    type = "(f32, f32, f32) -> (f32, f32, f32)"
    for clauses in itertools.permutations(CLAUSES):
        for keyword in ("gradient", "adjoint"):
            text = f"{SQUARE}[{keyword} @f {' '.join(clauses)}]\nfunc @d: {type}"
            module = parse_module(text)
            verify(module)
            declaration = module.functions["d"].declaration
            assert declaration == GradientOf("f", (0,), (1, 0), (0,), True)
            assert (
                print_declaration(declaration) == "gradient @f from 0 wrt 1, 0 keeping 0 seedable"
            )
            reread(module)


def test_a_gradient_without_clauses_is_by_everything() -> None:
    module = parse_module(f"{SQUARE}[adjoint @f]\nfunc @d: (f32, f32) -> (f32, f32)")
    assert reread(module).functions["d"].declaration == GradientOf("f")


def test_the_stage_is_raw_unless_it_is_named() -> None:
    assert parse_module('module "m"').stage is Stage.RAW
    for stage in Stage:
        module = parse_module(f'module "m" stage {stage.value}')
        assert module.stage is stage
        reread(module)


def test_attributes_stand_before_a_function() -> None:
    module = parse_module(SQUARE.replace("func", "!inline\n!cold func"))
    assert module.functions["f"].attributes == ("inline", "cold")
    assert print_module(parse_module(print_module(module))) == print_module(module)


def test_void_is_the_empty_tuple() -> None:
    text = 'module "m" func @f: (void, ()) -> () { \'b(%x: (), %y: void): return %x: void }'
    module = parse_module(text)
    verify(module)
    assert module.functions["f"].type == FunctionType((VOID, VOID), VOID)
    assert "func @f: (void, void) -> void {" in print_module(reread(module))


def test_functions_may_call_those_that_follow() -> None:
    caller = SQUARE.replace("@f", "@g").replace(
        "multiply %x: f32, %y: f32", "apply @f(%x, %y) -> f32"
    )
    module = parse_module(caller + SQUARE.removeprefix('module "m"'))
    verify(module)
    reread(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: 'module' was expected, not the end of the text\n  \n  ^"),
        ("modul", "line 1, column 1: 'module' was expected, not 'modul'\n  modul\n  ^"),
        ("module m", "line 1, column 8: the module's name in quotes was expected, not 'm'\n  module m\n         ^"),
        ('module "m', "line 1, column 8: this string does not end on its line"),
        (r'module "\q"', r'line 1, column 8: a string has no escapes but \" \\ \n \t \r'),
        ('module "m" stage rare', "'optimized', 'compute' or 'schedule' was expected, not 'rare'"),
        ('module "m" union $T {', "'struct', 'enum', 'type', 'var' or 'func' was expected, not 'union'"),
        ('module "m" enum $T {', "'}' or a case ?… was expected, not the end of the text"),
        ('module "m" enum $T { ?a, ?a }', "the case ?a is defined twice"),
        ('module "m" enum T', "a name $… was expected, not 'T'"),
        ('module "m" type $T f32', "'=' was expected, not 'f32'"),
        ('module "m" type $T = $U', "the type $U is not defined"),
        ('module "m" type $Tree = f32 var @x: $Three', "the type $Three is not defined: did you mean $Tree?"),
        ('module "m" var x: f32', "a variable @… was expected, not 'x'"),
        ('module "m" var @x', "':' was expected, not the end of the text"),
        ('module "m" var @x: f32 var @x: f32', "the variable @x is defined twice"),
        ('module "m" var @x: f32 func @x: () -> f32', "the variable @x is defined twice"),
        ('module "m" struct $S {} type $S = f32', "the type $S is defined twice"),
        ('module "m" var @x: [-1 x f32]', "an array cannot have a negative number of elements"),
        ('module "m" var @x: [2 x f32', "']' was expected, not the end of the text"),
        ('module "m" var @x: box f32', "'{' was expected, not 'f32'"),
        ('module "m" var @x: i128', "there is no i128: integers have 8, 16, 32 or 64 bits (i8, i16, i32, i64)"),
        ('module "m" var @x: u8', "there is no u8: integers are signed, i8, i16, i32 or i64"),
        ('module "m" var @x: <3 x f8>', "there is no f8: floats are f16, bf16, f32 and f64"),
        ('module "m" struct S {', "a name $… was expected, not 'S'"),
        ('module "m" struct $S { #a: $T }', "the type $T is not defined"),
        ('module "m" struct $S { #a: f32', "'}' or a field #… was expected, not the end of the text"),
        ('module "m" struct $S { #a: f32, #a: f32 }', "the field #a is defined twice"),
        ('module "m" struct $S {} struct $S {}', "the type $S is defined twice"),
        (SQUARE + SQUARE.removeprefix('module "m"'), "line 8, column 6: the function @f is defined twice"),
        (SQUARE.replace("@f:", "@f"), "':' was expected, not '('"),
        (SQUARE.replace("-> f32", ""), "a function type (T, U) -> R was expected"),
        (SQUARE.replace("func @f", "func f"), "a function @… was expected, not 'f'"),
        (SQUARE.replace("'b(", "b("), "a block '… was expected, not 'b'"),
        (SQUARE.replace("%y: f32):", "%x: f32):"), "the value %x is defined twice"),
        (SQUARE.replace("%y: f32):", "%y: f32:"), "',' or ')' was expected, not ':'"),
        (SQUARE.replace("}", "'b(): return }"), "the block 'b is defined twice"),
        (SQUARE.replace("}", ""), "an instruction, a block or '}' was expected, not the end of the text"),
        (SQUARE + "}", "line 7, column 1: 'struct', 'enum', 'type', 'var' or 'func' was expected, not '}'"),
        (SQUARE + "!a struct $S {}", "'func' was expected, not 'struct'"),
        (SQUARE + "[gradient f]", "a function @… was expected, not 'f'"),
        (SQUARE + "[grad @f]", "'tangent', 'batch', 'extern', 'jvp' or 'vjp' was expected, not 'grad'"),
        (SQUARE + "[gradient @f by 1]", "'from', 'wrt', 'keeping', 'seedable', 'save' or ']' was expected, not 'by'"),
        (SQUARE + "[gradient @f wrt 0 wrt 1]", "wrt is given twice"),
        (SQUARE + "[gradient @f wrt x]", "an integer was expected, not 'x'"),
        (SQUARE + "[gradient @f from -1.5]", "an integer was expected, not '-1.5'"),
        (SQUARE + "[gradient @f]", "'func' was expected, not the end of the text"),
        ('module "m" func @f: (784x10)', "'784x10' is not a number; extents are written with spaces"),
        ('module "m" # comment', "a name was expected after '#'"),
        ('module "m" /* no */', "the character '/' begins no token"),
        ('module "m" func @f: ' + "(" * 10_000, "nested more than 100 levels deep"),
        ('module "m" func @f: ' + "() -> " * 10_000, "nested more than 100 levels deep"),
        ('module "m" func @f: (<' + "1 x " * 10_000, "'bool', 'i8'"),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected_and_where(text: str, message: str) -> None:
    assert message in error_of(text)


def test_an_error_shows_its_line_with_a_caret() -> None:
    assert error_of(SQUARE.replace("multiply", "\tmultiple")) == (
        "line 4, column 11: there is no instruction 'multiple': did you mean multiply?\n"
        "      %z = \tmultiple %x: f32, %y: f32\n"
        "           \t^"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_however_they_end(end: str) -> None:
    text = SQUARE.replace("multiply", "multiple").replace("\n", end)
    assert error_of(text).startswith("line 4, column 10: ")


def test_an_error_names_the_file() -> None:
    with pytest.raises(ValueError, match=r"^model\.dl, line 1, column 1: 'module' was expected"):
        parse_module("?x", "model.dl")


def test_long_lines_and_characters_that_do_not_print_are_cut() -> None:
    message = error_of('module "m" ' + "\x1b\x00" * 300)
    assert len(message) < 300
    assert "\x1b" not in message and "\x00" not in message


def test_a_module_of_nothing_prints_its_head() -> None:
    assert print_module(Module("m")) == 'module "m"\nstage raw\n'
