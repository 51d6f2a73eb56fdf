"""What stands right of `=`: an op with its attributes, and its operands.

Each op is read by its own syntax template; `literal`, `apply` and `reduce` have forms of their own.  A
scalar or tensor literal can stand wherever an operand can, and becomes an instruction before it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..compute.ops import MatrixProduct
from ..ir import Builder, Op, Value
from ..ops import ALL, Aggregate, Apply, Extract, Nest, Reduce, Return, Yield
from ..schedule.ops import Gemm, Loops, ScheduledScan
from ..types import FunctionType, StructType, TensorType, TupleType, elements_of
from .attributes import parse_attribute, parse_numbers
from .control import BRANCHES, STRUCTURED, parse_head
from .cursor import Cursor
from .indices import parse_combinator
from .literals import literal_of, parse_elements
from .scope import Scope
from .template import Attribute, Operand, Optional, Piece, Words, option_words, template_of
from .types import parse_function_type, parse_tensor, parse_type

_WRITTEN: tuple[type[Op], ...] = (
    *ALL, Extract, Nest, Return, Yield, MatrixProduct, Loops, Gemm, ScheduledScan
)  # fmt: skip
OPS: Mapping[str, type[Op]] = {op.name: op for op in _WRITTEN}
"""Every instruction that its syntax template describes, by opcode."""

ALIASES: Mapping[str, str] = {"matrixMultiply": "dot"}
"""Opcodes of DLVM that have another name here."""

_OPCODES = (*OPS, "literal", "apply", *BRANCHES, *STRUCTURED)
_LITERAL_WORDS = frozenset(("true", "false", "zero", "<", "("))

Operation: TypeAlias = tuple[Op, Sequence[Value]]


@dataclass
class Operations:
    """Reads operations at the cursor; values are looked up in `scope`.

    `options` are the words that could have gone on the operation read last.
    """

    cursor: Cursor
    scope: Scope
    options: Sequence[str] = field(default=())

    def parse(self, b: Builder, opcode: str) -> Operation:
        """The operation whose opcode has just been read."""
        match opcode:
            case "literal":
                found = self._literal(b)
            case "apply":
                found = self._apply(b)
            case "reduce":
                found = self._reduce(b)
            case _ if opcode in STRUCTURED:
                found = parse_head(self.cursor, b, opcode, self.operand)
            case _:
                found = self._by_template(b, opcode)
        self._check(*found)
        return found

    def operand(self, b: Builder) -> Value:
        """`%x: T`, or a literal written in place, `1.0: f32`."""
        cursor = self.cursor
        token = cursor.token
        if token.kind == "name":
            value = self.scope.read()
            cursor.expect(":")
            type = parse_type(cursor)
            if type is not value.type and type != value.type:
                raise cursor.error_at(token, f"{token.text} is a {value.type}, not a {type}")
            return value
        if token.text in ("(", "{"):
            op, operands = self._aggregate(b)
            return b.emit(op, *operands)
        if token.kind not in ("integer", "float") and token.text not in _LITERAL_WORDS:
            raise cursor.error(f"a value %… or a literal was expected, not {token.shown}")
        literal, _ = self._tensor_literal()
        return b.emit(literal)

    def _by_template(self, b: Builder, opcode: str) -> Operation:
        op = OPS.get(ALIASES.get(opcode, opcode))
        if op is None:
            raise self.cursor.error(self._unknown(opcode), self.cursor.position - 1)
        attributes: dict[str, Any] = {}
        operands: list[Value] = []
        self._pieces(b, template_of(op), attributes, operands)
        self.options = option_words(op)
        return op(**attributes), operands

    def _pieces(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None:
        cursor = self.cursor
        for piece in pieces:
            match piece:
                case Words(tokens):
                    for token in tokens:
                        cursor.expect(token)
                case Operand(is_variadic=True):
                    if self._is_operand_next():
                        operands.append(self.operand(b))
                        while cursor.accept(","):
                            operands.append(self.operand(b))
                case Operand():
                    operands.append(self.operand(b))
                case Attribute(name, kind):
                    attributes[name] = parse_attribute(kind, cursor)
                case Optional(inner):
                    if cursor.at(piece.word):
                        self._pieces(b, inner, attributes, operands)

    def _is_operand_next(self) -> bool:
        """Whether an operand stands here, and not the results of the next instruction."""
        token = self.cursor.token
        if token.text[:1] != "%":
            return token.kind in ("integer", "float") or token.text in _LITERAL_WORDS
        ahead = 1
        while self.cursor.ahead(ahead).text == ",":
            ahead += 2
        return self.cursor.ahead(ahead).text != "="

    def _literal(self, b: Builder) -> Operation:
        self.options = ()
        if self.cursor.token.text in ("(", "{"):
            return self._aggregate(b)
        return self._tensor_literal()

    def _tensor_literal(self) -> Operation:
        elements = parse_elements(self.cursor)
        self.cursor.expect(":")
        return literal_of(self.cursor, elements, parse_tensor(self.cursor)), ()

    def _aggregate(self, b: Builder) -> Operation:
        """`(%a: T, %b: U): (T, U)` or `{#w = %a: T}: $S`."""
        cursor = self.cursor
        start = cursor.position
        cursor.descend()
        close = ")" if cursor.next().text == "(" else "}"
        operands: list[Value] = []
        keys: list[str] = []
        while cursor.separated(close, not operands):
            if close == "}":
                keys.append(cursor.name("#", "a field"))
                cursor.expect("=")
            operands.append(self.operand(b))
        cursor.ascend()
        cursor.expect(":")
        type = parse_type(cursor)
        if not isinstance(type, TupleType if close == ")" else StructType):
            what = "a tuple" if close == ")" else "a struct"
            raise cursor.error(f"this literal is {what}, not a {type}", start)
        if isinstance(type, StructType):
            names = [name for name, _ in type.fields]
            if sorted(keys) != sorted(names):
                fields = ", ".join(f"#{name}" for name in names) or "no fields"
                raise cursor.error(f"{type} has {fields}", start)
            operands = [operands[keys.index(name)] for name in names]
        types = tuple(operand.type for operand in operands)
        if types != elements_of(type):
            raise cursor.error(f"{TupleType(types)} are not the elements of {type}", start)
        return Aggregate(type), operands

    def _apply(self, b: Builder) -> Operation:
        """`apply @f(%x, %y): (T, U) -> R`, or with the types at the arguments and `-> R`."""
        self.options = ()
        cursor = self.cursor
        start = cursor.position
        callee = cursor.name("@", "a function")
        cursor.expect("(")
        operands: list[Value] = []
        while cursor.separated(")", not operands):
            bare = cursor.token.kind == "name" and cursor.ahead(1).text != ":"
            operands.append(self.scope.read() if bare else self.operand(b))
        types = tuple(operand.type for operand in operands)
        if cursor.accept("->"):
            return Apply(callee, FunctionType(types, parse_type(cursor))), operands
        if not cursor.accept(":"):
            raise cursor.error(f"':' or '->' was expected, not {cursor.token.shown}")
        type = parse_function_type(cursor)
        if type.parameters != types:
            given = ", ".join(map(str, types))
            raise cursor.error(f"the arguments ({given}) are not those of {type}", start)
        return Apply(callee, type), operands

    def _reduce(self, b: Builder) -> Operation:
        """`reduce %x: T by add along 0`; DLVM's `init %v: U` is combined with the result."""
        cursor = self.cursor
        x = self.operand(b)
        cursor.expect("by")
        combinator = parse_combinator(cursor)
        initial = self.operand(b) if cursor.accept("init") else None
        axes = parse_numbers(cursor) if cursor.accept("along") else ()
        self.options = ("init", "along")
        reduction = Reduce(combinator, axes)
        if initial is None:
            return reduction, (x,)
        self._check(reduction, (x,))
        return OPS[combinator.value](), (initial, b.emit(reduction, x))

    def _check(self, op: Op, operands: Sequence[Value]) -> None:
        """Type rules of tensor ops look at tensors only.  Raises: ParseError for anything else."""
        if op.takes_any:
            return
        for operand in operands:
            if not isinstance(operand.type, TensorType):
                name = f"%{operand.name} is" if operand.name else "an operand is"
                raise self.cursor.error(f"{op.name} takes tensors; {name} a {operand.type}")

    def _unknown(self, opcode: str) -> str:
        near = difflib.get_close_matches(opcode, [*_OPCODES, *self.options], 3)
        hint = (
            f": did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?"
            if near
            else ""
        )
        return f"there is no instruction {opcode!r}{hint}"
