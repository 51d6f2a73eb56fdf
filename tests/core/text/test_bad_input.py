"""Whatever the text: a module, or a ParseError; then, whatever the module: valid, or a VerifyError."""

from __future__ import annotations

import functools
import re
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
from tests.patience import PATIENCE
from tests.programs import programs

from .laws import error_of
from .texts import TEXTS

EXAMPLES = max(100, settings().max_examples)

SPARE = [
    *OPS, *"literal apply if while for branch conditional then else do given carrying case type var".split(),
    *"enum tangent extern stack box opaque null undefined elementPointer init module stage".split(),
    *"raw schedule struct func void builtin read scalar".split(),
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
        'module "m" func @f: () -> void { \'b(): ' + "%a = literal " + "?a(" * DEEP,
        'module "m" func @f: () -> void { \'b(): ' + "%a = literal " + "[" * DEEP,
        'module "m" func @f: () -> void { \'b(): ' + "%a = literal " + "{#a = " * DEEP,
        'module "m" func @f: () -> void { \'b(): ' + "if true: bool { 'b(): " * DEEP,
        'module "m" var @x: ' + "*" * DEEP,
        'module "m" var @x: ' + "[2 x " * DEEP,
        'module "m" var @x: ' + "box{" * DEEP,
        'module "m" ' + "".join(f"struct $S{i} {{ #a: $S{i + 1} }} " for i in range(DEEP)),
        'module "m" ' + "".join(f"type $S{i + 1} = *$S{i} " for i in range(DEEP)) + "type $S0 = f32",
        'module "m" struct $S { #a: ' + "(" * DEEP + ")" * DEEP,
        'module "m" func @f: ' + "((f32) -> " * DEEP,
    ],
    ids=[
        "aggregates", "operands", "literals", "nests", "cases", "arrays", "fields", "ifs", "pointers",
        "array types", "boxes", "structs", "aliases", "types", "functions",
    ],
)  # fmt: skip
def test_nesting_without_end(text: str) -> None:
    start = time.process_time()
    assert re.search("nested more than (100|5000) levels deep", error_of(text))
    assert time.process_time() - start < 2 * PATIENCE


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
    assert parsed - start < 4 * PATIENCE, "about a second on an idle machine"
    assert verified - parsed < 2 * PATIENCE


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
    assert time.process_time() - start < 4 * PATIENCE
