"""From expressions to IR: one function per callee and types, names, structs, and errors with the way to them."""

from __future__ import annotations

import pytest

import nnkit as nk
from nnkit import Field, ShapeError, Struct, Tensor1D, f32, spec, staged
from nnkit.staging.names import identifier


class Layer(Struct):
    w: Field[Tensor1D[f32]]


def test_names_that_the_text_form_can_write() -> None:
    assert identifier("<lambda>") == "lambda" and identifier("f") == "f"
    assert identifier("a b-c") == "a_b_c" and identifier("1st") == "_1st" and identifier("") == "_"


def test_functions_of_one_name_are_numbered() -> None:
    first, second = staged(lambda x: x + 1.0), staged(lambda x: x + 2.0)
    text = staged(lambda x: first(second(x))).ir(spec((2,), f32))
    assert [name in text for name in ("func @lambda:", "func @lambda_1:", "func @lambda_2:")] == [
        True
    ] * 3


def test_one_function_for_each_shape() -> None:
    inner = staged(lambda x: x * 2.0)
    outer = staged(lambda x, y: (inner(x), inner(y), inner(x)))
    same = outer.ir(spec((2,), f32), spec((2,), f32))
    other = outer.ir(spec((2,), f32), spec((3,), f32))
    assert (same.count("func @"), other.count("func @")) == (2, 3)


def test_instructions_come_in_order_of_dependence_and_once() -> None:
    def body(x: nk.Rep) -> nk.Rep:
        shared = nk.exp(x)
        return shared * shared + shared

    text = staged(body).ir(spec((2,), f32))
    assert text.count("exp %") == 1
    assert text.index("exp %") < text.index("multiply %") < text.index("add %")


def test_what_is_not_used_is_not_emitted() -> None:
    def body(x: nk.Rep) -> nk.Rep:
        nk.exp(x)
        return x * 2.0

    assert "exp" not in staged(body).ir(spec((2,), f32))


def test_an_error_names_the_calls_that_led_to_it() -> None:
    inner = staged(lambda x, y: x @ y)
    middle = staged(lambda x: inner(x, x))
    outer = staged(lambda x: middle(x) * 2.0)
    with pytest.raises(ShapeError, match="inner dimensions 3 and 2 differ") as caught:
        outer.ir(spec((2, 3), f32))
    notes = [note for note in caught.value.__notes__ if "is called here" in note]
    assert len(notes) == 2 and "inner(x, x)" in notes[0] and "middle(x)" in notes[1]


def test_an_error_far_down_names_the_nearest_calls_only() -> None:
    function = staged(lambda x: x @ x)
    for _ in range(20):
        function = staged(lambda x, inner=function: inner(x))
    with pytest.raises(ShapeError) as caught:
        function.ir(spec((2, 3), f32))
    assert sum("is called here" in note for note in caught.value.__notes__) == 3


def test_operands_say_where_they_come_from() -> None:
    def body(x: nk.Rep, y: nk.Rep) -> nk.Rep:
        made = y * 2.0
        return x + made

    with pytest.raises(ShapeError) as caught:
        staged(body).ir(spec((2,), f32), spec((3,), f32))
    left, right = caught.value.__notes__
    assert "x is argument 0 of body: f32[2]" in left
    assert "the right operand is f32[3], made here" in right and "made = y * 2.0" in right
