"""Text to tokens: words, numbers, names with their sigils, strings and punctuation.

Line breaks and `// comments` separate tokens and mean nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import ParseError

Kind: TypeAlias = Literal["word", "number", "name", "string", "punctuation", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """`text` as written, at `start` characters from the beginning."""

    kind: Kind
    text: str
    start: int


_WORD = r"[^\W\d][\w.]*"
_TOKEN = re.compile(
    rf"""
    (?P<skip>(?:[ \t\r\n]|//[^\n]*)+)
  | (?P<number>-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])|-?(?:inf|nan)(?![\w.]))
  | (?P<name>%[0-9]+(?:[.^][0-9]+)*(?:_[0-9]+)?|[@%'$\#?!](?:{_WORD}|[0-9]+))
  | (?P<string>"(?:[^"\\\n]|\\["\\ntr])*")
  | (?P<punctuation>->|[()\[\]<>{{}}:=,*+])
  | (?P<word>{_WORD})
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """All tokens, then one of kind `end`.  Raises: ParseError at a character that begins none."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            shown = text[position]
            hint = "a string that does not end" if shown == '"' else f"the character {shown!r}"
            raise parse_error(text, position, f"{hint} begins no token")
        kind = match.lastgroup
        if kind != "skip":
            tokens.append(Token(kind, match.group(), position))  # type: ignore[arg-type]
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def parse_error(text: str, position: int, message: str) -> ParseError:
    """The error with line, column, the line itself and a caret; both count from 1."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)].rstrip("\r")
    number, column = text.count("\n", 0, position) + 1, position - start + 1
    first = max(0, column - 60)
    shown = line[first : first + 100]
    caret = " " * (column - 1 - first) + "^"
    return ParseError(f"line {number}, column {column}: {message}\n  {shown}\n  {caret}")
