"""What the byte code of a function names: variables with the attributes that are asked of them, texts and imports.

Everything that code can read besides its arguments is reached from a name: a variable, an attribute, a module that it
imports, or a text with which it asks for one of these (`getattr(x, "name")`, `globals()["name"]`, `eval("name")`).
"""

from __future__ import annotations

import dis
import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from ..core.lazy_dataclass import dataclass
from .read_places import is_set
from .spec import is_tuple

RECEIVER: Final = "<first parameter>"
"""What stands for the object of a method: no name of Python's is written so."""
PARAMETER: Final = "<parameter> "
"""Stands before the names of other parameters."""

REFLECTION: Final = frozenset({
    "__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "__slots__", "asdict", "astuple",
    "attrgetter", "dir", "getattr", "getattr_static", "getmembers", "hasattr", "methodcaller", "vars",
})  # fmt: skip
"""Who names one of these may read any attribute of what it has; a pattern with a class, whose name is `MATCH`."""
MATCH: Final = "<pattern>"
NAMESPACES: Final = frozenset({
    "__globals__", "__import__", "currentframe", "eval", "exec", "f_back", "f_globals", "f_locals",
    "getclosurevars", "globals", "import_module", "modules", "_getframe",
})  # fmt: skip
"""Who names one of these may read variables and modules by texts."""
_TEXTS_ONLY: Final = frozenset(
    {"__import__", "globals", "eval", "exec", "import_module", "modules"}
)
"""Those of which it can be seen that the text is written there."""


@dataclass(eq=False, slots=True)
class CodeNames:
    """What some code names, that of functions inside included."""

    reads: dict[tuple[str, tuple[str, ...]], None] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], None]
    )
    """Variables, each with the attributes that are asked of it one after the other."""
    attributes: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    """Attributes of whatever, and which is asked of what is there; None where it goes elsewhere."""
    counters: set[str] = field(default_factory=set[str])
    """Variables, and with a dot in front attributes, which this code gives values by `+=` and the like alone."""
    stored: set[str] = field(default_factory=set[str])
    texts: dict[str, None] = field(default_factory=dict[str, None])
    imports: dict[str, None] = field(default_factory=dict[str, None])
    mentioned: set[str] = field(default_factory=set[str])
    """All names; not those of local variables."""

    @property
    def identifiers(self) -> Iterator[str]:
        """The names in its texts."""
        return (name for text in self.texts for name in identifiers_in(text))


def identifiers_in(text: str) -> list[str]:
    """The words of a text that can be names."""
    return _NAME.findall(text)


_NAME: Final = re.compile(r"[^\W\d]\w*")
_LOADS: Final = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_STORES: Final = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
_ASKS: Final = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")


@lru_cache(4096)
def names_in(code: CodeType) -> CodeNames:
    """What it names."""
    found = CodeNames()
    instructions = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
    _Reader(code, instructions, found).read()
    found.mentioned.update(code.co_names, code.co_freevars)
    doc = code.co_consts[0] if code.co_consts else None
    for constant in code.co_consts:
        if inspect.iscode(constant):
            _add_inside(code, names_in(constant), found)
        elif constant is not doc or not isinstance(doc, str) or _is_loaded_first(instructions):
            found.texts.update(dict.fromkeys(_texts_of(constant)))
    found.counters -= found.stored
    return found


def parameters_of(code: CodeType) -> list[str]:
    """The names of parameters that get a value each."""
    return [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]


def looks_up_computed_names(code: CodeType) -> bool:
    """Whether it, or a function inside, reads a namespace under names that are not texts written there."""
    return next(_computed_lookups(code), None) is not None


def reflection_in(code: CodeType) -> tuple[str, CodeType, int] | None:
    """The first instruction that may read any attribute or variable: what it names, its code, and where it is in it."""
    return next(itertools.chain(_reflections(code), _computed_lookups(code)), None)


def _computed_lookups(code: CodeType) -> Iterator[tuple[str, CodeType, int]]:
    instructions = [one for one in dis.get_instructions(code) if one.opname not in _BETWEEN]
    for k, one in enumerate(instructions):
        is_used = one.argval in NAMESPACES and (one.opname == "LOAD_GLOBAL" or one.opname in _ASKS)
        is_by_text = one.argval in _TEXTS_ONLY and _is_by_text(one.argval, instructions[k + 1 :])
        if is_used and not is_by_text:
            yield one.argval, code, one.offset
    for inside in filter(inspect.iscode, code.co_consts):
        yield from _computed_lookups(inside)


def _reflections(code: CodeType) -> Iterator[tuple[str, CodeType, int]]:
    for one in dis.get_instructions(code):
        if one.opname == "MATCH_CLASS":
            yield "match", code, one.offset
        elif one.argval in REFLECTION and one.opname != "LOAD_CONST":
            yield one.argval, code, one.offset
    for inside in filter(inspect.iscode, code.co_consts):
        yield from _reflections(inside)


_BETWEEN: Final = ("EXTENDED_ARG", "PRECALL", "PUSH_NULL", "COPY_FREE_VARS")


_MOST_INSTRUCTIONS: Final = 5
"""Of the longest such use, `globals().get(text, other)`."""


