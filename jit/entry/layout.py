"""Field offsets of CPython and NumPy objects that the native entry reads.

The offsets hold for CPython 3.11 to 3.14 with the GIL and NumPy 1.26 to 2.x. They are not promised
by anybody, so `selftest` compares each with what Python says of real objects before an entry is
used.
"""

import ctypes
import inspect
from functools import cache
from types import MemberDescriptorType
from typing import Any, Final

import numpy as np

# offsets in bytes of the fields of `PyObject`
REFERENCES: Final = 0  # 32 bits; the other half of the word holds flags on 3.14
TYPE: Final = 8

# of `PyArrayObject`
ARRAY_DATA: Final = 16
ARRAY_RANK: Final = 24
ARRAY_SHAPE: Final = 32
ARRAY_STRIDES: Final = 40
ARRAY_BASE: Final = 48
ARRAY_DTYPE: Final = 56
ARRAY_FLAGS: Final = 64
ARRAY_WEAK_REFERENCES: Final = 72

# of `PyArray_Descr`
DTYPE_BYTE_ORDER: Final = 26
DTYPE_NUMBER: Final = 28

# of `PyTupleObject`
TUPLE_SIZE: Final = 16
TUPLE_ITEMS: Final = tuple.__basicsize__

# flags of arrays: `NPY_ARRAY_…` of ndarraytypes.h
C_CONTIGUOUS: Final = 0x001
F_CONTIGUOUS: Final = 0x002
OWNS_DATA: Final = 0x004
ALIGNED: Final = 0x100
WRITABLE: Final = 0x400

# bytes of `PyObject` and `PyArrayObject`
HEAD_SIZE: Final = 16
ARRAY_SIZE: Final = 96


def slot_of(cls: type[object], name: str) -> MemberDescriptorType:
    """The descriptor of a slot. Raises: TypeError when no `__slots__` of the class has the name."""
    found = inspect.getattr_static(cls, name, None)
    if not isinstance(found, MemberDescriptorType):
        raise TypeError(f"{cls.__qualname__} has no slot {name!r}")
    return found


def slot_offset(cls: type[object], name: str) -> int:
    """Where in its instances a class keeps the slot `name`: found by setting it in an instance.

    Raises: TypeError when it has no such slot, or its instances cannot be made as plain objects
    are.
    """
    descriptor = slot_of(cls, name)
    instance: object = object.__new__(cls)
    offsets = range(HEAD_SIZE, cls.__basicsize__ - 7, 8)
    unset = {offset for offset in offsets if pointer_at(id(instance) + offset) == 0}
    content = object()
    descriptor.__set__(instance, content)
    found = [offset for offset in unset if pointer_at(id(instance) + offset) == id(content)]
    if len(found) != 1:
        raise TypeError(f"{cls.__qualname__}.{name} is not an ordinary slot")
    return found[0]


def fresh_flags(shape: tuple[int, ...]) -> int:
    """The flags of an array that has just been made, in C order."""
    flags = C_CONTIGUOUS | OWNS_DATA | ALIGNED | WRITABLE
    if 0 in shape or sum(length > 1 for length in shape) <= 1:
        flags |= F_CONTIGUOUS
    return flags


def fresh_strides(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of an array that has just been made, in C order: all 0 when it has no elements."""
    if 0 in shape:
        return (0,) * len(shape)
    strides: list[int] = []
    for length in reversed(shape):
        strides.append(item)
        item *= length
    return tuple(reversed(strides))


@cache
def type_numbers(dtype: np.dtype[Any]) -> tuple[int, ...]:
    """NumPy's numbers for a dtype: int64 is both `long` and `long long` on most machines."""
    same = (dtype.kind, dtype.itemsize)
    codes = map(np.dtype, "?bBhHiIlLqQefd")
    return tuple(code.num for code in codes if (code.kind, code.itemsize) == same)


def pointer_at(address: int) -> int:
    """The 64-bit word at an address."""
    return ctypes.c_uint64.from_address(address).value


def word_at(address: int) -> int:
    """The 32-bit word at an address."""
    return ctypes.c_int32.from_address(address).value
