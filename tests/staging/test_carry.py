"""Values taken apart and put together: one Rep, tuples of Reps, and what is neither."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnkit import DTypeError, RankError, Rep, StagingError, Tensor1D, const, f32, f64, tup
from nnkit.staging.carry import call_function, carry_of, conform

X = const(Tensor1D([1.0, 2.0], f32))
Y = const(Tensor1D([1.0, 2.0], f64))


def carry(value: Any) -> Any:
    return carry_of(value, "the test carries", Rep)


@pytest.mark.parametrize("value", [X, (X, Y), (X, (Y, X), (Y,)), tup(X, Y)])
def test_parts_are_arranged_again_as_they_were(value: Any) -> None:
    taken = carry(value)
    again = carry(taken.of(taken.parts))
    assert again.parts == taken.parts and again.like(taken)
    assert again.words == taken.words


def test_types_and_arrangements_are_compared() -> None:
    assert not carry(X).like(carry(Y))
    assert not carry((X, X)).like(carry(tup(X, X)))
    assert not carry((X, (X, X))).like(carry(((X, X), X)))
    assert isinstance(carry(X).mismatch(carry(Y), "m"), DTypeError)
    assert isinstance(carry(X).mismatch(carry(X[0]), "m"), RankError)
    assert isinstance(carry((X, Y)).mismatch(carry(tup(X, Y)), "m"), StagingError)


def test_concrete_arrays_become_constants() -> None:
    assert carry((np.ones(2, np.float32), X)).words == "tuple[Tensor1D[f32], Tensor1D[f32]]"


@pytest.mark.parametrize("value", [None, (), [X], "x", {}, (X, None)])
def test_other_things_are_refused(value: Any) -> None:
    with pytest.raises(StagingError, match="the test carries"):
        carry(value)


def test_a_rep_of_a_tuple_is_unpacked_where_a_tuple_is_wanted() -> None:
    pair = tup(X, Y)
    assert isinstance(conform(pair, (Rep, Rep)), tuple)
    assert conform(pair, Rep) is pair and conform(pair, (Rep, Rep, Rep)) is pair


def test_a_function_with_defaults_is_called_without_them() -> None:
    assert call_function(lambda x, y=3: (x, y), (1,), "it") == (1, 3)
    assert call_function(max, (1, 2), "it") == 2
    with pytest.raises(
        StagingError, match="it is called with 1 argument, which <lambda> does not take"
    ):
        call_function(lambda: 3, (1,), "it")
