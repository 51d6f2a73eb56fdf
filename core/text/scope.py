"""Which values can be named where."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir import Value
from .cursor import Cursor
from .lexer import Token, is_counted


@dataclass
class Scope:
    """The values visible at the cursor; each region adds its own and takes them away at its end."""

    cursor: Cursor
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    regions: list[list[str]] = field(default_factory=list[list[str]])

    def enter(self) -> None:
        self.regions.append([])

    def leave(self) -> None:
        for name in self.regions.pop():
            del self.values[name]

    def define(self, token: Token, name: str, value: Value) -> None:
        """Make `value` visible.  Raises: ParseError when the name is taken, here or around here."""
        if name in self.values:
            raise self.cursor.error_at(token, f"the value {token.text} is defined twice")
        self.values[name] = value
        self.regions[-1].append(name)
        value.name = None if is_counted(name) else name

    def read(self) -> Value:
        """The value that the name at the cursor means."""
        token = self.cursor.token
        value = self.values.get(self.cursor.name("%", "a value"))
        if value is None:
            raise self.cursor.error_at(token, f"the value {token.text} is not defined here")
        return value
