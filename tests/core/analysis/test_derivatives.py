"""Types of gradient declarations, and what is wrong with wrong ones."""

from __future__ import annotations

import pytest

from nnkit.core.analysis.derivatives import declared_type, derivative_type
from nnkit.core.errors import DifferentiationError
from nnkit.core.ir import Function, GradientOf, TangentOf
from nnkit.core.types import (
    BOOL,
    F32,
    F64,
    I32,
    VOID,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

X = TensorType((2, 3), F64)
W = TensorType((3,), F32)
N = TensorType((3,), I32)
B = TensorType((), BOOL)
PARAMS = StructType("Params", (("w", W), ("step", N)))
STATE = StructType("State", (("step", N), ("done", B)))
ONE = FunctionType((X, W, N, PARAMS), X)
TWO = FunctionType((X, W), TupleType((X, N, W)))


def test_derivatives_come_in_the_order_of_wrt_then_kept_results() -> None:
    declared = derivative_type(TWO, GradientOf("f", sources=(2,), wrt=(1, 0), keeping=(1, 0)))
    assert declared == FunctionType((X, W), TupleType((W, X, N, X)))


def test_one_result_is_not_a_tuple() -> None:
    assert derivative_type(ONE, GradientOf("f", wrt=(1,))) == FunctionType(ONE.parameters, W)


def test_all_parameters_without_wrt() -> None:
    assert derivative_type(TWO, GradientOf("f", sources=(0,))).result == TupleType((X, W))


@pytest.mark.parametrize(
    ("results", "choice"),
    [
        ((X, W), "2 results, say from 0 or from 1"),
        ((N, W), "2 results, say from 1"),
        ((X, N, W, X), "4 results, say from 0 or from 2 or from 3"),
        ((X, X, X, X), "4 results, say from 0, from 1, … or from 3"),
        ((N, B), "2 results, none of them with floats: only floats have a gradient"),
    ],
)
def test_of_several_results_one_has_to_be_named(results: tuple[Type, ...], choice: str) -> None:
    primal = FunctionType((X,), TupleType(results))
    with pytest.raises(DifferentiationError, match=f"names no result: @f has {choice}$"):
        derivative_type(primal, GradientOf("f"))


def test_the_result_of_a_tuple_of_one_is_not_named() -> None:
    primal = FunctionType((X,), TupleType((W,)))
    assert derivative_type(primal, GradientOf("f", seedable=True)) == FunctionType((X, W), X)


PAIR = TupleType((X, W))


@pytest.mark.parametrize(
    ("primal", "declaration", "plain"),
    [
        (ONE, GradientOf("f", wrt=(1,)), W),
        (ONE, TangentOf("f", wrt=(1,)), X),
        (TWO, TangentOf("f", sources=(2,)), W),
        (FunctionType((PAIR,), X), GradientOf("f"), PAIR),
        (FunctionType((X,), TupleType((PAIR,))), TangentOf("f"), PAIR),
    ],
)
def test_one_result_may_be_declared_as_a_tuple_of_one(
    primal: FunctionType, declaration: GradientOf | TangentOf, plain: Type
) -> None:
    for result, wanted in (
        (plain, plain),
        (TupleType((plain,)), TupleType((plain,))),
        (TupleType((TupleType((plain,)),)), plain),
        (TupleType((plain, plain)), plain),
    ):
        expected = declared_type(primal, Function("d", FunctionType((), X), None, declaration))
        declared = FunctionType(expected.parameters, result)
        found = declared_type(primal, Function("d", declared, None, declaration))
        assert found == FunctionType(expected.parameters, wanted)


def test_several_results_are_not_a_tuple_in_a_tuple() -> None:
    for declaration in (
        GradientOf("f", wrt=(0,), keeping=(0,)),
        TangentOf("f", wrt=(0,), keeping=(0,)),
    ):
        right = declared_type(ONE, Function("d", FunctionType((), X), None, declaration))
        wrong = FunctionType(right.parameters, TupleType((right.result,)))
        assert declared_type(ONE, Function("d", wrong, None, declaration)) == right


def test_the_seed_comes_last_and_has_the_type_of_the_result() -> None:
    declared = derivative_type(TWO, GradientOf("f", sources=(2,), wrt=(0,), seedable=True))
    assert declared.parameters == (X, W, W)


def test_the_gradient_of_a_struct_is_that_struct() -> None:
    assert derivative_type(ONE, GradientOf("f", wrt=(3,))).result == PARAMS


@pytest.mark.parametrize(
    ("primal", "declaration", "message"),
    [
        (ONE, GradientOf("f", wrt=(4,)), "wrt 4 is out of range: @f has 4 parameters"),
        (ONE, GradientOf("f", wrt=(-1,)), "wrt -1 is out of range: @f has 4 parameters"),
        (FunctionType((X,), X), GradientOf("f", wrt=(1,)), "@f has 1 parameter$"),
        (ONE, GradientOf("f", wrt=(0, 1, 0)), "names parameter 0 twice"),
        (ONE, GradientOf("f", wrt=()), "wrt of the gradient of @f is empty"),
        (FunctionType((), X), GradientOf("f"), "wrt of the gradient of @f is empty"),
        (ONE, GradientOf("f", wrt=(2,)), r"parameter 2 of @f is i32\[3\]: only floats"),
        (ONE, GradientOf("f"), r"parameter 2 of @f is i32\[3\]: only floats"),
        (
            FunctionType((STATE,), X),
            GradientOf("f"),
            r"parameter 0 of @f is \$State \(#step: i32\[3\], #done: bool\[\]\): only floats",
        ),
        (FunctionType((TupleType((N,)),), X), GradientOf("f"), r"is a tuple \(0: i32\[3\]\)"),
        (TWO, GradientOf("f", sources=(5,)), "from 5 is out of range: @f has 3 results"),
        (ONE, GradientOf("f", sources=(1,), wrt=(0,)), "from 1 is out of range: @f has 1 result$"),
        (TWO, GradientOf("f", sources=(1,)), r"result 1 of @f is i32\[3\]: only floats"),
        (FunctionType((X,), VOID), GradientOf("f"), "@f returns nothing"),
        (
            TWO,
            GradientOf("f", sources=(0,), keeping=(3,)),
            "keeping 3 is out of range: @f has 3 results",
        ),
        (TWO, GradientOf("f", sources=(0,), keeping=(1, 1)), "keeping of @f names result 1 twice"),
    ],
)
def test_wrong_declarations(primal: FunctionType, declaration: GradientOf, message: str) -> None:
    with pytest.raises(DifferentiationError, match=message):
        derivative_type(primal, declaration)


def test_messages_name_the_parameter_when_its_name_is_known() -> None:
    with pytest.raises(DifferentiationError, match=r"parameter 2 \(labels\) of @f is i32\[3\]"):
        derivative_type(ONE, GradientOf("f", wrt=(2,)), ["x", "w", "labels", None])
