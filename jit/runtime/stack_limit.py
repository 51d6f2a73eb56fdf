"""The stack limit of a thread, which bounds the recursion of compiled code.

The bounds are asked for once a thread (`core.thread_stack`), and the end, with room left for what compiled code calls,
is kept under a key of the thread's own, where compiled code finds it in nanoseconds.
"""

from __future__ import annotations

import ctypes
from functools import cache

from ...core.thread_stack import current_stack


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
