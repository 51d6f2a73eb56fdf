"""Memory as bytes: where pointers lead that were cast.

1. With the first cast of a pointer into it an allocation turns from cells to bytes, laid out as in compiled code
   (`core.compute.words.layout`); from then on whatever is read or written there is bytes.
2. What is no tensor is a word: null is 0, a pointer its address, anything else a number that stands for it.
3. Allocations get addresses when they are first asked for, each a range of its own with a gap behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..compute.words.layout import Layout
from ..errors import TrapError
from ..ops.aggregate import positions_of
from ..types import VOID, EnumType, PointerType, TensorType, Type, elements_of
from .data import undefined
from .memory import Memory, Pointer, element_count, frozen

_GAP = 64
_WORD_BYTES = 8


@dataclass(frozen=True, eq=False, slots=True)
class View(Pointer):
    """Leads to what is taken for a value of `type`, `address` bytes into memory that is bytes.

    `inside` is false after an index of `elementPointer` that was out of range.
    """

    type: Type = VOID
    address: int = 0
    inside: bool = True

    @property
    def is_first(self) -> bool:
        return self.inside and not self.address

    def target(self, verb: str | None, layout: Layout) -> tuple[Type, int]:
        if verb is not None and not self.inside:
            raise TrapError(f"{verb} {self.memory.kind} out of bounds")
        return self.type, self.address

    def moved(self, count: int) -> View:
        distance = count * self._layout.extent(self.type).bytes
        return View(self.memory, (), True, 0, self.type, self.address + distance, self.inside)

    def element(self, x: Type, keys: Sequence[int | str | None], indices: Iterator[int]) -> View:
        address, inside = self.address, self.inside
        for key in keys:
            position = next(indices) if key is None else positions_of(x, (key,))[0]
            inside = inside and 0 <= position < element_count(x)
            distance, x = self._layout.offset(x, position)
            address += distance
        return View(self.memory, (), True, 0, x, address, inside)

    @property
    def _layout(self) -> Layout:
        assert self.memory.bytes is not None
        return self.memory.bytes.layout


@dataclass(eq=False)
class Addresses:
    """The addresses of one run's allocations, and the words that stand for what is no tensor."""

    layout: Layout = field(default_factory=Layout)
    starts: list[int] = field(default_factory=list[int])
    memories: list[Memory] = field(default_factory=list[Memory])
    known: dict[Memory, int] = field(default_factory=dict[Memory, int])
    words: dict[int, tuple[Type, Any]] = field(default_factory=dict[int, tuple[Type, Any]])
    end: int = 1 << 20

    def cast(self, data: Any, source: Type, target: Type) -> Any:
        """What `bitCast` makes of a pointer, or of the i64 that is one's address."""
        if not isinstance(target, PointerType):
            return np.asarray(self.word(source, data), np.int64)
        if isinstance(source, PointerType):
            return (
                None
                if data is None
                else self._view(target.pointee, data.memory, self._distance(data))
            )
        return self.value(target, int(data))

    def size(self, memory: Memory) -> int:
        """Of an allocation, in bytes."""
        return memory.count * self.layout.extent(memory.type).bytes

    def word(self, type: Type, data: Any) -> int:
        """The number that stands for what is no tensor."""
        if data is None:
            return 0
        if isinstance(data, Pointer):
            return self._start(data.memory) + self._distance(data)
        number = self.end
        self.end += _WORD_BYTES
        self.words[number] = type, data
        return number

    def value(self, type: Type, word: int) -> Any:
        """What the number stands for, if that is a `type`.  Raises: TrapError."""
        if isinstance(type, PointerType):
            return self._pointer(type.pointee, word) if word else None
        if not word:
            return undefined(type) if isinstance(type, EnumType) else None
        found, data = self.words.get(word, (None, None))
        if found != type:
            raise TrapError(f"a {type} was taken from bytes that are none")
        return data

    def _pointer(self, pointee: Type, address: int) -> View:
        number = bisect_right(self.starts, address) - 1
        if number < 0 or address >= self.starts[number] + self.size(self.memories[number]) + _GAP:
            return self._view(pointee, Memory("memory", VOID, 0), address)
        return self._view(pointee, self.memories[number], address - self.starts[number])

    def _view(self, type: Type, memory: Memory, address: int) -> View:
        if memory.bytes is None:
            raw = Raw(memory, self)
            for index, cell in memory.cells.items():
                at = index * self.layout.extent(memory.type).bytes
                raw.write("store to", memory.type, at, frozen(cell))
            memory.cells.clear()
            memory.bytes = raw
        return View(memory, (), True, 0, type, address)

    def _distance(self, pointer: Pointer) -> int:
        """How many bytes into its memory a pointer leads, be it anywhere."""
        return pointer.target(None, self.layout)[1]

    def _start(self, memory: Memory) -> int:
        """The address of an allocation, which it has from now on."""
        if memory not in self.known:
            self.known[memory] = self.end
            self.starts.append(self.end)
            self.memories.append(memory)
            self.end += -(-(self.size(memory) + _GAP) // _GAP) * _GAP
        return self.known[memory]


@dataclass(eq=False)
class Raw:
    """An allocation as bytes, of which those up to the last one in use are there."""

    memory: Memory
    addresses: Addresses
    data: bytearray = field(default_factory=bytearray)

    @property
    def layout(self) -> Layout:
        return self.addresses.layout

    def read(self, verb: str, type: Type, address: int) -> Any:
        """The value of `type` that lies there.  Raises: TrapError."""
        self.check(verb, type, address)
        leaves = (self._leaf(leaf, address + at) for at, leaf in self.layout.every_leaf(type))
        return _assembled(type, leaves)

    def write(self, verb: str, type: Type, address: int, data: Any) -> None:
        """Put a value of `type` there.  Raises: TrapError."""
        self.check(verb, type, address)
        leaves = zip(self.layout.every_leaf(type), _taken_apart(type, data), strict=True)
        for (at, leaf), part in leaves:
            if isinstance(leaf, TensorType):
                stored = leaf.dtype.store(np.asarray(part)).tobytes()
            else:
                word = self.addresses.word(leaf, part)
                stored = word.to_bytes(_WORD_BYTES, "little", signed=True)
            self.data[address + at : address + at + len(stored)] = stored

    def check(self, verb: str, type: Type, address: int) -> None:
        """Raises: TrapError unless a value lies there with all its bytes."""
        size, whole = self.layout.extent(type).bytes, self.addresses.size(self.memory)
        if not 0 <= address <= whole - size:
            place = f"bytes {address} to {address + size} of {whole}"
            raise TrapError(f"{verb} {self.memory.kind} out of bounds: {place}")
        self.data.extend(bytes(max(0, address + size - len(self.data))))

    def clear(self) -> None:
        """Leave no bytes there."""
        self.data.clear()

    def _leaf(self, leaf: Type, address: int) -> Any:
        if isinstance(leaf, TensorType):
            data = bytes(self.data[address : address + leaf.bytes])
            stored = np.frombuffer(data, leaf.dtype.storage)
            return leaf.dtype.load(stored).reshape(leaf.shape)
        word = self.data[address : address + _WORD_BYTES]
        return self.addresses.value(leaf, int.from_bytes(word, "little", signed=True))


def _assembled(type: Type, leaves: Iterator[Any]) -> Any:
    elements = elements_of(type)
    if elements is None:
        return next(leaves)
    return tuple([_assembled(element, leaves) for element in elements])


def _taken_apart(type: Type, data: Any) -> Iterator[Any]:
    elements = elements_of(type)
    if elements is None:
        yield data
    else:
        for element, part in zip(elements, cast("Sequence[Any]", data), strict=True):
            yield from _taken_apart(element, part)
