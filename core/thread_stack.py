"""The bounds of a thread's C stack, as the C library reports them."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from .lazy_dataclass import dataclass

ROOM: Final = 128 << 10
"""Bytes that are left for what compiled code calls itself: the C library, the LAPACK, handlers of signals, and some
frames of Python. musl, whose library must do with the stack of any thread it makes, gives a thread as many."""

MOST: Final = 256 << 20
"""Of a larger stack, or one without a limit, only so much is used: a recursion without end is to end soon, and writes
that much memory; 32 times the 8 MiB that threads usually have."""

_ATTRIBUTES: Final = 256
"""Bytes for a `pthread_attr_t`, more than any system needs: glibc has 56, macOS 64."""


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
