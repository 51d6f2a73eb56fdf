"""What stands in brackets before a function: `[gradient @f wrt 0]`, `[batch @f along 0]`, `[extern]`, `[jvp @t]`.

A clause may stand anywhere behind the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from ..ir import (
    NO_RULES,
    BatchOf,
    CustomRules,
    Declaration,
    Extern,
    GradientOf,
    SavePolicy,
    TangentOf,
)
from .attributes import parse_numbers
from .cursor import Cursor
from .definitions import Definitions
from .lexer import quoted, written
from .location import TextLocation

_CLAUSES = ("from", "wrt", "keeping")


def parse_brackets(
    cursor: Cursor, definitions: Definitions
) -> tuple[Declaration | None, CustomRules]:
    """All that stands in brackets: what the function is declared to be, and the rules of its derivatives."""
    declaration: Declaration | None = None
    rules = NO_RULES
    while cursor.accept("["):
        token = cursor.token
        if token.text in ("jvp", "vjp"):
            if getattr(rules, token.text):
                raise cursor.error_at(token, f"{token.text} is given twice")
            rules = _parse_rule(cursor, definitions, rules)
        elif declaration is None:
            declaration = _parse_declaration(cursor, definitions)
        else:
            raise cursor.error_at(token, "the function is declared twice")
    return declaration, rules


def _parse_rule(cursor: Cursor, definitions: Definitions, rules: CustomRules) -> CustomRules:
    """`jvp @t`, or `vjp @p saving @s`."""
    if not rules:
        rules = replace(rules, location=TextLocation(cursor.file, cursor.text, cursor.token))
    if cursor.accept("jvp"):
        rules = replace(rules, jvp=definitions.symbol("a function"))
    else:
        cursor.expect("vjp")
        rules = replace(rules, vjp=definitions.symbol("a function"))
        if cursor.accept("saving"):
            rules = replace(rules, saving=definitions.symbol("a function"))
    cursor.expect("]")
    return rules


def _parse_declaration(cursor: Cursor, definitions: Definitions) -> Declaration:
    """The declaration whose bracket has been read; its clauses come in any order."""
    location = TextLocation(cursor.file, cursor.text, cursor.token)
    word = cursor.one_of(["gradient", "adjoint", "tangent", "batch", "extern", "jvp", "vjp"])
    if word == "extern":
        cursor.expect("]")
        return Extern()
    if word == "batch":
        return _parse_batch(cursor, definitions, location)
    is_tangent = word == "tangent"
    words = [*_CLAUSES, *(["order"] if is_tangent else ["seedable", "save"]), "]"]
    primal = definitions.symbol("a function")
    clauses: dict[str, Any] = {}
    while not cursor.accept("]"):
        token = cursor.token
        clause = cursor.one_of(words)
        if clause in clauses:
            raise cursor.error_at(token, f"{clause} is given twice")
        if clause == "seedable":
            clauses[clause] = True
        elif clause == "save":
            clauses[clause] = _parse_policy(cursor)
        elif clause == "order":
            clauses[clause] = cursor.integer()
        else:
            clauses[clause] = parse_numbers(cursor)
    sources, wrt, keeping = clauses.get("from"), clauses.get("wrt"), clauses.get("keeping", ())
    if is_tangent:
        return TangentOf(primal, sources, wrt, keeping, location, clauses.get("order", 1))
    seedable = clauses.get("seedable", False)
    return GradientOf(primal, sources, wrt, keeping, seedable, clauses.get("save"), location)


def _parse_policy(cursor: Cursor) -> SavePolicy:
    """`auto`, `all`, `none` or a number of bytes."""
    token = cursor.token
    if token.kind == "integer":
        number = cursor.integer()
        if number < 0:
            raise cursor.error_at(token, "a number of bytes is not negative")
        return number
    return cast("Literal['auto', 'all', 'none']", cursor.one_of(["auto", "all", "none"]))


def print_rules(rules: CustomRules) -> list[str]:
    """`[jvp @t]`, `[vjp @p saving @s]`."""
    lines: list[str] = []
    if rules.jvp is not None:
        lines.append(f"[jvp {written('@', rules.jvp)}]")
    if rules.vjp is not None:
        saving = "" if rules.saving is None else f" saving {written('@', rules.saving)}"
        lines.append(f"[vjp {written('@', rules.vjp)}{saving}]")
    return lines


def print_declaration(declaration: Declaration) -> str:
    """`gradient @f from 0 wrt 1, 2 keeping 0 seedable`."""
    if isinstance(declaration, Extern):
        return "extern"
    if isinstance(declaration, BatchOf):
        return _print_batch(declaration)
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
    if isinstance(declaration, GradientOf) and declaration.save is not None:
        parts.append(f"save {declaration.save}")
    if isinstance(declaration, TangentOf) and declaration.order != 1:
        parts.append(f"order {declaration.order}")
    return " ".join(parts)


def _parse_batch(cursor: Cursor, definitions: Definitions, location: TextLocation) -> BatchOf:
    """`@f along 0, none into 1 named "rows"]`, the clauses in any order."""
    primal = definitions.symbol("a function")
    clauses: dict[str, Any] = {}
    while not cursor.accept("]"):
        token = cursor.token
        clause = cursor.one_of(["along", "into", "named", "]"])
        if clause in clauses:
            raise cursor.error_at(token, f"{clause} is given twice")
        clauses[clause] = (
            cursor.quoted("a name") if clause == "named" else cursor.listed(_parse_axis, cursor)
        )
    if "along" not in clauses:
        raise cursor.error(f"{written('@', primal)} is batched along something: say along 0")
    into, axis = clauses.get("into"), clauses.get("named")
    return BatchOf(primal, clauses["along"], into, axis, location)


def _parse_axis(cursor: Cursor) -> int | None:
    """The number of an axis, or `none`."""
    if cursor.accept("none"):
        return None
    return cursor.integer()


def _print_batch(declaration: BatchOf) -> str:
    """`batch @f along 0, none into 1 named "rows"`."""
    parts = [f"batch {written('@', declaration.primal)} along {_axes(declaration.along)}"]
    if declaration.into is not None:
        parts.append(f"into {_axes(declaration.into)}")
    if declaration.axis is not None:
        parts.append(f"named {quoted(declaration.axis)}")
    return " ".join(parts)


def _axes(axes: Sequence[int | None]) -> str:
    return ", ".join("none" if axis is None else str(axis) for axis in axes)
