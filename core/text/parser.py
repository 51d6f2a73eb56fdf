"""Text to IR: modules, functions, instructions.

Each op is read by its own syntax template; `literal` and `apply` have forms of their own.  Every
instruction is typed by its op's rule, so what parses is well typed; what parses may still break rules
between instructions, which `core.verify` knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compute.ops import MatrixProduct
from ..errors import NNKitError, ParseError
from ..ir import Block, Builder, Function, GradientOf, Module, Op, Region, Stage, Value
from ..location import Location
from ..ops import ALL, Aggregate, Apply, Extract, Nest, Return, Yield
from ..schedule.ops import Gemm, Loops, ScheduledScan
from ..types import FunctionType, StructType, TupleType, Type, elements_of
from .attributes import literal_of, parse_attribute, parse_elements
from .cursor import Cursor
from .template import Attribute, Operand, Optional, Piece, Words, defaults_of, template_of
from .types import parse_function_type, parse_tensor, parse_type

_WRITTEN: tuple[type[Op], ...] = (
    *ALL, Extract, Nest, Return, Yield, MatrixProduct, Loops, Gemm, ScheduledScan
)  # fmt: skip
OPS: Mapping[str, type[Op]] = {op.name: op for op in _WRITTEN}
"""Every instruction that its syntax template describes, by opcode."""


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that `text` writes.  Raises: ParseError with line, column and what was expected."""
    return _Parser(Cursor(text), file).module()


@dataclass(frozen=True)
class TextLocation:
    """Where an instruction stands in the text."""

    file: str
    text: str
    start: int

    def resolve(self) -> Location:
        line_start = self.text.rfind("\n", 0, self.start) + 1
        line = self.text.count("\n", 0, self.start) + 1
        column = self.start - line_start
        return Location(self.file, line, column, column + 1)


