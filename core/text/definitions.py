"""What a module defines: types by name, and which functions and variables there are.

Definitions may stand in any order, so their places are found first.  A type is read when it is first
asked for; an enum is known by its name before its cases are, which is why it alone can contain itself.
"""

from __future__ import annotations

from ..ir import Module
from ..types import EnumType, FunctionType, OpaqueType, StructType, Type, parts_of
from .cursor import MAX_DEPTH, MOST_POSITION_DIGITS, Cursor, did_you_mean
from .lexer import TextError, Token, name_of, written
from .location import TextLocation
from .recovery import DEFINING, skip_to_definition
from .types import parse_function_type, parse_type, parse_types

MAX_PARTS = 100_000
"""The most types that one is made of, all in all: with sharing, a short text makes 2ᵏ of k lines.  Values have at most
`MOST_LEAVES` (`core.compute.lower_memory.data_layout`), a tenth of this, so any bound from there on does."""


class Definitions:
    """The types of the module that the cursor reads, and the places of everything that has a name.

    `ends` says where the definitions that have been read end, by where they begin.
    """

    def __init__(self, cursor: Cursor, module: Module) -> None:
        self.cursor = cursor
        self.module = module
        self.ends: dict[int, int] = {}
        self._types: dict[str, Type] = {}
        self._places: dict[str, int] = {}
        self._failed: set[str] = set()
        self._open: list[str] = []
        self._sizes: dict[str, tuple[int, int]] = {}
        self._variables: dict[str, None] = {}
        self._functions: dict[str, int] = {}
        self._twice: list[int] = []
        self._signatures: dict[str, FunctionType | None] = {}
        self._find()
        cursor.type_of = self.type_of

    def _find(self) -> None:
        tokens = self.cursor.tokens
        for position, token in enumerate(tokens):
            if token.text not in DEFINING or token.kind != "word":
                continue
            following = tokens[position + 1]
            if following.kind != "name" or following.text[0] != DEFINING[token.text]:
                continue
            name = name_of(following)
            if token.text == "func":
                self._functions.setdefault(name, position)
            elif token.text == "var":
                self._variables.setdefault(name)
            elif name in self._places:
                self._twice.append(position)
            else:
                self._places[name] = position
                if token.text == "enum":
                    self._types[name] = EnumType(name)

    def read_types(self) -> None:
        """Read the definitions of all types, and put them into the module in the order of the text."""
        for name, position in self._places.items():
            if position not in self.ends:
                self._define(name)
        for name, position in self._places.items():
            type = self._types.get(name)
            if type is None:
                continue
            if isinstance(type, StructType) and self.cursor.tokens[position].text == "struct":
                self.module.structs[name] = type
            elif isinstance(type, EnumType) and self.cursor.tokens[position].text == "enum":
                self.module.enums[name] = type
            else:
                self.module.aliases[name] = type
            token = self.cursor.tokens[position + 1]
            self.module.type_locations[name] = TextLocation(
                self.cursor.file, self.cursor.text, token
            )
        for position in self._twice:
            token = self.cursor.tokens[position + 1]
            self.cursor.report(
                self.cursor.error_at(token, f"the type {token.text} is defined twice")
            )
            with self.cursor.elsewhere(position):
                skip_to_definition(self.cursor, position)
                self.ends[position] = self.cursor.position

    def type_of(self, token: Token) -> Type:
        """The type that a token `$S` names.  Raises: ParseError when there is none, or it is not finite."""
        name = name_of(token)
        if name in self._failed:
            raise self.cursor.silent(token)
        if name in self._types:
            return self._types[name]
        if name in self._open:
            cycle = " → ".join(
                written("$", n) for n in [*self._open[self._open.index(name) :], name]
            )
            raise self.cursor.error_at(
                token, f"{token.text} is made of itself ({cycle}); only an enum can contain itself"
            )
        if name not in self._places:
            self._failed.add(name)
            hint = did_you_mean(token.text, (written("$", known) for known in self._places))
            raise self.cursor.error_at(token, f"the type {token.text} is not defined{hint}")
        self._define(name)
        if name in self._failed:
            raise self.cursor.silent(token)
        return self._types[name]

    def symbol(self, what: str) -> str:
        """Read the name of a function or variable; `@3` counts variables, then functions."""
        is_quoted = self.cursor.token.text[1:2] == '"'
        name = self.cursor.name("@", what)
        if name in self._functions or name in self._variables or is_quoted or not name.isdecimal():
            return name
        symbols = [*self._variables, *self._functions]
        is_short = len(name) <= MOST_POSITION_DIGITS
        return symbols[int(name)] if is_short and int(name) < len(symbols) else name

    def is_variable(self, name: str) -> bool:
        """Whether a variable is called so, and no function."""
        return name in self._variables and name not in self._functions

    def signature(self, token: Token, name: str) -> FunctionType:
        """The type that function `name`, which `token` writes, is defined with."""
        cursor = self.cursor
        if name not in self._functions:
            hint = did_you_mean(name, self._functions)
            raise cursor.error_at(token, f"there is no function {token.text}{hint}")
        if name not in self._signatures:
            self._signatures[name] = self._signature(name)
        type = self._signatures[name]
        if type is None:
            raise cursor.silent(token)
        return type

    def _signature(self, name: str) -> FunctionType | None:
        """None when the type of the function has an error."""
        cursor = self.cursor
        with cursor.elsewhere(self._functions[name] + 2):
            try:
                cursor.expect(":")
                return parse_function_type(cursor)
            except TextError as error:
                cursor.report(error)
                return None

    def _define(self, name: str) -> None:
        cursor, position = self.cursor, self._places[name]
        with cursor.elsewhere(position):
            self._open.append(name)
            try:
                self._read(name)
                self.ends[position] = cursor.position
            except TextError as error:
                self._failed.add(name)
                self._types.pop(name, None)
                cursor.report(error)
                skip_to_definition(cursor, position)
                self.ends[position] = cursor.position
            finally:
                self._open.pop()

    def _read(self, name: str) -> None:
        cursor, start = self.cursor, self.cursor.position
        word = cursor.next().text
        cursor.name("$", "a type")  # again, for errors in its escapes
        if word == "struct":
            self._types[name] = StructType(name, self._fields())
        elif word == "enum":
            enum = self._types[name]
            assert isinstance(enum, EnumType)
            enum.define(self._cases())
        else:
            cursor.expect("=")
            is_opaque = cursor.accept("opaque")
            self._types[name] = OpaqueType(name) if is_opaque else parse_type(cursor)
        self._measure(name, start)

    def _fields(self) -> tuple[tuple[str, Type], ...]:
        """`{ #a: T, #b: U }`; a line break will do for a comma."""
        cursor = self.cursor
        cursor.expect("{")
        fields: dict[str, Type] = {}
        while not cursor.accept("}"):
            key = cursor.token
            name = cursor.name("#", "'}' or a field")
            if name in fields:
                raise cursor.error_at(key, f"the field {key.text} is defined twice")
            cursor.expect(":")
            fields[name] = parse_type(cursor)
            cursor.accept(",")
        return tuple(fields.items())

    def _cases(self) -> list[tuple[str, tuple[Type, ...]]]:
        """`{ ?leaf(f32), ?node($E, $E) }`; a line break will do for a comma."""
        cursor = self.cursor
        cursor.expect("{")
        cases: dict[str, tuple[Type, ...]] = {}
        while not cursor.accept("}"):
            key = cursor.token
            name = cursor.name("?", "'}' or a case")
            if name in cases:
                raise cursor.error_at(key, f"the case {key.text} is defined twice")
            cases[name] = ()
            if cursor.accept("(") and not cursor.accept(")"):
                cases[name] = parse_types(cursor)
                cursor.expect(")")
            cursor.accept(",")
        return list(cases.items())

    def _measure(self, name: str, start: int) -> None:
        """Refuse types that are too deep or too large to be walked."""
        made = self._types[name]
        size, depth = 0, 0
        pending = [(part, 1) for part in (parts_of(made) if name == _name(made) else (made,))]
        while pending and size <= MAX_PARTS:
            part, level = pending.pop()
            known = self._sizes.get(_name(part)) if isinstance(part, StructType) else None
            inner, height = known or (0, 0)
            size, depth = size + 1 + inner, max(depth, level + height)
            if not known and not isinstance(part, EnumType):
                pending += [(p, level + 1) for p in parts_of(part)]
        if size > MAX_PARTS:
            raise self.cursor.error(f"this type is made of more than {MAX_PARTS} others", start)
        if depth > MAX_DEPTH:
            raise self.cursor.error(f"nested more than {MAX_DEPTH} levels deep", start)
        self._sizes[name] = size, depth


def _name(type: Type) -> str:
    return type.name if isinstance(type, StructType | EnumType | OpaqueType) else ""
