"""Where the stack of a thread ends: how deep compiled code may recurse in it.

The C library knows the bounds of each thread's stack. They are asked for once a thread, and the end, with room left for
what compiled code calls, is kept under a key of the thread's own, where compiled code finds it in nanoseconds.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

ROOM: Final = 128 << 10
"""Bytes that are left for what compiled code calls itself: the C library, the BLAS, handlers of signals."""

MOST: Final = 256 << 20
"""Of a larger stack, or one without a limit, only so much is used: a recursion without end is to end soon."""

_ATTRIBUTES: Final = 256
"""Bytes for a `pthread_attr_t`, more than any system needs."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The addresses between which the stack of a thread grows downwards."""

    low: int
    high: int

    @property
    def limit(self) -> int:
        """The address below which compiled code does not go; of a small stack, a quarter is left."""
        size = min(self.high - self.low, MOST)
        return self.high - size + min(ROOM, size // 4)


def current_stack() -> Stack | None:
    """The stack of the thread that asks; None where the system does not say."""
    library = ctypes.CDLL(None)
    if hasattr(library, "pthread_getattr_np"):
        return _of_linux(library)
    if hasattr(library, "pthread_get_stackaddr_np"):
        return _of_macos(library)
    return None


def find_limit() -> int:
    """The limit of the thread that asks, which is kept for the next time; 0, which limits nothing, if unknown."""
    stack, key = current_stack(), stack_key()
    limit = stack.limit if stack is not None else 0
    if key is not None and limit:
        _library().pthread_setspecific(ctypes.c_uint(key), ctypes.c_void_p(limit))
    return limit


@cache
def stack_key() -> int | None:
    """The key under which threads keep their limits; None where there are no such keys, or no bounds."""
    if not hasattr(_library(), "pthread_key_create") or current_stack() is None:
        return None
    key = ctypes.c_uint()
    failed: int = _library().pthread_key_create(ctypes.byref(key), None)
    return None if failed else key.value


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _of_linux(library: Any) -> Stack | None:
    """glibc and musl: the guard page is part of what they report."""
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    low, size, guard = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    library.pthread_self.restype = ctypes.c_void_p
    thread = ctypes.c_void_p(library.pthread_self())
    if library.pthread_getattr_np(thread, attributes):
        return None
    failed = library.pthread_attr_getstack(attributes, ctypes.byref(low), ctypes.byref(size))
    failed = failed or library.pthread_attr_getguardsize(attributes, ctypes.byref(guard))
    library.pthread_attr_destroy(attributes)
    if failed or not low.value or guard.value >= size.value:
        return None
    return Stack(low.value + guard.value, low.value + size.value)


def _of_macos(library: Any) -> Stack | None:
    for name in ("pthread_self", "pthread_get_stackaddr_np"):
        getattr(library, name).restype = ctypes.c_void_p
    library.pthread_get_stacksize_np.restype = ctypes.c_size_t
    thread = ctypes.c_void_p(library.pthread_self())
    high, size = library.pthread_get_stackaddr_np(thread), library.pthread_get_stacksize_np(thread)
    return Stack(high - size, high) if high and size else None
