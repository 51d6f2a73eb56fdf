"""What a staged function reads besides its arguments: globals, variables of enclosing functions, attributes of modules.

A trace is right for as long as these are what they were.  So they are recorded when a function has been traced:
1. The names that its code reads are found in its byte code, and those of what it names: helpers that are plain Python,
   methods of objects and classes, functions in tuples and the like.  What NNKit and installed libraries read is not.
2. A variable that is given a value by the same code, a counter say, is no constant, and is left out.
3. The staged functions that a trace calls are recorded with it; each has what it reads itself.

Each trace belongs to an *epoch*.  Before a function is traced from outside, all that is recorded is looked at; if any
of it has changed, a new epoch begins, and traces of the ones before are not used any more.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from .epochs import EPOCH
from .location import is_own_file
from .rep_base import RepBase
from .spec import is_tuple

_MISSING: Final = object()


@dataclass(eq=False, slots=True)
class ReadVariable:
    """A variable: a key of the globals of a module, or a cell; and what it held."""

    holder: dict[str, Any] | CellType
    name: str
    value: object

    def now(self) -> object:
        """What it holds."""
        if isinstance(self.holder, CellType):
            return content(self.holder)
        return self.holder.get(self.name, _MISSING)


def content(cell: CellType) -> object:
    """What a cell holds, or a value that nothing else is."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


@dataclass(eq=False)
class Reads:
    """Variables, and what they held."""

    slots: list[ReadVariable]

    def have_changed(self) -> bool:
        """Whether one holds something else.  An equal number or text is what it was, and what it holds from now on."""
        for slot in self.slots:
            now = slot.now()
            if now is not slot.value:
                if not _are_same(slot.value, now):
                    return True
                slot.value = now
        return False


def _are_same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if is_tuple(one) and is_tuple(other):
        return len(one) == len(other) and all(map(_are_same, one, other))
    return type(one) in _PLAIN and repr(one) == repr(other)  # −0.0 is not 0.0


_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})


class _Recorded:
    """All that is recorded and may still be asked."""

    def __init__(self) -> None:
        self.reads: weakref.WeakSet[Reads] = weakref.WeakSet()
        self._lock: Final = threading.Lock()

    def look(self) -> None:
        """Begin a new epoch, if something has changed."""
        with self._lock:  # threads that add something while others look
            known = list(self.reads)
        changed = [reads for reads in known if reads.have_changed()]
        if changed:
            EPOCH.number += 1
            with self._lock:
                self.reads.difference_update(changed)

    def add(self, reads: Reads) -> Reads:
        """Look at these, too."""
        if reads.slots:
            with self._lock:
                self.reads.add(reads)
        return reads


RECORDED: Final = _Recorded()


def reads_of(function: Callable[..., Any]) -> Reads:
    """What a Python function reads now, by itself and through what is plain Python."""
    found = _Search()
    found.visit(function)
    slots = [one for one in found.slots.values() if (id(one.holder), one.name) not in found.written]
    return Reads([one for one in slots if not _is_fixed(one.value)])


