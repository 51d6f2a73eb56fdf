"""Rules 1 to 5: the types that a module defines, and those its values have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ..ir import Module, Nominal
from ..lazy_dataclass import dataclass
from ..ops.enums import default_cases
from ..text.lexer import written
from ..types import (
    MAX_BYTES,
    ArrayType,
    EnumType,
    OpaqueType,
    StructType,
    TensorType,
    TupleType,
    Type,
    parts_of,
)
from .error_location import with_locations

MAX_PARTS = 1 << 20
"""How many tensors, pointers and so on a type may have inside, an array counting as one of its elements: as many as an
array has elements (`core.types.MAX_ELEMENTS`)."""

_MOST_SHOWN = 60
"""Characters of a type in a message: what is around it is to stay in sight.  A matter of taste."""

_HANDLE = 16
"""Bytes of what is behind a pointer or of a size that only code generation knows; at least this many."""


@dataclass(eq=False)
class Types:
    """The types met so far in one module: each is looked at once."""

    module: Module
    _met: dict[int, object] = field(default_factory=dict[int, object])
    _said: set[str] = field(default_factory=set[str])
    _known: dict[str, Nominal] = field(default_factory=dict[str, Nominal])
    _sizes: dict[int, tuple[int, int]] = field(default_factory=dict[int, "tuple[int, int]"])

    def defined(self) -> Iterator[str]:
        """What is wrong with the definitions at the head of the module, each with its place."""
        module = self.module
        places = module.type_locations
        taken: dict[str, str] = {}
        for table in (module.structs, module.enums, module.aliases):
            for name, type in table.items():
                is_alias = table is module.aliases
                found = self._definition(name, type, taken, is_alias=is_alias)
                yield from with_locations(found, places.get(name))
        for enum, message in _without_values(list(module.enums.values())):
            yield from with_locations([message], places.get(enum.name))

    def _definition(
        self, name: str, type: Type, taken: dict[str, str], *, is_alias: bool
    ) -> Iterator[str]:
        kind = _kind(type) if isinstance(type, Nominal) and not is_alias else "a type"
        if taken.setdefault(name, kind) != kind:
            yield f"{written('$', name)} is both {taken[name]} and {kind}"
        if not is_alias and isinstance(type, Nominal) and type.name != name:
            yield f"the {kind.split()[1]} {type} stands in the module as {written('$', name)}"
        yield from self.check(type)

    def check(self, type: Type) -> Iterator[str]:
        """What is wrong with `type` that has not been said yet."""
        if isinstance(type, TensorType) or id(type) in self._met:
            return
        for message in self._look(type):
            if message not in self._said:
                self._said.add(message)
                yield message

    def _look(self, type: Type) -> Iterator[str]:
        pending: list[tuple[object, bool]] = [(type, True)]
        while pending:
            current, is_whole = pending.pop()
            if isinstance(current, TensorType) or id(current) in self._met:
                continue
            self._met[id(current)] = current
            if not isinstance(current, Type):
                yield f"{current!r} is not a type"
                continue
            is_aggregate = isinstance(current, _BY_VALUE)
            pending.extend((part, not is_aggregate) for part in parts_of(current))
            if isinstance(current, Nominal):
                yield from self._check_nominal(current)
            if is_whole and is_aggregate:
                yield from self._check_size(current)

    def _check_size(self, type: Type) -> Iterator[str]:
        size, parts = self._measure(type)
        if size > MAX_BYTES:
            yield f"a value of type {_short(type)} is larger than the address space"
        elif parts > MAX_PARTS:
            yield f"a value of type {_short(type)} has more than {MAX_PARTS} parts"

    def _check_nominal(self, nominal: Nominal) -> Iterator[str]:
        if nominal.name in self._known:
            known = self._known[nominal.name]
            if nominal is known:
                return
            if _kind(known) != _kind(nominal):
                yield f"{nominal} is both {_kind(known)} and {_kind(nominal)}"
            elif nominal != known or _contents(nominal) != _contents(known):
                yield f"two different {_kind(nominal).split()[1]}s are called {nominal}"
            return
        self._known[nominal.name] = nominal
        names = [name for name, _ in _contents(nominal)]
        if len(set(names)) != len(names):
            what = (
                "fields of the struct" if isinstance(nominal, StructType) else "cases of the enum"
            )
            yield f"two {what} {nominal} have the same name"
        if isinstance(nominal, OpaqueType) and nominal.name not in self.module.aliases:
            yield f"the opaque type {nominal} is not defined"

    def _measure(self, type: Type) -> tuple[int, int]:
        """At least how many bytes a value has, and how many parts; each type inside is measured once."""
        pending: list[tuple[Type, bool]] = [(type, False)]
        while pending:
            current, is_entered = pending.pop()
            if id(current) in self._sizes:
                continue
            inside = parts_of(current) if isinstance(current, _BY_VALUE) else ()
            if inside and not is_entered:
                pending.append((current, True))
                pending.extend((part, False) for part in inside)
                continue
            self._sizes[id(current)] = self._sum(current, inside)
        return self._sizes[id(type)]

    def _sum(self, type: Type, inside: tuple[Type, ...]) -> tuple[int, int]:
        if isinstance(type, TensorType):
            return type.bytes, 1
        sizes = [self._sizes[id(part)] for part in inside]
        if isinstance(type, ArrayType):
            return max(sizes[0][0], 1) * type.count, max(sizes[0][1], 1)
        if isinstance(type, TupleType | StructType):
            return sum(size for size, _ in sizes), sum(parts for _, parts in sizes)
        return _HANDLE, 1


_BY_VALUE = TupleType | StructType | ArrayType
"""What contains its parts; pointers, boxes and functions only lead to them, and so does an enum."""


def _without_values(enums: list[EnumType]) -> Iterator[tuple[EnumType, str]]:
    """The enums of which no finite value exists, and why: each of their cases needs another such value."""
    finite = default_cases(TupleType(tuple(enums)))
    for enum in enums:
        if enum.name not in finite:
            reason = "every case carries another value of it" if enum.cases else "it has no cases"
            yield enum, f"the enum {enum} has no finite value: {reason}"


def _contents(nominal: Nominal) -> tuple[tuple[str, object], ...]:
    match nominal:
        case StructType(fields=contents) | EnumType(cases=contents):
            return contents
        case _:
            return ()


def _kind(nominal: Nominal) -> str:
    match nominal:
        case StructType():
            return "a struct"
        case EnumType():
            return "an enum"
        case _:
            return "an opaque type"


def _short(type: Type) -> str:
    text = str(type)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} …"