@dataclass
class _Parser:
    """The cursor, and the values in scope, innermost region last."""

    cursor: Cursor
    file: str
    scopes: list[dict[str, Value]] = field(default_factory=list[dict[str, Value]])

    def module(self) -> Module:
        cursor = self.cursor
        cursor.expect("module")
        token = cursor.next()
        if token.kind != "string":
            raise cursor.error_at(token, "the module's name in quotes was expected")
        module = Module(_unescaped(token.text))
        if cursor.accept("stage"):
            module.stage = Stage(cursor.one_of([stage.value for stage in Stage]))
        while cursor.accept("struct"):
            self.struct(module)
        while cursor.token.kind != "end":
            self.function(module)
        return module

    def struct(self, module: Module) -> None:
        cursor = self.cursor
        token = cursor.token
        name = cursor.name("$", "a struct")
        if name in cursor.structs:
            raise cursor.error_at(token, f"the struct ${name} is defined twice")
        cursor.expect("{")
        fields: dict[str, Type] = {}
        while not cursor.accept("}"):
            cursor.accept(",")
            key = cursor.token
            field_name = cursor.name("#", "a field")
            if field_name in fields:
                raise cursor.error_at(key, f"the field #{field_name} is defined twice")
            cursor.expect(":")
            fields[field_name] = parse_type(cursor)
        cursor.structs[name] = module.structs[name] = StructType(name, tuple(fields.items()))

    def function(self, module: Module) -> None:
        cursor = self.cursor
        attributes: list[str] = []
        while cursor.token.kind == "name" and cursor.token.text[0] == "!":
            attributes.append(cursor.name("!", "an attribute"))
        declaration = self.declaration() if cursor.accept("[") else None
        cursor.expect("func")
        token = cursor.token
        name = cursor.name("@", "a function")
        if name in module.functions:
            raise cursor.error_at(token, f"the function @{name} is defined twice")
        cursor.expect(":")
        function = Function(name, parse_function_type(cursor), None, declaration, tuple(attributes))
        if cursor.accept("{"):
            function.body = self.region()
        module.functions[name] = function

    def declaration(self) -> GradientOf:
        cursor = self.cursor
        cursor.one_of(["gradient", "adjoint"])
        primal = cursor.name("@", "a function")
        clauses: dict[str, Any] = {}
        while not cursor.accept("]"):
            token = cursor.token
            clause = cursor.one_of(["from", "wrt", "keeping", "seedable"])
            if clause in clauses:
                raise cursor.error_at(token, f"{clause} is given twice")
            if clause == "seedable":
                clauses[clause] = True
            elif clause == "from":
                clauses[clause] = cursor.integer()
            else:
                clauses[clause] = parse_attribute("tuple[int, ...]", cursor)
        return GradientOf(
            primal,
            clauses.get("from"),
            clauses.get("wrt"),
            clauses.get("keeping", ()),
            clauses.get("seedable", False),
        )

    def region(self) -> Region:
        """Blocks up to the closing brace."""
        cursor = self.cursor
        cursor.descend()
        self.scopes.append({})
        blocks: list[Block] = []
        while not cursor.accept("}"):
            blocks.append(self.block())
        if not blocks:
            raise cursor.error("a region needs at least one block", cursor.position - 1)
        self.scopes.pop()
        cursor.ascend()
        return Region(blocks)

    def block(self) -> Block:
        cursor = self.cursor
        name = cursor.name("'", "a block")
        block = Block(name=None if name.isdecimal() else name)
        cursor.expect("(")
        while not cursor.accept(")"):
            if block.arguments:
                cursor.expect(",")
            token = cursor.token
            argument = cursor.name("%", "an argument")
            cursor.expect(":")
            value = Value(parse_type(cursor), _kept(argument))
            self.define(token, argument, value)
            block.arguments.append(value)
        cursor.expect(":")
        builder = Builder(block)
        while not (cursor.at("}") or cursor.token.text[:1] == "'" or cursor.token.kind == "end"):
            self.instruction(builder)
        return block

    def instruction(self, b: Builder) -> None:
        cursor = self.cursor
        names: list[tuple[Any, str]] = []
        while cursor.token.kind == "name":
            if names:
                raise cursor.error("',' or '=' was expected")
            names.append((cursor.token, cursor.name("%", "a value")))
            while cursor.accept(","):
                names.append((cursor.token, cursor.name("%", "a value")))
            cursor.expect("=")
        start = cursor.position
        token = cursor.next()
        if token.kind != "word":
            raise cursor.error_at(token, "an instruction was expected")
        b.location = TextLocation(self.file, cursor.text, token.start)
        op, operands = self.operation(b, token.text, start)
        regions: list[Region] = []
        while cursor.accept("{"):
            regions.append(self.region())
        try:
            results = b.emit_many(op, operands, regions)
        except ParseError:
            raise
        except NNKitError as error:
            raise cursor.error(str(error), start) from None
        if names and len(names) != len(results):
            raise cursor.error(f"{token.text} has {len(results)} results, not {len(names)}", start)
        for (at, name), value in zip(names, results, strict=False):
            value.name = _kept(name)
            self.define(at, name, value)

    def operation(self, b: Builder, name: str, start: int) -> tuple[Op, Sequence[Value]]:
        cursor = self.cursor
        match name:
            case "literal":
                return self.literal(b)
            case "apply":
                return self.apply(b)
            case _:
                pass
        cls = OPS.get("dot" if name == "matrixMultiply" else name)
        if cls is None:
            raise cursor.error(f"there is no instruction {name!r}", start)
        attributes: dict[str, Any] = {}
        operands: list[Value] = []
        self.pieces(b, template_of(cls), attributes, operands)
        missing = [f for f in _attribute_names(template_of(cls)) if f not in attributes]
        given = defaults_of(cls)
        for attribute in missing:
            if attribute not in given:
                raise cursor.error(f"{name} lacks its {attribute}", start)
        return cls(**attributes), operands

    def pieces(
        self, b: Builder, pieces: Sequence[Piece], attributes: dict[str, Any], operands: list[Value]
    ) -> None:
        cursor = self.cursor
        for piece in pieces:
            match piece:
                case Words(text):
                    for word in _words(text):
                        cursor.expect(word)
                case Operand(is_variadic=True):
                    if self.at_operand():
                        operands.append(self.operand(b))
                        while cursor.accept(","):
                            operands.append(self.operand(b))
                case Operand():
                    operands.append(self.operand(b))
                case Attribute(name, kind):
                    attributes[name] = parse_attribute(kind, cursor)
                case Optional(inner):
                    head = inner[0]
                    if isinstance(head, Words) and cursor.at(_words(head.text)[0]):
                        self.pieces(b, inner, attributes, operands)

    def at_operand(self) -> bool:
        token = self.cursor.token
        if token.kind == "name" and token.text[0] == "%":
            following = self.cursor.ahead(1)
            return not (following.text == "=" or (following.text == "," and self._names_ahead()))
        return token.kind == "number" or token.text in ("true", "false")

    def _names_ahead(self) -> bool:
        """Whether `%a, %b =` stands here: the results of the next instruction."""
        ahead = 0
        while self.cursor.ahead(ahead).text[:1] == "%":
            if self.cursor.ahead(ahead + 1).text == "=":
                return True
            if self.cursor.ahead(ahead + 1).text != ",":
                return False
            ahead += 2
        return False

    def operand(self, b: Builder) -> Value:
        """`%x: T`, or a scalar written in place, `1.0: f32`."""
        cursor = self.cursor
        if cursor.token.kind != "name":
            numbers, shape, start = parse_elements(cursor)
            cursor.expect(":")
            return b.emit(literal_of(cursor, numbers, shape, start, parse_tensor(cursor)))
        value, token = self.value(), cursor.ahead(-1)
        cursor.expect(":")
        type = parse_type(cursor)
        if type != value.type:
            raise cursor.error_at(token, f"{token.text} is a {value.type}, not a {type}")
        return value

    def value(self) -> Value:
        cursor = self.cursor
        token = cursor.token
        name = cursor.name("%", "a value")
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise cursor.error_at(token, f"the value %{name} is not defined here")

    def define(self, token: Any, name: str, value: Value) -> None:
        if any(name in scope for scope in self.scopes):
            raise self.cursor.error_at(token, f"the value %{name} is defined twice")
        self.scopes[-1][name] = value

    def literal(self, b: Builder) -> tuple[Op, Sequence[Value]]:
        cursor = self.cursor
        start = cursor.position
        if cursor.at("(") or cursor.at("{"):
            return self.aggregate(b)
        numbers, shape, _ = parse_elements(cursor)
        cursor.expect(":")
        return literal_of(cursor, numbers, shape, start, parse_tensor(cursor)), ()

    def aggregate(self, b: Builder) -> tuple[Op, Sequence[Value]]:
        """`(%a: T, %b: U): (T, U)` or `{#w = %a: T}: $S`."""
        cursor = self.cursor
        start = cursor.position
        close = ")" if cursor.next().text == "(" else "}"
        operands: list[Value] = []
        keys: list[str] = []
        while not cursor.accept(close):
            if operands:
                cursor.expect(",")
            if close == "}":
                keys.append(cursor.name("#", "a field"))
                cursor.expect("=")
            operands.append(self.operand(b))
        cursor.expect(":")
        type = parse_type(cursor)
        if not isinstance(type, TupleType | StructType) or isinstance(type, StructType) != (
            close == "}"
        ):
            raise cursor.error(f"this literal is no {type}", start)
        if isinstance(type, StructType):
            order = [name for name, _ in type.fields]
            if sorted(keys) != sorted(order):
                raise cursor.error(f"{type} has the fields {', '.join(order)}", start)
            operands = [operands[keys.index(name)] for name in order]
        if tuple(o.type for o in operands) != elements_of(type):
            raise cursor.error(f"the elements do not make a {type}", start)
        return Aggregate(type), operands

    def apply(self, b: Builder) -> tuple[Op, Sequence[Value]]:
        """`apply @f(%x, %y): (T, U) -> R`, or with the types at the arguments and `-> R`."""
        cursor = self.cursor
        start = cursor.position
        callee = cursor.name("@", "a function")
        cursor.expect("(")
        operands: list[Value] = []
        while not cursor.accept(")"):
            if operands:
                cursor.expect(",")
            if cursor.token.kind == "name" and cursor.ahead(1).text != ":":
                operands.append(self.value())
            else:
                operands.append(self.operand(b))
        types = tuple(operand.type for operand in operands)
        if cursor.accept("->"):
            return Apply(callee, FunctionType(types, parse_type(cursor))), operands
        cursor.expect(":")
        type = parse_function_type(cursor)
        if type.parameters != types:
            raise cursor.error(f"the arguments of @{callee} are not those of {type}", start)
        return Apply(callee, type), operands


def _attribute_names(pieces: Sequence[Piece]) -> list[str]:
    names: list[str] = []
    for piece in pieces:
        if isinstance(piece, Attribute):
            names.append(piece.name)
        elif isinstance(piece, Optional):
            names += _attribute_names(piece.pieces)
    return names


def _words(text: str) -> list[str]:
    """Words and punctuation of a template's text, as the lexer splits them."""
    return (
        text.replace(",", " , ").replace("(", " ( ").replace(")", " ) ").replace(":", " : ").split()
    )


def _kept(name: str) -> str | None:
    """The name of a value, None for one that only counts."""
    return None if name[0].isdigit() else name


def _unescaped(text: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    pieces = text[1:-1].split("\\")
    result = pieces[0]
    rest = iter(pieces[1:])
    for piece in rest:
        result += escapes.get(piece[0], piece[0]) + piece[1:] if piece else "\\" + next(rest, "")
    return result
