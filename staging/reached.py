"""What code reaches by the names that it writes: the places whose values its trace depends on.

1. Code is what a function runs by itself, and what it names: helpers, methods, functions in collections.  What NNKit
   and installed libraries run is not looked into, unless they use NNKit.
2. A name with attributes, `config.part.rate`, is followed exactly.
3. What goes elsewhere, `helper(config)`, may be read there: of an object those attributes that any of this code names,
   all of them if code names something that reads under names it is given (`REFLECTION`); of lists, dictionaries, sets
   and arrays all that is in them.
4. Texts stand for variables in code that names a namespace (`NAMESPACES`); if they are computed, all variables do.

So it finds more than is read, and not less.
"""

from __future__ import annotations

import gc
import os
import sys
from array import array as PythonArray
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field
from functools import cached_property, partial
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from ..core.lazy_dataclass import dataclass
from .attribute_storage import (
    OF_VALUES,
    PLAIN,
    class_of,
    defaults_of,
    dictionary_of,
    function_in,
    given_by,
    has_elements,
    is_called_by_text,
    is_own_module,
    is_own_record,
    members_in,
    members_of,
    not_plain,
    variables_of,
)
from .location import is_own_file
from .names_in_code import (
    MATCH,
    NAMESPACES,
    PARAMETER,
    RECEIVER,
    REFLECTION,
    CodeNames,
    looks_up_computed_names,
    names_in,
)
from .read_places import (
    FROZEN,
    MISSING,
    WHOLE,
    Holder,
    ReadVariable,
    content,
    is_frozen,
    is_instance,
)
from .rep_base import RepBase
from .user_code import is_user_class, is_user_function, is_user_module


@dataclass(frozen=True, eq=False)
class GivenStatics:
    """A Python function with the values of static parameters, by name."""

    function: Callable[..., Any]
    values: Mapping[str, Any]


_HOSTS: Final[WeakSet[CodeType]] = WeakSet()
"""Code that compiled code calls back: it runs later than the trace, which depends on nothing that it reads."""


