"""Whatever the text: a module, or a ParseError; then, whatever the module: valid, or a VerifyError."""

from __future__ import annotations

import functools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.errors import ParseError, VerifyError
from nnkit.core.ir import Module
from nnkit.core.text import parse_module, print_module
from nnkit.core.text.lexer import tokenize
from nnkit.core.text.operations import OPS
from nnkit.core.verify import verify
from tests.programs import programs

from .laws import error_of
from .test_parser import SLIDES

EXAMPLES = max(300, settings().max_examples)

FAMILIES = """module "families"
stage raw
struct $Pair { #a: <2 x 3 x f32>, #"b c": (i64, bool) }
!inline
func @families: (<2 x 3 x f32>, <2 x i64>, $Pair) -> (<2 x 3 x f32>, i64) {
'entry(%x: <2 x 3 x f32>, %i: <2 x i64>, %p: $Pair):
    %a = extract #"b c", 1 from %p: $Pair
    %b = select %x: <2 x 3 x f32>, -0.0: f32 by %a: bool
    %c = dataTypeCast %b: <2 x 3 x f32> to i32
    %d = reduce %c: <2 x 3 x i32> by max init 3: i32 along 0, 1
    %e = transpose %x: <2 x 3 x f32> permuting (1, 0)
    %f = slice %e: <3 x 2 x f32> from (0, 1) upto (3, 2) strides (2, 1)
    %g = pad %f: <2 x 1 x f32> by %h0: f32 low (0, 1) high (1, 0) interior (1, 0)
    %h = concatenate %e: <3 x 2 x f32>, %e: <3 x 2 x f32> along 1
    %j = gather %x: <2 x 3 x f32> at %i: <2 x i64> along 0 bounds clip
    %k = scatterAdd %j: <2 x 3 x f32> at %i: <2 x i64> along 0 to 4 x 3 bounds zero
    %l = scan %k: <4 x 3 x f32> by multiply along 1 reverse true exclusive true
    %m = argMax %l: <4 x 3 x f32> along 1
    %n = oneHot %m: <4 x i64> depth 3 as f16
    %o = iota 2 x 3 along 1 as bf16
    %q = literal <<1, 2.5, -inf>, <nan, 1e-45, 0.0>>: <2 x 3 x f32>
    %r = dot %x: <2 x 3 x f32>, %e: <3 x 2 x f32>
    %s = threefry 7: i64, %i: <2 x i64>
    %t = literal {#a = %x: <2 x 3 x f32>, #"b c" = (1: i64, true: bool): (i64, bool)}: $Pair
    %u = apply @families(%q, %i, %t): (<2 x 3 x f32>, <2 x i64>, $Pair) -> (<2 x 3 x f32>, i64)
    return %u: (<2 x 3 x f32>, i64)
}
[gradient @families from 0 wrt 0, 2 keeping 1 seedable]
func @d: (<2 x 3 x f32>, <2 x i64>, $Pair, <2 x 3 x f32>) -> (<2 x 3 x f32>, $Pair, i64)
""".replace("%h0: f32", "0.5: f32")

SCHEDULED = """module "scheduled"
stage schedule
func @f: (<4 x 4 x f32>, <4 x i64>) -> (<4 x 4 x f32>, <4 x f32>) {
'entry(%x: <4 x 4 x f32>, %i: <4 x i64>):
    %a, %b = loops 4 x 4 of %i: <4 x i64>, %x: <4 x 4 x f32> reading (d0), (read 0, 2 * d1 + -1) clip
        writing <4 x 4 x f32> at (d0, d1), <4 x f32> at (d0) by max
        into arena 64, output 1 order (0, 1) vector 1 by 4 accumulators 2 group 0 {
    'body(%d0: i64, %d1: i64, %n: i64, %v: f32):
        %c = literal 1.5: f32
        %w = multiply %v: f32, %c: f32
        yield %w: f32, %v: f32
    }
    %g = gemm %a: <4 x 4 x f32>, %x: <4 x 4 x f32> into arena 128 transposed false, true
    %s = scheduledScan %g: <4 x 4 x f32> by add along 1 into output 0
    %r = literal (%s: <4 x 4 x f32>, %b: <4 x f32>): (<4 x 4 x f32>, <4 x f32>)
    return %r: (<4 x 4 x f32>, <4 x f32>)
}
"""

TEXTS = {"slides": SLIDES, "families": FAMILIES, "scheduled": SCHEDULED}

SPARE = [
    *OPS, *"literal apply init module stage raw schedule struct func void builtin read scalar".split(),
    *"( ) [ ] < > { } : = -> , x * + 0 -1 1 2 3 7 64 1.5 -0.0 inf nan true false zero".split(),
    *"f32 i64 bool f64 bf16 d0 d1 d9 clip zero check arena output by at of from upto along to as".split(),
    *"%x %y %0.0 %a @f @families $Pair #a 'entry ! ? \" // \\ ; 99999999999999999999 1e999".split(),
    *"<2 x 3 x f32>|<2 x i64>|(f32, i64)|<0 x f32>|$Pair|(f32) -> f32|\n|\"s\"".split("|"),
]  # fmt: skip


def survives(text: str) -> Module | None:
    """Parse, verify and print; whatever is valid reads back."""
    try:
        module = parse_module(text)
    except ParseError as error:
        assert str(error).startswith("line ") and str(error).endswith("^")
        return None
    printed = print_module(module)
    try:
        verify(module)
    except VerifyError:
        return module
    assert print_module(parse_module(printed)) == printed
    return module


