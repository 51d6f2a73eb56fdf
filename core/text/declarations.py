"""What stands in brackets before a function: `[gradient @f wrt 0]`, `[tangent @f]`, `[extern]`."""

from __future__ import annotations

from typing import Any

from ..ir import Declaration, Extern, GradientOf, TangentOf
from .attributes import parse_numbers
from .cursor import Cursor
from .definitions import Definitions
from .lexer import written
from .location import TextLocation

_CLAUSES = ("from", "wrt", "keeping")


def parse_declaration(cursor: Cursor, definitions: Definitions) -> Declaration:
    """The declaration whose bracket has been read; its clauses come in any order."""
    location = TextLocation(cursor.file, cursor.text, cursor.token)
    word = cursor.one_of(["gradient", "adjoint", "tangent", "extern"])
    if word == "extern":
        cursor.expect("]")
        return Extern()
    is_tangent = word == "tangent"
    words = [*_CLAUSES, "]"] if is_tangent else [*_CLAUSES, "seedable", "]"]
    primal = definitions.symbol("a function")
    clauses: dict[str, Any] = {}
    while not cursor.accept("]"):
        token = cursor.token
        clause = cursor.one_of(words)
        if clause in clauses:
            raise cursor.error_at(token, f"{clause} is given twice")
        if clause == "seedable":
            clauses[clause] = True
        else:
            clauses[clause] = parse_numbers(cursor)
    sources, wrt, keeping = clauses.get("from"), clauses.get("wrt"), clauses.get("keeping", ())
    if is_tangent:
        return TangentOf(primal, sources, wrt, keeping, location)
    seedable = clauses.get("seedable", False)
    return GradientOf(primal, sources, wrt, keeping, seedable, location)


def print_declaration(declaration: Declaration) -> str:
    """`gradient @f from 0 wrt 1, 2 keeping 0 seedable`."""
    if isinstance(declaration, Extern):
        return "extern"
    word = "gradient" if isinstance(declaration, GradientOf) else "tangent"
    parts = [f"{word} {written('@', declaration.primal)}"]
    if declaration.sources is not None:
        parts.append(f"from {', '.join(map(str, declaration.sources)) or '()'}")
    if declaration.wrt is not None:
        parts.append(f"wrt {', '.join(map(str, declaration.wrt)) or '()'}")
    if declaration.keeping:
        parts.append(f"keeping {', '.join(map(str, declaration.keeping))}")
    if isinstance(declaration, GradientOf) and declaration.seedable:
        parts.append("seedable")
    return " ".join(parts)
