"""A position among tokens: what every parsing function takes, with the errors found so far."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import ParamSpec, TypeVar

from ..types import TensorType, Type
from .lexer import FollowUpError, TextError, Token, explained, located, tokenize, unquoted
from .spelling import in_text_form

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_DEPTH = 100
"""How deeply types and literals may nest, and definitions of types build on each other: hashing a type takes three of
Python's 1000 frames for each level, and failed at 330."""

MAX_ERRORS = 20
"""After so many errors the rest of a text is not looked at: a screen of them, with their lines.  A matter of taste."""

_MOST_KNOWN = 1000
"""Among more words none is suggested: comparing with 1000 takes 2 ms, and an error may ask twenty times."""

INT64 = range(-(1 << 63), 1 << 63)

_MOST_INT64_DIGITS = 20
"""With the sign; Python refuses to convert thousands of digits."""

MOST_POSITION_DIGITS = 9
"""What has more is no position in a text that fits into memory; Python refuses to convert thousands."""

_SUGGESTIONS = 3
"""As many as `difflib` gives by itself."""


class TooManyErrors(Exception):
    """Raised at the last error that is reported."""


class Cursor:
    """Tokens of `text` and the next one to read.

    `type_of` knows types by their name, `$S`; `tensors` remembers tensor types by their text.
    """

    def __init__(self, text: str, file: str = "") -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.file = file
        self.tokens = tokenize(self.text)
        self.position = 0
        self.token = self.tokens[0]
        self.depth = 0
        self.type_of: Callable[[Token], Type] = self._no_type
        self.tensors: dict[str, TensorType] = {}
        self.errors: list[TextError] = []

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

    def go(self, position: int) -> None:
        """Make the token of number `position` the next one."""
        self.position = position
        self.token = self.tokens[position]

    @contextmanager
    def elsewhere(self, position: int) -> Generator[None, None, None]:
        """Read from token number `position` for a while, then go on here."""
        here, depth = self.position, self.depth
        self.descend()
        self.go(position)
        try:
            yield
        finally:
            self.depth = depth
            self.go(here)

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
        if self.token.text != text:
            raise self.error(f"{text!r} was expected, not {self.token.shown}")
        self.position += 1
        self.token = self.tokens[self.position]

    def separated(self, close: str, is_first: bool) -> bool:
        """Whether another element of a list follows: reads the comma before it, or `close`."""
        if self.accept(close):
            return False
        if not is_first and not self.accept(","):
            raise self.error(f"',' or {close!r} was expected, not {self.token.shown}")
        return True

    def listed(
        self, parse: Callable[_P, _T], *arguments: _P.args, **keywords: _P.kwargs
    ) -> tuple[_T, ...]:
        """What `parse` reads, once or several times, separated by commas."""
        found = [parse(*arguments, **keywords)]
        while self.accept(","):
            found.append(parse(*arguments, **keywords))
        return tuple(found)

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

    def is_name(self, sigil: str) -> bool:
        """Whether a name with `sigil` is next."""
        return self.token.kind == "name" and self.token.text[0] == sigil

    def string(self, token: Token, text: str) -> str:
        """What `text`, the string in `token`, says."""
        found = unquoted(text)
        if found is None:
            raise self.error_at(token, r"a string has no escapes but \" \\ \n \t \r")
        return found

    def quoted(self, what: str) -> str:
        """Read a string; what it says."""
        token = self.token
        if token.kind != "string":
            raise self.error(f"{what} in quotes was expected, not {token.shown}")
        self.skip(1)
        return self.string(token, token.text)

    def integer(self) -> int:
        """Read an integer."""
        token = self.token
        if token.kind != "integer":
            raise self.error(f"an integer was expected, not {token.shown}")
        number = int(token.text) if len(token.text) <= _MOST_INT64_DIGITS else 1 << 64
        if number not in INT64:
            raise self.error(f"the integer {token.shown} does not fit into 64 bits")
        self.skip(1)
        return number

    def descend(self) -> None:
        """Note one more level of nesting; `ascend` takes it back."""
        if self.depth >= MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep")
        self.depth += 1

    def ascend(self) -> None:
        self.depth -= 1

    def error(self, message: str, position: int | None = None) -> TextError:
        """An error at the next token, or at the token of number `position`."""
        return self.error_at(self.tokens[self.position if position is None else position], message)

    def error_at(self, token: Token, message: str) -> TextError:
        if token.kind == "wrong":
            message = explained(token.text)
        shown = in_text_form(message)
        return TextError(located(self.text, token.start, shown, self.file), token.start)

    def silent(self, token: Token) -> FollowUpError:
        """Leave off at `token` for an error that has been reported."""
        return FollowUpError("", token.start)

    def report(self, error: TextError) -> None:
        """Remember an error and go on.  Raises: EnoughErrors when it is the last one to report."""
        if isinstance(error, FollowUpError) or str(error) in map(str, self.errors):
            return
        self.errors.append(error)
        if len(self.errors) >= MAX_ERRORS:
            raise TooManyErrors

    def begins_line(self) -> bool:
        """Whether the next token is the first on its line."""
        if not self.position:
            return True
        before = self.tokens[self.position - 1]
        return "\n" in self.text[before.start + len(before.text) : self.token.start]

    def _no_type(self, token: Token) -> Type:
        raise self.error_at(token, f"the type {token.text} is not defined")


def alternatives(words: Sequence[str]) -> str:
    """`'a', 'b' or 'c'`."""
    *most, last = map(repr, words)
    return f"{', '.join(most)} or {last}" if most else last


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean add?`, or nothing when no known word is near."""
    words = list(islice(known, _MOST_KNOWN))
    near = difflib.get_close_matches(word, words, _SUGGESTIONS)
    near = near or [other for other in words if other.lower() == word.lower()]
    if not near:
        return ""
    return f": did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?"
