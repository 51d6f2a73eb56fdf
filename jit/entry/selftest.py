"""Verifies once per process that objects have the layout that `layout` assumes, before native entries are used.

Each offset is compared with what Python says of real objects. When one differs, or when the
interpreter is of a kind that shares objects in other ways, programs are called through the Python
path in `fallback`, which behaves the same.
"""

import ctypes
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from ...core.signal_handlers import pass_on
from ...core.types import Array
from . import capi, layout
from .layout import pointer_at, slot_offset, word_at


def is_supported() -> bool:
    """Whether native entries can be used in this process."""
    return unsupported_reason() is None


@cache
def unsupported_reason() -> str | None:
    """Why native entries cannot be used in this process, or None if they can."""
    for check in (
        _environment, _sizes, _arrays, _references, _immortals, _tuples, _slots, _table
    ):  # fmt: skip
        try:
            reason = next(check(), None)
        except Exception as error:  # whatever it is, something is not as expected
            pass_on(error)
            reason = f"{check.__name__} failed: {error!r}"
        if reason is not None:
            return reason
    return None


# The checks, each yielding what it finds wrong. A later one may rely on those before.


def _environment() -> Iterator[str]:
    if sys.implementation.name != "cpython":
        yield f"this is {sys.implementation.name}, not cpython"
    if sys.maxsize != 2**63 - 1 or sys.byteorder != "little":
        yield "this machine is not a 64-bit little-endian one"
    if hasattr(sys, "gettotalrefcount") or hasattr(sys, "getobjects"):
        yield "this is a debug build of Python"
    enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if sysconfig.get_config_var("Py_GIL_DISABLED") or not enabled():
        # with the GIL switched on at its start, too: such a build lays out every object differently
        yield "this build of Python is free-threaded: it shares objects without the GIL"


def _sizes() -> Iterator[str]:
    if object.__basicsize__ != layout.HEAD_SIZE:
        yield f"objects have a head of {object.__basicsize__} bytes"
    if np.ndarray.__basicsize__ != layout.ARRAY_SIZE:
        yield f"arrays have a head of {np.ndarray.__basicsize__} bytes"


def _sample_arrays() -> tuple[Array, ...]:
    """Arrays that differ from each other in every field."""
    table = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    pair = np.zeros(3, np.dtype([("a", np.int8), ("b", np.int32)]))
    constant = np.zeros((2, 2), np.float16)
    constant.flags.writeable = False
    return (
        table,
        table[:, ::2],
        table.T,
        np.asfortranarray(np.zeros((3, 4))),
        np.array(1.5),
        np.zeros((1, 0, 5), np.bool_),
        np.zeros(4, ">i4"),
        pair["b"],
        constant,
    )


def _arrays() -> Iterator[str]:
    for array in _sample_arrays():
        where = id(array)
        for name, offset, expected in (
            ("type", layout.TYPE, id(np.ndarray)),
            ("data", layout.ARRAY_DATA, array.__array_interface__["data"][0]),
            ("base", layout.ARRAY_BASE, 0 if array.base is None else id(array.base)),
            ("dtype", layout.ARRAY_DTYPE, id(array.dtype)),
        ):
            if pointer_at(where + offset) != expected:
                yield f"the {name} of arrays is elsewhere"
        if word_at(where + layout.ARRAY_RANK) != array.ndim:
            yield "the rank of arrays is elsewhere"
        if word_at(where + layout.ARRAY_FLAGS) != array.flags.num:
            yield "the flags of arrays are elsewhere"
        yield from _shape(array)
        yield from _dtype(array.dtype)


def _shape(array: Array) -> Iterator[str]:
    """NumPy keeps the strides right after the shape: a pointer that is followed has been recognised first."""
    shape = pointer_at(id(array) + layout.ARRAY_SHAPE)
    strides = pointer_at(id(array) + layout.ARRAY_STRIDES)
    if array.ndim > 0 and strides != shape + 8 * array.ndim:
        yield "the shape and strides of arrays are elsewhere"
    elif array.ndim > 0:
        words = (ctypes.c_int64 * (2 * array.ndim)).from_address(shape)
        if tuple(words) != (*array.shape, *array.strides):
            yield "the shape and strides of arrays are different"


def _dtype(dtype: np.dtype[Any]) -> Iterator[str]:
    if word_at(id(dtype) + layout.DTYPE_NUMBER) != dtype.num:
        yield "the number of dtypes is elsewhere"
    order = ctypes.c_char.from_address(id(dtype) + layout.DTYPE_BYTE_ORDER).value
    if order != dtype.byteorder.encode():
        yield "the byte order of dtypes is elsewhere"


