"""A position among tokens: what every parsing function takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ParseError
from ..types import StructType, TensorType
from .lexer import Token, parse_error, tokenize, unquoted

MAX_DEPTH = 100
"""How deeply types, literals and regions may nest."""

_INT64 = range(-(1 << 63), 1 << 63)


class Cursor:
    """Tokens of `text`, the next one to read, and the structs defined so far.

    `tensors` remembers tensor types by their text, with the number of tokens they take.
    """

    def __init__(self, text: str, file: str = "") -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.file = file
        self.tokens = tokenize(self.text, file)
        self.position = 0
        self.token = self.tokens[0]
        self.depth = 0
        self.structs: dict[str, StructType] = {}
        self.tensors: dict[str, tuple[TensorType, int]] = {}

    def ahead(self, count: int) -> Token:
        """The token `count` places further on, or the end."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Read a token."""
        token = self.token
        if token.kind != "end":
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def skip(self, count: int) -> None:
        """Read `count` tokens that are known not to be the end."""
        self.position += count
        self.token = self.tokens[self.position]

    def at(self, text: str) -> bool:
        """Whether the next token is this word or punctuation."""
        return self.token.text == text

    def accept(self, text: str) -> bool:
        """Read the word or punctuation if it is next."""
        if self.token.text != text:
            return False
        self.position += 1
        self.token = self.tokens[self.position]
        return True

    def expect(self, text: str) -> None:
        """Read the word or punctuation.  Raises: ParseError when something else is next."""
        if not self.accept(text):
            raise self.error(f"{text!r} was expected, not {self.token.shown}")

    def separated(self, close: str, is_first: bool) -> bool:
        """Whether another element of a list follows: reads the comma before it, or `close`."""
        if self.accept(close):
            return False
        if not is_first and not self.accept(","):
            raise self.error(f"',' or {close!r} was expected, not {self.token.shown}")
        return True

    def one_of(self, words: Sequence[str]) -> str:
        """Read one of these words."""
        for word in words:
            if self.accept(word):
                return word
        raise self.error(f"{alternatives(words)} was expected, not {self.token.shown}")

    def name(self, sigil: str, what: str) -> str:
        """Read a name with `sigil`; without it."""
        token = self.token
        if token.kind != "name" or token.text[0] != sigil:
            raise self.error(f"{what} {sigil}… was expected, not {token.shown}")
        self.skip(1)
        return self.string(token, token.text[1:]) if token.text[1] == '"' else token.text[1:]

    def string(self, token: Token, text: str) -> str:
        """What `text`, the string in `token`, says."""
        found = unquoted(text)
        if found is None:
            raise self.error_at(token, r"a string has no escapes but \" \\ \n \t \r")
        return found

    def integer(self) -> int:
        """Read an integer."""
        token = self.next()
        if token.kind != "integer":
            raise self.error_at(token, f"an integer was expected, not {token.shown}")
        # Python refuses to convert thousands of digits
        number = int(token.text) if len(token.text) <= 20 else 1 << 64
        if number not in _INT64:
            raise self.error_at(token, f"the integer {token.shown} does not fit into 64 bits")
        return number

    def descend(self) -> None:
        """Note one more level of nesting; `ascend` takes it back."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep")

    def ascend(self) -> None:
        self.depth -= 1

    def error(self, message: str, position: int | None = None) -> ParseError:
        """An error at the next token, or at the token of number `position`."""
        return self.error_at(self.tokens[self.position if position is None else position], message)

    def error_at(self, token: Token, message: str) -> ParseError:
        return parse_error(self.text, token.start, message, self.file)


def alternatives(words: Sequence[str]) -> str:
    """`'a', 'b' or 'c'`."""
    *most, last = map(repr, words)
    return f"{', '.join(most)} or {last}" if most else last