@functools.cache
def split(text: str) -> list[str]:
    """The tokens, each with the space before it."""
    ends = [token.start + len(token.text) for token in tokenize(text)]
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_themselves_are_valid(name: str) -> None:
    module = parse_module(TEXTS[name])
    verify(module)
    assert survives(TEXTS[name]) is not None


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_cut_anywhere(name: str) -> None:
    for end in range(len(TEXTS[name])):
        survives(TEXTS[name][:end])


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_without_one_of_its_tokens(name: str) -> None:
    tokens = split(TEXTS[name])
    for gone in range(len(tokens)):
        survives("".join(tokens[:gone] + tokens[gone + 1 :]))


@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(sorted(TEXTS)), data=st.data())
def test_a_text_with_tokens_changed(name: str, data: st.DataObject) -> None:
    tokens = list(split(TEXTS[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        other = data.draw(st.one_of(st.sampled_from(SPARE), st.sampled_from(tokens)))
        kind = data.draw(st.sampled_from(("replace", "insert", "delete", "double")))
        if kind in ("replace", "insert"):
            tokens.insert(place, f" {other} ")
        if kind in ("replace", "delete"):
            del tokens[place + (kind == "replace")]
        if kind == "double":
            tokens.insert(place, tokens[place])
    survives("".join(tokens))


@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(sorted(TEXTS)), data=st.data())
def test_a_text_with_numbers_changed(name: str, data: st.DataObject) -> None:
    """Attributes that are grammatical and make no sense: axes, extents, indices."""
    tokens = list(split(TEXTS[name]))
    numbers = [i for i, token in enumerate(tokens) if token.strip().lstrip("-").isdecimal()]
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(numbers))
        values = st.one_of(
            st.integers(-3, 5), st.sampled_from([64, 2**31, 2**62, 2**63 - 1, -(2**63)])
        )
        tokens[place] = f" {data.draw(values)}"
    survives("".join(tokens))


@settings(max_examples=EXAMPLES)
@given(data=st.data(), name=st.sampled_from(sorted(TEXTS)))
def test_a_text_with_characters_changed(name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 3))
    survives(text[:place] + data.draw(st.text(max_size=3)) + text[place + length :])


@settings(max_examples=EXAMPLES)
@given(junk=st.binary(max_size=60), tokens=st.lists(st.sampled_from(SPARE), max_size=30))
def test_random_bytes_and_random_tokens(junk: bytes, tokens: list[str]) -> None:
    survives(junk.decode("utf-8", errors="replace"))
    survives(junk.decode("latin-1"))
    survives('module "m" ' + " ".join(tokens))
    head = 'module "m" func @f: (f32) -> f32 { \'b(%x: f32): '
    survives(head + " ".join(tokens))


@settings(max_examples=60)
@given(program=programs(max_instructions=4), data=st.data())
def test_a_random_program_cut_and_changed(program: object, data: st.DataObject) -> None:
    tokens = split(print_module(program.module))  # type: ignore[attr-defined]
    place = data.draw(st.integers(0, len(tokens) - 1))
    survives("".join(tokens[:place]))
    survives(
        "".join([*tokens[:place], f" {data.draw(st.sampled_from(SPARE))} ", *tokens[place + 1 :]])
    )


DEEP = 10_000


@pytest.mark.parametrize(
    "text",
    [
        'module "m" func @f: () -> void { \'b(): %a = literal ' + "(" * DEEP,
        'module "m" func @f: () -> void { \'b(): ' + "return " + "(" * DEEP,
        'module "m" func @f: () -> void { \'b(): %a = literal ' + "<" * DEEP,
        'module "m" func @f: () -> void { \'b(): '
        + "%a = nest scalar writing f32 at () { 'b(): " * DEEP,
        'module "m" struct $S { #a: ' + "(" * DEEP + ")" * DEEP,
        'module "m" func @f: ' + "((f32) -> " * DEEP,
    ],
    ids=["aggregates", "operands", "literals", "bodies", "types", "functions"],
)
def test_nesting_without_end(text: str) -> None:
    assert "nested more than 100 levels deep" in error_of(text)


def large_module(count: int) -> str:
    """A chain of additions."""
    type = "<64 x 10 x f32>"
    lines = [
        f"    %0.{i} = add %{f'0.{i - 1}' if i else 'x'}: {type}, %x: {type}" for i in range(count)
    ]
    head = f'module "large"\nstage raw\n\nfunc @f: ({type}) -> {type} {{\n\'entry(%x: {type}):\n'
    return head + "\n".join([*lines, f"    return %0.{count - 1}: {type}", "}", ""])


def test_large_modules_are_read_checked_and_printed_fast() -> None:
    text = large_module(20_000)
    start = time.process_time()
    module = parse_module(text)
    parsed = time.process_time()
    verify(module)
    verified = time.process_time()
    assert print_module(module) == text
    assert parsed - start < 4, "about a second on an idle machine"
    assert verified - parsed < 2


@pytest.mark.parametrize(
    "junk", ["<", "(", " ", "%", '"', "/", "x", "1", "-", ",", "%a,", "%a, ", "'", "<1,", "\\", "é"]
)
def test_long_runs_take_no_long_time(junk: str) -> None:
    start = time.process_time()
    for head in (
        "",
        'module "m" ',
        'module "m" func @f: () -> void { \'b(): ',
        'module "m" func @f: () -> void { \'b(): return ',
    ):
        survives(head + junk * 20_000)
    assert time.process_time() - start < 4
