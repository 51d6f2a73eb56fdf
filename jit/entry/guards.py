"""Guards: what native code looks at before each call, to find out that a variable of Python holds something else.

A guard is a list of pairs of words, an address and what must be there, which the entry compares one after the other:
1. For each dictionary of variables, where it keeps its keys, and values that lie apart from these.  As long as that is
   so, its entries lie where they did.
2. For each variable, the entry of the dictionary, or the cell, that holds its value; for a collection or an array,
   where it keeps its elements and how many, and these.
Behind them is a list of blocks of more than some words, each of which must be what it was: long lists and large arrays.

Variables are read in place, without a call into Python: a nanosecond for three of them, and blocks at the speed of
memory.  What does not match goes to the fallback, as arguments that do not fit.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from ...core.lazy_dataclass import dataclass
from ...core.types import Array
from .selftest import is_supported

_Holder: TypeAlias = (
    "dict[Any, Any] | CellType | FunctionType | list[Any] | set[Any] | Array | object"
)
WatchedVariable: TypeAlias = "tuple[_Holder, Any, object]"
"""Its holder, its name, and what it holds.

The name `...` stands for all that is in a dictionary, list, set or array, and "frozen" for that an array cannot be
written to; what these hold is looked at in memory.  A value that is `missing` is not in its dictionary.
"""

# CPython 3.11 to 3.13: PyDictObject, PyDictKeysObject, PyCellObject, PyFunctionObject, PyListObject and PySetObject of
# Include/internal/pycore_dict.h and Include/cpython; NumPy: PyArrayObject
_USED: Final = 16
_KEYS: Final = 32
_SPLIT_VALUES: Final = 40
_INDEX_BYTES: Final = 9
_KIND: Final = 10
_COUNT: Final = 24
_INDICES: Final = 32
_CONTENT: Final = 16
_GENERAL: Final = 0
_SPLIT_FIRST: Final = 8 if sys.version_info >= (3, 13) else 0
"""Where the values of a dictionary lie that shares its keys with others, those of objects of a class."""
_CODE: Final = 48
_DEFAULTS: Final = (56, 64)
_LENGTH: Final = 16
_ITEMS: Final = 24
_DATA: Final = 16
_DIMENSIONS: Final = 32
_DTYPE: Final = 56
_FLAGS: Final = 64
_FILLED: Final = 16
_COUNTED: Final = 24
_MASK: Final = 32
_TABLE: Final = 40
_WORD: Final = 8
"""Bytes that native code compares at once, and of a pointer."""


_MOST_PAIRS: Final = 32
"""Words of a block that are compared as pairs, 0.4 ns each; a longer one takes a call, and 8 ns for a kilobyte."""
_Block: TypeAlias = "tuple[int, bytes]"
"""An address, and what must be there."""


@dataclass(eq=False, slots=True)
class _Places:
    """What is to be looked at."""

    pairs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    blocks: list[_Block] = field(default_factory=list[_Block])

    def add(self, *addresses: int) -> None:
        """Words that must stay as they are."""
        self.pairs += ((address, _word(address)) for address in addresses)

    def add_block(self, address: int, size: int) -> None:
        """So many bytes that must."""
        words = range(address, address + size - _WORD + 1, _WORD)
        if size % _WORD or len(words) > _MOST_PAIRS:
            self.blocks.append((address, ctypes.string_at(address, size)))
        else:
            self.add(*words)


class Guard:
    """The places of some variables.  The caller keeps these and what they hold alive."""

    __slots__ = ("_kept", "blocks", "pairs")

    def __init__(self, variables: Sequence[WatchedVariable], missing: object = None) -> None:
        found = _places(variables, missing)
        self.pairs: Array = np.zeros((len(found.pairs), 2), np.int64)
        self.blocks: Array = np.zeros((len(found.blocks), 3), np.int64)
        """Address, address of what must be there, and bytes."""
        self._kept: list[Array] = []

    def update(self, variables: Sequence[WatchedVariable], missing: object = None) -> bool:
        """Look where they are now; whether that is known of all."""
        found = _places(variables, missing)
        if len(found.pairs) > len(self.pairs) or len(found.blocks) > len(self.blocks):
            return False
        found.pairs += [(_ALWAYS, 0)] * (len(self.pairs) - len(found.pairs))
        self.pairs[:] = np.array(found.pairs, np.int64).reshape(-1, 2)
        kept = [np.frombuffer(content, np.uint8) for _, content in found.blocks]
        self.blocks[:] = 0
        for k, ((address, _), one) in enumerate(zip(found.blocks, kept, strict=True)):
            self.blocks[k] = address, one.ctypes.data, one.nbytes
        self._kept = kept
        return not any(address == _NOWHERE for address, _ in found.pairs)


def can_guard() -> bool:
    """Whether native code can look at variables, as CPython lays them out in this process."""
    return is_supported() and _layout_holds()


def _places(variables: Sequence[WatchedVariable], missing: object) -> _Places:
    found = _Places()
    dicts: dict[int, dict[Any, Any]] = {}
    named: dict[int, list[Any]] = {}
    for one in variables:
        held: Any = one[0]  # whose elements isinstance leaves Any
        if isinstance(one[0], dict):
            dicts[id(held)] = held
            if one[1] is not ...:
                named.setdefault(id(held), []).append(one[1])
    entries = {address: _entries(dicts[address], names) for address, names in named.items()}
    for address in dicts:
        found.add(address + _KEYS)
        if _word(address + _SPLIT_VALUES):
            found.add(address + _SPLIT_VALUES)
    for holder, name, value in variables:
        held = holder
        match holder:
            case dict() if name is ...:
                _add_entries(found, held)
            case dict() if value is missing and missing is not None:
                _add_absence(found, id(held))
            case dict():
                found.pairs.append((entries[id(held)].get(name, _NOWHERE), id(value)))
            case CellType():
                is_empty = value is missing and missing is not None
                found.pairs.append((id(holder) + _CONTENT, 0 if is_empty else id(value)))
            case FunctionType():
                found.add(id(holder) + _CODE, *(id(holder) + offset for offset in _DEFAULTS))
            case list():
                found.add(id(held) + _ITEMS, id(held) + _LENGTH)
                found.add_block(_word(id(held) + _ITEMS), _WORD * len(held))
            case set():
                found.add(*(id(held) + offset for offset in (_TABLE, _MASK, _FILLED, _COUNTED)))
                size = 2 * _WORD * (_word(id(held) + _MASK) + 1)
                found.add_block(_word(id(held) + _TABLE), size)
            case np.ndarray() if name == "frozen":
                _add_flags(found, holder)
            case np.ndarray():
                _add_array(found, holder)
            case _:
                found.pairs.append(_of_slot(holder, name, value))
    return found


def _add_entries(found: _Places, held: dict[Any, Any]) -> None:
    """How many keys there are, and all entries of the table, or the values that lie apart."""
    keys, values = _word(id(held) + _KEYS), _word(id(held) + _SPLIT_VALUES)
    count = _word(keys + _COUNT)
    found.add(id(held) + _USED, keys + _COUNT)
    if values:
        found.add_block(values + _SPLIT_FIRST, _WORD * count)
    else:
        first, width = _table(keys)
        found.add_block(first, _WORD * width * count)


def _add_absence(found: _Places, address: int) -> None:
    """A key that is added is a new entry in the table."""
    found.add(_word(address + _KEYS) + _COUNT)
    if _word(address + _SPLIT_VALUES):
        found.add(address + _USED)


def _add_flags(found: _Places, array: Any) -> None:
    """Of an array and of those that it is a view of."""
    address, base = id(array), array.base
    found.add(address + _FLAGS)
    if isinstance(base, np.ndarray):
        _add_flags(found, array.base)


def _add_array(found: _Places, array: Array) -> None:
    """Where it is, its shape and its type, and the memory that it lies in."""
    address = id(array)
    found.add(address + _DATA, address + _DIMENSIONS, address + _DTYPE)
    if array.ndim:
        found.add_block(_word(address + _DIMENSIONS), 2 * _WORD * array.ndim)
    low = high = _word(address + _DATA)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        low += min(stride, 0) * (extent - 1)
        high += max(stride, 0) * (extent - 1)
    if array.nbytes:
        found.add_block(low, high + array.itemsize - low)


def _of_slot(held: object, name: Any, value: object) -> tuple[int, int]:
    """An attribute of a class with `__slots__`; Python alone looks at it if it is not where CPython puts it."""
    owner = next((cls for cls in type(held).__mro__ if name in vars(cls)), None)
    if owner is None or owner.__base__ is None or not isinstance(vars(owner)[name], _SLOT):
        return _NOWHERE, 1
    slots = sorted(key for key, one in vars(owner).items() if isinstance(one, _SLOT))
    address = id(held) + owner.__base__.__basicsize__ + _WORD * slots.index(name)
    is_inside = address + _WORD <= id(held) + type(held).__basicsize__
    return (address, id(value)) if is_inside and _word(address) == id(value) else (_NOWHERE, 1)


_SLOT: Final = MemberDescriptorType
_ZEROS: Final = np.zeros(2, np.int64)
_NOWHERE: Final = _ZEROS.ctypes.data
"""An address of a word that no value has."""
_ALWAYS: Final = _NOWHERE + _WORD
"""One of a word that is 0."""


def _table(keys: int) -> tuple[int, int]:
    """Where the entries of a dictionary begin, and of how many words each is: hash, key and value, or the last two."""
    head = (ctypes.c_uint8 * _INDICES).from_address(keys)
    first = keys + _INDICES + (1 << head[_INDEX_BYTES])
    return first, 3 if head[_KIND] == _GENERAL else 2


def _entries(variables: dict[Any, Any], names: Sequence[Any]) -> dict[Any, int]:
    """The address of the value of each of these names that is there."""
    keys, values = _word(id(variables) + _KEYS), _word(id(variables) + _SPLIT_VALUES)
    count = _word(keys + _COUNT)
    first, width = _table(keys)
    table = (ctypes.c_int64 * (width * count)).from_address(first)
    places = dict(zip(table[width - 2 :: width], range(count), strict=True))
    begin, step = (values + _SPLIT_FIRST, 1) if values else (first + _WORD * (width - 1), width)
    objects = {id(name): name for name in names if name in variables}
    if not objects.keys() <= places.keys():  # equal to a key, and another object
        wanted = {*names}
        objects = {id(key): key for key in variables if key in wanted}
    return {
        name: begin + _WORD * step * places[address]
        for address, name in objects.items()
        if address in places
    }


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


class _Probe:
    """Its objects share the keys of their dictionaries."""

    def __init__(self, one: object, other: object) -> None:
        self.one = one
        self.other = other


def _probe(one: int = 1, *, other: int = 2) -> tuple[int, int]:
    """A function with defaults of both kinds."""
    return one, other


@cache
def _layout_holds() -> bool:
    """Whether values are where they are looked for: in dictionaries with gaps, of each kind, and elsewhere."""
    held = object()
    names: dict[Any, Any] = {f"v{k}": object() for k in range(11)}
    for k in (0, 4, 5):
        del names[f"v{k}"]
    names["v7"] = held
    numbers: dict[Any, Any] = {k: object() for k in (1, 7, 5)}
    shared: dict[Any, Any] = vars(_Probe(held, object()))
    array = np.arange(3)
    watched: list[WatchedVariable] = [
        *((one, name, one[name]) for one in (names, numbers, shared) for name in one),
        (CellType(held), None, held),
    ]
    one, many = {held}, {object() for _ in range(11)}
    groups: list[tuple[Any, set[int]]] = [
        ([held, 1], {id(held), 2}), (one, {id(held), 1, 7}), (many, {*map(id, many), 11, 31}),
        *((one, {*map(id, one.values()), len(one)}) for one in (names, numbers, shared)),
        (array, {array.ctypes.data, id(array.dtype), 0, 1, 2, 3, 8}),
    ]  # fmt: skip
    return (
        all(address != _NOWHERE and _word(address) == word for address, word in _words_of(watched))
        and all(
            words <= {word for _, word in _words_of([(one, ..., None)])} for one, words in groups
        )
        and {*map(id, (_probe.__code__, _probe.__defaults__, _probe.__kwdefaults__))}
        <= {word for _, word in _words_of([(cast(FunctionType, _probe), None, None)])}
    )


def _words_of(variables: Sequence[WatchedVariable]) -> list[tuple[int, int]]:
    """All that is looked at, as pairs."""
    found = _places(variables, None)
    more = [
        (address + k, int.from_bytes(content[k : k + _WORD], sys.byteorder, signed=True))
        for address, content in found.blocks
        for k in range(0, len(content), _WORD)
    ]
    return found.pairs + more
