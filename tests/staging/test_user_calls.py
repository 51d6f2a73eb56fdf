"""Calls of the user's functions: how deeply they nest, what is said where that is too deep, and who may stage."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import StagingError, cond, f64, spec, staged
from nnkit.staging.user_calls import MOST_NESTED, call_user, staging_lock
from tests.patience import PATIENCE

from ..threads import run_in_thread

X = spec((2,), f64)


def chain(length: int, innermost: Callable[[Any], Any] = nk.sin) -> Any:
    """A staged function that calls another one, which calls another one …"""
    h = staged(lambda x: innermost(x))
    for _ in range(length):
        h = staged(lambda x, inner=h: inner(x) * 0.5 + x)
    return h


def refused(work: Callable[[], object], seconds: float = 60.0) -> tuple[str, list[str], str]:
    """The first line of the error, the lines of code in it, and its notes."""
    start = time.process_time()
    with pytest.raises(StagingError) as caught:
        work()
    assert time.process_time() - start < seconds * PATIENCE
    first, *rest = str(caught.value).split("\n")
    return first, rest, "\n".join(caught.value.__notes__)


def test_functions_nested_too_deeply_are_named_as_nested() -> None:
    first, shown, notes = refused(lambda: chain(MOST_NESTED).ir(X))
    assert (
        first
        == "functions are nested more than 5,000 deep: <lambda> → <lambda> → … → <lambda> → <lambda>"
    )
    assert "test_user_calls.py" in shown[0] and "inner(x) * 0.5 + x" in shown[0]
    assert "5,000 of them are made here; if each makes the next one" in notes
    assert "help: pass what the inner ones return as an argument" in notes


def test_bodies_nested_too_deeply_are_named_as_nested() -> None:
    def nest(x: Any, left: int) -> Any:
        return cond(x.sum() > 0.0, lambda: nest(x + 1.0, left - 1), lambda: x) if left else x

    first, shown, _ = refused(lambda: staged(lambda x: nest(x, MOST_NESTED)).ir(X))
    assert first.startswith(
        "functions are nested more than 5,000 deep: <lambda> → the first branch of cond → …"
    )
    assert "cond(x.sum() > 0.0" in shown[0]


def test_a_recursion_is_named_as_recursion() -> None:
    @staged
    def growing(x: Any) -> Any:
        return growing(nk.tup(x, x))

    first, shown, notes = refused(lambda: growing.ir(X))
    assert (
        first
        == "recursion of growing is too deep: 5,000 calls are inside each other while it is staged"
    )
    assert (
        "return growing(nk.tup(x, x))" in shown[0]
        and "call it again in a branch of `cond`" in notes
    )


def test_a_recursion_of_python_names_its_function() -> None:
    def helper(x: Any) -> Any:
        return helper(x) + 1.0

    first, shown, _ = refused(lambda: staged(lambda x: helper(x)).ir(X))
    limit = f"{sys.getrecursionlimit():,}"
    assert first == (
        f"recursion of helper is too deep while <lambda> is staged: Python's limit is {limit} calls inside each other"
    )
    assert "return helper(x) + 1.0" in shown[0]


def test_python_functions_have_most_of_the_stack_however_deep_they_are() -> None:
    def helper(x: Any, left: int) -> Any:
        return helper(x * 0.5, left - 1) if left else x

    limit = sys.getrecursionlimit()
    assert chain(300, lambda x: helper(x, limit // 2)).ir(X).count("func @") == 301
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("depth", [0, 1, 200])
def test_errors_name_the_line_of_the_user(depth: int) -> None:
    with pytest.raises(nk.DTypeError) as caught:
        chain(depth, lambda x: x + np.ones(2, np.int64)).ir(X)
    assert "test_user_calls.py" in str(caught.value) and "x + np.ones(2, np.int64)" in str(
        caught.value
    )


@pytest.mark.parametrize("kibibytes", [64, 256, 2048])
def test_threads_with_small_stacks_stage_as_deeply(kibibytes: int) -> None:
    found: list[str] = []
    results: list[float] = []

    def work() -> None:
        found.append(chain(500).ir(X))
        results.extend(chain(100)(np.ones(2)).numpy())

    run_in_thread(kibibytes << 10, work)
    assert found[0].count("func @") == 501 and len(results) == 2


def test_threads_that_stage_the_same_functions_wait_for_each_other() -> None:
    h, found, barrier = chain(200), [], threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        found.append(h.ir(X))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_the_lock_is_taken_again_by_who_has_it() -> None:
    order: list[str] = []

    def other() -> None:
        with staging_lock():
            order.append("other")

    thread = threading.Thread(target=other)
    with staging_lock(), staging_lock():
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_calls_are_forgotten_when_they_fail() -> None:
    def fails() -> None:
        raise KeyError

    for _ in range(MOST_NESTED + 1):
        with pytest.raises(KeyError):
            call_user("fails", fails)
    assert call_user("works", lambda: 7) == 7
