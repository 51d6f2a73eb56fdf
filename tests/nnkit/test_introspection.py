"""What a Python function says of itself: parameters, annotations, name and place."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit.introspection import hints_of, location_of, name_of, parameters_of


def plain(x: int, y: Any, z: float = 1.0, *, k: int = 2) -> None: ...


class Callable_:
    def __call__(self, x: int) -> None: ...

    def method(self, x: str) -> None: ...

    @staticmethod
    def static(x: bytes) -> None: ...


MANY = {
    "function": (plain, "plain", ("x", "y"), int), "method": (Callable_().method, "method", ("x",), str),
    "object": (Callable_(), "Callable_", ("x",), int), "static": (Callable_.static, "static", ("x",), bytes),
    "partial": (functools.partial(plain, 1), "plain", ("y",), int),
    "bound": (functools.partial(Callable_().method), "method", ("x",), str),
    "named": (functools.partial(plain, y=1), "plain", ("x",), int),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_everything_callable_says_what_it_is(name: str) -> None:
    function, called, parameters, hint = MANY[name]
    assert name_of(function) == called
    assert parameters_of(function) == parameters
    assert hints_of(function, {})["x"] is hint
    place = location_of(function)
    assert place is not None
    found = place.resolve()
    assert found is not None and found.file == __file__
    excerpt = found.excerpt()
    assert f"def {'__call__' if name == 'object' else called}(" in excerpt


def test_what_is_not_written_in_python_has_no_place() -> None:
    assert location_of(len) is None and parameters_of(len) == ("obj",)
    for function in (np.tanh, max):
        with (
            pytest.raises(nk.StagingError)
            if function is max
            else pytest.raises((nk.StagingError, AssertionError))
        ):
            assert parameters_of(function) == ()


def test_names_of_the_scope_and_of_enclosing_functions_are_found() -> None:
    class Inner: ...

    def uses(x: Inner) -> Any:
        return Inner

    assert hints_of(uses, {})["x"] is Inner
    assert hints_of(uses, {"Inner": int})["x"] is int

    def recursive(x: Inner) -> Any:
        return recursive(x), Inner

    assert hints_of(recursive, {})["x"] is Inner
