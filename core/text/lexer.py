"""Text to tokens: words, numbers, names with their sigils, strings and punctuation.

Line breaks and `// comments` separate tokens and mean nothing else.  A name is a sigil and a word, or a
sigil and a string: `%x`, `@"any name"`.  A tensor type as it is printed is one token: most of a program's
text is types.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from ..errors import ParseError
from ..types import DTYPES, WORD, quoted, written

TokenKind: TypeAlias = Literal[
    "integer", "float", "name", "tensor", "string", "punctuation", "word", "wrong", "end"
]
"""`wrong` is what begins no token."""

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_DECIMAL = r"-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"
_FLOAT = rf"(?:{_DECIMAL}|-?(?:inf|nan)|0x[0-9a-fA-F]+)(?![\w.])"
_ANONYMOUS = r"%[0-9]+(?:[.^][0-9]+)*(?:_[0-9]+)?"
# The first that matches is taken: frequent ones come first, `float` before `word`, as `inf` is both.
_GROUPS: tuple[tuple[TokenKind, str], ...] = (
    ("name", rf"{_ANONYMOUS}|[@%'$\#?!](?:{WORD}|[0-9]+(?!\w)|{_STRING})"),
    ("tensor", rf"<(?:[0-9]+ x )+(?:{'|'.join(DTYPES)})>"),
    ("integer", r"-?[0-9]+(?![\w.])"),
    ("punctuation", r"->|[()\[\]<>{}:=,*+]"),
    ("float", _FLOAT),
    ("word", WORD),
    ("string", _STRING),
    ("end", r"\Z"),
    ("wrong", r"[0-9][\w.]*|."),
)
_KINDS: tuple[TokenKind, ...] = ("wrong", *(kind for kind, _ in _GROUPS))
_TOKEN = re.compile(
    r"(?:[ \t\n\f\v\ufeff]+|//[^\n]*)*(?:" + "|".join(f"({p})" for _, p in _GROUPS) + ")",
    re.DOTALL,
)
_MOST_SHOWN, _SHOWN_BEFORE, _SHOWN_OF_LINE = 40, 60, 100
"""Characters in messages: of a token; of a line, before what is wrong and in all.  A matter of taste."""

_ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t", "\\r": "\r"}


class TextError(ParseError):
    """One error, `position` characters from the beginning of the text."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class FollowUpError(TextError):
    """What follows from an error that has been reported: a use of a value whose definition failed."""


class Token(NamedTuple):
    """`text` as written, at `start` characters from the beginning."""

    kind: TokenKind
    text: str
    start: int

    @property
    def shown(self) -> str:
        """For messages."""
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= _MOST_SHOWN else f"{self.text[:_MOST_SHOWN]}…")


def tokenize(text: str) -> list[Token]:
    """All tokens, then one of kind `end`."""
    tokens = [
        Token(_KINDS[index := match.lastindex or 0], match[index], match.start(index))
        for match in _TOKEN.finditer(text)
    ]
    if len(tokens) > 1 and tokens[-2].kind == "end":  # before and after a last line break
        tokens.pop()
    return tokens


def unquoted(token: str) -> str | None:
    """What a string token says; None when it has an escape that does not exist."""
    try:
        return re.sub(r"\\.", lambda escape: _ESCAPED[escape[0]], token[1:-1])
    except KeyError:
        return None


def name_of(token: Token) -> str:
    """The name that a token with a sigil says; the token itself where its escapes are wrong."""
    text = token.text[1:]
    return unquoted(text) or text if text[:1] == '"' else text


def is_counted(name: str) -> bool:
    """Whether a name only counts, as `0.1` does: it is not kept."""
    return "0" <= name[:1] <= "9"


def located(text: str, position: int, message: str, file: str = "") -> str:
    """The message with line, column, the line itself and a caret; both count from 1."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    number, column = text.count("\n", 0, position) + 1, position - start
    first = max(0, column - _SHOWN_BEFORE)
    shown = "".join(
        c if c.isprintable() or c == "\t" else "�" for c in line[first : first + _SHOWN_OF_LINE]
    )
    caret = "".join("\t" if c == "\t" else " " for c in line[first:column])
    place = f"{file}, line" if file else "line"
    return f"{place} {number}, column {column + 1}: {message}\n  {shown}\n  {caret}^"


def explained(text: str) -> str:
    """Why `text` begins no token."""
    if text == '"':
        return "this string does not end on its line, or has a wrong escape"
    if text[0].isdigit():
        return f"{text!r} is not a number; extents are written with spaces, 784 x 10"
    if text in "@%'$#?!":
        return f"a name was expected after {text!r}"
    return f"the character {text!r} begins no token"


__all__ = [
    "FollowUpError", "TextError", "Token", "TokenKind", "explained", "is_counted", "located",
    "name_of", "quoted", "tokenize", "unquoted", "written",
]  # fmt: skip
