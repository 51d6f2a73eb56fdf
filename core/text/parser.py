"""Text to IR: modules, structs, functions, blocks and instructions.

Every instruction is typed by its op's rule, so what parses is well typed; what parses may still break
rules between instructions, which `core.verify` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import NNKitError, ParseError
from ..ir import Block, Builder, Function, GradientOf, Instruction, Module, Op, Region, Stage, Value
from ..location import Location
from ..types import StructType, Type
from .attributes import parse_numbers
from .control import BRANCHES, parse_branch
from .cursor import Cursor
from .lexer import Token
from .operations import Operations
from .scope import Scope
from .types import parse_function_type, parse_type


def parse_module(text: str, file: str = "") -> Module:
    """The module that `text` writes; `file` is what errors and locations call it.

    Raises: ParseError with line, column and what was expected.
    """
    return _Parser(Cursor(text, file)).module()


class TextLocation(NamedTuple):
    """Where an instruction stands in the text."""

    file: str
    text: str
    token: Token

    def resolve(self) -> Location:
        start = self.token.start
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start) - 1
        return Location(self.file or "<text>", line, column, column + len(self.token.text))


class _Parser:
    """The cursor, the values in scope, and what reads operations."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.scope = Scope(cursor)
        self.operations = Operations(cursor, self.scope)
        self.branches: list[list[tuple[Instruction, list[Token]]]] = []

    def module(self) -> Module:
        cursor = self.cursor
        cursor.expect("module")
        token = cursor.next()
        if token.kind != "string":
            message = f"the module's name in quotes was expected, not {token.shown}"
            raise cursor.error_at(token, message)
        module = Module(cursor.string(token, token.text))
        if cursor.accept("stage"):
            module.stage = Stage(cursor.one_of([stage.value for stage in Stage]))
        while cursor.token.kind != "end":
            if cursor.accept("struct"):
                self.struct(module)
            else:
                self.function(module)
        return module

    def struct(self, module: Module) -> None:
        """`struct $S { #a: T, #b: U }`; a line break will do for a comma."""
        cursor = self.cursor
        token = cursor.token
        name = cursor.name("$", "a struct")
        if name in cursor.structs:
            raise cursor.error_at(token, f"the struct {token.text} is defined twice")
        cursor.expect("{")
        fields: dict[str, Type] = {}
        while not cursor.accept("}"):
            key = cursor.token
            field_name = cursor.name("#", "'}' or a field")
            if field_name in fields:
                raise cursor.error_at(key, f"the field {key.text} is defined twice")
            cursor.expect(":")
            fields[field_name] = parse_type(cursor)
            cursor.accept(",")
        cursor.structs[name] = module.structs[name] = StructType(name, tuple(fields.items()))

    def function(self, module: Module) -> None:
        """`!attribute [gradient …] func @f: T { … }`; the body may be missing."""
        cursor = self.cursor
        attributes: list[str] = []
        while cursor.token.text[:1] == "!":
            attributes.append(cursor.name("!", "an attribute"))
        declaration = self.declaration() if cursor.accept("[") else None
        if not cursor.accept("func"):
            expected = "'func' was" if attributes or declaration else "'struct' or 'func' was"
            raise cursor.error(f"{expected} expected, not {cursor.token.shown}")
        token = cursor.token
        name = cursor.name("@", "a function")
        if name in module.functions:
            raise cursor.error_at(token, f"the function {token.text} is defined twice")
        cursor.expect(":")
        function = Function(name, parse_function_type(cursor), None, declaration, tuple(attributes))
        if cursor.accept("{"):
            function.body = self.region()
        module.functions[name] = function

    def declaration(self) -> GradientOf:
        """`gradient @f from 0 wrt 1, 2 keeping 0 seedable]`, the clauses in any order."""
        cursor = self.cursor
        cursor.one_of(["gradient", "adjoint"])
        primal = cursor.name("@", "a function")
        clauses: dict[str, Any] = {}
        while not cursor.accept("]"):
            token = cursor.token
            clause = cursor.one_of(["from", "wrt", "keeping", "seedable", "]"])
            if clause in clauses:
                raise cursor.error_at(token, f"{clause} is given twice")
            if clause == "seedable":
                clauses[clause] = True
            elif clause == "from":
                clauses[clause] = cursor.integer()
            else:
                clauses[clause] = parse_numbers(cursor)
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
        self.scope.enter()
        self.branches.append([])
        region = Region()
        labels: set[str] = set()
        while not (region.blocks and cursor.accept("}")):
            region.blocks.append(self.block(labels))
        self.scope.leave()
        blocks = {block.name: block for block in region.blocks}
        for instruction, targets in self.branches.pop():
            for target in targets:
                name = target.text[1:]
                if name not in blocks:
                    raise cursor.error_at(target, f"there is no block {target.text} here")
                instruction.successors += (blocks[name],)
        cursor.ascend()
        return region

    def block(self, labels: set[str]) -> Block:
        """`'name(%x: T):` and its instructions."""
        cursor = self.cursor
        token = cursor.token
        label = cursor.name("'", "a block")
        if label in labels:
            raise cursor.error_at(token, f"the block {token.text} is defined twice")
        labels.add(label)
        block = Block(name=label)
        cursor.expect("(")
        while cursor.separated(")", not block.arguments):
            token = cursor.token
            name = cursor.name("%", "an argument")
            cursor.expect(":")
            block.arguments.append(Value(parse_type(cursor)))
            self.scope.define(token, name, block.arguments[-1])
        cursor.expect(":")
        b = Builder(block)
        self.operations.options = ()
        while not (cursor.at("}") or cursor.token.text[:1] == "'"):
            self.instruction(b)
        return block

    def instruction(self, b: Builder) -> None:
        """`%a, %b = opcode …`, its bodies included."""
        cursor = self.cursor
        names = self.result_names()
        token, start = cursor.token, cursor.position
        if token.kind != "word":
            expected = "an instruction" if names else "an instruction, a block or '}'"
            raise cursor.error(f"{expected} was expected, not {token.shown}")
        b.location = TextLocation(cursor.file, cursor.text, token)
        cursor.skip(1)
        labels: list[Token] = []
        op: Op
        operands: Sequence[Value]
        try:
            if token.text in BRANCHES:
                read = self.operations.operand
                op, operands, labels = parse_branch(cursor, b, token.text, read)
            else:
                op, operands = self.operations.parse(b, token.text)
            results = b.emit_many(op, operands, self.bodies(op.bodies))
        except ParseError:
            raise
        except NNKitError as error:
            raise cursor.error(str(error), start) from None
        if names and len(names) != len(results):
            raise cursor.error(f"{token.text} has {len(results)} results, not {len(names)}", start)
        if labels:
            self.branches[-1].append((b.block.instructions[-1], labels))
        for (at, name), value in zip(names, results, strict=False):
            self.scope.define(at, name, value)

    def result_names(self) -> list[tuple[Token, str]]:
        """`%a, %b =`, or nothing."""
        cursor = self.cursor
        names: list[tuple[Token, str]] = []
        if cursor.token.text[:1] != "%":
            return names
        while not (names and cursor.accept("=")):
            if names and not cursor.accept(","):
                raise cursor.error(f"',' or '=' was expected, not {cursor.token.shown}")
            names.append((cursor.token, cursor.name("%", "a value")))
        return names

    def bodies(self, words: Sequence[str]) -> list[Region]:
        """The regions of an op, each behind its word and a brace."""
        regions: list[Region] = []
        for word in words:
            if word:
                self.cursor.expect(word)
            self.cursor.expect("{")
            regions.append(self.region())
        return regions
