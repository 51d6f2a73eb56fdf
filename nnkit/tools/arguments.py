"""Calls as text: `@f(1, <2, 3>, {#a = 4})`, whose types are those of the function."""

from __future__ import annotations

import difflib
from dataclasses import field
from typing import Any

import numpy as np

from ..core.errors import UnsupportedError
from ..core.evaluate import EnumValue, FunctionValue
from ..core.ir import Function, Module
from ..core.lazy_dataclass import dataclass
from ..core.text.cursor import Cursor
from ..core.text.lexer import Token, name_of, written
from ..core.text.literals import literal_of, parse_elements
from ..core.text.types import parse_type
from ..core.types import ArrayType, EnumType, FunctionType, StructType, TensorType, TupleType, Type


@dataclass(frozen=True)
class ParsedCall:
    """A function, its arguments as the evaluator takes them, and the functions among these, by name."""

    function: Function
    arguments: tuple[Any, ...]
    functions: tuple[str, ...]


def parse_call(module: Module, text: str) -> ParsedCall:
    """The call that `text` writes.  Raises: ParseError when it is written wrongly, or does not fit the function."""
    cursor = Cursor(text, "--run")
    named: dict[str, Type] = {**module.structs, **module.enums, **module.aliases}

    def type_of(token: Token) -> Type:
        if name_of(token) not in named:
            raise cursor.error_at(token, f"the module has no type {token.text}")
        return named[name_of(token)]

    cursor.type_of = type_of
    return _LiteralReader(cursor, module).call()


@dataclass(eq=False)
class _LiteralReader:
    """Reads literals of given types; `functions` are those that have been named."""

    cursor: Cursor
    module: Module
    functions: list[str] = field(default_factory=list[str])

    def call(self) -> ParsedCall:
        """`@f(…)`, and nothing behind it."""
        cursor, token = self.cursor, self.cursor.token
        function = self.function("a call of a function")
        if function.body is None and function.primal is None:
            raise cursor.error_at(
                token, f"{token.text} is defined elsewhere: it has no body to run"
            )
        types = function.type.parameters
        count = f"{len(types)} argument{'s' * (len(types) != 1)}"
        cursor.expect("(")
        arguments: list[Any] = []
        while cursor.separated(")", not arguments):
            if len(arguments) == len(types):
                raise cursor.error(f"{token.text} takes {count}, this is one more")
            arguments.append(self.value(types[len(arguments)]))
        if len(arguments) < len(types):
            message = f"{token.text} takes {count}, not {len(arguments)}"
            raise cursor.error(message, cursor.position - 1)
        if cursor.token.kind != "end":
            raise cursor.error(f"the call should end here, not go on with {cursor.token.shown}")
        return ParsedCall(function, tuple(arguments), tuple(self.functions))

    def function(self, what: str, type: FunctionType | None = None) -> Function:
        """Read the name of a function of the module, of this type if one is given."""
        cursor, token = self.cursor, self.cursor.token
        name = cursor.name("@", what)
        found = self.module.functions.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.module.functions, n=1)
            meant = f"; did you mean {written('@', near[0])}?" if near else ""
            raise cursor.error_at(token, f"the module has no function {token.text}{meant}")
        if type is not None and found.type != type:
            raise cursor.error_at(
                token, f"a {type} is expected here; {token.text} is a {found.type}"
            )
        return found

    def value(self, type: Type) -> Any:
        """A literal of this type; types may be written behind it and its parts."""
        cursor = self.cursor
        cursor.descend()
        value: Any
        match type:
            case TensorType():
                elements = literal_of(cursor, parse_elements(cursor), type).elements()
                value = np.array(np.broadcast_to(elements, type.shape))
            case TupleType(parts):
                value = self._row("(", ")", parts)
            case ArrayType(count, element):
                value = self._row("[", "]", (element,) * count)
            case StructType():
                value = self._fields(type)
            case EnumType():
                value = self._case(type)
            case FunctionType():
                value = FunctionValue(self.function("a function", type).name)
                self.functions.append(value.name)
            case _:
                raise UnsupportedError(f"an argument of type {type} cannot be written")
        if cursor.accept(":"):
            position = cursor.position
            claimed = parse_type(cursor)
            if claimed != type:
                raise cursor.error(f"a {type} is expected here, not a {claimed}", position)
        cursor.ascend()
        return value

    def _row(self, opening: str, closing: str, types: tuple[Type, ...]) -> tuple[Any, ...]:
        cursor = self.cursor
        cursor.expect(opening)
        values: list[Any] = []
        while cursor.separated(closing, not values):
            if len(values) == len(types):
                raise cursor.error(f"{closing!r} was expected after {len(types)} elements")
            values.append(self.value(types[len(values)]))
        if len(values) < len(types):
            message = f"{len(types)} elements were expected, not {len(values)}"
            raise cursor.error(message, cursor.position - 1)
        return tuple(values)

    def _case(self, type: EnumType) -> EnumValue:
        cursor = self.cursor
        token = cursor.token
        case = cursor.name("?", "a case")
        if case not in type.positions:
            cases = ", ".join(written("?", name) for name, _ in type.cases)
            raise cursor.error_at(token, f"{type} has no case {token.text}; its cases are {cases}")
        carried = type.carried(case)
        return EnumValue(case, self._row("(", ")", carried) if carried else ())

    def _fields(self, type: StructType) -> tuple[Any, ...]:
        cursor = self.cursor
        cursor.expect("{")
        fields = dict(type.fields)
        values: dict[str, Any] = {}
        while cursor.separated("}", not values):
            token = cursor.token
            name = cursor.name("#", "a field")
            if name not in fields or name in values:
                problem = "is given twice" if name in values else f"is no field of {type}"
                raise cursor.error_at(token, f"{token.text} {problem}")
            cursor.expect("=")
            values[name] = self.value(fields[name])
        for name in fields:
            if name not in values:
                message = f"the field {written('#', name)} of {type} is missing"
                raise cursor.error(message, cursor.position - 1)
        return tuple(values[name] for name in fields)
