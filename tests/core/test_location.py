"""Places in a text: the line and what a caret stands under, wherever the text is known from."""

from __future__ import annotations

from pathlib import Path

from nnkit.core.errors import ShapeError
from nnkit.core.location import Location, derivative_location, located


def test_the_line_comes_from_the_file_or_from_who_made_the_place(tmp_path: Path) -> None:
    file = tmp_path / "model.dl"
    file.write_text("module\n  %y = exp %x\n")
    expected = "model.dl:2  %y = exp %x\n                 ^^^"
    assert Location(str(file), 2, 7, 10).excerpt() == expected
    assert Location("gone/model.dl", 2, 7, 10, "  %y = exp %x").excerpt() == expected
    assert Location("<stdin>", 2, 0, 1, "").excerpt() == "<stdin>:2"
    assert Location("gone/model.dl", 2, 7, 10).excerpt() == "model.dl:2"


def test_of_a_long_line_the_surroundings_are_shown() -> None:
    line = f"literal <{', '.join(map(str, range(10_000)))}>"
    for column in (0, 5_000, len(line) - 1):
        shown, caret = Location("a.dl", 1, column, column + 1, line).excerpt().splitlines()
        assert len(shown) < 200 and shown[caret.index("^")] == line[column]


def test_what_cannot_be_printed_is_not() -> None:
    shown, caret = Location("a.dl", 1, 3, 4, "\x1b[\tx").excerpt().splitlines()
    assert shown == "a.dl:1  �[\tx"
    assert caret == " " * 8 + "  \t^"


def test_errors_are_located_once() -> None:
    class At:
        def resolve(self) -> Location:
            return Location("a.dl", 1, 0, 3, "exp %x")

    error = located(located(ShapeError("no"), At()), None)
    assert str(error) == "no"
    assert error.__notes__ == ["  a.dl:1  exp %x\n          ^^^"]


def test_the_place_of_a_derivative_is_that_of_the_first_op() -> None:
    place = Location("model.py", 3)
    first = derivative_location(_Known(place), "sqrt")
    assert first.resolve() == place and first.op == "sqrt"
    assert derivative_location(first, "divide") is first
    assert derivative_location(None, "sqrt").resolve() is None


class _Known:
    def __init__(self, place: Location) -> None:
        self.place = place

    def resolve(self) -> Location:
        return self.place
