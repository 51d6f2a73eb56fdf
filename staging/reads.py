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
import gc
import inspect
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from itertools import islice
from types import (
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from ..core.lazy_dataclass import dataclass
from .epochs import EPOCH
from .location import is_own_file
from .read_places import (
    MISSING,
    MOST_ELEMENTS,
    MOST_WATCHED,
    SIZE,
    Holder,
    ReadVariable,
    are_same,
    content,
    offsets_in,
)
from .rep_base import RepBase
from .spec import is_tuple


@dataclass(eq=False)
class Reads:
    """Variables, and what they held."""

    slots: list[ReadVariable]

    def have_changed(self) -> bool:
        """Whether one holds something else.  An equal number or text is what it was, and what it holds from now on."""
        for slot in self.slots:
            now = slot.now()
            if now is not slot.value:
                if not are_same(slot.value, now):
                    return True
                slot.value = now
        return False

    def without_changes_since(self, before: Reads) -> Reads:
        """Those places inside of values that held the same before: what tracing itself changes is no constant."""
        held = {slot.key: slot.value for slot in before.slots}
        kept = [
            slot
            for slot in self.slots
            if not slot.is_inside or (slot.key in held and are_same(held[slot.key], slot.value))
        ]
        return Reads(kept)


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
    found.slots.pop((id(function), None), None)
    slots = [one for one in found.slots.values() if one.key not in found.written]
    return Reads([one for one in slots if not _is_fixed(one.value)])


@dataclass(frozen=True, eq=False)
class GivenStatics:
    """A Python function with the values of static parameters, by name."""

    function: Callable[..., Any]
    values: Mapping[str, Any]


@dataclass(eq=False)
class _Search:
    slots: dict[tuple[int, object], ReadVariable] = field(
        default_factory=dict[tuple[int, object], ReadVariable]
    )
    written: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _kept: list[object] = field(default_factory=list[object])
    """What was seen: an address means nothing once its object is gone."""
    _inside: int = 0
    """How many words inside of values are watched."""

    def visit(self, root: object) -> None:
        """What is reached from `root`."""
        pending = [root]
        while pending:
            one = pending.pop()
            key = (id(one), 0)
            if isinstance(one, MethodType):  # one is made each time
                key = (id(one.__func__), id(one.__self__))
            if key in self._seen:
                continue
            self._seen.add(key)
            self._kept.append(one)
            pending += self._next(one)

    def _next(self, one: object) -> Iterator[object]:
        held: Any = one
        match one:
            case FunctionType():
                yield from self._function(one)
            case MethodType():
                if isinstance(one.__func__, FunctionType):
                    yield from self._function(one.__func__, one.__self__)
                yield one.__self__
            case partial():
                if isinstance(one.func, FunctionType):
                    yield from self._function(one.func, given=_parameters(held))
                yield from (one.func, *one.args, *one.keywords.values())
            case type():
                if _is_user(sys.modules.get(one.__module__)):
                    yield from (x for x in vars(one).values() if isinstance(x, _CODE))
            case tuple() | list() | set() | frozenset():
                if isinstance(one, list):
                    self._inside_of(held, [None], min(len(held), MOST_WATCHED) + 1)
                elif isinstance(one, set):
                    self._inside_of(held, [None], MOST_WATCHED)
                if len(held) <= MOST_ELEMENTS:
                    yield from held
            case dict():
                is_small = len(held) <= MOST_ELEMENTS
                self._inside_of(held, [SIZE, *islice(held, MOST_WATCHED * is_small)])
                if len(held) <= MOST_ELEMENTS:
                    yield from held.values()
            case np.ndarray():
                if held.dtype != object:
                    self._inside_of(held, [offsets_in(held)], len(offsets_in(held)))
            case staticmethod() | classmethod():
                yield held.__func__
            case property():
                yield one.fget
            case ModuleType() | None:
                pass
            case GivenStatics() if isinstance(one.function, FunctionType):
                yield from self._function(one.function, given=one.values)
                yield from one.values.values()
            case _ if not isinstance(one, RepBase):
                yield type(one)
                call = vars(type(one)).get("__call__")
                if isinstance(call, FunctionType):
                    yield MethodType(call, one)
                yield getattr(one, "__wrapped__", None) if callable(one) else None
            case _:
                pass  # what staged functions read is recorded when they are traced

    def _inside_of(self, holder: Holder, names: Iterable[object], words: int = 1) -> None:
        """Watch these places in a value, each of which is so many words."""
        for name in names:
            if self._inside + words <= _MOST_INSIDE:
                self._inside += words
                self._slot(holder, name, is_inside=True)

    def _function(
        self,
        function: FunctionType,
        receiver: object = None,
        given: Mapping[str, object] | None = None,
    ) -> Iterator[object]:
        """What it reads, as a method of `receiver`, or called with what is `given` for its parameters."""
        code = function.__code__
        own = is_own_file(code.co_filename)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if own:
            yield from map(content, cells.values())  # what a wrapper of NNKit's is around
            return
        if is_library(code.co_filename):
            return
        if (
            function.__globals__.get("__name__") != "__main__"
        ):  # what is there is not reloaded, but defined anew
            self._slot(function, None)
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        reads, writes = _names(code)
        scope: dict[str, Any] = function.__globals__
        held = {**_defaults(function), **(given or {})}
        for name in writes:
            holder = cells.get(name, scope)
            self.written.add((id(holder), name))
        for name, attributes in reads:
            if name == RECEIVER and receiver is not None:
                value = receiver
            elif name == RECEIVER:
                value = held.get(code.co_varnames[0])
            elif name.startswith(PARAMETER):
                value = held.get(name.removeprefix(PARAMETER))
            else:
                value = self._slot(cells.get(name, scope), name)
            yield from self._attributes(value, attributes, writes)

    def _attributes(
        self, value: Any, names: Sequence[str], writes: Sequence[str]
    ) -> Iterator[object]:
        """What `value.first.second` is, and what reading it runs, in code that writes this."""
        for name in names:
            if f".{name}" in writes or (name in _CHANGING and _has_elements(value)):
                return
            if isinstance(value, ModuleType):
                value = self._slot(vars(value), name) if _is_user(value) else None
                continue
            if name in _OF_SHAPES and _is_array(value):
                return
            holder = _holder_of(value, name)
            if holder is not None:
                value = self._slot(holder, name, is_inside=True)
                continue
            member: Any = inspect.getattr_static(_class_of(value), name, None)
            if isinstance(member, MemberDescriptorType) and _is_user(
                sys.modules.get(member.__objclass__.__module__)
            ):
                value = self._slot(value, name, is_inside=True)
                continue
            member = member.fget if isinstance(member, property) else member
            yield MethodType(member, value) if isinstance(member, FunctionType) else member
            break
        if ITEMS not in writes or not _has_elements(value):
            yield value

    def _slot(self, holder: Holder, name: Any, *, is_inside: bool = False) -> object:
        made = ReadVariable(holder, name, None, is_inside)
        if made.key not in self.slots:
            made.value = made.now()
            if made.value is MISSING:  # a builtin, or an error when it is read
                return None
            self.slots[made.key] = made
        return self.slots[made.key].value


def _defaults(function: FunctionType) -> dict[str, object]:
    """Those of parameters, by name."""
    values, code = function.__defaults__ or (), function.__code__
    last = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(last, values, strict=True)), **(function.__kwdefaults__ or {})}


