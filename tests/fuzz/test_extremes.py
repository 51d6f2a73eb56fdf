"""Inputs at the edges, through the tools: very deep, very long, very large, undefined, cyclic."""

from __future__ import annotations

import time

import pytest

from tests.tools.running import Finished, dlopt_of, run

DEEP = 10_000
SECONDS = 20.0


def taken(text: str, *arguments: str, tool: str = "dlopt") -> Finished:
    """A run that ends soon, and with a result or a message for the user."""
    start = time.process_time()
    finished = run(tool, *arguments, stdin=text)
    took = time.process_time() - start
    assert took < SECONDS, f"took {took:.1f} s"
    assert finished.code in (0, 1), finished.err[-2000:]
    assert (finished.code == 0) or finished.err.startswith(f"{tool}: error: ")
    assert len(finished.err) < 1_000_000
    return finished


def refused(text: str, *arguments: str) -> str:
    finished = taken(text, *arguments)
    assert finished.code == 1, finished.out[:1000]
    return finished.err


def of_type(type: str) -> str:
    return f'module "m"\nfunc @f: ({type}) -> f32 {{\n\'entry(%x: {type}):\n    return 1: f32\n}}\n'


def of_body(body: str, *, result: str = "%x: f32") -> str:
    return f'module "m"\nfunc @f: (f32) -> f32 {{\n\'entry(%x: f32):\n{body}\n    return {result}\n}}\n'


NESTED_TYPES = {
    "tuples": "(" * DEEP + "f32" + ")" * DEEP,
    "open": "(" * DEEP,
    "functions": "(f32) -> " * DEEP + "f32",
    "pointers": "*" * DEEP + "f32",
    "arrays": "[2 x " * DEEP + "f32" + "]" * DEEP,
    "boxes": "box{" * DEEP + "f32" + "}" * DEEP,
    "shapes": "<" + "1 x " * DEEP + "f32>",
    "brackets": "<" * DEEP,
}


@pytest.mark.parametrize("name", NESTED_TYPES)
def test_deep_types(name: str) -> None:
    taken(of_type(NESTED_TYPES[name]))


NESTED_BODIES = {
    "rows": f"    %y = literal {'<' * DEEP}1{'>' * DEEP}: <1 x f32>",
    "tuples": f"    %y = literal {'(' * DEEP}1: f32{')' * DEEP}: (f32)",
    "arrays": f"    %y = literal {'[' * DEEP}1: f32{']' * DEEP}: [1 x f32]",
    "structs": f"    %y = literal {'{#a = ' * DEEP}1: f32{'}' * DEEP}: $S",
    "cases": f"    %y = literal {'?a(' * DEEP}1: f32{')' * DEEP}: $E",
    "regions": "    if true: bool then {\n'a():\n" * DEEP,
    "loops": "    for 3: i64 {\n'a(%i: i64):\n" * DEEP,
    "braces": "{" * DEEP,
    "keys": f"    %y = extract {', '.join(['0'] * DEEP)} from %x: f32",
    "axes": f"    %y = reduce %x: f32 by add along {', '.join(['0'] * DEEP)}",
    "concatenated": f"    %y = concatenate {', '.join(['%x: f32'] * DEEP)} along 0",
}


@pytest.mark.parametrize("name", NESTED_BODIES)
def test_deep_bodies(name: str) -> None:
    refused(of_body(NESTED_BODIES[name]))


def test_long_names() -> None:
    assert taken(of_body(f"    %{'a' * 1_000_000} = negate %x: f32"), "-O2").code == 0


def test_long_straight_lines_go_all_the_way() -> None:
    lines = ["    %v0 = negate %x: f32"]
    lines += [f"    %v{n} = add %v{n - 1}: f32, %x: f32" for n in range(1, DEEP)]
    text = of_body("\n".join(lines), result=f"%v{DEEP - 1}: f32")
    assert taken(text, "-O2", "--run", "@f(1)").out == f"{float(DEEP - 2)}: f32\n"


def test_deep_calls() -> None:
    text = of_body("", result="%x: f32").replace("@f", "@f0")
    for number in range(1, 1500):
        call = f"    %y = apply @f{number - 1}(%x) -> f32"
        text += of_body(call, result="%y: f32").partition("\n")[2].replace("@f:", f"@f{number}:")
    assert taken(text, "--run", "@f1499(1)").out == "1.0: f32\n"
    assert taken(text, "--stage", "compute").code == 0


def test_deep_structs() -> None:
    structs = ["struct $S0 { #a: f32 }"]
    structs += [f"struct $S{n} {{ #a: $S{n - 1} }}" for n in range(1, DEEP)]
    text = of_type(f"$S{DEEP - 1}").replace("\n", "\n" + "\n".join(structs) + "\n", 1)
    taken(text, "-O2")
    taken(text, "--run", "@f(1)")
    taken(text, "--emit", "llvm", tool="dlc")


def test_deep_enums() -> None:
    enums = ["enum $S0 { ?end }"]
    enums += [f"enum $S{n} {{ ?end, ?more($S{n - 1}) }}" for n in range(1, DEEP)]
    text = of_type(f"$S{DEEP - 1}").replace("\n", "\n" + "\n".join(enums) + "\n", 1)
    taken(text, "-O2")
    taken(text, "--stage", "optimizable", "-p", "dead-functions")
    assert taken(text, "--run", "@f(?end)").code == 0


