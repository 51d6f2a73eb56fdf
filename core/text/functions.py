"""Bodies of functions: regions, blocks and instructions, from the opening brace to the closing one.

Regions wait on a list while the bodies inside them are read, so that nesting is not depth of Python's
stack.  After an error reading goes on at the next instruction; what an instruction with an error would
have defined is poisoned, and its uses are passed over in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..errors import NNKitError, ParseError
from ..ir import Block, Builder, Instruction, Op, Placement, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply, ApplyValue, packed, unpacked
from ..ops.terminators import Return
from ..types import Type
from .control_flow_syntax import BRANCHES, parse_branch
from .cursor import MOST_POSITION_DIGITS, Cursor
from .definitions import Definitions
from .lexer import TextError, Token
from .location import TextLocation
from .operations import OPCODES, Operations
from .placement import parse_placement
from .recovery import skip_argument, skip_header, skip_instruction, starts_definition
from .scope import Scope
from .types import parse_type

MAX_REGIONS = 5_000
"""How deeply regions may nest: as deeply as calls of staged functions, which print as regions
(`staging.user_calls`)."""


class UnterminatedFunction(Exception):
    """The end of the function cannot be found."""


@dataclass
class _Head:
    """An instruction up to its first body; `start` is the token with its opcode."""

    start: int
    names: list[tuple[Token, str]]
    op: Op
    operands: Sequence[Value]
    placement: Placement
    regions: list[Region] = field(default_factory=list[Region])


@dataclass
class _OpenRegion:
    """A region that is being read; `head` is the instruction whose body it is.

    `number` is that of the block, counted through the function, `count` that of the next instruction in it.
    """

    head: _Head | None
    region: Region = field(default_factory=Region)
    labels: dict[str, Block] = field(default_factory=dict[str, Block])
    branches: list[tuple[Instruction, list[Token]]] = field(
        default_factory=list[tuple[Instruction, list[Token]]]
    )
    b: Builder = field(default_factory=Builder)
    number: int = 0
    count: int = 0


class Bodies:
    """Reads the bodies of functions."""

    def __init__(self, cursor: Cursor, definitions: Definitions) -> None:
        self.cursor = cursor
        self.definitions = definitions

    def read(self, result: Type) -> Region:
        """The body whose brace has been read, of a function that returns `result`.

        Raises: ParseError when its end cannot be found.
        """
        self.result = result
        self.scope = Scope(self.cursor)
        self.operations = Operations(self.cursor, self.scope, self.definitions)
        self.blocks = 0
        self.open: list[_OpenRegion] = []
        self._enter(None)
        root = self.open[0].region
        while self.open:
            start = self.cursor.position
            try:
                self._step(self.open[-1], start)
            except ParseError as error:
                assert isinstance(error, TextError)
                self._recover(error, start)
        return root

    def _enter(self, head: _Head | None) -> None:
        if len(self.open) >= MAX_REGIONS:
            error = self.cursor.error(f"regions nested more than {MAX_REGIONS} levels deep")
            self.cursor.report(error)
            raise UnterminatedFunction
        self.scope.enter()
        self.open.append(_OpenRegion(head))

    def _step(self, region: _OpenRegion, start: int) -> None:
        """Read the header of a block, an instruction, or the end of a region."""
        cursor = self.cursor
        text = cursor.token.text
        if text[:1] == "'" or not region.region.blocks:
            self._header(region)
        elif text == "}":
            self._close(region)
        else:
            self._instruction(region, start)

    def _header(self, region: _OpenRegion) -> None:
        """`'name(%x: T):`; the parentheses may be missing."""
        cursor = self.cursor
        token = cursor.token
        label = cursor.name("'", "a block")
        block = Block(name=label, location=TextLocation(cursor.file, cursor.text, token))
        region.region.blocks.append(block)
        region.b = Builder(block)
        region.number, region.count = self.blocks, 0
        self.blocks += 1
        self.operations.options = ()
        if label in region.labels:
            cursor.report(cursor.error_at(token, f"the block {token.text} is defined twice"))
        region.labels.setdefault(label, block)
        try:
            if not cursor.at(":"):
                cursor.expect("(")
                self._arguments(block)
            cursor.expect(":")
        except TextError:
            for name in skip_header(cursor):
                self.scope.poison(name)
            raise

    def _arguments(self, block: Block) -> None:
        """`%x: T, …)`."""
        cursor = self.cursor
        is_first = True
        while cursor.separated(")", is_first):
            is_first = False
            token = cursor.token
            name = cursor.name("%", "an argument")
            try:
                cursor.expect(":")
                argument = Value(parse_type(cursor))
                self.scope.define(token, name, argument)
                block.arguments.append(argument)
            except TextError as error:
                self.scope.poison(name)
                if not skip_argument(cursor):
                    raise
                cursor.report(error)

    def _instruction(self, region: _OpenRegion, start: int) -> None:
        """`%a, %b = opcode …`, up to its first body."""
        cursor, b = self.cursor, region.b
        names: list[tuple[Token, str]] = []
        try:
            if cursor.token.text[0:1] == "%":
                self._names(names)
            token, start = cursor.token, cursor.position
            if token.kind != "word":
                expected = "an instruction" if names else "an instruction, a block or '}'"
                raise cursor.error(f"{expected} was expected, not {token.shown}")
            b.location = TextLocation(cursor.file, cursor.text, token)
            cursor.skip(1)
            if token.text in BRANCHES:
                self._branch(region, token, names, start)
                return
            op, operands = self.operations.parse(b, token.text)
            placement = parse_placement(cursor)
            if op.bodies:
                head = _Head(start, names, op, operands, placement)
                self._body(head)
                return
            if isinstance(op, Return) and [x.type for x in operands] == [self.result]:
                operands = unpacked(b, operands[0])
            results = b.emit_many(op, operands, placement=placement)
            if len(names) == 1 != len(results) and isinstance(op, Apply | ApplyValue):
                results = (packed(b, op.type.result, results),)
            self._define(region, start, names, results)
        except NNKitError as error:
            raise self._failed(names, start, error) from None

    def _failed(self, names: list[tuple[Token, str]], start: int, error: NNKitError) -> TextError:
        """Poison the results; the error at the opcode unless it knows its place."""
        for _, name in names:
            self.scope.poison(name)
        return error if isinstance(error, TextError) else self.cursor.error(str(error), start)

    def _names(self, names: list[tuple[Token, str]]) -> None:
        """`%a, %b =`."""
        cursor = self.cursor
        names.append((cursor.token, cursor.name("%", "a value")))
        while not cursor.accept("="):
            if not cursor.accept(","):
                raise cursor.error(f"',' or '=' was expected, not {cursor.token.shown}")
            names.append((cursor.token, cursor.name("%", "a value")))

    def _define(
        self,
        region: _OpenRegion,
        start: int,
        names: list[tuple[Token, str]],
        results: tuple[Value, ...],
    ) -> None:
        """Give the results their names, or their positions where there are none."""
        if names:
            if len(names) != len(results):
                opcode = self.cursor.tokens[start].text
                message = f"{opcode} has {len(results)} results, not {len(names)}"
                raise self.cursor.error(message, start)
            for (token, name), value in zip(names, results, strict=True):
                self.scope.define(token, name, value)
        elif results:
            place = f"{region.number}.{region.count}"
            for index, value in enumerate(results):
                several = f".{index}" if len(results) > 1 else ""
                self.scope.positions.setdefault(f"{place}{several}", value)
        region.count += 1

    def _branch(
        self, region: _OpenRegion, token: Token, names: list[tuple[Token, str]], start: int
    ) -> None:
        read = self.operations.operands.operand
        op, operands, labels = parse_branch(self.cursor, region.b, token.text, read)
        self._define(region, start, names, region.b.emit_many(op, operands))
        region.branches.append((region.b.block.instructions[-1], labels))

    def _body(self, head: _Head) -> None:
        """Open the next body of an instruction."""
        word = head.op.bodies[len(head.regions)]
        if word:
            self.cursor.expect(word)
        self.cursor.expect("{")
        self._enter(head)

    def _close(self, region: _OpenRegion) -> None:
        """Read the closing brace; go on with the instruction whose body ends, or leave the function."""
        self.cursor.skip(1)
        self._resolve_labels(region)
        head = region.head
        if head is None:
            self.scope.finish()
            self.open.pop()
            return
        self.scope.leave()
        self.open.pop()
        around = self.open[-1]
        head.regions.append(region.region)
        try:
            if len(head.regions) < len(head.op.bodies):
                self._body(head)
                return
            results = around.b.emit_many(
                head.op, head.operands, head.regions, placement=head.placement
            )
            self._define(around, head.start, head.names, results)
        except NNKitError as error:
            raise self._failed(head.names, head.start, error) from None

    def _resolve_labels(self, region: _OpenRegion) -> None:
        """Find the blocks that branches go to: by name, else by position."""
        cursor, blocks = self.cursor, region.region.blocks
        for instruction, targets in region.branches:
            for target in targets:
                name = target.text[1:]
                if target.text[1:2] == '"':
                    name = cursor.string(target, name)
                block = region.labels.get(name)
                is_position = name.isdecimal() and len(name) <= MOST_POSITION_DIGITS
                if block is None and is_position and int(name) < len(blocks):
                    block = blocks[int(name)]
                if block is None:
                    error = cursor.error_at(target, f"there is no block {target.text} here")
                    cursor.report(error)
                else:
                    instruction.successors += (block,)

    def _recover(self, error: TextError, start: int) -> None:
        """Report, and go on behind the instruction that began at token `start`."""
        cursor = self.cursor
        cursor.report(error)
        cursor.depth = 0
        region = self.open[-1]
        if not region.region.blocks:
            region.region.blocks.append(Block())
            region.b = Builder(region.region.blocks[0])
        if cursor.tokens[start].text[:1] != "'" or cursor.position == start:
            skip_instruction(cursor, start, OPCODES)
        if cursor.token.kind == "end" or starts_definition(cursor):
            raise UnterminatedFunction
