"""Places that a trace reads from besides its arguments, and what they held.

holder          name            value
a dictionary    a key           what is there: a global, an attribute of a module, of an object or of a class
a dictionary    WHOLE           its keys and values
a cell                          a variable of an enclosing function
a function                      its code and the defaults of its parameters
a list, deque   WHOLE           its elements
a set           WHOLE           its elements
an object       a slot          an attribute of a class with `__slots__`
an ndarray      WHOLE           its shape, type and bytes
an ndarray      FROZEN          whether neither it nor what it is a view of may be written to
bytes           WHOLE           of a bytearray, an `array`, a memoryview
a ContextVar                    its value

What a place does not hold is MISSING: a name that is a builtin's, or an attribute that a class has, may come later.
"""

from __future__ import annotations

from array import array as PythonArray
from collections import deque
from contextvars import ContextVar
from operator import is_
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
WHOLE: Final = ...
FROZEN: Final = "frozen"


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

    @property
    def size(self) -> int:
        """How many values it holds: elements of a collection, else one."""
        holder: Any = self.holder
        is_group = self.name is WHOLE and isinstance(self.holder, (dict, list, set, deque))
        return len(holder) if is_group else 1

    def now(self) -> object:
        """What it holds."""
        holder: Any = self.holder
        match self.holder:
            case dict():
                if self.name is WHOLE:
                    return tuple(holder.keys()), tuple(holder.values())
                return holder.get(self.name, MISSING)
            case CellType():
                return content(holder)
            case FunctionType():
                return holder.__code__, holder.__defaults__, holder.__kwdefaults__
            case list() | deque():
                return tuple(holder)
            case set():
                return frozenset(holder)
            case np.ndarray() if self.name is FROZEN:
                return is_frozen(holder)
            case np.ndarray():
                return holder.shape, holder.dtype.str, holder.tobytes()
            case bytearray() | PythonArray() | memoryview():
                return holder.tobytes() if hasattr(holder, "tobytes") else bytes(holder)
            case ContextVar():
                return holder.get(MISSING)
            case _:
                return getattr(holder, self.name, MISSING)


def is_instance(value: object, cls: type[Any] | tuple[type[Any], ...]) -> bool:
    """`isinstance`, after which a value of type Any is still one: checkers know no elements of a bare `dict`."""
    return isinstance(value, cls)


def is_set(value: object) -> TypeGuard[frozenset[Any]]:
    return isinstance(value, frozenset)


def content(cell: CellType) -> object:
    """What a cell holds, or a value that nothing else is."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def is_frozen(array: Array) -> bool:
    """Whether nobody can write to an array: neither to itself, nor to what it is a view of."""
    held: Any = array
    while isinstance(held, np.ndarray):
        if held.flags.writeable:
            return False
        held = held.base
    return held is None or isinstance(held, bytes)


def are_same(one: object, other: object) -> bool:
    """Whether a trace that has read `one` would be the same with `other`: numbers and texts by value."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if is_tuple(one) and is_tuple(other):
        return len(one) == len(other) and (
            all(map(is_, one, other)) or all(map(are_same, one, other))
        )
    if isinstance(one, bytes):
        return one == other
    if is_instance(one, np.generic):
        return np.array(one).tobytes() == np.array(other).tobytes()
    if is_set(one) and is_set(other):
        return {(type(element), element) for element in one} == {
            (type(element), element) for element in other
        }
    return type(one) in _PLAIN and repr(one) == repr(other)  # −0.0 is not 0.0


_PLAIN: Final = frozenset({bool, int, float, complex, str, type(None)})
