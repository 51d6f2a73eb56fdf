"""Scopes of value names while parsing."""

from __future__ import annotations

from dataclasses import field

from ..ir import Value
from ..lazy_dataclass import dataclass
from ..types import VOID, Type
from .cursor import Cursor, did_you_mean
from .lexer import Token, is_counted, written


@dataclass
class _Level:
    """What a region defines, and the uses in it of names that are not defined yet."""

    names: list[str] = field(default_factory=list[str])
    pending: dict[str, list[tuple[Token, Value]]] = field(
        default_factory=dict[str, list[tuple[Token, Value]]]
    )


@dataclass
class Scope:
    """The values visible at the cursor; each region adds its own and takes them away at its end.

    A block may use what a block below it defines.  Until then a value of the type that is written at the use
    stands in.  `positions` are the results that have
    no name, as `B.I`.
    """

    cursor: Cursor
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    positions: dict[str, Value] = field(default_factory=dict[str, Value])
    levels: list[_Level] = field(default_factory=list[_Level])

    def enter(self) -> None:
        self.levels.append(_Level())

    def leave(self) -> None:
        """Forget the names of the region; what it could not find may be defined further on, around it."""
        level = self.levels.pop()
        for name in level.names:
            del self.values[name]
        for name, uses in level.pending.items():
            self.levels[-1].pending.setdefault(name, []).extend(uses)

    def define(self, token: Token, name: str, value: Value) -> None:
        """Make `value` visible.  Raises: ParseError when the name is taken, here or around here."""
        if name in self.values:
            raise self.cursor.error_at(token, f"the value {token.text} is defined twice")
        level = self.levels[-1]
        self.values[name] = value
        level.names.append(name)
        value.name = None if is_counted(name) else name
        if level.pending and name in level.pending:
            self._found(level.pending.pop(name), value)

    def poison(self, name: str) -> None:
        """Remember that the definition of `name` has an error, so that its uses are none."""
        if name not in self.values:
            self.values[name] = POISON
            self.levels[-1].names.append(name)
        self.levels[-1].pending.pop(name, None)

    def read(self) -> Value:
        """The value that the name at the cursor means, where no type can be written."""
        token = self.cursor.token
        name = self.cursor.name("%", "a value")
        value = self.values.get(name) or self.positions.get(name)
        if value is None:
            raise self.cursor.error_at(token, f"the value {token.text} is not defined here")
        if value is POISON:
            raise self.cursor.silent(token)
        return value

    def use(self, token: Token, name: str, type: Type) -> Value:
        """The value called `name`, which is written with its type; one to come if there is none yet."""
        value = self.values.get(name) or self.positions.get(name)
        if value is None:
            value = Value(type, name)
            self.levels[-1].pending.setdefault(name, []).append((token, value))
        elif value is POISON:
            raise self.cursor.silent(token)
        elif type is not value.type and type != value.type:
            raise self.cursor.error_at(token, f"{token.text} is a {value.type}, not a {type}")
        return value

    def finish(self) -> None:
        """Put the values that were used before their definition where they belong."""
        for name, uses in self.levels[-1].pending.items():
            value = self.positions.get(name) or self.values.get(name)
            if value is not None:
                self._found(uses, value)
                continue
            token, _ = min(uses, key=lambda use: use[0].start)
            hint = did_you_mean(token.text, (written("%", known) for known in self.values))
            message = f"the value {token.text} is not defined here{hint}"
            self.cursor.report(self.cursor.error_at(token, message))

    def _found(self, uses: list[tuple[Token, Value]], value: Value) -> None:
        for token, placeholder in uses if value is not POISON else ():
            placeholder.replace_all_uses_with(value)
            if placeholder.type != value.type:
                message = f"{token.text} is a {value.type}, not a {placeholder.type}"
                self.cursor.report(self.cursor.error_at(token, message))


POISON = Value(VOID)
"""Stands for every value whose definition has an error."""
