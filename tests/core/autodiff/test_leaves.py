"""Tuples and structs as their tensors."""

from __future__ import annotations

from nnkit.core.autodiff.leaves import (
    declared,
    leaf_count,
    mask_of,
    members,
    returned,
    split,
    tensors_in,
)
from nnkit.core.ir import Builder
from nnkit.core.types import (
    F32,
    I32,
    VOID,
    FunctionType,
    StructType,
    TupleType,
    scalar,
)

X = scalar(F32)
MEANING = FunctionType((X,), X)
PARAMS = StructType("Params", (("w", X), ("inner", TupleType((scalar(I32), VOID, MEANING)))))
NESTED = TupleType((PARAMS, X, PARAMS))


def test_tensors_are_counted_left_to_right_and_functions_are_none() -> None:
    assert tensors_in(NESTED) == (X, scalar(I32), X, X, scalar(I32))
    assert leaf_count([NESTED, VOID, X]) == 6


def test_the_tensors_of_a_value() -> None:
    b = Builder()
    assert tuple(x.type for x in split(b, b.argument(NESTED))) == tensors_in(NESTED)
    given = b.argument(X)
    assert split(b, given) == (given,)


def test_masks_are_sets_of_positions() -> None:
    assert list(members(mask_of([5, 0, 64, 5]))) == [0, 5, 64]
    assert mask_of([]) == 0


def test_a_declaration_speaks_of_the_element_of_a_tuple_of_one() -> None:
    b = Builder()
    x = b.argument(X)
    pair = FunctionType((), TupleType((X, X)))
    one = FunctionType((), TupleType((X,)))
    assert returned(b, pair, [x, x]) == declared(b, pair, [x, x]) == [x, x]
    (whole,) = returned(b, one, [x])
    assert whole.type == one.result
    assert [y.type for y in declared(b, one, [whole])] == [X]


def test_the_one_derivative_by_a_tuple_is_returned_as_its_elements() -> None:
    b = Builder()
    both = b.argument(TupleType((X, X)))
    found = returned(b, FunctionType((), both.type), [both])
    assert [y.type for y in found] == [X, X]
