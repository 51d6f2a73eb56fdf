"""Byte-addressed memory of a run: allocations, loads, stores, and values encoded as words.

1. Every allocation has a range of addresses to itself, with 2 GiB on either side that belong to nobody: whatever
   leads outside of it is found, and so is what leads to bytes that were given back.
2. A value lies there as in compiled code (`core.compute.lower_memory.data_layout`): tensors row by row, all else as
   words.
3. A word is an address; or the number of an enum's case that carries nothing; or, for functions, enums that carry
   something and opaque values, which have no bytes here, an address of its own that stands for the value (`held`).
4. Bytes are zero at first, and zeros are the value that `undefined` means.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from ..compute.lower_memory.data_layout import MOST_BYTES, DataLayout
from ..errors import TrapError
from ..lazy_dataclass import dataclass
from ..ops.byte_memory import ADDRESS, FIRST_ADDRESS, stop_message
from ..types import Array, BoxType, EnumType, PointerType, StackType, TensorType, Type, elements_of
from .runtime_values import EnumValue, FunctionValue, flatten, undefined, unflatten

HEAP = "heap memory"
STACK = "stack memory"
BOX = "a box"
VALUES = "a stack"

_MARGIN = 1 << 31
"""Bytes before and behind each allocation. An offset that fits an i32 does not lead from one into another; a billion
allocations still fit into 2⁶³ addresses."""

_ALIGNMENT = 16
"""Between addresses that stand for values: that of `malloc`, so that they look like those of compiled code."""

_LaidOut: TypeAlias = tuple[int, list[tuple[int, Type]] | None]
"""The size of an aggregate, and its leaves; None for a value that is one leaf."""


@dataclass(eq=False, slots=True, repr=False)
class Allocation:
    """An allocation of `size` bytes, backed on first use; `gone` says why it is no longer valid.

    `owners` are those of a box.
    """

    kind: str
    address: int
    size: int
    gone: str = ""
    bytes: Array | None = None
    owners: int = 1

    def give_back(self, why: str) -> None:
        """Leave no bytes there."""
        self.gone = why
        self.bytes = None


@dataclass(eq=False)
class Memory:
    """All allocations, by address.  One that is given to several runs keeps what they leave there."""

    layout: DataLayout = field(default_factory=DataLayout)
    allocations: list[Allocation] = field(default_factory=lambda: [Allocation("memory", 0, 0)])
    starts: list[int] = field(default_factory=lambda: [0])
    """Where the range of each allocation begins; the first is nobody's."""
    end: int = _MARGIN
    held: dict[int, tuple[Type, Any]] = field(default_factory=dict[int, tuple[Type, Any]])
    """The values that have no bytes, by the addresses that stand for them."""
    functions: dict[str, int] = field(default_factory=dict[str, int])
    entries: dict[int, list[tuple[Type, Any]]] = field(
        default_factory=dict[int, list[tuple[Type, Any]]]
    )
    """The values on each stack, by its address."""
    laid_out: dict[int, tuple[Type, _LaidOut]] = field(
        default_factory=dict[int, tuple[Type, _LaidOut]]
    )
    """What is known of each type, by identity: types take long to compare."""

    def allocate(self, kind: str, size: int) -> Allocation:
        """New memory, all zero.  Raises: TrapError."""
        if not 0 <= size <= MOST_BYTES:
            raise TrapError("out of memory")
        made = Allocation(kind, self.end + _MARGIN, size)
        self.allocations.append(made)
        self.starts.append(self.end)
        self.end = -(-(made.address + size) // _MARGIN) * _MARGIN + _MARGIN
        return made

    def allocation(self, address: int, verb: str) -> Allocation:
        """The allocation into whose range an address leads.  Raises: TrapError when it is there no more."""
        if address < FIRST_ADDRESS:
            outside = f": {address.place}" if isinstance(address, OutOfBoundsAddress) else ""
            raise TrapError(f"{stop_message(verb, address)}{outside}")
        found = self.allocations[bisect_right(self.starts, address) - 1]
        if found.gone:
            raise TrapError(f"{verb} {found.kind} {found.gone}")
        return found

    def find(self, address: int, size: int, verb: str) -> tuple[Array, int]:
        """The bytes of an allocation, and where in them the address is.  Raises: TrapError."""
        found = self.allocation(address, verb)
        first = address - found.address
        if not 0 <= first <= found.size - size:
            place = f"bytes {first} to {first + size} of {found.size}"
            raise TrapError(f"{verb} {found.kind} out of bounds: {place}")
        if found.bytes is None:
            found.bytes = np.zeros(found.size, np.uint8)
        return found.bytes, first

    def read(self, type: Type, address: int) -> Any:
        """The value of `type` that lies there.  Raises: TrapError."""
        size, leaves = self._lay_out(type)
        data, first = self.find(address, size, "load from")
        if leaves is None:
            return self._read(type, data, first)
        values = [self._read(leaf, data, first + at) for at, leaf in leaves]
        return unflatten(type, iter(values))

    def write(self, type: Type, value: Any, address: int) -> None:
        """Put a value of `type` there.  Raises: TrapError."""
        size, leaves = self._lay_out(type)
        data, first = self.find(address, size, "store to")
        if leaves is None:
            self._write(type, value, data, first)
            return
        for (at, leaf), part in zip(leaves, flatten(type, value), strict=True):
            self._write(leaf, part, data, first + at)

    def move(self, source: int, target: int, count: int) -> None:
        """Copy bytes, all read before the first is written.  Raises: TrapError."""
        if count:
            data, first = self.find(source, count, "copy from")
            moved = data[first : first + count].copy()
            data, first = self.find(target, count, "copy to")
            data[first : first + count] = moved

    def word(self, type: Type, value: Any) -> int:
        """The word that stands for a value that is no tensor."""
        match type:
            case PointerType() | BoxType() | StackType():
                return int(value)
            case EnumType():
                number = self.layout.case_numbers(type)[value.case]
                return self._hold(type, value) if value.carried else number
            case _ if value is None:
                return 0
            case _ if isinstance(value, FunctionValue):
                if value.name not in self.functions:
                    self.functions[value.name] = self._hold(type, value)
                return self.functions[value.name]
            case _:
                return self._hold(type, value)

    def value(self, type: Type, word: int) -> Any:
        """The value of `type` that a word stands for.  Raises: TrapError when it is none of that type."""
        if isinstance(type, PointerType | BoxType | StackType):
            return word
        if not word:
            return undefined(type)
        if word < FIRST_ADDRESS and isinstance(type, EnumType):
            for case, number in self.layout.case_numbers(type).items():
                if number == word and not type.carried(case):
                    return EnumValue(case)
        held, value = self.held.get(word, (None, None))
        if held != type:
            raise TrapError(f"a {type} was taken from bytes that are none")
        return value

    def _hold(self, type: Type, value: Any) -> int:
        self.end += _ALIGNMENT
        self.held[self.end] = type, value
        return self.end

    def _lay_out(self, type: Type) -> _LaidOut:
        known = self.laid_out.get(id(type))
        if known is None:
            is_leaf = elements_of(type) is None
            leaves = None if is_leaf else list(self.layout.every_leaf(type))
            known = self.laid_out[id(type)] = type, (self.layout.extent(type).bytes, leaves)
        return known[1]

    def _read(self, leaf: Type, data: Array, at: int) -> Any:
        if not isinstance(leaf, TensorType):
            return self.value(leaf, int(self._read(ADDRESS, data, at)))
        stored = np.ndarray(leaf.shape, leaf.dtype.storage, data, at)
        return np.asarray(leaf.dtype.load(stored.copy()))

    def _write(self, leaf: Type, value: Any, data: Array, at: int) -> None:
        if not isinstance(leaf, TensorType):
            leaf, value = ADDRESS, self.word(leaf, value)
        stored = np.ndarray(leaf.shape, leaf.dtype.storage, data, at)
        stored[...] = leaf.dtype.store(np.asarray(value))


class OutOfBoundsAddress(int):
    """The invalid address that `elementPointer` gives for an index out of range, which it remembers."""

    place = ""


def moved(address: int, distance: int) -> int:
    """The address so many bytes further on, of 64 bits; one that leads nowhere stays as it is."""
    if address < FIRST_ADDRESS:
        return address
    return (address + distance + (1 << 63)) % (1 << 64) - (1 << 63)
