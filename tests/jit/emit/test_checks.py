"""What a failed check is as an error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Tensor1D, f64, i64
from nnkit.core.errors import (
    CheckError,
    IndexOutOfRangeError,
    InternalError,
    NNKitError,
    OutOfMemoryError,
    RecursionDepthError,
    ShapeError,
    TrapError,
)
from nnkit.jit.emit.checks import error_of
from nnkit.jit.emit.sites import CheckSite, Problem

CASES: list[tuple[Problem, type[NNKitError], type[Exception], str]] = [
    (
        Problem.INDEX,
        IndexOutOfRangeError,
        IndexError,
        "index 7 is out of range for an axis of extent 5",
    ),
    (Problem.TRIPS, ShapeError, ValueError, "7 iterations cannot fill an axis of 5"),
    (Problem.DEPTH, RecursionDepthError, RecursionError, "@f is called too deeply"),
    (Problem.MEMORY, RecursionDepthError, RecursionError, "there are no 5 bytes of memory"),
    (
        Problem.KEPT,
        OutOfMemoryError,
        MemoryError,
        "5 bytes are kept, and there are no 7 bytes more",
    ),
]


@pytest.mark.parametrize(("problem", "kind", "builtin", "message"), CASES)
def test_every_problem_is_an_error_that_says_both_numbers(
    problem: Problem, kind: type[NNKitError], builtin: type[Exception], message: str
) -> None:
    error = error_of(CheckSite(None, problem, "f"), 7, 5)
    assert isinstance(error, kind) and isinstance(error, builtin)
    assert message in str(error) and "5" in str(error)


TRAPS = [
    (Problem.ADDRESS, 0, "load from null"),
    (Problem.ADDRESS, 1, "load from memory out of bounds"),
    (Problem.STOP, 0, "load from"),
    (Problem.EXTERN, 7, "the extern function @f failed with the code 7"),
]


@pytest.mark.parametrize(("problem", "number", "message"), TRAPS)
def test_traps_say_what_the_program_wanted(problem: Problem, number: int, message: str) -> None:
    error = error_of(CheckSite(None, problem, "f", "load from"), number, 0)
    assert isinstance(error, TrapError) and str(error) == message


USERS: list[tuple[Problem, type[NNKitError], str]] = [
    (Problem.CHECK, CheckError, "the message"),
    (Problem.RAISED, InternalError, "an exception of Python's was not raised again"),
]


@pytest.mark.parametrize(("problem", "kind", "message"), USERS)
def test_checks_of_users_say_their_message(
    problem: Problem, kind: type[NNKitError], message: str
) -> None:
    error = error_of(CheckSite(None, problem, text="the message"), 0, 0)
    assert type(error) is kind and str(error) == message


def test_every_problem_has_a_case() -> None:
    assert {problem for problem, *_ in (*CASES, *TRAPS, *USERS)} == set(Problem)


@nk.staged
def sines_at(x: Rep[Tensor1D[f64]], i: Rep[Tensor1D[i64]]) -> Rep[Tensor1D[f64]]:
    """Costly enough for vectors of indices."""
    return nk.sin(nk.take(x, i)) + nk.take(x, i) * 2.0


@given(st.integers(1, 40), st.integers(0, 39), st.sampled_from([9, 10, 2**40]))
def test_a_vector_of_indices_names_the_first_that_is_outside(
    count: int, place: int, wrong: int
) -> None:
    x, at = np.arange(9.0), np.arange(count) % 9
    np.testing.assert_allclose(sines_at(x, at).numpy(), np.sin(x[at]) + 2 * x[at], rtol=1e-14)
    at[place % count :] = wrong
    at[place % count + 1 :] += 9
    with pytest.raises(IndexError, match=f"index {wrong} is out of range for an axis of extent 9"):
        sines_at(x, at)
