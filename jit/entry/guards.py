"""Guards: what native code looks at before each call, to find out that a variable of Python holds something else.

A guard is a list of pairs of words, an address and what must be there, which the entry compares one after the other:
1. For each dictionary of variables, where it keeps its keys, and values that lie apart from these.  As long as that is
   so, its entries lie where they did.
2. For each variable, the entry of the dictionary, or the cell, that holds its value; for a list and an array, where it
   keeps its elements, and words of these.

Variables are read in place, without a call into Python: a nanosecond for three of them.  What does not match goes to
the fallback, as arguments that do not fit.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from ...core.types import Array
from .selftest import is_supported

_Holder: TypeAlias = (
    "dict[Any, Any] | CellType | FunctionType | list[Any] | set[Any] | Array | object"
)
WatchedVariable: TypeAlias = "tuple[_Holder, Any, object]"
"""Its holder, its name, and what it holds.

Of a dictionary, the name `...` stands for how many keys it has; of a list, the value is how many elements it has, and
the first of them; of a set, its elements, and what its table holds now is looked at; of an array, the name is byte
offsets, and the value all of its bytes, or the words that are there.
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
_LENGTH: Final = 16
_ITEMS: Final = 24
_DATA: Final = 16
_FILLED: Final = 16
_COUNTED: Final = 24
_MASK: Final = 32
_TABLE: Final = 40
_MOST_PLACES: Final = 32
"""Of a set's table, each an element and its hash; of a larger one those that are looked at lie evenly."""
_WORD: Final = 8
"""Bytes that native code compares at once, and of a pointer."""


class Guard:
    """The pairs for some variables.  The caller keeps these and what they hold alive."""

    __slots__ = ("pairs",)

    def __init__(self, variables: Sequence[WatchedVariable]) -> None:
        self.pairs: Array = np.zeros((len(_pairs(variables)), 2), np.int64)

    def update(self, variables: Sequence[WatchedVariable]) -> bool:
        """Look where they are now; whether that is known of all."""
        found = _pairs(variables)
        if len(found) > len(self.pairs):
            return False
        found += [(_ALWAYS, 0)] * (len(self.pairs) - len(found))
        self.pairs[:] = found
        return not any(address == _NOWHERE for address, _ in found)


def can_guard() -> bool:
    """Whether native code can look at variables, as CPython lays them out in this process."""
    return is_supported() and _layout_holds()


def _pairs(variables: Sequence[WatchedVariable]) -> list[tuple[int, int]]:
    dicts: dict[int, dict[Any, Any]] = {}
    named: set[int] = set()
    for one in variables:
        held: Any = one[0]  # whose elements isinstance leaves Any
        if isinstance(one[0], dict):
            dicts[id(held)] = held
        if one[1] is not ...:
            named.add(id(held))
    places = {address: _entries(one) for address, one in dicts.items() if address in named}
    pairs: list[tuple[int, int]] = []
    for address in dicts:
        pairs.append((address + _KEYS, _word(address + _KEYS)))
        if _word(address + _SPLIT_VALUES):
            pairs.append((address + _SPLIT_VALUES, _word(address + _SPLIT_VALUES)))
    for holder, name, value in variables:
        held = holder
        match holder:
            case dict() if name is ...:
                assert isinstance(value, int)
                pairs.append((id(held) + _USED, value))
            case dict():
                pairs.append((places[id(held)].get(name, _NOWHERE), id(value)))
            case CellType():
                pairs.append((id(holder) + _CONTENT, id(value)))
            case FunctionType():
                pairs.append((id(holder) + _CODE, id(value)))
            case list():
                pairs += _of_list(held, value)
            case set():
                pairs += _of_set(held)
            case np.ndarray():
                pairs += _of_array(holder, name, value)
            case _:
                pairs += _of_slot(holder, name, value)
    return pairs


def _of_list(held: list[Any], value: Any) -> Iterator[tuple[int, int]]:
    count, *elements = value
    items = _word(id(held) + _ITEMS)
    yield id(held) + _ITEMS, items
    yield id(held) + _LENGTH, count
    for k, element in enumerate(elements):
        yield items + _WORD * k, id(element)


