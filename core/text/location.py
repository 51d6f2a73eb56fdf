"""Where in a text something stands; line and column are counted only when they are asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from ..location import Location
from .lexer import Token


class TextLocation(NamedTuple):
    """Where an instruction, a block, a definition or an attribute stands: the token that names it."""

    file: str
    text: str
    token: Token

    def resolve(self) -> Location:
        starts = _line_starts(self.text)
        line = bisect_right(starts, self.token.start)
        start = starts[line - 1]
        column = self.token.start - start
        end = self.text.find("\n", start)
        source = self.text[start : end if end >= 0 else len(self.text)]
        file = self.file or "<text>"
        return Location(file, line, column, column + len(self.token.text), source)


@lru_cache(maxsize=1)
def _line_starts(text: str) -> list[int]:
    """Where each line begins; kept for one text, of which there may be many messages."""
    return [0, *(match.end() for match in re.finditer("\n", text))]
