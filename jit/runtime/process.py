"""Addresses of the process's functions that compiled code calls: GIL, signals, clock, stack limit.

The functions are CPython's, the C library's, and one of ours (`find_limit`); `WORDS` is memory that all compiled
code of the process shares. Where one of them is missing, code is compiled without polls and keeps the GIL.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from ...core.lazy_dataclass import dataclass
from ...core.thread_stack import current_stack
from .memory_limit import memory_limit

PREFIX: Final = "nnkit.process."
"""Before the name of a function or variable of this file, its name in our modules."""

WORDS: Final = PREFIX + "words"
CLOCK: Final = PREFIX + "clock"
STACK: Final = PREFIX + "stack"

MAIN_THREAD: Final = 0
"""Offset into `WORDS`: the identifier of the thread that runs the handlers of signals."""
STACK_KEY: Final = 8
"""The key under which a thread keeps the end of its stack."""
MOST_KEPT: Final = 16
"""How many bytes a run may keep until it ends, by `memory_limit`."""
_COUNT: Final = 4
"""Words: the three above, and one to spare."""

_PYTHON: Final = (
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyErr_CheckSignals",
    "PyThread_get_thread_ident",
)


@dataclass(frozen=True, eq=False)
class Process:
    """Addresses by symbol, and the number by which the C library knows the clock that never goes back."""

    symbols: Mapping[str, int]
    clock: int
    kept: object
    """Owns the memory and the function behind two of the addresses."""


@cache
def this_process() -> Process | None:
    """What there is in this process; None where something is missing, as in an interpreter that is no CPython."""
    functions = {name: _address(ctypes.pythonapi, name) for name in _PYTHON}
    library = ctypes.CDLL(None)
    functions[CLOCK] = _address(library, "clock_gettime")
    functions["pthread_getspecific"] = _address(library, "pthread_getspecific")
    key, clock = stack_key(), getattr(time, "CLOCK_MONOTONIC", None)
    if key is None or clock is None or not all(functions.values()):
        return None
    words = (ctypes.c_int64 * _COUNT)()
    words[STACK_KEY // 8] = key
    words[MOST_KEPT // 8] = memory_limit()
    find = ctypes.CFUNCTYPE(ctypes.c_void_p)(find_limit)
    _after_fork(words)
    os.register_at_fork(after_in_child=lambda: _after_fork(words))
    addresses = {
        **{name: address for name, address in functions.items() if address},
        WORDS: ctypes.addressof(words),
        STACK: ctypes.cast(find, ctypes.c_void_p).value or 0,
    }
    return Process(MappingProxyType(addresses), clock, (words, find))


def _after_fork(words: Any) -> None:
    """The thread that forked is the main thread of the child."""
    words[MAIN_THREAD // 8] = threading.main_thread().ident or 0


def _address(library: Any, name: str) -> int | None:
    try:
        function: Callable[..., Any] = getattr(library, name)
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]  # a foreign function


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