def _parameters(bound: partial[Any]) -> dict[str, object]:
    """What is given for parameters of its function, by name."""
    return {
        **dict(zip(bound.func.__code__.co_varnames, bound.args, strict=False)),
        **bound.keywords,
    }


def _has_elements(value: object) -> bool:
    return isinstance(value, list | dict | set | np.ndarray)


def _class_of(value: object) -> type[Any]:
    return type(value)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _holder_of(value: object, name: str) -> dict[str, Any] | None:
    """The dictionary that an attribute of an object or a class lies in; None where it is computed, or NNKit's."""
    if isinstance(value, type):
        found = next((cls for cls in value.__mro__ if name in vars(cls)), None)
        if found is None or not _is_user(sys.modules.get(found.__module__)):
            return None
        if hasattr(_class_of(vars(found)[name]), "__get__"):  # a method, a field of a struct
            return None
        held: dict[str, Any] = gc.get_referents(vars(found))[0]  # what the mapping proxy shows
        return held
    try:
        of_object: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        of_object = {}
    if type(of_object) is dict and name in of_object:
        return of_object
    found = next((cls for cls in _class_of(value).__mro__ if name in vars(cls)), None)
    return None if found is None or value is None else _holder_of(found, name)


_CODE = (FunctionType, staticmethod, classmethod, property)
_MOST_INSIDE: Final = 256
"""Words of collections and arrays that are watched for one function: 0.1 µs of a call."""
_OF_SHAPES: Final = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize")
"""What does not change with the elements of an array."""
_CHANGING: Final = (
    "add", "append", "clear", "difference_update", "discard", "extend", "insert", "intersection_update", "pop",
    "popitem", "remove", "reverse", "setdefault", "sort", "symmetric_difference_update", "update",
)  # fmt: skip
"""Methods that change a list, a set or a dictionary: what the same code changes is no constant."""
ITEMS: Final = "[]"
"""Stands for elements among the names that code writes."""
RECEIVER: Final = "<first parameter>"
"""What stands for the object of a method: no name of Python's is written so."""
PARAMETER: Final = "<parameter> "
"""Stands before the names of other parameters."""


