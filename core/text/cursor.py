"""A position among tokens: what every parsing function takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ParseError
from ..types import StructType
from .lexer import Token, parse_error, tokenize

MAX_DEPTH = 200
"""How deeply types, literals and regions may nest."""


class Cursor:
    """Tokens of `text`, the next one to read, and the structs defined so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.position = 0
        self.depth = 0
        self.structs: dict[str, StructType] = {}

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def ahead(self, count: int) -> Token:
        """The token `count` places further on, or the end."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Read a token."""
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def back(self) -> None:
        """Unread the token that `next` gave."""
        if self.token.kind != "end" or self.position == len(self.tokens) - 1:
            self.position -= self.tokens[self.position - 1].kind != "end"

    def at(self, text: str) -> bool:
        """Whether the next token is this word or punctuation."""
        token = self.token
        return token.text == text and token.kind in ("word", "punctuation")

    def accept(self, text: str) -> bool:
        """Read the word or punctuation if it is next."""
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Read the word or punctuation.  Raises: ParseError when something else is next."""
        if not self.accept(text):
            raise self.error(f"{text!r} was expected, not {self.shown}")

    def one_of(self, words: Sequence[str]) -> str:
        """Read one of these words."""
        for word in words:
            if self.accept(word):
                return word
        raise self.error(f"{', '.join(words[:-1])} or {words[-1]} was expected, not {self.shown}")

    def name(self, sigil: str, what: str) -> str:
        """Read a name with `sigil`; without it."""
        token = self.token
        if token.kind != "name" or token.text[0] != sigil:
            raise self.error(f"{what} {sigil}… was expected, not {self.shown}")
        self.position += 1
        return token.text[1:]

    def integer(self) -> int:
        """Read an integer."""
        return self.as_integer(self.next())

    def as_integer(self, token: Token) -> int:
        """The integer that `token` is."""
        if token.kind != "number" or not token.text.lstrip("-").isdecimal():
            raise self.error_at(token, f"an integer was expected, not {_shown(token)}")
        if len(token.text) > 20:
            raise self.error_at(token, "the integer is too large")
        return int(token.text)

    def descend(self) -> None:
        """Note one more level of nesting; `ascend` takes it back."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep")

    def ascend(self) -> None:
        self.depth -= 1

    @property
    def shown(self) -> str:
        """The next token, for messages."""
        return _shown(self.token)

    def error(self, message: str, position: int | None = None) -> ParseError:
        """An error at the next token, or at the token of number `position`."""
        return self.error_at(self.tokens[self.position if position is None else position], message)

    def error_at(self, token: Token, message: str) -> ParseError:
        return parse_error(self.text, token.start, message)


def _shown(token: Token) -> str:
    return "the end of the text" if token.kind == "end" else repr(token.text)
