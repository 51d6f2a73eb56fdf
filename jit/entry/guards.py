"""Guards: what native code looks at before each call, to find out that a variable of Python holds something else.

A guard is a list of pairs of words, an address and what must be there, which the entry compares one after the other:
1. For each dictionary of variables, where it keeps its keys.  As long as that is so, its entries lie where they did.
2. For each variable, the entry of the dictionary, or the cell, that holds its value.

Variables are read in place, without a call into Python: a nanosecond for three of them.  What does not match goes to
the fallback, as arguments that do not fit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from types import CellType
from typing import Any, Final, TypeAlias

import numpy as np

from ...core.types import Array
from .selftest import is_supported

WatchedVariable: TypeAlias = "tuple[dict[str, Any] | CellType, str, object]"
"""Its holder, its name, and what it holds."""

# CPython 3.11 to 3.13: PyDictObject, PyDictKeysObject and PyCellObject of Include/internal/pycore_dict.h, cellobject.h
_KEYS: Final = 32
_SPLIT_VALUES: Final = 40
_INDEX_BYTES: Final = 9
_KIND: Final = 10
_COUNT: Final = 24
_INDICES: Final = 32
_CONTENT: Final = 16
_UNICODE: Final = 1


class Guard:
    """The pairs for some variables.  The caller keeps these and what they hold alive."""

    __slots__ = ("pairs",)

    def __init__(self, variables: Sequence[WatchedVariable]) -> None:
        holders = {id(one[0]) for one in variables if isinstance(one[0], dict)}
        self.pairs: Array = np.zeros((len(holders) + len(variables), 2), np.int64)

    def update(self, variables: Sequence[WatchedVariable]) -> bool:
        """Look where they are now; whether that is known of all."""
        found = _pairs(variables)
        self.pairs[:] = found
        return not any(address == _NOWHERE for address, _ in found)


def can_guard() -> bool:
    """Whether native code can look at variables, as CPython lays them out in this process."""
    return is_supported() and _layout_holds()


def _pairs(variables: Sequence[WatchedVariable]) -> list[tuple[int, int]]:
    dicts = {id(one[0]): one[0] for one in variables if isinstance(one[0], dict)}
    places = {address: _entries(one) for address, one in dicts.items()}
    pairs = [(address + _KEYS, _word(address + _KEYS)) for address in dicts]
    for holder, name, value in variables:
        if isinstance(holder, dict):
            pairs.append((places[id(holder)].get(name, _NOWHERE), id(value)))
        else:
            pairs.append((id(holder) + _CONTENT, id(value)))
    return pairs


_ZERO: Final = np.zeros(1, np.int64)
_NOWHERE: Final = _ZERO.ctypes.data
"""An address of a word that no value has."""


def _entries(variables: dict[str, Any]) -> dict[str, int]:
    """The address of each value."""
    keys = _word(id(variables) + _KEYS)
    head = (ctypes.c_uint8 * _INDICES).from_address(keys)
    if head[_KIND] != _UNICODE or _word(id(variables) + _SPLIT_VALUES):
        return {}
    count = _word(keys + _COUNT)
    first = keys + _INDICES + (1 << head[_INDEX_BYTES])
    table = (ctypes.c_int64 * (2 * count)).from_address(first)
    at = {key: first + 16 * k + 8 for k, key in enumerate(table[::2])}
    return {name: at[id(name)] for name in variables if id(name) in at}


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


@cache
def _layout_holds() -> bool:
    """Whether values are where they are looked for, in dictionaries with gaps and in cells."""
    probe = {f"v{k}": object() for k in range(11)}
    for k in (0, 4, 5):
        del probe[f"v{k}"]
    held = object()
    cell = CellType(held)
    try:
        found = _entries(probe)
        right = {name: id(value) for name, value in probe.items()}
        if {name: _word(place) for name, place in found.items()} != right:
            return False
        probe["v7"] = held
        return _word(found["v7"]) == id(held) == _word(id(cell) + _CONTENT)
    except (KeyError, ValueError):
        return False
