"""Memory while a program runs: allocations, and the pointers, boxes and stacks that lead to them.

1. An allocation has cells, which come to be when they are first used; until then they hold `undefined`.
2. A cell holds tensors as arrays of its own and aggregates as lists, so that an element is stored in place.
   What is loaded is a copy.
3. A pointer is a path: the number of the cell, then positions inwards.  It may lead anywhere; only who goes
   there finds out.
4. Memory that a pointer was cast into is bytes (`raw`) instead of cells, and paths lead to places among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from ..compute.words.layout import Layout
from ..errors import TrapError
from ..ops.aggregate import positions_of
from ..ops.memory import ElementPointer, pointee_at
from ..types import Array, ArrayType, PointerType, TensorType, Type, elements_of
from .data import undefined


class Bytes(Protocol):
    """Memory that has been turned to bytes, `address` counting from its beginning."""

    @property
    def layout(self) -> Layout: ...

    def read(self, verb: str, type: Type, address: int) -> Any: ...

    def write(self, verb: str, type: Type, address: int, data: Any) -> None: ...

    def check(self, verb: str, type: Type, address: int) -> None: ...

    def clear(self) -> None: ...


@dataclass(eq=False, slots=True, repr=False)
class Memory:
    """`count` values of one type; `gone` says why they are there no more, and is empty while they are.

    They are in `cells`, or in `bytes`.
    """

    kind: str
    type: Type
    count: int
    gone: str = ""
    cells: dict[int, Any] = field(default_factory=dict[int, Any])
    bytes: Bytes | None = None

    def __repr__(self) -> str:
        return f"<{self.kind}: {self.count} x {self.type}>"

    def cell(self, index: int) -> Any:
        """What a cell holds, which is there from now on."""
        if index not in self.cells:
            self.cells[index] = _thawed(undefined(self.type))
        return self.cells[index]

    def give_back(self, why: str) -> None:
        """Leave no values there."""
        self.gone = why
        self.cells.clear()
        if self.bytes is not None:
            self.bytes.clear()


@dataclass(frozen=True, eq=False, slots=True)
class Pointer:
    """Leads along `path` into `memory`.

    `counts` says whether the last step is the number of a cell, element or row, so that neighbours have the
    next numbers.  The field of a struct has no neighbours: a pointer that left it is `beyond`.
    """

    memory: Memory
    path: tuple[int, ...] = (0,)
    counts: bool = True
    beyond: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this leads to the beginning of the memory."""
        return self.path == (0,) and not self.beyond

    def load(self) -> Any:
        """A copy of what lies there.  Raises: TrapError."""
        raw = self.memory.bytes
        if raw is not None:
            self.check("load from")
            return raw.read("load from", *self.target("load from", raw.layout))
        container, last = self.place("load from")
        return frozen(container[last])

    def store(self, data: Any) -> None:
        """Put a copy of the data there.  Raises: TrapError."""
        raw = self.memory.bytes
        if raw is not None:
            self.check("store to")
            raw.write("store to", *self.target("store to", raw.layout), data)
            return
        container, last = self.place("store to")
        container[last] = data if isinstance(container, np.ndarray) else _thawed(data)

    def target(self, verb: str | None, layout: Layout) -> tuple[Type, int]:
        """The type of what lies there, and how many bytes into the memory, be it anywhere if there is no `verb`.

        Raises: TrapError, for a verb and a place outside.
        """
        type = self.memory.type
        first, *inwards = self.path
        if verb is not None:
            _check_inside(verb, self.memory.kind, first, self.memory.count)
        address = first * layout.extent(type).bytes
        for position in inwards:
            if verb is not None:
                _check_inside(verb, self.memory.kind, position, element_count(type))
            distance, type = layout.offset(type, position)
            address += distance
        return type, address + self.beyond * layout.extent(type).bytes

    def element(self, x: Type, keys: Sequence[int | str | None], indices: Iterator[int]) -> Pointer:
        """The pointer to where the keys lead in what lies there, an `x`; numbers for those that are None."""
        path, counts = list(self.path), self.counts
        for key in keys:
            counts = isinstance(x, ArrayType | TensorType)
            path += [next(indices)] if key is None else positions_of(x, (key,))
            x = pointee_at(x, key)
        return Pointer(self.memory, tuple(path), counts, self.beyond)

    def moved(self, count: int) -> Pointer:
        """The pointer to the neighbour that is `count` further on."""
        if self.counts:
            path = (*self.path[:-1], self.path[-1] + count)
            return Pointer(self.memory, path, True, self.beyond)
        return Pointer(self.memory, self.path, False, self.beyond + count)

    def check(self, verb: str) -> None:
        """Raises: TrapError when the memory is there no more."""
        if self.memory.gone:
            raise TrapError(f"{verb} {self.memory.kind} {self.memory.gone}")

    def reach(self, verb: str) -> None:
        """Raises: TrapError when there is nothing there."""
        raw = self.memory.bytes
        if raw is None:
            self.place(verb)
        else:
            self.check(verb)
            raw.check(verb, *self.target(verb, raw.layout))

    def place(self, verb: str) -> tuple[Any, int]:
        """What holds the value, and where in it."""
        self.check(verb)
        memory, (index, *inwards) = self.memory, self.path
        _check_inside(verb, memory.kind, index, memory.count)
        if self.beyond:
            raise TrapError(f"{verb} {memory.kind} out of bounds: a field is left by {self.beyond}")
        container: Any = memory.cells
        memory.cell(index)
        for position in inwards:
            container = container[index]
            index = position
            _check_inside(verb, memory.kind, index, len(container))
        return container, index