def _is_fixed(value: object) -> bool:
    """Whether it is a module that nobody gives another meaning, as `np`."""
    return isinstance(value, ModuleType) and not _is_user(value)


def _is_user(module: ModuleType | None) -> bool:
    """Whether a module is the user's: not NNKit, and not installed."""
    if module is None or module.__name__ == "__main__":
        return True  # a namespace that code was executed in; or what a library runs, as `python -m pytest` does
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__spec__ is None
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


def _loads_last(operation: str, argument: Any) -> object:
    """The local variable that an instruction puts on the stack last."""
    if operation == "LOAD_DEREF" or operation.startswith("LOAD_FAST"):
        return argument[-1] if is_tuple(argument) else argument
    return None


@lru_cache(4096)
def _names(code: CodeType) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """The variables that code reads, each with the attributes that are asked of it, and those that it writes.

    Attributes that it writes are among the latter with a dot in front, and are ITEMS where it writes elements.

    The code of functions inside counts as its own.
    """
    reads: dict[tuple[str, tuple[str, ...]], None] = {}
    writes: dict[str, None] = {}
    name, attributes = "", tuple[str, ...]()
    first = code.co_varnames[0] if code.co_argcount else None
    parameters = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    for instruction in dis.get_instructions(code):
        operation, argument = instruction.opname, instruction.argval
        if operation == "EXTENDED_ARG":
            continue
        if operation in ("STORE_ATTR", "DELETE_ATTR"):
            writes[f".{argument}"] = None
        elif operation in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"):
            writes[ITEMS] = None
        if name and operation in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes = (*attributes, argument)
            continue
        if name:
            reads[name, attributes] = None
            name = ""
        is_variable = operation.endswith("_GLOBAL") or argument in code.co_freevars
        if operation == "LOAD_NAME" or (operation in _LOADS and is_variable):
            name, attributes = argument, ()
        elif first is not None and _loads_last(operation, argument) == first:
            name, attributes = RECEIVER, ()
        elif (last := _loads_last(operation, argument)) in parameters:
            name, attributes = f"{PARAMETER}{last}", ()
        elif operation in _STORES and is_variable:
            writes[argument] = None
    if name:
        reads[name, attributes] = None
    for constant in code.co_consts:
        if inspect.iscode(constant):
            inside = _names(constant)
            local = {*code.co_cellvars}
            shared = {one: f"{PARAMETER}{one}" for one in parameters} | {first: RECEIVER}
            reads.update(
                ((shared.get(one[0], one[0]), one[1]), None)
                for one in inside[0]
                if one[0] != RECEIVER
                and not one[0].startswith(PARAMETER)
                and (one[0] not in local or one[0] in parameters)
            )
            writes.update((one, None) for one in inside[1] if one not in local)
    return tuple(reads), tuple(writes)