def _of_set(held: set[Any]) -> Iterator[tuple[int, int]]:
    """Where its table is, how full, and what is in it."""
    address, table = id(held), _word(id(held) + _TABLE)
    for offset in (_TABLE, _MASK, _FILLED, _COUNTED):
        yield address + offset, _word(address + offset)
    places = _word(address + _MASK) + 1
    for k in range(0, places, -(-places // _MOST_PLACES)):
        yield table + 2 * _WORD * k, _word(table + 2 * _WORD * k)


def _of_slot(held: object, name: str, value: object) -> Iterator[tuple[int, int]]:
    """An attribute of a class with `__slots__`; Python alone looks at it if it is not where CPython puts it."""
    owner = next((cls for cls in type(held).__mro__ if name in vars(cls)), None)
    if owner is None or owner.__base__ is None:
        return
    slots = sorted(key for key, one in vars(owner).items() if isinstance(one, MemberDescriptorType))
    address = id(held) + owner.__base__.__basicsize__ + _WORD * slots.index(name)
    if address + _WORD <= id(held) + type(held).__basicsize__ and _word(address) == id(value):
        yield address, id(value)


def _of_array(array: Array, offsets: Sequence[int], value: Any) -> Iterator[tuple[int, int]]:
    """Its elements lie in one piece, or Python alone looks at them."""
    data = _word(id(array) + _DATA)
    if not array.flags.c_contiguous:
        return
    yield id(array) + _DATA, data
    if array.nbytes < _WORD:  # what is beside it changes as well, at times
        yield from ((at, _word(at)) for at in [data // _WORD * _WORD] * bool(array.nbytes))
        return
    is_whole = len(value) == array.nbytes
    for k, offset in enumerate(offsets):
        at = offset if is_whole else _WORD * k
        yield data + offset, int.from_bytes(value[at : at + _WORD], sys.byteorder, signed=True)


_ZEROS: Final = np.zeros(2, np.int64)
_NOWHERE: Final = _ZEROS.ctypes.data
"""An address of a word that no value has."""
_ALWAYS: Final = _NOWHERE + _WORD
"""One of a word that is 0."""


def _entries(variables: dict[Any, Any]) -> dict[Any, int]:
    """The address of each value."""
    keys, values = _word(id(variables) + _KEYS), _word(id(variables) + _SPLIT_VALUES)
    head = (ctypes.c_uint8 * _INDICES).from_address(keys)
    count = _word(keys + _COUNT)
    first = keys + _INDICES + (1 << head[_INDEX_BYTES])
    width = 3 if head[_KIND] == _GENERAL else 2  # hash, key and value, or the last two
    table = (ctypes.c_int64 * (width * count)).from_address(first)
    places = {
        key: values + _SPLIT_FIRST + _WORD * k
        if values
        else first + _WORD * (width * k + width - 1)
        for k, key in enumerate(table[width - 2 :: width])
    }
    return {key: places[id(key)] for key in variables if id(key) in places}


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


class _Probe:
    """Its objects share the keys of their dictionaries."""

    def __init__(self, one: object, other: object) -> None:
        self.one = one
        self.other = other


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
    watched: list[WatchedVariable] = [
        *((one, name, one[name]) for one in (names, numbers, shared) for name in one),
        *((one, ..., len(one)) for one in (names, numbers, shared)),
        (CellType(held), None, held),
        (cast(FunctionType, _word), None, _word.__code__),
        ([held, 1], None, (2, held, 1)),
        (np.arange(3), (0, 8, 16), np.arange(3).tobytes()),
    ]
    one, many = {held}, {object() for _ in range(11)}
    return (
        all(address != _NOWHERE and _word(address) == word for address, word in _pairs(watched))
        and {id(held), 1, 7} <= {word for _, word in _of_set(one)}
        and {*map(id, many), 11, 31} <= {word for _, word in _of_set(many)}
    )