def note_host_function(function: object) -> None:
    """Note that compiled code calls this one back."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if isinstance(code, CodeType):
        _HOSTS.add(code)


@dataclass(eq=False)
class Search:
    """The places that are reached, and what is known so far."""

    slots: dict[tuple[int, object], ReadVariable] = field(
        default_factory=dict[tuple[int, object], ReadVariable]
    )
    counters: set[tuple[int, object]] = field(default_factory=set[tuple[int, object]])
    """Variables that are no constants."""
    reflective: list[CodeType | None] = field(default_factory=list[CodeType | None])
    """Code that may read attributes and variables under any name; None for an object that does, an `attrgetter`."""
    _names: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    """Attributes that code asks of whatever, and what it asks of them."""
    _is_reflective: bool = False
    _passed: list[Any] = field(default_factory=list[Any])
    """Objects, classes and modules that go elsewhere."""
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _kept: list[object] = field(default_factory=list[object])
    """What was seen: an address means nothing once its object is gone."""

    def visit(self, root: object) -> None:
        """What is reached from `root`, by the names that are found on the way."""
        pending, known = [root], -1
        while pending:
            while pending:
                pending += self._unseen(pending.pop())
            if known != (known := self._known_names() + len(self._passed)):
                pending = [one for passed in self._passed for one in self._of_passed(passed)]

    def _known_names(self) -> int:
        return self._is_reflective + sum(len(after) + 1 for after in self._names.values())

    def _unseen(self, one: object) -> Iterable[object]:
        if type(one) in PLAIN:
            return ()
        key = (id(one), 0)
        if isinstance(one, MethodType):  # one is made each time
            key = (id(one.__func__), id(one.__self__))
        if key in self._seen:
            return ()
        self._seen.add(key)
        self._kept.append(one)
        return self._next(one)

    def _next(self, one: object) -> Iterator[object]:
        held: Any = one
        match one:
            case FunctionType():
                yield from self._function(one)
            case MethodType():
                if isinstance(one.__func__, FunctionType) and is_user_function(one.__func__):
                    yield from self._function(one.__func__, one.__self__)
                else:
                    yield from (one.__func__, one.__self__)
            case BuiltinMethodType():
                yield one.__self__
            case partial():
                if isinstance(one.func, FunctionType):
                    yield from self._function(one.func, given=given_by(held))
                yield from (one.func, *one.args, one.keywords)
            case GivenStatics() if isinstance(one.function, FunctionType):
                yield from self._function(one.function, given=one.values)
                yield from one.values.values()
            case property() | staticmethod() | classmethod() | cached_property():
                yield function_in(one)
            case type() | ModuleType():
                if is_user_class(one) if isinstance(one, type) else is_user_module(one):
                    self._passed.append(one)
            case None:
                pass
            case _ if isinstance(one, _COLLECTIONS):
                yield from self._collection(held)
            case _ if not isinstance(one, RepBase):
                yield type(one)
                yield from self._object(held)
            case _:
                pass  # what staged functions read is recorded when they are traced

    def _collection(self, held: Any) -> Iterator[object]:
        """Its elements, which are places if they can change."""
        if is_instance(held, MappingProxyType):
            yield gc.get_referents(held)[0]
            return
        if is_instance(held, np.ndarray):
            self._slot(held, FROZEN if is_frozen(held) else WHOLE, is_inside=True)
            if held.dtype.hasobject:
                yield from held.ravel().tolist()
            return
        if not is_instance(held, (tuple, frozenset)):
            self._slot(held, WHOLE, is_inside=True)
        if is_instance(held, dict):
            yield from not_plain(held.keys())
            yield from not_plain(held.values())
        elif not is_instance(held, _OF_BYTES):
            yield from not_plain(held)
        if class_of(held) not in _COLLECTIONS:
            yield class_of(held)
            yield dictionary_of(held)
        if is_instance(held, defaultdict):
            yield held.default_factory

    def _object(self, held: Any) -> Iterator[object]:
        """An instance of a class of the user's, of NNKit's or of a library's."""
        if is_instance(held, ContextVar):
            yield self._slot(held, WHOLE, is_inside=True)
            return
        self._passed.append(held)
        if is_called_by_text(held):
            self._is_reflective = True
            self.reflective.append(None)
        call = vars(class_of(held)).get("__call__")
        if isinstance(call, FunctionType):
            yield MethodType(call, held)
        yield (dictionary_of(held) or {}).get("__wrapped__")

    def _of_passed(self, held: Any) -> Iterator[object]:
        """What code that has it may read, by the names that are known."""
        if is_instance(held, ModuleType):
            yield from self._of_namespace(variables_of(held))
            return
        if is_instance(held, type):
            yield from self._of_class(held)
            return
        attributes = dictionary_of(held)
        is_whole = self._is_reflective or is_instance(held, _BY_PROTOCOL) or is_own_record(held)
        if attributes is not None and is_whole:
            yield attributes
        named = {**dict.fromkeys(attributes or ()), **dict.fromkeys(members_of(class_of(held)))}
        for name in named:
            if name in self._names or name in OF_VALUES or self._is_reflective:
                value = self._attribute(held, name)
                if value is not None and not self._is_only_changed(name, value[0]):
                    yield value[0]

    def _of_class(self, cls: type[Any]) -> Iterator[object]:
        """Its members and those of its bases, and where these would be hidden."""
        yield class_of(cls)
        known: set[str] = set()
        for each in reversed(cls.__mro__):
            if not is_user_class(each):
                continue
            members = members_in(each)
            for name, member in list(members.items()):
                is_called = name.startswith("__") and isinstance(member, _CODE)
                if name in self._names or is_called or (self._is_reflective and name[:2] != "__"):
                    known.add(name)
            for name in known:
                yield function_in(self._slot(members, name, is_inside=True))

    def _of_namespace(self, variables: dict[str, Any]) -> Iterator[object]:
        for name in list(variables):
            if name in self._names or (self._is_reflective and not name.startswith("__")):
                yield self._slot(variables, name)

    def _is_only_changed(self, name: str, value: object) -> bool:
        """Whether code only adds to the elements of an attribute, say, and reads none of them."""
        after = self._names.get(name, set())
        is_read = self._is_reflective or not after or not after <= _CHANGING
        return has_elements(value) and not is_read

    def _function(
        self,
        function: FunctionType,
        receiver: object = None,
        given: Mapping[str, object] | None = None,
    ) -> Iterator[object]:
        """What it reads, as a method of `receiver`, or called with what is `given` for its parameters."""
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if is_own_file(code.co_filename):
            yield from map(content, cells.values())  # what a wrapper of NNKit's is around
            return
        if not is_user_function(function) or code in _HOSTS:
            return
        self._slot(function, None)
        yield from function.__defaults__ or ()
        yield function.__kwdefaults__
        names = names_in(code)
        self._note_names(code, names)
        scope: dict[str, Any] = function.__globals__
        values = {**defaults_of(function), **(given or {})}
        if receiver is not None and code.co_argcount:
            values[code.co_varnames[0]] = receiver
            yield receiver if "super" in names.mentioned else None
        for name in names.counters:
            self.counters.add((id(cells.get(name, scope)), name))
        for name, attributes in names.reads:
            if name == RECEIVER or name.startswith(PARAMETER):
                is_first = name == RECEIVER and bool(code.co_argcount)
                value = values.get(
                    code.co_varnames[0] if is_first else name.removeprefix(PARAMETER)
                )
            else:
                value = self._slot(cells.get(name, scope), name)
            yield from self._attributes(value, attributes, names)
        yield from self._by_texts(code, names, cells, scope)

    def _note_names(self, code: CodeType, names: CodeNames) -> None:
        for name, after in names.attributes.items():
            if f".{name}" not in names.counters:
                self._names.setdefault(name, set()).update(after)
        for name in names.identifiers:
            self._names.setdefault(name, set()).add(None)
        if names.mentioned & _REFLECTIVE:
            self._is_reflective = True
            self.reflective.append(code)

    def _by_texts(
        self, code: CodeType, names: CodeNames, cells: Mapping[str, Any], scope: dict[str, Any]
    ) -> Iterator[object]:
        """Modules that it imports, and variables and modules that it has by texts."""
        package = scope.get("__package__")
        for name in names.imports:
            for full in (name, f"{package}.{name}"):
                if isinstance(sys.modules.get(full), ModuleType):
                    module = sys.modules[full]
                    yield self._slot(sys.modules, full) if is_user_module(module) else None
        if "getenv" in names.mentioned:
            yield os.environ
        if not names.mentioned & NAMESPACES:
            return
        for name in names.identifiers:
            yield self._slot(cells.get(name, scope), name)
        for text in names.texts:
            yield sys.modules.get(text)
        if looks_up_computed_names(code):
            self.reflective.append(code)
            yield from (self._slot(scope, one) for one in list(scope) if not one.startswith("_"))

    def _attributes(
        self, value: Any, attributes: tuple[str, ...], names: CodeNames
    ) -> Iterator[object]:
        """What `value.first.second` is, and what reading it runs."""
        for name in attributes:
            if f".{name}" in names.counters - names.stored:
                return
            if (name in _CHANGING and has_elements(value)) or (
                name in _OF_SHAPES and isinstance(value, np.ndarray)
            ):
                return
            found = self._attribute(value, name)
            if found is None:
                break
            holder, (value, is_plain) = value, found
            if not is_plain:
                yield None if isinstance(value, MethodType) else holder
                break
        yield value

    def _attribute(self, value: Any, name: str) -> tuple[Any, bool] | None:
        """What an attribute holds, or the function that computes it, and whether it is the former; None for neither."""
        if is_instance(value, ModuleType):
            variables = variables_of(value)
            if is_user_module(value):
                return self._slot(variables, name), True
            found = variables.get(name)
            if not is_own_module(value) and not is_instance(found, _FIXED):
                self._slot(variables, name)
            return found, True
        attributes = dictionary_of(value)
        if attributes is not None and name in attributes:
            return self._slot(attributes, name, is_inside=True), True
        cls: type[Any] = value if is_instance(value, type) else class_of(value)
        places = cls.__mro__ if value is not None else ()
        if (
            cls is value and class_of(cls) is not type
        ):  # of a class, what its own class has comes last
            places += class_of(cls).__mro__
        for each in places:
            is_user = is_user_class(each)
            if is_user:  # where it may come to be before it is found
                self._slot(members_in(each), name, is_inside=True)
            if name in vars(each):
                return self._member(value, attributes, vars(each)[name], name, is_user)
        if attributes is not None and is_user_class(cls):
            self._slot(attributes, name, is_inside=True)
        return None

    def _member(
        self, value: Any, attributes: dict[str, Any] | None, member: Any, name: str, is_user: bool
    ) -> tuple[Any, bool] | None:
        """That of a class."""
        if is_instance(member, MemberDescriptorType):
            is_read = is_user or name in OF_VALUES
            return (self._slot(value, name, is_inside=True), True) if is_read else None
        if attributes is not None and is_user and not is_instance(member, property):
            self._slot(attributes, name, is_inside=True)
        if not is_user and not is_instance(member, FunctionType):
            return None
        function = function_in(member)
        if isinstance(function, FunctionType):
            is_bound = not is_instance(member, staticmethod) and not (
                is_instance(value, type) and is_instance(member, FunctionType)
            )
            return (MethodType(function, value) if is_bound else function), False
        return member, not hasattr(class_of(member), "__get__")

    def _slot(self, holder: Holder, name: Any, *, is_inside: bool = False) -> Any:
        made = ReadVariable(holder, name, None, is_inside)
        if made.key not in self.slots:
            made.value = made.now()
            self.slots[made.key] = made
        value = self.slots[made.key].value
        return None if value is MISSING else value


_CODE: Final = (FunctionType, staticmethod, classmethod, property)
_FIXED: Final = (FunctionType, BuiltinMethodType, type, ModuleType, np.ufunc)
"""What the variables of a library hold that nobody gives another value."""
_OF_BYTES: Final = (bytearray, PythonArray, memoryview)
_COLLECTIONS: Final = (
    tuple, list, set, frozenset, dict, deque, MappingProxyType, np.ndarray, *_OF_BYTES,
)  # fmt: skip
_BY_PROTOCOL: Final = (Mapping, Iterable)
"""What is read by methods of a library's own, as `UserDict` and `os.environ`."""
_REFLECTIVE: Final = REFLECTION | {MATCH}
_OF_SHAPES: Final = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize")
"""What does not change with the elements of an array."""
_CHANGING: Final = frozenset({
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert", "intersection_update",
    "remove", "reverse", "sort", "symmetric_difference_update", "update",
})  # fmt: skip
"""Methods that change a collection and give nothing of it."""