@dataclass(eq=False)
class _Search:
    slots: dict[tuple[int, str], ReadVariable] = field(
        default_factory=dict[tuple[int, str], ReadVariable]
    )
    written: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _seen: set[int] = field(default_factory=set[int])
    _kept: list[object] = field(default_factory=list[object])
    """What was seen: an address means nothing once its object is gone."""

    def visit(self, root: object) -> None:
        """What is reached from `root`."""
        pending = [root]
        while pending:
            one = pending.pop()
            if id(one) in self._seen:
                continue
            self._seen.add(id(one))
            self._kept.append(one)
            pending += self._next(one)

    def _next(self, one: object) -> Iterator[object]:
        held: Any = one
        match one:
            case FunctionType():
                yield from self._function(one)
            case MethodType():
                yield from (one.__func__, one.__self__)
            case partial():
                yield from (one.func, *one.args, *one.keywords.values())
            case type():
                if _is_user(sys.modules.get(one.__module__)):
                    yield from (x for x in vars(one).values() if isinstance(x, _CODE))
            case tuple() | list() | set() | frozenset():
                if len(held) <= _MOST_ELEMENTS:
                    yield from held
            case dict():
                if len(held) <= _MOST_ELEMENTS:
                    yield from held.values()
            case staticmethod() | classmethod():
                yield held.__func__
            case property():
                yield one.fget
            case ModuleType() | None:
                pass
            case _ if not isinstance(one, RepBase):
                yield type(one)
                yield getattr(one, "__wrapped__", None) if callable(one) else None
            case _:
                pass  # what staged functions read is recorded when they are traced

    def _function(self, function: FunctionType) -> Iterator[object]:
        code = function.__code__
        own = is_own_file(code.co_filename)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if own:
            yield from map(content, cells.values())  # what a wrapper of NNKit's is around
            return
        if is_library(code.co_filename):
            return
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        reads, writes = _names(code)
        scope: dict[str, Any] = function.__globals__
        for name in writes:
            holder = cells.get(name, scope)
            self.written.add((id(holder), name))
        for name, attributes in reads:
            holder = cells.get(name, scope)
            value = self._slot(holder, name)
            for attribute in attributes:
                if not isinstance(value, ModuleType):
                    yield getattr(type(value), attribute, None)
                    break
                value = self._slot(vars(value), attribute) if _is_user(value) else None
            yield value

    def _slot(self, holder: dict[str, Any] | CellType, name: str) -> object:
        key = id(holder), name
        if key not in self.slots:
            made = ReadVariable(holder, name, None)
            made.value = made.now()
            if made.value is _MISSING:  # a builtin, or an error when it is read
                return None
            self.slots[key] = made
        return self.slots[key].value


_CODE = (FunctionType, staticmethod, classmethod, property)
_MOST_ELEMENTS: Final = 256
"""Of a collection that is looked into for functions: larger ones are data."""


def _is_fixed(value: object) -> bool:
    """Whether it is a module that nobody gives another meaning, as `np`."""
    return isinstance(value, ModuleType) and not _is_user(value)


def _is_user(module: ModuleType | None) -> bool:
    """Whether a module is the user's: not NNKit, and not installed."""
    if module is None:
        return True  # a namespace that code was executed in
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ == "__main__" or module.__spec__ is None
    return not is_own_file(file) and not is_library(file)


@lru_cache(1024)
def is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen"))


_LIBRARIES: Final = tuple(
    {
        path
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if (path := sysconfig.get_path(name))
    }
)


_LOADS: Final = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_STORES: Final = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")


@lru_cache(4096)
def _names(code: CodeType) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """The variables that code reads, each with the attributes that are asked of it, and those that it writes.

    The code of functions inside counts as its own.
    """
    reads: dict[tuple[str, tuple[str, ...]], None] = {}
    writes: dict[str, None] = {}
    name, attributes = "", tuple[str, ...]()
    for instruction in dis.get_instructions(code):
        operation, argument = instruction.opname, instruction.argval
        if operation == "EXTENDED_ARG":
            continue
        if name and operation in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes = (*attributes, argument)
            continue
        if name:
            reads[name, attributes] = None
            name = ""
        is_variable = operation.endswith("_GLOBAL") or argument in code.co_freevars
        if operation == "LOAD_NAME" or (operation in _LOADS and is_variable):
            name, attributes = argument, ()
        elif operation in _STORES and is_variable:
            writes[argument] = None
    if name:
        reads[name, attributes] = None
    for constant in code.co_consts:
        if inspect.iscode(constant):
            inside = _names(constant)
            local = {*code.co_cellvars}
            reads.update((one, None) for one in inside[0] if one[0] not in local)
            writes.update((one, None) for one in inside[1] if one not in local)
    return tuple(reads), tuple(writes)
