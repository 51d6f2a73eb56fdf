"""Values, blocks and functions that are used before they are defined, or by their position."""

from __future__ import annotations

import pytest

from nnkit.core.errors import ParseError
from nnkit.core.text import parse_module, print_module
from nnkit.core.text.scope import POISON
from nnkit.core.verify import verify

from .laws import error_of, in_function, parsed, reread

BACKWARDS = """    branch 'last(%x: <3 x f32>)
'first(%b: <3 x f32>):
    %c = add %a: <3 x f32>, %b: <3 x f32>
    return %c: <3 x f32>
'last(%y: <3 x f32>):
    %a = negate %y: <3 x f32>
    branch 'first(%a: <3 x f32>)"""


def test_a_block_may_use_what_a_block_below_it_defines() -> None:
    module = parsed(BACKWARDS, result="<3 x f32>")
    text = print_module(module)
    assert "%c = add %a: <3 x f32>, %b: <3 x f32>" in text
    body = module.functions["f"].body
    assert body is not None
    first, last = body.blocks[1:]
    assert first.instructions[0].operands == (last.instructions[0].result, first.arguments[0])


def test_names_are_given_before_anything_is_printed() -> None:
    text = in_function(BACKWARDS.replace("%a", "%2.0"), result="<3 x f32>")
    module = parse_module(text)
    assert "%c = add %2.0: <3 x f32>, %b: <3 x f32>" in print_module(reread(module))


def test_a_body_may_use_what_is_defined_further_on_around_it() -> None:
    body = """    branch 'last
'first():
    %r = if true: bool -> f32 {
    'then():
        %q = negate %a: f32
        yield %q: f32
    } else {
    'else():
        yield %a: f32
    }
    return %r: f32
'last():
    %a = literal 2: f32
    branch 'first"""
    module = parsed(body, parameters="", result="f32")
    assert print_module(module).count("%a: f32") == 2


def test_a_name_inside_a_body_is_not_meant_around_it() -> None:
    body = """    %r = if true: bool -> f32 {
    'then():
        %q = literal 1: f32
        yield %q: f32
    } else {
    'else():
        yield %q: f32
    }
    return"""
    assert "line 11, column 15: the value %q is not defined here" in error_of(in_function(body))


def test_the_type_at_an_early_use_must_be_right() -> None:
    text = in_function(BACKWARDS.replace("add %a: <3 x f32>", "add %a: f32"), result="<3 x f32>")
    assert "line 7, column 14: %a is a <3 x f32>, not a f32" in error_of(text)


def test_calls_may_use_what_comes_later() -> None:
    body = BACKWARDS.replace(
        "add %a: <3 x f32>, %b: <3 x f32>", "apply @f(%a): (<3 x f32>) -> <3 x f32>"
    )
    assert "apply @f(%a)" in print_module(parsed(body, result="<3 x f32>"))
    untyped = BACKWARDS.replace("add %a: <3 x f32>, %b: <3 x f32>", "apply @f(%a) -> <3 x f32>")
    assert "the value %a is not defined here" in error_of(in_function(untyped))


def test_values_without_a_name_go_by_their_position() -> None:
    body = """    negate %x: <3 x f32>
    %y = negate %0.0: <3 x f32>
    branch 'next
'next():
    add %y: <3 x f32>, 1: f32
    return %1.0: <3 x f32>"""
    module = parsed(body, result="<3 x f32>")
    assert "%y = negate %0.0: <3 x f32>" in print_module(module)
    assert "the value %0.1 is not defined here" in error_of(
        in_function(body.replace("%1.0", "%0.1"))
    )


def test_several_results_go_by_their_positions() -> None:
    nest = """    nest 3 of %x: <3 x f32> reading (d0) writing <3 x f32> at (d0), <3 x f32> at (d0) {
    'b(%i: i64, %v: f32):
        yield %v: f32, %v: f32
    }
    return %0.0.1: <3 x f32>"""
    text = in_function(nest, result="<3 x f32>").replace("stage raw", "stage compute")
    module = parse_module(text)
    verify(module)
    assert "%0.0.0, %0.0.1 = nest" in print_module(module)


def test_blocks_go_by_their_position_where_no_block_is_called_that() -> None:
    body = BACKWARDS.replace("branch 'last(", "branch '2(").replace("branch 'first(", "branch '1(")
    text = print_module(parsed(body, result="<3 x f32>"))
    assert "branch 'last(" in text and "branch 'first(" in text
    assert "there is no block '3 here" in error_of(in_function(body.replace("'2(", "'3(")))


@pytest.mark.parametrize(
    "name", ["add", "func", "module", "literal", "if", "x", "true", "f32", "inf", "zero"]
)
def test_words_of_the_language_are_names(name: str) -> None:
    text = in_function(
        f"    %{name} = negate %p: <3 x f32>\n    branch '{name}\n'{name}():\n    return %{name}: <3 x f32>",
        result="<3 x f32>",
        parameters="%p: <3 x f32>",
    ).replace("@f", f"@{name}")
    for other in (text, text.replace(f"%{name}", f'%"{name}"').replace(f"@{name}", f'@"{name}"')):
        module = parse_module(other)
        verify(module)
        assert f"return %{name}: <3 x f32>" in print_module(reread(module))


def test_deep_regions_print_and_read_back() -> None:
    depth = 1500
    opening = "if true: bool {\n'b():\n" * depth
    closing = "yield\n} else {\n'c():\n yield\n}\n" * depth
    module = parse_module(in_function(f"{opening}{closing}return"))
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    assert len(text) < 1500 * depth


def test_case_matters() -> None:
    body = "    %X = negate %x: <3 x f32>\n    %y = add %X: <3 x f32>, %x: <3 x f32>\n    return %y: <3 x f32>"
    module = parsed(body, result="<3 x f32>")
    names = [result.name for i in module.functions["f"].entry.instructions for result in i.results]
    assert names == ["X", "y"]


def test_values_with_errors_leave_no_uses_behind() -> None:
    """What stands for them outlives all texts."""
    text = in_function(
        "    %b = add %a: f32, %x: f32\n    %a = exp %x: f16\n    return %b: f32", result="f32"
    )
    with pytest.raises(ParseError):
        parse_module(text)
    assert not POISON.uses
