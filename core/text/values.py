"""Operands: values by name, and literals of every type, which can stand wherever a value can.

A literal that is written in place becomes an instruction before the one that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..ir import Builder, Op, Value
from ..lazy_dataclass import dataclass
from ..ops import Aggregate, Concatenate, EnumCase, Null, PadShape, Reference, Undefined, splat
from ..types import (
    ArrayType,
    EnumType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
)
from .cursor import Cursor
from .definitions import Definitions
from .lexer import Token, written
from .literals import literal_of, parse_elements
from .scope import Scope
from .types import parse_type

LITERAL_WORDS = frozenset(("true", "false", "zero", "undefined", "null", "<", "(", "{", "["))
"""What a literal begins with that is not a number or a name."""

_CLOSING = {"(": ")", "{": "}", "[": "]"}
_KINDS = {"(": "a tuple", "{": "a struct", "[": "an array"}
_TYPES: dict[str, type[TupleType] | type[StructType] | type[ArrayType]] = {
    "(": TupleType,
    "{": StructType,
    "[": ArrayType,
}

ParsedOperation: TypeAlias = tuple[Op, Sequence[Value]]


@dataclass
class Operands:
    """Reads values and literals at the cursor."""

    cursor: Cursor
    scope: Scope
    definitions: Definitions

    def is_next(self) -> bool:
        """Whether an operand stands here, and not the results of the next instruction."""
        cursor = self.cursor
        token = cursor.token
        if token.kind == "name" and token.text[0] == "%":
            ahead = 1
            while cursor.ahead(ahead).text == ",":
                ahead += 2
            return cursor.ahead(ahead).text != "="
        if token.kind == "name":
            return token.text[0] in "@?"
        return token.kind in ("integer", "float") or token.text in LITERAL_WORDS

    def operand(self, b: Builder) -> Value:
        """`%x: T`, or a literal written in place, `1.0: f32`."""
        cursor = self.cursor
        token = cursor.token
        if token.kind == "name" and token.text[0] == "%":
            name = cursor.name("%", "a value")
            cursor.expect(":")
            return self.scope.use(token, name, parse_type(cursor))
        op, operands = self.literal(b, "a value %… or a literal")
        return b.emit(op, *operands)

    def literal(self, b: Builder, expected: str = "a literal") -> ParsedOperation:
        """What stands after `literal`, or in the place of an operand; an error says what is `expected`."""
        cursor = self.cursor
        token = cursor.token
        if token.text in _CLOSING:
            return self._aggregate(b)
        if token.kind == "name" and token.text[0] == "?":
            return self._case(b)
        if token.kind == "name" and token.text[0] == "@":
            return self._reference(), ()
        if token.text in ("undefined", "null"):
            cursor.skip(1)
            cursor.expect(":")
            type = parse_type(cursor)
            return (Undefined(type) if token.text == "undefined" else Null(type)), ()
        if token.text == "zero" and cursor.ahead(1).text == ":":
            start = cursor.position
            cursor.skip(2)
            return self._zero(b, parse_type(cursor), start)
        if token.kind not in ("integer", "float") and token.text not in LITERAL_WORDS:
            raise cursor.error(f"{expected} was expected, not {token.shown}")
        if token.text == "<" and self._has_values():
            return self._rows(b)
        elements = parse_elements(cursor)
        cursor.expect(":")
        type = parse_type(cursor)
        if not isinstance(type, TensorType):
            raise cursor.error(f"this literal is a tensor, not a {type}", elements.start)
        return literal_of(cursor, elements, type), ()

    def _has_values(self) -> bool:
        """Whether values stand in the rows that begin here, and not only numbers nested equally deep.

        `undefined`, and one number with the type of a whole row, are values.
        """
        ahead = 1
        while self.cursor.ahead(ahead).text == "<":
            ahead += 1
        first = self.cursor.ahead(ahead)
        if first.kind == "name" or (ahead == 1 and self.cursor.ahead(2).text != ":"):
            return first.kind == "name"
        depth = 0
        tokens = self.cursor.tokens
        for position in range(self.cursor.position, len(tokens)):
            token = tokens[position]
            if (token.kind == "name" and token.text[0] == "%") or token.text == "undefined":
                return True
            if token.text[:1] == "<" and depth and _is_splat(tokens, position):
                return True
            depth += (token.text == "<") - (token.text == ">")
            if not depth:
                return False
        return False

    def _rows(self, b: Builder) -> ParsedOperation:
        """`<%a: <3 x f32>, %b: <3 x f32>>: <2 x 3 x f32>`: a tensor of rows, or of scalars."""
        cursor = self.cursor
        start = cursor.position
        cursor.descend()
        cursor.expect("<")
        rows: list[Value] = []
        while cursor.separated(">", not rows):
            rows.append(self.operand(b))
        cursor.ascend()
        cursor.expect(":")
        type = parse_type(cursor)
        if not isinstance(type, TensorType) or not type.rank:
            raise cursor.error(f"this literal is a tensor of rows, not a {type}", start)
        if len(rows) != type.shape[0]:
            raise cursor.error(f"{type} has {type.shape[0]} rows, not {len(rows)}", start)
        row = type.with_shape(type.shape[1:])
        for value in rows:
            if value.type != row:
                raise cursor.error(f"a row of {type} is a {row}, not a {value.type}", start)
        return Concatenate(0), [b.emit(PadShape(0), value) for value in rows]

    def _reference(self) -> Reference:
        """`@f: T`; a function's type may be left out."""
        cursor = self.cursor
        token = cursor.token
        symbol = self.definitions.symbol("a function")
        if not cursor.accept(":"):
            return Reference(symbol, self.definitions.signature(token, symbol))
        start = cursor.position
        type = parse_type(cursor)
        if not isinstance(type, FunctionType | PointerType):
            message = f"{token.text} is a function or the pointer to a variable, not a {type}"
            raise cursor.error(message, start)
        return Reference(symbol, type)

    def _case(self, b: Builder) -> ParsedOperation:
        """`?node(%l: $Tree, %r: $Tree): $Tree`; without parentheses when nothing is carried."""
        cursor = self.cursor
        cursor.descend()
        case = cursor.name("?", "a case")
        carried: list[Value] = []
        if cursor.accept("("):
            while cursor.separated(")", not carried):
                carried.append(self.operand(b))
        cursor.ascend()
        cursor.expect(":")
        start = cursor.position
        type = parse_type(cursor)
        if not isinstance(type, EnumType):
            raise cursor.error(f"this literal is a case of an enum, not a {type}", start)
        return EnumCase(type, case), carried

    def _aggregate(self, b: Builder) -> ParsedOperation:
        """`(%a: T, %b: U): (T, U)`, `{#w = %a: T}: $S` or `[%a: T, %b: T]: [2 x T]`."""
        cursor = self.cursor
        start = cursor.position
        cursor.descend()
        opening = cursor.next().text
        operands: list[Value] = []
        keys: list[str] = []
        while cursor.separated(_CLOSING[opening], not operands):
            if opening == "{":
                keys.append(cursor.name("#", "a field"))
                cursor.expect("=")
            operands.append(self.operand(b))
        cursor.ascend()
        cursor.expect(":")
        type = parse_type(cursor)
        if not isinstance(type, _TYPES[opening]):
            raise cursor.error(f"this literal is {_KINDS[opening]}, not a {type}", start)
        assert isinstance(type, TupleType | StructType | ArrayType)
        if isinstance(type, StructType):
            names = [name for name, _ in type.fields]
            if sorted(keys) != sorted(names):
                fields = ", ".join(written("#", name) for name in names) or "no fields"
                raise cursor.error(f"{type} has {fields}", start)
            places = dict(zip(keys, operands, strict=True))
            operands = [places[name] for name in names]
        if not isinstance(type, ArrayType):
            types = tuple(operand.type for operand in operands)
            if types != elements_of(type):
                raise cursor.error(f"{TupleType(types)} are not the elements of {type}", start)
        return Aggregate(type), operands

    def _zero(self, b: Builder, type: Type, start: int) -> ParsedOperation:
        """All zeros, false and null: of an aggregate, made of the zeros of its elements."""
        made: dict[Type, Value] = {}
        pending = [type]
        while pending:
            current = pending[-1]
            elements = _parts(current)
            missing = [part for part in dict.fromkeys(elements) if part not in made]
            if missing:
                pending += missing
                continue
            operation = self._zero_of(current, [made[part] for part in elements], start)
            pending.pop()
            if not pending:
                return operation
            if current not in made:
                made[current] = b.emit(operation[0], *operation[1])
        raise AssertionError("a type is missing")

    def _zero_of(self, type: Type, elements: list[Value], start: int) -> ParsedOperation:
        match type:
            case TensorType():
                return splat(type, 0), ()
            case TupleType() | StructType():
                return Aggregate(type), elements
            case ArrayType(count):
                return Aggregate(type), elements * count
            case PointerType():
                return Null(type), ()
            case _:
                raise self.cursor.error(f"there is no zero of {type}", start)


def _is_splat(tokens: Sequence[Token], position: int) -> bool:
    """Whether the tensor type that begins at `position` is that of a single number."""
    colon, number = tokens[position - 1], tokens[position - 2]
    return colon.text == ":" and number.text != ">"


def _parts(type: Type) -> tuple[Type, ...]:
    """The elements, but only one of an array: they are all alike."""
    if isinstance(type, ArrayType):
        return (type.element,) if type.count else ()
    return elements_of(type) or ()
