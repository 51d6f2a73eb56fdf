"""Elements of literals: every number of every element type reads back as itself."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import ParseError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Op, finish_function, start_function
from nnkit.core.ops import Literal, Return, dense, splat
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BF16, BOOL, DTYPES, F16, F32, F64, I8, I64, Array, DType, TensorType
from nnkit.core.verify import verify
from tests.nearest import all_nearest, half_ways
from tests.programs import same_bits

from .laws import error_of, in_function, last_value, parsed, reread


def module_of(literal: Literal) -> Module:
    b = start_function([])
    b.emit_many(Return(), [b.emit(literal)])
    module = Module()
    module.add(finish_function("f", b, literal.type))
    return module


def written(literal: Literal) -> str:
    """Between `literal` and the type."""
    line = print_module(module_of(literal)).splitlines()[5]
    return line.split("literal ")[1].rsplit(": ", 1)[0]


def read(text: str) -> Array:
    """The value of `literal text`."""
    type = text.rsplit(": ", 1)[1]
    body = f"    %y = literal {text}\n    return %y: {type}"
    found = evaluate(parsed(body, parameters="", result=type), "f")
    return np.asarray(found)


def refused(text: str) -> str:
    """Why `literal text` is an error."""
    return error_of(in_function(f"    %y = literal {text}")).splitlines()[0].split(": ", 1)[1]


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    """Any bits of any element type, one element or all of them."""
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    type = TensorType(shape, dtype)
    count = draw(st.sampled_from((1, type.size)))
    data = draw(st.binary(min_size=count * dtype.bytes, max_size=count * dtype.bytes))
    if dtype == BOOL:
        data = bytes(byte & 1 for byte in data)
    return Literal(type, data)


@given(literal=literals())
def test_any_bits_read_back(literal: Literal) -> None:
    module = module_of(literal)
    again = reread(module)
    if literal.type.size:
        assert same_bits(evaluate(again, "f"), evaluate(module, "f"))
        assert stored(again.functions["f"].entry.instructions[0].op) == stored(literal)


def stored(literal: Op) -> bytes:
    """All elements as they lie in memory."""
    assert isinstance(literal, Literal)
    return literal.data * (literal.type.size if literal.is_splat else 1)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
@given(data=st.data())
def test_a_nan_keeps_its_sign_and_payload(dtype: DType, data: st.DataObject) -> None:
    infinity = int.from_bytes(dtype.store(np.array(np.inf)).tobytes(), "little")
    payload = data.draw(
        st.one_of(st.just(dtype.quiet_bit), st.integers(1, 2 * dtype.quiet_bit - 1))
    )
    is_negative = data.draw(st.booleans())
    bits = is_negative << (dtype.bits - 1) | infinity | payload
    one = bits.to_bytes(dtype.bytes, "little")
    zero = bytes(dtype.bytes)
    is_plain = not is_negative and payload == dtype.quiet_bit
    hexadecimal = "nan" if is_plain else f"0x{bits:0{2 * dtype.bytes}x}"
    for literal, text in (
        (Literal(TensorType((), dtype), one), hexadecimal),
        (Literal(TensorType((2, 2), dtype), one), hexadecimal),
        (Literal(TensorType((2,), dtype), one + zero), f"<{hexadecimal}, 0.0>"),
    ):
        assert written(literal) == text
        assert reread(module_of(literal)).functions["f"].entry.instructions[0].op == literal


def test_any_float_may_be_written_by_its_bits() -> None:
    assert same_bits(read("0x3fc00000: f32"), np.float32(1.5))
    assert same_bits(read("<0xBE00, 2>: <2 x f16>"), np.array([-1.5, 2], np.float16))
    for text in ("0x7fc0: f32", "0x7fc00000: i32", "0x7fc00000: bf16", "0x1: bool"):
        with pytest.raises(ParseError, match="is not the bits of an element of"):
            read(text)


@pytest.mark.parametrize(
    ("dtype", "number", "text"),
    [
        (F64, 0.1, "0.1"),
        (F32, 0.1, "0.1"),
        (F16, 0.1, "0.1"),
        (BF16, 1.5, "1.5"),
        (F64, -0.0, "-0.0"),
        (F32, math.inf, "inf"),
        (F32, -math.inf, "-inf"),
        (F64, math.nan, "nan"),
        (F64, 5e-324, "5e-324"),
        (F32, 2.0**-149, "1e-45"),
        (F16, 6e-8, "6e-08"),
        (F64, 1.7976931348623157e308, "1.7976931348623157e+308"),
        (I64, -(2**63), "-9223372036854775808"),
        (I64, 2**63 - 1, "9223372036854775807"),
        (I8, -128, "-128"),
        (BOOL, True, "true"),
        (BOOL, False, "false"),
    ],
)
def test_a_number_is_written_as_short_as_it_can_be(dtype: DType, number: Any, text: str) -> None:
    literal = splat(TensorType((), dtype), number)
    assert written(literal) == text
    assert reread(module_of(literal)).functions["f"].entry.instructions[0].op == literal


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_digits_are_rounded_once(dtype: DType) -> None:
    """Half ways between two elements, written in full, and with a digit more far behind or less."""
    rng = np.random.default_rng(2)
    _, *middles = half_ways(dtype, rng, 20)  # the first is infinity, which a number cannot mean
    for middle in middles:
        exact = decimal_text(middle)
        for text in (exact, f"-{exact}", f"{exact}{'0' * 30}1", before(exact)):
            expected = all_nearest([Fraction(text)], dtype)[0]
            if np.isfinite(expected):
                assert same_bits(read(f"{text}: {dtype}"), expected), text


def decimal_text(number: Fraction) -> str:
    """All digits of a fraction whose denominator is a power of two."""
    digits = number.denominator.bit_length() - 1
    whole = number.numerator * 5**digits
    text = str(whole).rjust(digits + 1, "0")
    return f"{text[: len(text) - digits]}.{text[len(text) - digits :] or '0'}"


def before(text: str) -> str:
    """A number less in the last of many more digits."""
    digits = text.replace(".", "") + "0" * 30
    less = str(int(digits) - 1).rjust(len(digits), "0")
    point = text.index(".")
    return f"{less[:point]}.{less[point:]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("65520.0: f16", "65520.0 is too large for f16"),
        ("-65520.0: f16", "-65520.0 is too large for f16"),
        ("1.00000000000000000000000000001: i64", "is not an integer"),
    ],
)
def test_rounding_neither_overflows_nor_makes_integers_silently(text: str, message: str) -> None:
    assert message in refused(text)
    assert read("65519.9999999999999999999999: f16") == 65504.0


def test_equal_elements_are_written_once() -> None:
    three = TensorType((3,), F32)
    assert written(splat(three, 2)) == "2.0"
    assert written(dense(three, np.full(3, 2.0))) == "2.0"
    assert written(Literal(three, np.full(3, 2.0, np.float32).tobytes())) == "2.0"
    assert written(dense(three, np.array([0.0, -0.0, 0.0]))) == "<0.0, -0.0, 0.0>"


def test_rows_are_nested_by_axis() -> None:
    literal = dense(TensorType((2, 1, 2), I64), np.arange(4).reshape(2, 1, 2))
    assert written(literal) == "<<<0, 1>>, <<2, 3>>>"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_an_empty_literal_reads_back(dtype: DType) -> None:
    for type in (TensorType((0,), dtype), TensorType((2, 0, 3), dtype)):
        for literal in (splat(type, 0), Literal(type, b"")):
            assert evaluate(reread(module_of(literal)), "f").shape == type.shape


def test_a_large_dense_literal_reads_back() -> None:
    values = np.random.default_rng(0).standard_normal((100, 50)).astype(np.float32)
    module = module_of(dense(TensorType((100, 50), F32), values))
    assert same_bits(evaluate(reread(module), "f"), values)


def test_many_literals_do_not_count_as_nesting() -> None:
    line = "    %{} = literal <<1, 2>, <3, 4>>: <2 x 2 x f32>"
    body = "\n".join([*(line.format(f"a{i}") for i in range(300)), "    return"])
    assert len(parsed(body).functions["f"].entry.instructions) == 301


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zero: <2 x f32>", np.zeros(2, np.float32)),
        ("zero: bool", np.array(False)),
        ("1: <2 x f32>", np.ones(2, np.float32)),
        ("2.0: i64", np.array(2)),
        ("1e3: f32", np.array(1000, np.float32)),
        ("-2.5E-1: f64", np.array(-0.25)),
        ("1e2: i8", np.array(100, np.int8)),
        ("<1: f32, 2: f32>: <2 x f32>", np.array([1, 2], np.float32)),
        (
            "<<1: i64, 2: i64>: <2 x i64>, <3: i64, 4: i64>: <2 x i64>>: <2 x 2 x i64>",
            np.array([[1, 2], [3, 4]]),
        ),
        ("<9007199254740993, 1.0>: <2 x i64>", np.array([2**53 + 1, 1])),
        ("<true, false>: <2 x bool>", np.array([True, False])),
        ("<-inf, nan>: <2 x f64>", np.array([-math.inf, math.nan])),
        ("18446744073709551616: f64", np.array(2.0**64)),
    ],
)
def test_what_dlvm_writes_is_read(text: str, expected: Array) -> None:
    assert same_bits(read(text), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("300: i8", "300 is out of range for i8: -128 to 127"),
        ("9223372036854775808: i64", "9223372036854775808 is out of range for i64"),
        ("0.5: i32", "0.5 is not an integer"),
        ("nan: i32", "nan is not an integer"),
        ("inf: bool", "inf is not a bool: write true or false"),
        ("2: bool", "2 is not a bool: write true or false"),
        ("true: f32", "a bool is not an element of f32"),
        ("<1, true>: <2 x i64>", "a bool is not an element of i64"),
        ("1e400: f64", "1e400 is beyond every element type; infinity is inf"),
        ("1e39: f32", "1e+39 is too large for f32; infinity is inf"),
        ("70000: f16", "70000.0 is too large for f16; infinity is inf"),
        ("3.4e38: bf16", "3.4e+38 is too large for bf16; infinity is inf"),
        (f"{'9' * 350}: f64", "a number is too large for f64; infinity is inf"),
        (f"{'9' * 5000}: f64", "the number has too many digits"),
        ("1: (f32)", "this literal is a tensor, not a (f32)"),
        ("zero: (f32, stack)", "there is no zero of stack"),
        ("null: f32", "null is a pointer, a box, a stack or a function, not a f32"),
        ("[1: f32]: (f32)", "this literal is an array, not a (f32)"),
        ("[1: f32]: [2 x f32]", "[2 x f32] is made of 2 elements, not 1"),
        ("[1: f64]: [1 x f32]", "[1 x f32] is made of f32, not f64"),
        ("?a: f32", "this literal is a case of an enum, not a f32"),
        ("@g", "there is no function @g"),
        ("@f: f32", "@f is a function or the pointer to a variable, not a f32"),
        ("<1, 2>: <3 x f32>", "rows of shape [2] are no <3 x f32>"),
        ("<1>: f32", "rows of shape [1] are no f32"),
        ("<<1>, <2, 3>>: <2 x 1 x f32>", "a row of 2 stands beside rows of 1"),
        ("<1, <2>>: <2 x f32>", "the rows of this literal are not nested equally deep"),
        ("<<1>, 2>: <2 x f32>", "the rows of this literal are not nested equally deep"),
        ("<1: f32, 2: f64>: <2 x f32>", "an element here is a f32, not a f64"),
        ("<<1>: <2 x f32>>: <1 x 1 x f32>", "an element here is a <1 x f32>, not a <2 x f32>"),
        ("<>: <0 x f32>", "a number was expected, not '>'"),
        ("<1; 2>: <2 x f32>", "the character ';' begins no token"),
        ("<1 2>: <2 x f32>", "',' or '>' was expected, not '2'"),
        ("<1, 2: <2 x f32>", "',' or '>' was expected, not '}'"),
        ("x: f32", "a literal was expected, not 'x'"),
        ("%x: <3 x f32>", "a literal was expected, not '%x'"),
        (": f32", "a literal was expected, not ':'"),
        ("1", "':' was expected, not '}'"),
        ("1: <f32>", "a tensor type has at least one extent, <2 x f32>; a scalar is f32"),
        ("<" * 10_000, "nested more than 100 levels deep"),
    ],
)
def test_what_fits_no_type_is_refused(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_splat_keeps_its_one_element() -> None:
    module = parse_module(
        in_function("    %y = literal 1.5: <1000 x 1000 x f32>\n    return %y: <1000 x 1000 x f32>")
    )
    producer = last_value(module).producer
    assert producer is not None and isinstance(producer.op, Literal)
    assert len(producer.op.data) == 4


def test_rows_may_be_values() -> None:
    rows = "<%a: <2 x i64>, <%c: i64, 7: i64>: <2 x i64>, <8, 9>: <2 x i64>>"
    module = parse_module(f"""module "m"
    func @f: (<2 x i64>, i64) -> <3 x 2 x i64> {{
    'entry(%a: <2 x i64>, %c: i64):
        %x = literal {rows}: <3 x 2 x i64>
        return %x: <3 x 2 x i64>
    }}""")
    found = evaluate(module, "f", np.array([1, 2]), 5)
    assert found.tolist() == [[1, 2], [5, 7], [8, 9]]
    again = parse_module(print_module(module))
    assert print_module(again) == print_module(module)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<<1: f32, 2: f32>: <2 x f32>, zero: <2 x f32>>: <2 x 2 x f32>", [[1, 2], [0, 0]]),
        ("<7: <2 x f32>, <1, 2>: <2 x f32>>: <2 x 2 x f32>", [[7, 7], [1, 2]]),
        ("<1: <2 x i8>, 2: <2 x i8>>: <2 x 2 x i8>", [[1, 1], [2, 2]]),
        ("<<true: <1 x bool>>: <1 x 1 x bool>>: <1 x 1 x 1 x bool>", [[[True]]]),
        ("<1: f32, undefined: f32>: <2 x f32>", [1, 0]),
        ("<undefined: <2 x i8>, -1: <2 x i8>>: <2 x 2 x i8>", [[0, 0], [-1, -1]]),
    ],
)
def test_one_number_with_the_type_of_a_row_is_the_row(text: str, expected: object) -> None:
    type = text.rpartition(": ")[2]
    module = parse_module(f"""module "m"
    func @f: () -> {type} {{
    'entry():
        return {text}
    }}""")
    verify(module)
    assert evaluate(module, "f").tolist() == expected
    again = parse_module(print_module(module))
    assert print_module(again) == print_module(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<1: <2 x i64>, 2>: <2 x 2 x i64>", "':' was expected, not '>'"),
        ("<1: <2 x i64>>: <1 x 3 x i64>", "a row of <1 x 3 x i64> is a <3 x i64>, not a <2 x i64>"),
        ("<%a: i64, %b: i64>: <3 x i64>", "<3 x i64> has 3 rows, not 2"),
        ("<%a: i64>: <1 x f32>", "a row of <1 x f32> is a f32, not a i64"),
        ("<%a: i64>: (i64)", "this literal is a tensor of rows, not a (i64)"),
    ],
)
def test_rows_of_values_must_fit(text: str, message: str) -> None:
    module = f"""module "m"
    func @f: (i64, i64) -> i64 {{
    'entry(%a: i64, %b: i64):
        %x = literal {text}
        return %a: i64
    }}"""
    with pytest.raises(ParseError) as caught:
        parse_module(module)
    assert message in str(caught.value)
