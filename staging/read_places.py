"""Places that a trace reads from besides its arguments, and what they held.

holder          name            value
a dictionary    a key           what is there: a global, an attribute of a module, of an object or of a class
a dictionary    SIZE            how many keys it has
a cell                          a variable of an enclosing function
a function                      its code, which tools that reload modules replace
a list                          how many elements it has, and the first of them
a set                           its elements, of a large one how many
an object       a slot          an attribute of a class with `__slots__`
an ndarray      byte offsets    its elements; of a large one the words at these offsets
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np

from ..core.lazy_dataclass import dataclass
from ..core.types import Array
from .spec import is_tuple

Holder: TypeAlias = (
    "dict[Any, Any] | CellType | FunctionType | list[Any] | set[Any] | Array | object"
)

MISSING: Final = object()
"""What a place holds that is not there."""
SIZE: Final = ...

MOST_WATCHED: Final = 32
"""Elements of a list, keys of a dictionary or words of an array that are looked at before each call, each at 0.4 ns."""
MOST_ELEMENTS: Final = 256
"""Of a collection that is looked into: larger ones are data."""
_WORD: Final = 8
"""Bytes that native code compares at once."""
_SMALL: Final = 1 << 16
"""Bytes of arrays that Python compares whole; of larger ones words that are spread evenly."""


@dataclass(eq=False, slots=True)
class ReadVariable:
    """A place, and what it held.  `is_inside`: in an object, list, dictionary or array."""

    holder: Any
    """A `Holder`; as a field of that type, checkers would take a function for a method."""
    name: Any
    value: object
    is_inside: bool = False

    @property
    def key(self) -> tuple[int, object]:
        """What tells places apart."""
        return id(self.holder), self.name

    def now(self) -> object:
        """What it holds."""
        holder: Any = self.holder
        match self.holder:
            case dict():
                return len(holder) if self.name is SIZE else holder.get(self.name, MISSING)
            case CellType():
                return content(holder)
            case FunctionType():
                return holder.__code__
            case list():
                return (len(holder), *holder[:MOST_WATCHED])
            case set():
                return frozenset(holder) if len(holder) <= MOST_ELEMENTS else len(holder)
            case np.ndarray():
                return _elements(holder, self.name)
            case _:
                return getattr(holder, self.name, MISSING)


def is_set(value: object) -> TypeGuard[frozenset[Any]]:
    return isinstance(value, frozenset)


def content(cell: CellType) -> object:
    """What a cell holds, or a value that nothing else is."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def offsets_in(array: Array) -> tuple[int, ...]:
    """Of the words that are looked at: all of a small array, else as many as are spread evenly."""
    last = array.nbytes - _WORD
    if last <= 0:
        return (0,) * bool(array.nbytes)
    count = min(-(-array.nbytes // _WORD), MOST_WATCHED)
    return (*(last * k // (count - 1) // _WORD * _WORD for k in range(count - 1)), last)


def _elements(array: Array, offsets: tuple[int, ...]) -> bytes:
    if array.nbytes <= _SMALL or not array.flags.c_contiguous:
        return array.tobytes()
    flat = array.reshape(-1).view(np.uint8)
    return b"".join(flat[at : at + _WORD].tobytes() for at in offsets)


def are_same(one: object, other: object) -> bool:
    """Whether a trace that has read `one` would be the same with `other`: numbers and texts by value."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if is_tuple(one) and is_tuple(other):
        return len(one) == len(other) and all(map(are_same, one, other))
    if isinstance(one, bytes):
        return one == other
    if is_set(one) and is_set(other):
        return {(type(element), element) for element in one} == {
            (type(element), element) for element in other
        }
    return type(one) in _PLAIN and repr(one) == repr(other)  # −0.0 is not 0.0


_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
