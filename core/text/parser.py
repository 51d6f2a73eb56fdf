"""Text to IR: a module, definition by definition.

Every instruction is typed by its op's rule, so what parses is well typed; what parses may still break
rules between instructions, which `core.verify` knows.  One parse reports up to `MAX_ERRORS` errors.
"""

from __future__ import annotations

from ..errors import ParseError
from ..garbage import garbage_left
from ..ir import Function, Module, Stage, Variable
from ..location import HasLocation
from ..types import VOID, FunctionType
from .cursor import Cursor, TooManyErrors, alternatives
from .declarations import parse_brackets
from .definitions import Definitions
from .functions import Bodies, UnterminatedFunction
from .lexer import TextError
from .location import TextLocation
from .recovery import DEFINING, skip_to_body, skip_to_definition
from .types import parse_function_type, parse_type


def parse_module(text: str, file: str = "") -> Module:
    """The module that `text` writes; `file` is what errors and locations call it.

    Raises: ParseError with line, column and what was expected, for every error found.
    """
    with garbage_left():
        cursor = Cursor(text, file)
        module = Module()
        try:
            _Parser(cursor, module).module()
        except TooManyErrors:
            pass
        except TextError as error:
            cursor.errors.append(error)
    if cursor.errors:
        raise ParseError(*map(str, sorted(cursor.errors, key=lambda error: error.position)))
    return module


class _Parser:
    """The cursor, and the module it is read into."""

    def __init__(self, cursor: Cursor, module: Module) -> None:
        self.cursor = cursor
        self.target = module
        self.definitions = Definitions(cursor, module)
        self.bodies = Bodies(cursor, self.definitions)

    def module(self) -> None:
        """`module "name" stage raw`, and the definitions."""
        cursor = self.cursor
        try:
            self.head()
        except TextError as error:
            cursor.report(error)
            skip_to_definition(cursor, 0)
        self.definitions.read_types()
        while cursor.token.kind != "end":
            start = cursor.position
            try:
                self.definition(start)
            except UnterminatedFunction:
                skip_to_definition(cursor, start)
            except TextError as error:
                cursor.report(error)
                skip_to_definition(cursor, start)
            cursor.depth = 0

    def head(self) -> None:
        """`module "name" stage raw`."""
        cursor = self.cursor
        cursor.expect("module")
        self.target.name = cursor.quoted("the module's name")
        if cursor.accept("stage"):
            self.target.stage = Stage(cursor.one_of([stage.value for stage in Stage]))

    def definition(self, start: int) -> None:
        """A type, which has been read, a variable or a function."""
        if start in self.definitions.ends:
            self.cursor.go(self.definitions.ends[start])
        elif self.cursor.accept("var"):
            self.variable()
        else:
            self.function()

    def variable(self) -> None:
        """`var @x: T`."""
        location = self.location()
        name = self.symbol("a variable")
        self.cursor.expect(":")
        self.target.variables[name] = Variable(name, parse_type(self.cursor), location)

    def function(self) -> None:
        """`!attribute [gradient …] [jvp …] func @f: T { … }`; the body may be missing."""
        cursor = self.cursor
        attributes: list[str] = []
        places: dict[str, HasLocation] = {}
        while cursor.token.text[:1] == "!":
            location = self.location()
            attributes.append(cursor.name("!", "an attribute"))
            places.setdefault(attributes[-1], location)
        declaration, rules = parse_brackets(cursor, self.definitions)
        if not cursor.accept("func"):
            words = ["func"] if attributes or declaration or rules else [*DEFINING]
            if cursor.token.text in words:
                sigil = DEFINING[cursor.next().text]
                raise cursor.error(f"a name {sigil}… was expected, not {cursor.token.shown}")
            raise cursor.error(f"{alternatives(words)} was expected, not {cursor.token.shown}")
        location = self.location()
        name = self.symbol("a function")
        cursor.expect(":")
        type = FunctionType((), VOID)
        try:
            type = parse_function_type(cursor)
        except TextError as error:
            cursor.report(error)
            skip_to_body(cursor)
        function = Function(
            name, type, None, declaration, tuple(attributes), location, places, rules
        )
        self.target.functions[name] = function
        if cursor.accept("{"):
            function.body = self.bodies.read(type.result)

    def location(self) -> TextLocation:
        """The place of the next token."""
        return TextLocation(self.cursor.file, self.cursor.text, self.cursor.token)

    def symbol(self, what: str) -> str:
        """Read the name of a definition."""
        token = self.cursor.token
        name = self.cursor.name("@", what)
        if name in self.target.functions or name in self.target.variables:
            kind = "function" if name in self.target.functions else "variable"
            raise self.cursor.error_at(token, f"the {kind} {token.text} is defined twice")
        return name