def test_wide_structs_by_doubling() -> None:
    structs = ["struct $S0 { #a: f32, #b: f32 }"]
    structs += [f"struct $S{n} {{ #a: $S{n - 1}, #b: $S{n - 1} }}" for n in range(1, 60)]
    text = of_type("$S59").replace("\n", "\n" + "\n".join(structs) + "\n", 1)
    taken(text)
    taken(text, "-O2", "--stage", "compute")
    taken(text, "--emit", "llvm", tool="dlc")


SHAPES = {
    "one axis": "<9223372036854775807 x f32>",
    "product": "<4294967296 x 4294967296 x f32>",
    "beyond 64 bits": "<99999999999999999999 x f32>",
    "many digits": f"<{'9' * 100_000} x f32>",
    "large and empty": "<9223372036854775807 x 0 x f32>",
    "terabytes": "<1000000 x 1000000 x f32>",
    "arrays": "[9223372036854775807 x f32]",
    "arrays of nothing": "[1000000 x [1000000 x [1000000 x ()]]]",
    "arrays of arrays": "[1000000 x [1000000 x [1000000 x f32]]]",
    "negative": "<-1 x f32>",
}


@pytest.mark.parametrize("name", SHAPES)
def test_huge_shapes(name: str) -> None:
    text = of_type(SHAPES[name])
    taken(text)
    taken(text, "-O2", "--stage", "schedule")
    taken(text, "--run", "@f(0)")
    taken(text, "--emit", "llvm", tool="dlc")


LARGE = """\
    %y = literal 1: <1000000 x 1000000 x f32>
    %z = negate %y: <1000000 x 1000000 x f32>"""


def test_huge_values_are_refused_before_anything_is_allocated() -> None:
    assert "bytes of memory" in refused(of_body(LARGE), "--run", "@f(1)")


LITERALS = {
    "digits": "1" * 1_000_000 + ": f32",
    "exponent": "1e999999999: f32",
    "small": "1e-999999999: f32",
    "integer": "9223372036854775808: i64",
    "long fraction": "0." + "1" * 1_000_000 + ": f32",
    "string": '"' + "a" * 1_000_000,
    "wide": "<" + ", ".join(["1"] * 100_000) + ">: <100000 x f32>",
    "ragged": "<<1, 2>, <3>>: <2 x 2 x f32>",
    "wrong": "true: f32",
}


@pytest.mark.parametrize("name", LITERALS)
def test_huge_literals(name: str) -> None:
    taken(of_body(f"    %y = literal {LITERALS[name]}"), "-O2")


UNDEFINED = {
    "value": "    %y = negate %z: f32",
    "function": "    %y = apply @g(%x) -> f32",
    "struct": "    %y = literal {}: $S",
    "case": "    %y = literal ?a: $E",
    "block": "    branch 'b()",
    "operation": "    %y = frobnicate %x: f32",
    "dtype": "    %y = dataTypeCast %x: f32 to f31",
    "itself": "    %y = negate %y: f32",
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_names(name: str) -> None:
    message = refused(of_body(UNDEFINED[name]))
    assert "line 4, column" in message or "<stdin>:4" in message


CYCLES = {
    "struct": "struct $A { #a: $A }",
    "structs": "struct $A { #b: $B }\nstruct $B { #a: $A }",
    "enum": "enum $A { ?a($A) }",
    "enums": "enum $A { ?a($B) }\nenum $B { ?b($A) }",
    "alias": "type $A = $A",
    "aliases": "type $A = $B\ntype $B = $A",
    "tuple": "type $A = ($A, f32)",
    "gradient": "[gradient @g]\nfunc @g: (f32) -> f32",
    "gradients": "[gradient @h]\nfunc @g: (f32) -> f32\n[gradient @g]\nfunc @h: (f32) -> f32",
}


@pytest.mark.parametrize("name", CYCLES)
def test_cyclic_definitions(name: str) -> None:
    text = of_body("").replace("\n", f"\n{CYCLES[name]}\n", 1)
    refused(text)
    taken(text, "--no-verify", "-O2")


RECURSIVE = """\
module "m"
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @g(%x) -> f32
    return %y: f32
}
func @g: (f32) -> f32 {
'entry(%x: f32):
    %y = apply @f(%x) -> f32
    return %y: f32
}
[gradient @f]
func @df: (f32) -> f32
"""


OPTIONS = ["-O0", "-O2", "-O3", "-p inline", "--stage compute", "--stage schedule"]


@pytest.mark.parametrize("options", OPTIONS)
def test_endless_recursion_is_no_endless_compilation(options: str) -> None:
    taken(RECURSIVE, *options.split())
    taken(RECURSIVE.partition("[gradient")[0], *options.split())


def test_many_errors_are_told_in_reasonable_length() -> None:
    assert dlopt_of('module "m"\n' + "func @f: (f33) -> f32\n" * DEEP).code == 1
    wrong = "\n".join(f"    %v{n} = negate %w{n}: f32" for n in range(DEEP))
    refused(of_body(wrong))
