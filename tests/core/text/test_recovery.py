"""One parse reports many errors, each once, and none that only follows from another."""

from __future__ import annotations

import time

import pytest

from nnkit.core.errors import ParseError
from nnkit.core.text import parse_module
from nnkit.core.text.cursor import MAX_ERRORS
from tests.patience import PATIENCE

from .laws import in_function


def errors_of(text: str) -> list[str]:
    """Line, column and what is wrong, of every error."""
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert str(caught.value) == "\n".join(caught.value.errors)
    return [error.splitlines()[0] for error in caught.value.errors]


WRONG = """module "wrong"
stage raw
struct $S { #a: $Missing, #b: $Missing }
struct $T { #s: $S }
func @f: (f32, $T) -> f32 {
'entry(%x: f32, %t: f33, %y: f32):
    %a = multiple %x: f32, %y: f32
    %b = add %a: f32, %x: f32
    %c, %d = negate %b: f32
    %e = if true: bool -> f32 {
    'then():
        %g = negat %x: f32
        yield %g: f32
    } else {
    'else():
        yield %nothing: f32
    }
    %h = add %e: f32, %x: f64
    %i = if %h: bool -> f99 {
    'then():
        %j = nonsense
        yield %j: f32
    } else {
    'else():
        yield %x: f32
    }
    %k = literal {#a = (%i: f32, %x: f32): f32}: $S
    return %k: f32
'next(%u: f32:
    %v = add %u: f32, %u: f32
    branch 'nowhere(%v: f32)
}
func @g: (f32) -> $T
func @h: (f32) -> f32 {
'entry(%x: f32):
    ; %y = negate %x: f32
    %z = negate %x f32
    return %z: f32
}
fun @i: () -> void
var @j f32
func @f: () -> void
"""


def test_errors_are_found_everywhere_and_none_twice() -> None:
    assert errors_of(WRONG) == [
        "line 3, column 17: the type $Missing is not defined",
        "line 6, column 21: there is no f33: floats are f16, bf16, f32 and f64",
        "line 7, column 10: there is no instruction 'multiple': did you mean multiply?",
        "line 12, column 14: there is no instruction 'negat': did you mean negate or nest?",
        "line 16, column 15: the value %nothing is not defined here",
        "line 18, column 23: %x is a f32, not a f64",
        "line 29, column 14: ',' or ')' was expected, not ':'",
        "line 31, column 12: there is no block 'nowhere here",
        "line 36, column 5: the character ';' begins no token",
        "line 37, column 20: ':' was expected, not 'f32'",
        "line 40, column 1: 'struct', 'enum', 'type', 'var' or 'func' was expected, not 'fun'",
        "line 41, column 8: ':' was expected, not 'f32'",
        "line 42, column 6: the function @f is defined twice",
    ]


def test_lines_after_an_error_are_read() -> None:
    body = "\n".join(f"    %a{i} = negat{i} %x: <3 x f32>" for i in range(5))
    found = errors_of(in_function(body + "\n    return"))
    assert [error.split(",")[0] for error in found] == [f"line {5 + i}" for i in range(5)]


def test_errors_on_one_line_are_found_as_well() -> None:
    text = in_function("%a = foo %b = bar %c = negate %a: f32 return", parameters="%x: f32")
    assert [error.split("'")[1] for error in errors_of(text)] == ["foo", "bar"]


def test_no_more_than_twenty_errors_are_reported() -> None:
    for line in (
        "%a{} = foo",
        "%a{} = negate %b{}: f32",
        "foo {} {}",
        "func @f{}",
        "struct $S{} ]",
    ):
        text = in_function("\n".join(line.format(i, i) for i in range(10_000)))
        start = time.process_time()
        assert len(errors_of(text)) <= MAX_ERRORS
        assert time.process_time() - start < 3 * PATIENCE


def test_every_line_of_a_program_may_be_wrong() -> None:
    """Whichever token of a line goes, the error is on this line or further on, and reading ends."""
    lines = WRONG.splitlines()
    for number, line in enumerate(lines):
        for gone in range(len(line.split())):
            words = line.split()
            del words[gone]
            text = "\n".join([*lines[:number], " ".join(words), *lines[number + 1 :]])
            assert 5 <= len(errors_of(text)) <= MAX_ERRORS
