"""Places in the user's program: the line, the columns under the caret, and that our own frames are skipped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nnkit as nk
from nnkit import ShapeError, staged
from nnkit.staging.location import (
    DefinitionLocation,
    SourceLocation,
    current_location,
    is_own_file,
    with_location,
)


def place_of(location: Any) -> Any:
    found = location.resolve()
    assert found is not None
    return found


def test_own_files_are_those_of_the_package() -> None:
    package = Path(nk.__file__).parent
    for name in ("callables.py", "staging/rep.py", "core/types.py", "jit/llvm.py", "nn/initial.py"):
        assert is_own_file(str(package / name))
    for name in ("../examples/digits.py", "../model.py"):
        assert not is_own_file(str(package / name).replace("nnkit/../", ""))
    assert not is_own_file("<stdin>") and not is_own_file(__file__)


def test_the_columns_are_those_of_characters() -> None:
    größe = SourceLocation((lambda é, x: é + x).__code__, 0)
    assert place_of(größe).file == __file__
    caught: list[Any] = []

    def mark(_: Any, marked: Any) -> Any:
        frame = sys._getframe(1)
        caught.append(place_of(SourceLocation(frame.f_code, frame.f_lasti)))
        return marked

    mark("ééé", "wider than ASCII: 数"), mark(1, 2)
    assert [p.excerpt().splitlines()[1].count("^") for p in caught] == [
        len('mark("ééé", "wider than ASCII: 数")'),
        len("mark(1, 2)"),
    ]


def test_what_spans_lines_is_marked_on_the_first() -> None:
    caught: list[Any] = []

    def mark(*_: Any) -> None:
        frame = sys._getframe(1)
        caught.append(place_of(SourceLocation(frame.f_code, frame.f_lasti)).excerpt())

    mark(  # a comment
        1,
        2,
    )
    code, carets = caught[0].splitlines()
    assert code.endswith("mark(  # a comment") and carets.strip() == "^" * len("mark(  # a comment")


def test_definitions() -> None:
    def decorated() -> None: ...

    excerpt = place_of(DefinitionLocation(decorated.__code__)).excerpt().splitlines()
    assert "def decorated()" in excerpt[0] and excerpt[1].strip() == "^" * len("decorated")
    body = place_of(DefinitionLocation((lambda x: x + 1).__code__)).excerpt().splitlines()
    start = body[1].index("^")
    assert body[0][start : start + body[1].count("^")] == "x + 1"


def test_code_without_a_file_has_a_line_only() -> None:
    scope: dict[str, Any] = {"nk": nk, "staged": staged}
    exec("f = staged(lambda x: x +\n x.cast(nk.f64))", scope)
    try:
        scope["f"].ir(nk.spec((2,), nk.f32))
    except nk.DTypeError as error:
        assert "<string>:1" in str(error)


def test_here_is_the_user() -> None:
    location = current_location()
    assert location is not None and place_of(location).file == __file__


def test_a_help_in_the_message_becomes_a_note() -> None:
    error = with_location(ShapeError("wrong\n  help: do this"), None)
    assert str(error) == "wrong" and error.__notes__ == ["  help: do this"]
    assert with_location(ShapeError("wrong"), None, "that").__notes__ == ["  help: that"]
