"""Where a Rep is made: captured in half a microsecond, resolved only when an error is printed.

Frames of NNKit's own packages are skipped, so that the place is the user's.
"""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from ..core.location import Location

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_OWN = tuple(
    f"{root}/{name}/"
    for root in {_PACKAGE, str(Path(_PACKAGE) / "nnkit")}
    for name in ("nnkit", "staging", "core", "jit")
)


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A position in byte code: line and columns are looked up by `resolve`."""

    code: CodeType
    offset: int

    def resolve(self) -> Location | None:
        """The place in the source text; None for code without positions."""
        start, _, column, end_column = next(
            islice(self.code.co_positions(), self.offset // 2, None), (None, None, None, None)
        )
        if start is None:
            return None
        file = self.code.co_filename
        line = linecache.getline(file, start).encode()
        # columns of byte code count bytes
        first = len(line[: column or 0].decode(errors="ignore"))
        return Location(file, start, first, len(line[: end_column or 0].decode(errors="ignore")))


@dataclass(frozen=True, slots=True)
class DefinitionLocation:
    """Where a function is defined: its `def` line, not that of its decorators."""

    code: CodeType

    def resolve(self) -> Location | None:
        """The line, with the function's name marked."""
        file, number = self.code.co_filename, self.code.co_firstlineno
        for line in range(number, number + _MOST_DECORATORS):
            match = re.search(
                rf"\bdef\s+({re.escape(self.code.co_name)})\b", linecache.getline(file, line)
            )
            if match:
                return Location(file, line, *match.span(1))
        return Location(file, number)


_MOST_DECORATORS = 20
"""Lines that decorators may take before a `def`."""


def here() -> SourceLocation | None:
    """The innermost frame outside NNKit."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_own_file(frame.f_code.co_filename):
            return SourceLocation(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


@cache
def is_own_file(name: str) -> bool:
    """Whether source file `name` belongs to NNKit (its `nn` library is written as a user's)."""
    return name.startswith(_OWN) and "/nnkit/nn/" not in name
