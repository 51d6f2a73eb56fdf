"""Parses operations: an op with its attributes and operands.

Each op is read by its own syntax template; `literal`, `apply`, `elementPointer`, what combines (`reduce`,
`scan`, `reduceWindow`) and control flow have forms of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..compute.ops import CallAddress, MatrixProduct
from ..ir import Builder, Op, Value
from ..kernels.guarded_ops import GUARDED
from ..kernels.ops import KERNEL
from ..lazy_dataclass import dataclass
from ..ops import (
    ALL,
    PROGRAM,
    Apply,
    ApplyValue,
    BitCast,
    ElementPointer,
    Load,
    Nest,
    PointerCast,
    Reference,
)
from ..ops.byte_memory import BYTE_MEMORY
from ..schedule.ops import SCHEDULED
from ..types import FunctionType, PointerType, TensorType, Type, written
from .attributes import parse_attribute
from .control_flow_syntax import BRANCHES, STRUCTURED, parse_head
from .cursor import Cursor, did_you_mean
from .definitions import Definitions
from .reduction_syntax import BY_FUNCTION, IN_ORDER, REDUCTIONS, parse_reduction
from .scope import POISON, Scope
from .template import Attribute, Operand, Optional, Piece, Words, option_words, template_of
from .types import parse_function_type, parse_type
from .values import Operands, ParsedOperation

_OWN_FORMS = ("literal", "apply", "elementPointer", "bitCast", *BRANCHES, *STRUCTURED)
_WRITTEN: tuple[type[Op], ...] = (
    *(*ALL, *PROGRAM, *BYTE_MEMORY),
    *(Nest, MatrixProduct, CallAddress),
    *SCHEDULED,
    *KERNEL,
    *GUARDED,
)

OPS: Mapping[str, type[Op]] = {
    op.name: op
    for op in _WRITTEN
    if op.syntax.split()[0] not in _OWN_FORMS and op not in (*BY_FUNCTION, *IN_ORDER)
}
"""Every instruction that its syntax template describes, by opcode."""

ALIASES: Mapping[str, str] = {"matrixMultiply": "dot"}
"""Opcodes of DLVM that have another name here."""

_SUGGESTED = (*OPS, *_OWN_FORMS)

OPCODES: frozenset[str] = frozenset((*_SUGGESTED, *ALIASES))


@dataclass
class Operations:
    """Reads operations at the cursor; values are looked up in `scope`.

    `options` are the words that could have gone on the operation read last.
    """

    cursor: Cursor
    scope: Scope
    definitions: Definitions
    options: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        self.operands = Operands(self.cursor, self.scope, self.definitions)

    def parse(self, b: Builder, opcode: str) -> ParsedOperation:
        """The operation whose opcode has just been read."""
        start = self.cursor.position - 1
        op = OPS.get(opcode)
        if op is None or opcode in REDUCTIONS:
            found = self._special(b, opcode)
        else:
            found = self._by_template(b, op)
        if not found[0].takes_any:
            for operand in found[1]:
                if not isinstance(operand.type, TensorType):
                    raise self.no_tensor(found[0].name, operand, start)
        return found

    def _special(self, b: Builder, opcode: str) -> ParsedOperation:
        options, self.options = self.options, ()
        match opcode:
            case "literal":
                return self.operands.literal(b)
            case "apply":
                return self._apply(b)
            case "elementPointer":
                return self._element_pointer(b)
            case "bitCast":
                return self._bit_cast(b)
            case _ if opcode in REDUCTIONS:
                op, operands, self.options = parse_reduction(self, b, opcode)
                return op, operands
            case _ if opcode in STRUCTURED:
                return parse_head(self.cursor, b, opcode, self.operands.operand)
            case _ if opcode in ALIASES:
                return self._by_template(b, OPS[ALIASES[opcode]])
            case _:
                hint = did_you_mean(opcode, [*_SUGGESTED, *options])
                message = f"there is no instruction {opcode!r}{hint}"
                raise self.cursor.error(message, self.cursor.position - 1)

    def _by_template(self, b: Builder, op: type[Op]) -> ParsedOperation:
        self.options = option_words(op)
        attributes: dict[str, Any] = {}
        operands: list[Value] = []
        self.pieces(b, template_of(op), attributes, operands)
        return op(**attributes), operands

    def pieces(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None:
        """Read what a template asks for.  Parts that can be left out may come in any order."""
        cursor = self.cursor
        for index, piece in enumerate(pieces):
            match piece:
                case Operand(is_variadic=True):
                    if self.operands.is_next():
                        operands += cursor.listed(self.operands.operand, b)
                case Operand():
                    operands.append(self.operands.operand(b))
                case Words(tokens):
                    for token in tokens:
                        cursor.expect(token)
                case Attribute(name, kind):
                    attributes[name] = parse_attribute(kind, cursor)
                case Optional():
                    self._options(b, pieces[index:], attributes, operands)
                    return

    def _options(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None:
        """The options that the pieces begin with, then the rest of the pieces."""
        options: dict[str, Optional] = {}
        for piece in pieces:
            if not isinstance(piece, Optional):
                break
            options[piece.word] = piece
        given: dict[str, list[Value]] = {word: [] for word in options}
        count = len(options)
        while (word := self.cursor.token.text) in options:
            self.pieces(b, options.pop(word).pieces, attributes, given[word])
        for values in given.values():
            operands += values
        self.pieces(b, pieces[count:], attributes, operands)

    def _apply(self, b: Builder) -> ParsedOperation:
        """`apply @f(%x, %y): (T, U) -> R`, or with the types at the arguments and `-> R`.

        `%f` may be a function or the pointer to one, `@f` a variable as well: then the function is loaded first.
        """
        cursor = self.cursor
        start, token = cursor.position, cursor.token
        is_value = cursor.is_name("%")
        is_pointer = False
        if is_value:
            callee = cursor.name("%", "a function")
            is_pointer = self._is_pointer(callee, start)
        else:
            callee = self.definitions.symbol("a function")
        cursor.expect("(")
        arguments: list[Value | tuple[Any, str]] = []
        while cursor.separated(")", not arguments):
            argument = cursor.token
            if argument.kind == "name" and argument.text[0] == "%" and cursor.ahead(1).text != ":":
                arguments.append((argument, cursor.name("%", "a value")))
            else:
                arguments.append(self.operands.operand(b))
        type = self._called(arguments, start)
        operands = [
            x if isinstance(x, Value) else self.scope.use(*x, type.parameters[position])
            for position, x in enumerate(arguments)
        ]
        if is_pointer:
            pointer = self.scope.use(token, callee, PointerType(type))
            return ApplyValue(type), [b.emit(Load(), pointer), *operands]
        if is_value:
            return ApplyValue(type), [self.scope.use(token, callee, type), *operands]
        if self.definitions.is_variable(callee):
            pointer = b.emit(Reference(callee, PointerType(type)))
            return ApplyValue(type), [b.emit(Load(), pointer), *operands]
        return Apply(callee, type), operands

    def _is_pointer(self, callee: str, start: int) -> bool:
        """Whether the value that is called is the pointer to a function; otherwise it must be one."""
        known = self.scope.values.get(callee)
        if known is None or known is POISON or isinstance(known.type, FunctionType):
            return False
        if isinstance(known.type, PointerType) and isinstance(known.type.pointee, FunctionType):
            return True
        text = self.cursor.tokens[start].text
        raise self.cursor.error(f"apply calls a function; {text} is a {known.type}", start)

    def _called(self, arguments: Sequence[Value | tuple[Any, str]], start: int) -> FunctionType:
        """`: (T, U) -> R`, or `-> R` where the types of all arguments are known."""
        cursor = self.cursor
        types: list[Type | None] = [self._type_of(argument) for argument in arguments]
        if cursor.accept(":"):
            type = parse_function_type(cursor)
            expected = type.parameters
            if len(types) != len(expected) or any(
                t is not None and t != e for t, e in zip(types, expected, strict=True)
            ):
                given = ", ".join("?" if t is None else str(t) for t in types)
                raise cursor.error(f"the arguments ({given}) are not those of {type}", start)
            return type
        if not cursor.accept("->"):
            raise cursor.error(f"':' or '->' was expected, not {cursor.token.shown}")
        for argument, known in zip(arguments, types, strict=True):
            if known is None:
                assert isinstance(argument, tuple)
                token = argument[0]
                raise cursor.error_at(token, f"the value {token.text} is not defined here")
        return FunctionType(tuple(t for t in types if t is not None), parse_type(cursor))

    def _type_of(self, argument: Value | tuple[Any, str]) -> Type | None:
        if isinstance(argument, Value):
            return argument.type
        token, name = argument
        value = self.scope.values.get(name) or self.scope.positions.get(name)
        return self.scope.use(token, name, value.type).type if value else None

    def _element_pointer(self, b: Builder) -> ParsedOperation:
        """`elementPointer %p: *T at 0, #w, %i: i64`."""
        cursor = self.cursor
        operands = [self.operands.operand(b)]
        cursor.expect("at")
        keys: list[int | str | None] = []
        while not keys or cursor.accept(","):
            token = cursor.token
            if token.kind == "integer" and cursor.ahead(1).text != ":":
                keys.append(cursor.integer())
            elif cursor.is_name("#"):
                keys.append(cursor.name("#", "a field"))
            elif cursor.is_name("%") or token.kind == "integer":
                keys.append(None)
                operands.append(self.operands.operand(b))
            else:
                message = f"a number, a field #… or a value %… was expected, not {token.shown}"
                raise cursor.error(message)
        return ElementPointer(tuple(keys)), operands

    def _bit_cast(self, b: Builder) -> ParsedOperation:
        """`bitCast %x: <2 x f32> to i64`, `bitCast %p: *f32 to *i32`, `bitCast %p: *f32 to i64`."""
        x = self.operands.operand(b)
        self.cursor.expect("to")
        start = self.cursor.position
        type = parse_type(self.cursor)
        if isinstance(x.type, PointerType) or isinstance(type, PointerType):
            return PointerCast(type), [x]
        if not isinstance(type, TensorType):
            raise self.cursor.error(f"a tensor or a pointer was expected, not {type}", start)
        return BitCast(type), [x]

    def no_tensor(self, opcode: str, operand: Value, start: int) -> Exception:
        """The error at token `start`: type rules of tensor ops look at tensors only."""
        name = f"{written('%', operand.name)} is" if operand.name else "an operand is"
        return self.cursor.error(f"{opcode} takes tensors; {name} a {operand.type}", start)
