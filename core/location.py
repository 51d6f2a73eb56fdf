"""Where in the user's program something comes from."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Location:
    """A place in a source text; columns count characters from 0, the end is exclusive."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def excerpt(self) -> str:
        """`model.py:12  return x @ w + b` with a caret line under the columns."""
        label = f"{self.file.rpartition('/')[2]}:{self.line}"
        source = linecache.getline(self.file, self.line).rstrip("\n")
        text = source.strip()
        if not text:
            return label
        first = max(0, self.column - (len(source) - len(source.lstrip())))
        width = max(1, min(self.end_column - self.column, len(text) - first))
        head = f"{label}  "
        return f"{head}{text}\n{' ' * (len(head) + first)}{'^' * width}"


class HasLocation(Protocol):
    """Something that can say where it comes from, at a cost paid only when asked."""

    def resolve(self) -> Location | None:
        """The place in the user's source, if it is known."""
        ...