@dataclass(eq=False, slots=True, repr=False)
class Box:
    """Memory for one value, and how many own it."""

    memory: Memory
    owners: int = 1

    def __repr__(self) -> str:
        return f"<a box of {self.memory.type} with {self.owners} owners>"


@dataclass(eq=False, slots=True, repr=False)
class Stack:
    """What was pushed, each with its type; None once the stack is destroyed."""

    entries: list[tuple[Type, Any]] | None = field(default_factory=list[tuple[Type, Any]])

    def __repr__(self) -> str:
        return (
            "<a destroyed stack>" if self.entries is None else f"<a stack of {len(self.entries)}>"
        )

    def used_by(self, verb: str) -> list[tuple[Type, Any]]:
        """The entries.  Raises: TrapError when the stack is there no more."""
        if self.entries is None:
            raise TrapError(f"{verb} a stack that was destroyed")
        return self.entries


def element_pointer(
    op: ElementPointer, type: Type, pointer: Pointer | None, indices: Sequence[Array]
) -> Pointer | None:
    """The pointer that the keys lead to; null from null."""
    if pointer is None:
        return None
    assert isinstance(type, PointerType)
    return pointer.element(type.pointee, op.keys, map(int, indices))


def offset_pointer(pointer: Pointer | None, count: Array) -> Pointer | None:
    """The pointer to a neighbour; null from null."""
    return None if pointer is None else pointer.moved(int(count))


def copy_values(source: Pointer, target: Pointer, count: int) -> None:
    """Copies neighbours, all read before the first is written.  Raises: TrapError."""
    if count < 0:
        raise TrapError(f"copy of {count} values")
    if not count:
        return
    for pointer, verb in ((source, "copy from"), (target, "copy to")):
        pointer.reach(verb)
        pointer.moved(count - 1).reach(verb)
    if len(source.path) == len(target.path) == 1 and not (
        source.memory.bytes or target.memory.bytes
    ):
        _copy_cells(source, target, count)
        return
    values = [source.moved(step).load() for step in range(count)]
    for step, value in enumerate(values):
        target.moved(step).store(value)


def _copy_cells(source: Pointer, target: Pointer, count: int) -> None:
    """The same for whole cells; there may be many more than were ever used."""
    [first], [start] = source.path, target.path
    used = {
        start + index - first: _thawed(frozen(cell))
        for index, cell in source.memory.cells.items()
        if first <= index < first + count
    }
    cells = target.memory.cells
    for index in [index for index in cells if start <= index < start + count]:
        del cells[index]
    cells.update(used)


def existing(pointer: Any, verb: str) -> Any:
    """The pointer, box or stack.  Raises: TrapError when it is null."""
    if pointer is None:
        raise TrapError(f"{verb} null")
    return pointer


def frozen(data: Any) -> Any:
    """A copy of what a cell holds, as a value."""
    return _copied(data, tuple)


def _thawed(data: Any) -> Any:
    """A copy of a value, as a cell holds it."""
    return _copied(data, list)


class _Join(NamedTuple):
    """The last `length` copies belong together."""

    length: int


def _copied(data: Any, make: Callable[[list[Any]], Any]) -> Any:
    """A copy, with aggregates made by `make`; aggregates may be nested deeply."""
    if isinstance(data, np.ndarray):
        return cast(Array, data).copy()
    done: list[Any] = []
    pending: list[Any] = [data]
    while pending:
        current: Any = pending.pop()
        match current:
            case _Join(length):
                copies = done[len(done) - length :]
                del done[len(done) - length :]
                done.append(make(copies))
            case tuple() | list():
                parts = cast("Sequence[Any]", current)
                pending.append(_Join(len(parts)))
                pending.extend(reversed(parts))
            case np.ndarray():
                done.append(cast(Array, current).copy())
            case np.generic():
                done.append(np.asarray(cast(Any, current)))
            case other:
                done.append(other)
    return done[0]


def element_count(x: Type) -> int:
    """How many elements there are in a tensor or an aggregate."""
    if isinstance(x, TensorType):
        return x.shape[0] if x.shape else 0
    return x.count if isinstance(x, ArrayType) else len(elements_of(x) or ())


def _check_inside(verb: str, kind: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise TrapError(f"{verb} {kind} out of bounds: element {index} of {count}")
