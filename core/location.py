"""Where in the user's program something comes from."""

from __future__ import annotations

import linecache
import sys
from dataclasses import field
from typing import Any, Protocol, TypeVar

from .lazy_dataclass import dataclass

_WIDEST = 160
"""Of a longer line, so many characters are shown: two lines of a terminal, any more hide the message. A matter of
taste."""


@dataclass(frozen=True)
class Location:
    """A place in a source text; columns count characters from 0, the end is exclusive."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    source: str | None = field(default=None, compare=False, repr=False)
    """The line, where the text is known; else it is looked up in the file."""

    @property
    def label(self) -> str:
        """`model.py:12`, `Cell In[3]:1`."""
        return f"{_cell(self.file) or self.file.rpartition('/')[2]}:{self.line}"

    def excerpt(self) -> str:
        """`model.py:12  return x @ w + b` with a caret line under the columns."""
        label = self.label
        known = self.source
        source = linecache.getline(self.file, self.line) if known is None else known
        source = source.rstrip("\n")
        text = source.strip()
        if not text:
            return label
        first = max(0, self.column - (len(source) - len(source.lstrip())))
        width = max(1, min(self.end_column - self.column, len(text) - first))
        if len(text) > _WIDEST:  # as a large literal: what is around the place
            cut = max(0, min(first - _WIDEST // 2, len(text) - _WIDEST))
            text, first = text[cut : cut + _WIDEST], first - cut
            width = min(width, _WIDEST - first)
        shown = "".join(c if c.isprintable() or c == "\t" else "�" for c in text)
        caret = "".join("\t" if c == "\t" else " " for c in text[:first]) + "^" * width
        head = f"{label}  "
        return f"{head}{shown}\n{' ' * len(head)}{caret}"


def _cell(file: str) -> str | None:
    """What IPython calls a cell, which it compiles under a path that it makes up; None for any other file."""
    ipython: Any = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    compiler: Any = getattr(shell, "compile", None)
    words = compiler.format_code_name(file) if hasattr(compiler, "format_code_name") else None
    return " ".join(words) if words else None


class HasLocation(Protocol):
    """Something that can say where it comes from, at a cost paid only when asked."""

    def resolve(self) -> Location | None:
        """The place in the user's source, if it is known."""
        ...


@dataclass(frozen=True)
class DerivativeLocation:
    """The place of an instruction that belongs to the derivative of the op `op`, which stands at `primal`."""

    primal: HasLocation | None
    op: str

    def resolve(self) -> Location | None:
        """The place of the op."""
        return self.primal.resolve() if self.primal is not None else None


def derivative_location(primal: HasLocation | None, op: str) -> DerivativeLocation:
    """The place of what belongs to the derivative of `op`; of a derivative's derivative, that of the first op."""
    return primal if isinstance(primal, DerivativeLocation) else DerivativeLocation(primal, op)


Error = TypeVar("Error", bound=Exception)


def located(error: Error, location: HasLocation | None) -> Error:
    """`error` with the user's line as a note, where it is known."""
    place = location.resolve() if location else None
    if place:
        error.add_note("\n".join(f"  {line}" for line in place.excerpt().splitlines()))
    return error
