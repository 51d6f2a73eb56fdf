"""`each` tries every row, names those that fail, and leaves the other parameters to pytest."""

from __future__ import annotations

import inspect

import pytest

from .rows import each


def test_every_row_is_tried_and_those_that_fail_are_named() -> None:
    tried: list[tuple[int, str, str]] = []

    @each("word", ["p", "q"])
    @each("number, more", [(0, "x"), pytest.param(1, "y", id="one"), (2, "z")], ids=repr)
    def law(number: int, more: str, word: str, fixture: str) -> None:
        tried.append((number, more, word + fixture))
        assert number != 1 or word != "p"

    assert list(inspect.signature(law).parameters) == ["fixture"]
    with pytest.raises(AssertionError) as caught:
        law(fixture="!")
    assert len(tried) == 6 and tried[1] == (1, "y", "p!")
    assert caught.value.__notes__ == ["in the row one", "in the row p"]


def test_some_of_many_failures_are_shown() -> None:
    @each("number", range(20))
    def law(number: int) -> None:
        assert number < 2

    with pytest.raises(ExceptionGroup, match="18 of 20 rows fail") as caught:
        law()
    assert len(caught.value.exceptions) < 10
