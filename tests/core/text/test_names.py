"""Names of values, functions, blocks, fields and modules: kept, made unique, quoted where they must be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Function, Module, Region, Value, finish_function, start_function
from nnkit.core.ops import Aggregate, Apply, Extract, Negate, Return
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, VOID, FunctionType, StructType, scalar

from .laws import in_function, reread

X = scalar(F32)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def chain(names: list[str | None]) -> Module:
    """A function whose parameter and results have these names."""
    b = start_function([X], names[:1])
    value = b.block.arguments[0]
    for name in names[1:]:
        value = b.emit(Negate(), value)
        value.name = name
    b.emit_many(Return(), [value])
    module = Module()
    module.add(finish_function("f", b, X))
    return module


def shown(module: Module) -> list[str]:
    """How the parameter and the results of `chain` are printed."""
    text = print_module(module)
    head = re.search(r"'entry\((.*): f32\):", text)
    assert head is not None
    return [head[1], *re.findall(r"^    (.*?) = ", text, re.MULTILINE)]


def names_in(module: Module) -> list[str | None]:
    block = module.functions["f"].entry
    values = [*block.arguments, *(i.result for i in block.instructions if i.results)]
    return [value.name for value in values]


def test_values_without_a_name_are_counted() -> None:
    assert shown(reread(chain([None, None, None]))) == ["%0^0", "%0.0", "%0.1"]


def test_names_are_kept() -> None:
    names: list[str | None] = [
        "x",
        "hidden",
        "größe",
        "层",
        "हिन्दी",
        "_",
        "a.b.c",
        "x1",
        "e5",
        "inf",
    ]
    assert names_in(reread(chain(names))) == names


def test_a_name_that_looks_like_a_number_is_counted_instead() -> None:
    assert shown(reread(chain(["1", "0.5", "7^1", "3x"]))) == ["%0^0", "%0.0", "%0.1", "%0.2"]


def test_a_name_in_use_gets_a_number() -> None:
    assert shown(reread(chain(["x", "x", "x_1", "x"]))) == ["%x", "%x_1", "%x_1_1", "%x_2"]


def test_a_name_with_other_characters_is_quoted() -> None:
    module = chain(["a b", 'say "hi"', "back\\slash", "new\nline", "->", "x-y", "?"])
    assert shown(module)[:4] == ['%"a b"', r'%"say \"hi\""', r'%"back\\slash"', r'%"new\nline"']
    assert names_in(reread(module)) == names_in(module)


@given(names=st.lists(TEXT, min_size=1, max_size=6))
def test_any_names_read_back(names: list[str]) -> None:
    module = chain(list(names))
    again = reread(module)
    found = names_in(again)
    assert len(found) == len(names)
    for name, kept in zip(names, found, strict=True):
        if name and not "0" <= name[0] <= "9" and names.count(name) == 1 and "_" not in name:
            assert kept == name


@given(name=TEXT, module_name=TEXT, field=TEXT, attribute=TEXT, label=TEXT)
def test_any_name_of_anything_reads_back(
    name: str, module_name: str, field: str, attribute: str, label: str
) -> None:
    struct = StructType("S", ((field, X), (f"{field}2", X)))
    b = start_function([X])
    b.block.name = label
    made = b.emit(Aggregate(struct), *b.block.arguments * 2)
    b.emit_many(Return(), [b.emit(Extract((field,)), made)])
    function = finish_function(name, b, X)
    function.attributes = ("inline",)
    module = Module(module_name, functions={name: function})
    caller = start_function([X])
    called = caller.emit(Apply(name, FunctionType((X,), X)), *caller.block.arguments)
    caller.emit_many(Return(), [called])
    module.add(finish_function(f"{name}'", caller, X))
    again = reread(module)
    assert again.structs["S"] == struct
    module.functions[name].attributes = (attribute,)
    attributed = parse_module(print_module(module))
    assert attributed.functions[name].attributes == (attribute,)


def test_modules_have_any_name() -> None:
    for name in ("", "my module", 'a "quoted" one', "tab\tnew\nline\rback\\slash", "größe", "'@%$"):
        assert reread(Module(name)).name == name


def test_blocks_are_counted_or_named() -> None:
    blocks = [Builder().block for _ in range(3)]
    blocks[0].name, blocks[1].name = "5", "exit"
    for block in blocks:
        Builder(block).emit_many(Return(), [])
    module = Module(functions={"f": Function("f", FunctionType((), VOID), Region(blocks))})
    text = print_module(module)
    assert re.findall(r"^'(.*)\(", text, re.MULTILINE) == ["0", "exit", "2"]
    assert print_module(parse_module(text)) == text


def test_names_of_a_body_end_with_it() -> None:
    body = "'body(%d0: i64, %v: f32):\n        %n = negate %v: f32\n        yield %n: f32\n    }"
    nest = "nest 3 of %x: <3 x f32> reading (d0) writing <3 x f32> at (d0)"
    text = in_function(
        f"    %a = {nest} {{\n    {body}\n    %b = {nest} {{\n    {body}\n    %n = negate %b: <3 x f32>\n    return"
    )
    module = parse_module(text.replace("stage raw", "stage compute"))
    printed = print_module(module)
    assert printed.count("%n = negate %v: f32") == 2
    assert "    %n = negate %b: <3 x f32>" in printed
    assert print_module(parse_module(printed)) == printed


@pytest.mark.parametrize("count", [20_000])
def test_many_values_of_one_name_print_fast(count: int) -> None:
    b = start_function([X], ["x"])
    value: Value = b.block.arguments[0]
    for _ in range(count):
        value = b.emit(Negate(), value)
        value.name = "x"
    b.emit_many(Return(), [value])
    module = Module()
    module.add(finish_function("f", b, X))
    assert f"%x_{count} = negate" in print_module(module)
