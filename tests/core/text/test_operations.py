"""Operations as DLVM writes them, which is wider than what we print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, TensorType, TupleType
from nnkit.core.verify import verify
from tests.programs import same_bits

from .laws import error_of, in_function, last_value, parsed, reread

MATRIX = "%x: <2 x 3 x f32>"
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
PAIR = "struct $Pair { #a: f32, #b: <2 x f32> }\n"


def value(line: str, result: str, parameters: str = MATRIX, *arguments: Any) -> Any:
    """What `%y = line` gives, after printing and parsing as well."""
    body = f"    %y = {line}\n    return %y: {result}"
    module = parsed(body, parameters=parameters, result=result)
    return evaluate(module, "f", *(arguments or (X,)))


@pytest.mark.parametrize(
    ("line", "result", "expected"),
    [
        ("transpose %x: <2 x 3 x f32>", "<3 x 2 x f32>", X.T),
        ("transpose %x: <2 x 3 x f32> permuting 0, 1", "<2 x 3 x f32>", X),
        ("transpose %x: <2 x 3 x f32> permuting (1, 0)", "<3 x 2 x f32>", X.T),
        ("slice %x: <2 x 3 x f32> from 1 upto 2", "<1 x 3 x f32>", X[1:2]),
        ("slice %x: <2 x 3 x f32> from (0, 1) upto (2, 3)", "<2 x 2 x f32>", X[0:2, 1:3]),
        ("slice %x: <2 x 3 x f32> from 0, 0 upto 2, 3 strides 1, 2", "<2 x 2 x f32>", X[:, ::2]),
        ("matrixMultiply %x: <2 x 3 x f32>, <1, 2, 3>: <3 x f32>", "<2 x f32>", X @ [1, 2, 3]),
        ("add %x: <2 x 3 x f32>, 1.5: f32", "<2 x 3 x f32>", X + 1.5),
        ("add %x: <2 x 3 x f32>, 1: <2 x 3 x f32>", "<2 x 3 x f32>", X + 1),
        ("subtract 1e1: f32, %x: <2 x 3 x f32>", "<2 x 3 x f32>", 10 - X),
        ("add zero: f32, <1, 2, 3>: <3 x f32>", "<3 x f32>", np.array([1, 2, 3])),
        ("select %x: <2 x 3 x f32>, 0: f32 by true: bool", "<2 x 3 x f32>", X),
        ("reduce %x: <2 x 3 x f32> by add along 0", "<3 x f32>", X.sum(0)),
        ("reduce %x: <2 x 3 x f32> by add init 10: f32 along 0", "<3 x f32>", X.sum(0) + 10),
        ("reduce %x: <2 x 3 x f32> by max init 2: f32 along 0, 1", "f32", np.float32(3)),
        ("reduce %x: <2 x 3 x f32> by min init 0: f32 along 1", "<2 x f32>", np.minimum(X.min(1), 0)),
        ('reduce %x: <2 x 3 x f32> by builtin "max" along 1', "<2 x f32>", X.max(1)),
        ("scan %x: <2 x 3 x f32> by add along 1", "<2 x 3 x f32>", X.cumsum(1)),
        ("concatenate %x: <2 x 3 x f32>, 7: <2 x 1 x f32> along 1", "<2 x 4 x f32>",
         np.concatenate([X, np.full((2, 1), 7)], 1)),
        ("shapeCast %x: <2 x 3 x f32> to 3 x 2", "<3 x 2 x f32>", X.reshape(3, 2)),
        ("padShape %x: <2 x 3 x f32> at 1", "<2 x 1 x 3 x f32>", X[:, None]),
        ("dataTypeCast %x: <2 x 3 x f32> to f64", "<2 x 3 x f64>", X.astype(np.float64)),
    ],
)  # fmt: skip
def test_dlvm_operations(line: str, result: str, expected: Any) -> None:
    found = value(line, result)
    assert same_bits(found, np.asarray(expected).astype(found.dtype))


def test_an_inline_literal_becomes_an_instruction() -> None:
    module = parsed("    return 1.5: f32", parameters="", result="f32")
    assert "    %0.0 = literal 1.5: f32\n    return %0.0: f32\n" in print_module(module)
    assert evaluate(module, "f") == np.float32(1.5)


def test_a_tuple_may_be_returned_as_it_is_made() -> None:
    body = "    return (%x: f32, (2: f32): (f32)): (f32, (f32))"
    module = parsed(body, parameters="%x: f32", result="(f32, (f32))")
    assert evaluate(module, "f", np.float32(1)) == (1, (2,))


def test_scalars_are_cast_to_scalar_shape() -> None:
    one = np.ones((1, 1), np.float32)
    cast = "shapeCast %x: <1 x 1 x f32> to scalar"
    assert value(cast, "f32", "%x: <1 x 1 x f32>", one) == np.float32(1)


def test_tuples_and_structs() -> None:
    text = in_function(
        """    %p = literal {#b = <1, 2>: <2 x f32>, #a = %x: f32}: $Pair
    %t = literal (%p: $Pair, (1: f32, %x: f32): (f32, f32), (): void): ($Pair, (f32, f32), void)
    %b = extract 0, #b from %t: ($Pair, (f32, f32), void)
    %o = literal (%b: <2 x f32>): (<2 x f32>)
    return %o: (<2 x f32>)""",
        parameters="%x: f32",
        result="(<2 x f32>)",
    )
    module = parse_module(text.replace("stage raw\n", f"stage raw\n{PAIR}"))
    verify(module)
    [found] = evaluate(reread(module), "f", np.float32(5))
    assert same_bits(found, np.array([1, 2], np.float32))
    assert last_value(module).type == TupleType((TensorType((2,), F32),))


CALLS = """module "m"
func @g: (f32, f32) -> f32 {{
'b(%x: f32, %y: f32):
    %z = subtract %x: f32, %y: f32
    return %z: f32
}}
func @nothing: () -> void {{
'b():
    return
}}
func @f: (f32) -> f32 {{
'b(%x: f32):
    apply @nothing(): () -> void
    %n = apply @nothing() -> void
    %y = {}
    return %y: f32
}}
"""


@pytest.mark.parametrize(
    "line",
    [
        "apply @g(%x, %x): (f32, f32) -> f32",
        "apply @g(%x, %x) -> f32",
        "apply @g(%x: f32, %x: f32) -> f32",
        "apply @g(%x: f32, %x): (f32, f32) -> f32",
        "apply @g(3: f32, 3e0: f32) -> f32",
        'apply @"g"(%x, %x) -> f32',
    ],
)
def test_calls_name_their_types_or_not(line: str) -> None:
    module = parse_module(CALLS.format(line))
    verify(module)
    again = reread(module)
    assert "= apply @g(%" in print_module(again)
    assert evaluate(again, "f", np.float32(3)) == 0


def test_a_return_of_nothing_ends_where_the_next_block_begins() -> None:
    text = in_function("    return\n'next():\n    %y = negate %x: <3 x f32>\n    return")
    blocks = parse_module(text).functions["f"].body
    assert blocks is not None and [len(block.instructions) for block in blocks.blocks] == [1, 2]


def test_results_of_the_next_instruction_are_no_operands() -> None:
    text = in_function("    return\n    %a = negate %x: <3 x f32>\n    return %a: <3 x f32>")
    instructions = parse_module(text).functions["f"].entry.instructions
    assert [i.op.name for i in instructions] == ["return", "negate", "return"]
    assert not instructions[0].operands


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%y = ad %x: <3 x f32>", "there is no instruction 'ad': did you mean pad, and or add?"),
        ("%y = convolve %x: <3 x f32>", "'kernel' was expected, not '}'"),
        ("%y = NEGATE %x: <3 x f32>", "there is no instruction 'NEGATE': did you mean negate?"),
        ("%y = transpose %x: <3 x f32> permutng 0", "did you mean permuting?"),
        ("%y = add %x: <3 x f32>", "',' was expected, not '}'"),
        ("%y = add %x: <3 x f32>,", "a value %… or a literal was expected, not '}'"),
        ("%y = add %x: <3 x f32>, %z: f32", "the value %z is not defined here"),
        ("%y = add %x: <3 x f64>, 1: f32", "%x is a <3 x f32>, not a <3 x f64>"),
        ("%y = add %x, %x: <3 x f32>", "':' was expected, not ','"),
        ("%y = add %x: <3 x f32>, 1: f64", "element types f32 and f64 differ"),
        ("%y = add %x: <3 x f32>, <1, 2>: <2 x f32>", "extents 3 and 2 differ"),
        ("%y = slice %x: <3 x f32> from 1, 2", "'upto' was expected, not '}'"),
        ("%y = slice %x: <3 x f32> from x upto 2", "an integer was expected, not 'x'"),
        ("%y = slice %x: <3 x f32> from 1.5 upto 2", "an integer was expected, not '1.5'"),
        ("%y = slice %x: <3 x f32> from 2 upto 9", "slice 2:9 of axis 0 is out of range"),
        ("%y = reduce %x: <3 x f32> by sum along 0", "operations are add, multiply, min, max, and, or, subtract"),
        ("%y = reduce %x: <3 x f32> by builtin \"mean\"", "no operation to combine with is called"),
        ("%y = reduce %x: <3 x f32> by add init 1: f64 along 0", "element types f64 and f32 differ"),
        ("%y = dataTypeCast %x: <3 x f32> to i128", "there is no i128: integers have 8, 16, 32 or 64 bits"),
        ("%y = scan %x: <3 x f32> by add along 0 reverse 1", "'true' or 'false' was expected, not '1'"),
        ("%y = gather %x: <3 x f32> at 1: i64 along 0 bounds no", "'inside', 'zero', 'clip' or 'check'"),
        ("%x = negate %x: <3 x f32>", "the value %x is defined twice"),
        ("%a, %b = negate %x: <3 x f32>", "negate has 1 results, not 2"),
        ("%a = return", "return has 0 results, not 1"),
        ("%a %b = negate %x: <3 x f32>", "',' or '=' was expected, not '%b'"),
        ("%a =", "an instruction was expected, not '}'"),
        ("1", "an instruction, a block or '}' was expected, not '1'"),
        ("%y = apply @f(%x) <3 x f32>", "':' or '->' was expected, not '<3 x f32>'"),
        ("%y = apply %x(%x) -> f32", "apply calls a function; %x is a <3 x f32>"),
        ("%y = apply @f(%x): f32", "a function type (T, U) -> R was expected"),
        ("%y = apply @f(%x): (f32) -> f32", "the arguments (<3 x f32>) are not those of (f32) -> f32"),
        ("%y = apply @f(%x %x)", "',' or ')' was expected, not '%x'"),
        ("%y = literal (%x: <3 x f32>): <3 x f32>", "this literal is a tuple, not a <3 x f32>"),
        ("%y = literal {}: void", "this literal is a struct, not a void"),
        ("%y = literal (%x: <3 x f32>): (f32)", "(<3 x f32>) are not the elements of (f32)"),
        ("%y = extract 3 from %x: <3 x f32>", "<3 x f32> has no element 3: it has 3"),
        ("%y = extract x from %x: <3 x f32>", "the number of an element or a field #… was expected"),
        ("%t = literal (1: f32): (f32)\n %y = negate %t: (f32)", "negate takes tensors; %t is a (f32)"),
        ("%y = reduce (): void by add along 0", "reduce takes tensors; an operand is a void"),
        ("%y = iota 1000000000000 x 1000000000000 along 0 as f32", "larger than the address space"),
        (f"%y = iota {10**30} along 0 as f32", "does not fit into 64 bits"),
        (f"%y = squeezeShape %x: <3 x f32> at {2**63}", "does not fit into 64 bits"),
        ("%y = negate %x: $S", "the type $S is not defined"),
        ("%y = negate %x: ?", "a name was expected after '?'"),
        ("%y = negate %x: 3x4", "'3x4' is not a number; extents are written with spaces, 784 x 10"),
        ("%y = negate %x: <3 x 4 f32>", "'x' was expected, not 'f32'"),
        ("%y = negate %x: <3 x f32", "'>' was expected, not '}'"),
        ("%y = negate %x: <3 x i7>", "there is no i7: integers have 8, 16, 32 or 64 bits"),
        ("%y = negate %x: <-3 x f32>", "an axis is negative"),
        ("%y = negate %x: tensor", "a type was expected, not 'tensor'"),
    ],
)  # fmt: skip
def test_what_is_no_operation_is_explained(line: str, message: str) -> None:
    assert message in error_of(in_function(f"    {line}"))


def test_a_struct_literal_names_every_field_once() -> None:
    for fields in ("#a = %x: f32", "#a = %x: f32, #a = %x: f32", "#a = %x: f32, #c = %x: f32"):
        text = in_function(f"    %p = literal {{{fields}}}: $Pair", parameters="%x: f32")
        message = error_of(text.replace("stage raw\n", f"stage raw\n{PAIR}"))
        assert "$Pair has #a, #b" in message