def _is_by_text(name: str, rest: list[dis.Instruction]) -> bool:
    """Whether what follows gives it a text that is written there."""
    kinds = [one.opname for one in rest[:_MOST_INSTRUCTIONS]]
    if name == "globals" and kinds[:1] == ["CALL"]:
        rest, kinds = rest[1:], kinds[1:]
    elif name not in ("modules", "globals"):
        return _is_text(rest[0]) and kinds[1:2] == ["CALL"] and rest[1].arg == 1
    if kinds[1:2] == ["BINARY_SUBSCR"]:
        return _is_text(rest[0])
    is_get = kinds[:1] in (["LOAD_ATTR"], ["LOAD_METHOD"]) and rest[0].argval == "get"
    is_used = kinds[2:3] in (["CALL"], ["LOAD_CONST"])
    return is_get and _is_text(rest[1]) and is_used


def _is_text(one: dis.Instruction) -> bool:
    return one.opname == "LOAD_CONST" and isinstance(one.argval, str)


def _is_loaded_first(instructions: list[dis.Instruction]) -> bool:
    """Whether the first constant is not only the docstring."""
    return any(one.opname == "LOAD_CONST" and one.arg == 0 for one in instructions)


def _texts_of(constant: object) -> Iterator[str]:
    if isinstance(constant, str):
        yield constant
    elif is_tuple(constant) or is_set(constant):
        for one in constant:
            yield from _texts_of(one)


@dataclass(eq=False, slots=True)
class _Reader:
    """Goes through the instructions of one code object."""

    code: CodeType
    instructions: list[dis.Instruction]
    found: CodeNames
    name: str = ""
    """The variable that is on the stack, with the attributes that were asked of it."""
    attributes: tuple[str, ...] = ()

    def read(self) -> None:
        for k, one in enumerate(self.instructions):
            self._note(k, one)
            if self.name and one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                self.attributes = (*self.attributes, one.argval)
            elif not (self.name and one.opname == "COPY" and one.arg == 1):  # self.count += 1
                self._flush()
                self._begin(one)
        self._flush()

    def _flush(self) -> None:
        if self.name:
            self.found.reads[self.name, self.attributes] = None
        self.name, self.attributes = "", ()

    def _begin(self, one: dis.Instruction) -> None:
        operation, argument, code = one.opname, one.argval, self.code
        first = code.co_varnames[0] if code.co_argcount else None
        is_variable = operation.endswith("_GLOBAL") or argument in code.co_freevars
        last = _loads_last(operation, argument)
        if operation == "LOAD_NAME" or (operation in _LOADS and is_variable):
            self.name = argument
        elif first is not None and last == first:
            self.name = RECEIVER
        elif last in parameters_of(code):
            self.name = f"{PARAMETER}{last}"

    def _note(self, k: int, one: dis.Instruction) -> None:
        """What is stored, asked of whatever, imported or matched."""
        operation, argument, found = one.opname, one.argval, self.found
        if operation in ("STORE_ATTR", "DELETE_ATTR"):
            self._note_store(k, f".{argument}")
        elif operation in _STORES and (
            operation.endswith("_GLOBAL") or argument in self.code.co_freevars
        ):
            self._note_store(k, argument)
        elif operation in _ASKS:
            after = self.instructions[k + 1]
            found.attributes.setdefault(argument, set()).add(
                after.argval if after.opname in ("LOAD_ATTR", "LOAD_METHOD") else None
            )
        elif operation == "IMPORT_NAME":
            found.imports[argument] = None
        elif operation == "IMPORT_FROM":
            found.attributes.setdefault(argument, set()).add(None)
        elif operation == "MATCH_CLASS":
            found.mentioned.add(MATCH)

    def _note_store(self, k: int, name: str) -> None:
        before = [one for one in self.instructions[max(k - 2, 0) : k] if one.opname != "SWAP"]
        is_counting = bool(before) and before[-1].argrepr.endswith("=")
        is_counting = is_counting and before[-1].opname == "BINARY_OP"
        (self.found.counters if is_counting else self.found.stored).add(name)


def _loads_last(operation: str, argument: Any) -> object:
    """The local variable that an instruction puts on the stack last."""
    if operation == "LOAD_DEREF" or operation.startswith("LOAD_FAST"):
        return argument[-1] if is_tuple(argument) else argument
    return None


def _add_inside(code: CodeType, inside: CodeNames, found: CodeNames) -> None:
    """Add what the code of a function or class inside names."""
    local, parameters = {*code.co_cellvars}, {*parameters_of(code)}
    shared = {one: f"{PARAMETER}{one}" for one in parameters}
    if code.co_argcount:
        shared[code.co_varnames[0]] = RECEIVER
    for name, attributes in inside.reads:
        is_own = name == RECEIVER or name.startswith(PARAMETER)
        if not is_own and (name not in local or name in parameters):
            found.reads[shared.get(name, name), attributes] = None
    for name, after in inside.attributes.items():
        found.attributes.setdefault(name, set()).update(after)
    for mine, others in ((found.counters, inside.counters), (found.stored, inside.stored)):
        mine.update(one for one in others if one not in local)
    found.texts |= inside.texts
    found.imports |= inside.imports
    found.mentioned |= inside.mentioned