def _references() -> Iterator[str]:
    holder = [np.zeros(2)]
    where = id(holder[0])
    weak = where + layout.ARRAY_WEAK_REFERENCES
    if word_at(where + layout.REFERENCES) != 1 or pointer_at(weak) != 0:
        yield "references are counted elsewhere"
    holder.append(holder[0])
    if word_at(where + layout.REFERENCES) != 2:
        yield "references are counted differently"
    holder.pop()
    reference = weakref.ref(holder[0])
    if pointer_at(weak) != id(reference):
        yield "weak references of arrays are elsewhere"

    del reference
    yield from _own_count(holder)


def _own_count(holder: list[Array]) -> Iterator[str]:
    """An entry writes how many references there are to an array that it alone holds, as 32 bits.

    That is the whole number on 3.14, where flags follow it, and its lower half before, where zeros do.
    """
    where = id(holder[0]) + layout.REFERENCES
    count, beside = ctypes.c_int32.from_address(where), word_at(where + 4)
    said = sys.getrefcount(holder[0])
    count.value = 2
    more = sys.getrefcount(holder[0]) - said
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(holder[0]))
    if (more, count.value, word_at(where + 4)) != (1, 1, beside):
        count.value = 1
        yield "references are not counted in the word that an entry writes"


def _immortals() -> Iterator[str]:
    """From 3.12 on, some objects are never freed, and the words of their counts are no counts.

    An entry meets them as empty places for results, as numbers of a failure and as the classes of instances.
    It leaves their counts to CPython, and takes none of them for an array that it alone holds.
    """
    for shared in (None, True, 0, (), np.ndarray, tuple, SystemError):
        where = id(shared) + layout.REFERENCES
        before = ctypes.c_uint64.from_address(where).value
        if word_at(where) == 1:
            yield f"{shared!r} seems to be referred to once"
        for function in (ctypes.pythonapi.Py_IncRef, ctypes.pythonapi.Py_DecRef):
            function(ctypes.py_object(shared))
        if abs(ctypes.c_uint64.from_address(where).value - before) > _OTHERS:
            yield f"the references of {shared!r} are counted differently"


_OTHERS: Final = 1000
"""References to a shared object, at most, that other threads make or drop in the meantime, which is two calls: any
large number does, as what is no counter is an address or flags."""


def _tuples() -> Iterator[str]:
    items = (object(), [1], "three")
    where = id(items)
    if pointer_at(where + layout.TUPLE_SIZE) != len(items):
        yield "the size of tuples is elsewhere"
    found = [pointer_at(where + layout.TUPLE_ITEMS + 8 * index) for index in range(len(items))]
    if found != [*map(id, items)]:
        yield "the items of tuples are elsewhere"


class _Slotted:
    __slots__ = ("_first", "_second")


class _Derived(_Slotted):
    """A subclass without slots of its own, so with a dictionary and weak references."""


def _slots() -> Iterator[str]:
    for cls in (_Slotted, _Derived):
        try:
            first, second = slot_offset(cls, "_first"), slot_offset(cls, "_second")
        except TypeError as error:
            yield str(error)
        else:
            if first == second:
                yield "slots are elsewhere"


def _table() -> Iterator[str]:
    table = capi.numpy_table()
    if pointer_at(table + 8 * capi.TABLE_ARRAY_TYPE) != id(np.ndarray):
        yield "NumPy's table has another array type"
    if pointer_at(table + 8 * capi.TABLE_DTYPE_TYPE) != id(np.dtype):
        yield "NumPy's table has another dtype type"
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(pointer_at(table + 8 * capi.TABLE_VERSION))()
    if version not in capi.TABLE_VERSIONS:
        yield f"NumPy has the unknown binary interface {version:#x}"
    yield from _array_new(pointer_at(table + 8 * capi.TABLE_NEW))


def _array_new(address: int) -> Iterator[str]:
    """Make arrays as an entry does."""
    number, pointer = ctypes.c_int, ctypes.c_void_p
    shape_and_kind = (ctypes.py_object, number, pointer, number)
    parameters = (*shape_and_kind, pointer, pointer, number, number, pointer)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *parameters)(address)
    dtype = np.dtype(np.float32)
    for shape in ((), (3,), (1, 3), (2, 3), (4, 0)):
        lengths = (ctypes.c_int64 * len(shape))(*shape)
        made: Array = new(
            np.ndarray, len(shape), ctypes.addressof(lengths), dtype.num, None, None, 0, 0, None
        )
        if type(made) is not np.ndarray or made.shape != shape:
            yield "NumPy makes arrays of another shape"
        elif made.dtype is not dtype or made.flags.num != layout.fresh_flags(shape):
            yield "NumPy makes arrays with other properties"
