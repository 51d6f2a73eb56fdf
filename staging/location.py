"""Source locations of Reps: captured as a byte code offset (0.5 µs), resolved to lines only when an error is printed.

Frames of NNKit's own packages are skipped, so that the place is the user's.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from functools import cache, singledispatch
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ..core.lazy_dataclass import dataclass
from ..core.location import HasLocation, Location
from .segmented_stack import FIRST, waiting_frame

_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_DISPATCH = singledispatch.__code__.co_filename
"""The folder of the package as it is imported: a link to this one lies in it."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A position in byte code: line and columns are looked up by `resolve`."""

    code: CodeType
    offset: int

    def resolve(self) -> Location | None:
        """The place in the source text; None for code without positions."""
        start, end, column, end_column = next(
            islice(self.code.co_positions(), self.offset // 2, None), (None, None, None, None)
        )
        return None if start is None else _place(self.code, start, end, column, end_column)


@dataclass(frozen=True, slots=True)
class DefinitionLocation:
    """Where a function is defined: the name after `def`, or the body of a lambda."""

    code: CodeType

    def resolve(self) -> Location | None:
        """The line, with the function's name marked; not that of its decorators."""
        file, number = self.code.co_filename, self.code.co_firstlineno
        if self.code.co_name == "<lambda>":
            return self._body()
        for line in range(number, number + _MOST_DECORATORS):
            match = re.search(
                rf"\bdef\s+({re.escape(self.code.co_name)})\b", linecache.getline(file, line)
            )
            if match:
                return Location(file, line, *match.span(1))
        return Location(file, number)

    def _body(self) -> Location | None:
        """From the first to the last column of the first line of the code that has any.

        Python 3.12 gives none to a constant: then it is the word `lambda`, if the line has one.
        """
        spans = [span for span in self.code.co_positions() if span[3] and span[2] != span[3]]
        if not spans:
            file, number = self.code.co_filename, self.code.co_firstlineno
            words = [*re.finditer(r"(?<!<)\blambda\b", linecache.getline(file, number))]
            if len(words) != 1:
                return Location(file, number)
            return Location(file, number, *words[0].span())
        line = min(start for start, *_ in spans if start is not None)
        first = [span for span in spans if span[0] == line]
        column = min(column or 0 for _, _, column, _ in first)
        last = max(end or 0 for start, stop, _, end in first if stop == start)
        return _place(self.code, line, line, column, last)


def _place(
    code: CodeType, start: int, end: int | None, column: int | None, end_column: int | None
) -> Location:
    """Columns of byte code count bytes; what goes on over several lines is marked on the first."""
    line = linecache.getline(code.co_filename, start).encode()
    last = end_column or 0 if end == start else len(line.rstrip())
    first = len(line[: column or 0].decode(errors="ignore"))
    return Location(code.co_filename, start, first, len(line[:last].decode(errors="ignore")))


_MOST_DECORATORS = 20
"""Lines that decorators may take before a `def`: further down, it may be another function of that name. More than
anybody stacks."""


def current_location() -> SourceLocation | None:
    """The innermost frame outside NNKit."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_own_frame(frame):
            return SourceLocation(code, frame.f_lasti)
        frame = waiting_frame() if code is FIRST else frame.f_back
    return None


def is_own_frame(frame: FrameType) -> bool:
    """Whether code of NNKit runs in it, methods that `dataclass` generates included."""
    file = frame.f_code.co_filename
    if file == "<string>":
        file = frame.f_globals.get("__file__") or file
    return is_own_file(file)


@cache
def is_own_file(name: str) -> bool:
    """Whether source file `name` belongs to NNKit, or dispatches for it."""
    return name.startswith(_PACKAGE) or name == _DISPATCH


HELP = "\n  help: "
"""What stands before the help in a message."""


def with_location(error: Any, location: HasLocation | None, help: str = "") -> Any:
    """`error` with the user's line and caret in its message, and a note that helps.

    A help that the message ends with becomes that note.
    """
    message, _, told = str(error.args[0]).partition(HELP)
    help = help or told
    error.args = (message, *error.args[1:])
    place = location.resolve() if location else None
    if place is not None:
        excerpt = place.excerpt().replace("\n", "\n  ")
        error.args = (f"{error.args[0]}\n  {excerpt}", *error.args[1:])
    if help:
        error.add_note(f"  help: {help}")
    return error
