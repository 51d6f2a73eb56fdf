"""The syntax template of an op, taken apart once per class: see `core.ir.instruction` for the notation."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

from ..ir import Op
from ..lazy_dataclass import dataclass


@dataclass(frozen=True)
class Words:
    """Text that stands as it is, as the lexer splits it."""

    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Operand:
    """One operand, or all remaining ones."""

    name: str
    is_variadic: bool


@dataclass(frozen=True)
class Attribute:
    """A field of the op; `kind` is its annotation, which decides how it is written."""

    name: str
    kind: str


@dataclass(frozen=True)
class Optional:
    """Pieces that are left out when their attributes have their defaults, or they have no operands.

    The first piece is the word they are known by.
    """

    pieces: tuple[Piece, ...]

    @property
    def word(self) -> str:
        first = self.pieces[0]
        return first.tokens[0] if isinstance(first, Words) else ""


Piece: TypeAlias = Words | Operand | Attribute | Optional

_PIECE = re.compile(r"\{(\w+)(\*?)\}|(\[)|(\])|([^{}\[\]]+)")
_SPLIT = re.compile(r"\w+|->|[^\w\s]")


@cache
def opcode_of(op: type[Op]) -> str:
    """The word that an instruction of this op begins with."""
    return op.syntax.split(None, 1)[0]


@cache
def template_of(op: type[Op]) -> tuple[Piece, ...]:
    """The pieces of `op.syntax` after the opcode."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(op)}
    stack: list[list[Piece]] = [[]]
    for match in _PIECE.finditer(op.syntax.removeprefix(opcode_of(op))):
        name, star, opens, closes, text = match.groups()
        if opens:
            stack.append([])
        elif closes:
            inner = tuple(stack.pop())
            stack[-1].append(Optional(inner))
        elif text:
            if text.strip():
                stack[-1].append(Words(tuple(_SPLIT.findall(text))))
        elif name in kinds:
            stack[-1].append(Attribute(name, kinds[name]))
        else:
            stack[-1].append(Operand(name, bool(star)))
    return tuple(stack[0])


@cache
def defaults_of(op: type[Op]) -> dict[str, object]:
    """The attributes that have a default."""
    fields = dataclasses.fields(op)
    return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}


@cache
def option_words(op: type[Op]) -> tuple[str, ...]:
    """The words that begin the parts that can be left out."""
    return tuple(piece.word for piece in template_of(op) if isinstance(piece, Optional))


def attributes_in(pieces: tuple[Piece, ...]) -> Iterator[Attribute]:
    """The attributes among the pieces themselves."""
    return (piece for piece in pieces if isinstance(piece, Attribute))
